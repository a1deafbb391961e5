// Any bytes: an error, or a program with exactly these bytes that can be printed, read back and run
// for a while.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "isa/binary.h"
#include "isa/interpreter.h"
#include "isa/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hologram::isa;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto program = decode(bytes);
  if (!program) return 0;
  const std::vector<std::byte> encoded = encode(*program);
  if (encoded.size() != size || !std::equal(encoded.begin(), encoded.end(), bytes.begin()))
    std::abort();
  const auto again = assemble(disassemble(*program));
  if (!again || *again != *program) std::abort();

  // Small arrays, whose ends the sanitizer guards.
  std::vector<std::vector<uint64_t>> storage(program->parameters.size(), std::vector<uint64_t>(3));
  std::vector<Argument> arguments;
  for (size_t i = 0; i < storage.size(); ++i) {
    const Parameter& parameter = program->parameters[i];
    arguments.push_back(parameter.is_array
                            ? Argument::array(storage[i].data(), 24 / size_of(parameter.type))
                            : Argument{.bits = 1});
  }
  const bool dynamic = !program->shared.empty() && program->shared.back().count == 0;
  const LaunchShape shape{
      .grid = {2, 1, 1}, .block = {5, 1, 1}, .shared_bytes = dynamic ? 40u : 0u};
  const auto status = interpret(*program, shape, arguments, {.parallel = false, .max_steps = 2000});
  if (!status && status.error().code() == hologram::ErrorCode::internal) std::abort();
  return 0;
}
