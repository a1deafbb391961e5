#include "isa/launch.h"

namespace hologram::isa {

Status check_launch(const Program& program, const LaunchShape& shape,
                    std::span<const Argument> arguments) {
  if (arguments.size() != program.parameters.size())
    return fail(ErrorCode::invalid_argument, "kernel '{}' has {} parameters, the launch gives {}",
                program.name, program.parameters.size(), arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = program.parameters[i];
    const Argument& argument = arguments[i];
    const size_t size = size_of(parameter.type);
    if (parameter.is_array) {
      if (argument.data == nullptr && argument.count != 0)
        return fail(ErrorCode::invalid_argument, "kernel '{}': array '{}' has {} elements at null",
                    program.name, parameter.name, argument.count);
      if (argument.count > (uint64_t{1} << 62) / size)
        return fail(ErrorCode::out_of_range, "kernel '{}': array '{}' cannot have {} elements",
                    program.name, parameter.name, argument.count);
      if (reinterpret_cast<uintptr_t>(argument.data) % size != 0)
        return fail(ErrorCode::invalid_argument,
                    "kernel '{}': array '{}' is not aligned to its {}-byte elements", program.name,
                    parameter.name, size);
    } else if (parameter.type == DType::boolean ? argument.bits > 1
                                                : size < 8 && argument.bits >> (8 * size) != 0) {
      return fail(ErrorCode::invalid_argument, "kernel '{}': scalar '{}': bits {:#x} are not a {}",
                  program.name, parameter.name, argument.bits, name_of(parameter.type));
    }
  }

  const auto& [bx, by, bz] = shape.block;
  if (bx == 0 || by == 0 || bz == 0 || bx > kMaxBlockThreads || by > kMaxBlockThreads ||
      bz > kMaxBlockThreads || shape.block_threads() > kMaxBlockThreads)
    return fail(ErrorCode::out_of_range,
                "kernel '{}': a block of {}x{}x{} threads; a block has 1 to {}", program.name, bx,
                by, bz, kMaxBlockThreads);
  uint64_t threads = shape.block_threads();
  for (uint32_t blocks : shape.grid)
    if (__builtin_mul_overflow(threads, uint64_t{blocks}, &threads) || threads >> 63 != 0)
      return fail(ErrorCode::out_of_range, "kernel '{}': a grid of {}x{}x{} blocks is too large",
                  program.name, shape.grid[0], shape.grid[1], shape.grid[2]);

  const bool dynamic = !program.shared.empty() && program.shared.back().count == 0;
  if (shape.shared_bytes > kMaxDynamicSharedBytes)
    return fail(ErrorCode::out_of_range, "kernel '{}': {} shared bytes; a launch may give {}",
                program.name, shape.shared_bytes, kMaxDynamicSharedBytes);
  if (shape.shared_bytes != 0 && !dynamic)
    return fail(ErrorCode::invalid_argument,
                "kernel '{}' has no dynamic shared array, the launch gives it {} bytes",
                program.name, shape.shared_bytes);
  return {};
}

}  // namespace hologram::isa
