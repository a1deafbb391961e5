// CpuKernel: a program on the CPU, as mapped native code or as the reference interpreter.
#pragma once

#include <optional>
#include <string>

#include "backends/backend.h"
#include "backends/cpu/code_map.h"
#include "isa/interpreter.h"
#include "support/thread_pool.h"

namespace hologram::backends {

// The threads that a launch or a built-in kernel may use.
struct CpuContext {
  ThreadPool* pool = nullptr;
  unsigned threads = 1;

  // Calls body(begin, end) over [0, count): on the calling thread where only one may run.
  void parallel_for(size_t count, size_t grain, FunctionRef<void(size_t, size_t)> body,
                    Schedule schedule = Schedule::fixed) const {
    if (threads == 1)
      body(0, count);
    else
      pool->parallel_for(count, grain, body, schedule, threads);
  }
};

class CpuKernel final : public Kernel {
 public:
  // `code` null: interpreted. The code is copied.
  static Result<std::unique_ptr<CpuKernel>> create(isa::Program program,
                                                   const isa::NativeCode* code);

  std::string_view level() const override { return level_; }
  uint64_t widest_block() const override { return widest_block_; }

  Status run(const CpuContext& context, const LaunchShape& shape, const uint64_t* words,
             const uint64_t* lengths) const;

 private:
  explicit CpuKernel(isa::Program program) : Kernel(std::move(program)) {}
  Status run_parallel(const CpuContext& context, const isa::NativeLaunch& launch, uint64_t blocks,
                      uint64_t scratch_bytes) const;
  Status interpret(const CpuContext& context, const LaunchShape& shape, const uint64_t* words,
                   const uint64_t* lengths) const;

  isa::NativeEntry entry_ = nullptr;
  uint64_t fork_threads_ = 0;  // a launch of fewer threads stays on the calling one
  uint64_t widest_block_ = isa::kMaxBlockThreads;
  isa::NativeCode sizes_;  // without the bytes: what scratch a launch needs
  std::string level_;
  CodeMap map_;
  std::optional<isa::Interpreter> interpreter_;
};

}  // namespace hologram::backends
