#include "isa/interpreter.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#include "isa/fields.h"
#include "isa/lanes/decoded.h"
#include "isa/lanes/machine.h"
#include "isa/verifier.h"
#include "support/thread_pool.h"

namespace hologram::isa {

// What run() shares between the threads that work on it.
struct Interpreter::Impl {
  Decoded decoded;
};

Interpreter::Interpreter(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Interpreter::Interpreter(Interpreter&&) noexcept = default;
Interpreter& Interpreter::operator=(Interpreter&&) noexcept = default;
Interpreter::~Interpreter() = default;

Result<Interpreter> Interpreter::create(const Program& program) {
  HOLOGRAM_CHECK(verify(program));
  return Interpreter(std::make_unique<const Impl>(Impl{decode_lanes(program)}));
}

Status Interpreter::run(const LaunchShape& shape, std::span<const Argument> arguments,
                        const InterpreterOptions& options) const {
  const Decoded& decoded = impl_->decoded;
  HOLOGRAM_CHECK(check_launch(decoded.program, shape, arguments));
  const LaneLaunch launch = plan_launch(decoded, shape, arguments, options.max_steps);
  if (launch.groups == 0) return {};

  // Of several failures the first in launch order is reported, whichever thread met it.
  std::mutex mutex;
  std::optional<Error> first_error;
  std::atomic<uint64_t> first_failed = launch.groups;
  const auto run_groups = [&](size_t begin, size_t end) {
    const auto report = [&](uint64_t group, Error error) {
      const std::scoped_lock lock(mutex);
      if (first_error && group >= first_failed) return;
      first_failed = group;
      first_error = std::move(error);
    };
    auto machine = Machine::create(decoded, launch);
    if (!machine) return report(begin, std::move(machine).error());
    for (size_t group = begin; group < end && group < first_failed; ++group)
      if (Status done = machine->run_group(group); !done)
        return report(group, std::move(done).error());
  };
  if (options.parallel && !decoded.has_global_atomics && launch.groups > 1) {
    ThreadPool& pool = ThreadPool::shared();
    const size_t pieces = size_t{pool.size()} * 4;
    pool.parallel_for(launch.groups, std::max<size_t>(launch.groups / pieces, 1), run_groups,
                      Schedule::dynamic);
  } else {
    run_groups(0, launch.groups);
  }
  if (first_error) return std::unexpected(*std::move(first_error));
  return {};
}

Status interpret(const Program& program, const LaunchShape& shape,
                 std::span<const Argument> arguments, const InterpreterOptions& options) {
  HOLOGRAM_TRY(const Interpreter interpreter, Interpreter::create(program));
  return interpreter.run(shape, arguments, options);
}

}  // namespace hologram::isa
