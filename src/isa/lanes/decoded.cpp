#include "isa/lanes/decoded.h"

#include <algorithm>

namespace hologram::isa {
namespace {

// Small enough for the registers of a typical kernel to stay in the second-level cache, large
// enough to make the cost of decoding vanish.
constexpr uint32_t kIndependentLanes = 256;

Step step_of(Form form) {
  switch (form) {
    case Form::immediate:
      return Step::immediate;
    case Form::parameter:
      return Step::parameter;
    case Form::length:
      return Step::length;
    case Form::id:
      return Step::id;
    case Form::load:
    case Form::store:
    case Form::atomic:
    case Form::atomic_cas:
      return Step::memory;
    case Form::group:
      return Step::group;
    case Form::barrier:
    case Form::fence:
      return Step::nothing;
    case Form::if_begin:
      return Step::if_begin;
    case Form::for_begin:
      return Step::for_begin;
    case Form::loop_begin:
      return Step::loop_begin;
    case Form::jump:
      return Step::jump;
    case Form::if_else:
    case Form::end:
      return Step::end;
    default:
      return Step::kernel;
  }
}

LaneKernel kernel_of(const Instruction& instruction) {
  if (instruction.op == Opcode::convert) return convert_kernel(instruction.type, instruction.from);
  if (LaneKernel kernel = math_kernel(instruction)) return kernel;
  return arithmetic_kernel(instruction);
}

}  // namespace

Decoded decode_lanes(const Program& program) {
  Decoded decoded;
  decoded.program = program;
  decoded.steps.resize(program.body.size());
  std::vector<uint32_t> open;
  uint32_t fors = 0;
  for (uint32_t i = 0; i < program.body.size(); ++i) {
    const Instruction& instruction = program.body[i];
    DecodedInstruction& step = decoded.steps[i];
    step.step = step_of(info(instruction.op).form);
    decoded.has_global_atomics |= is_global_atomic(instruction.op);
    decoded.is_cooperative |= is_shared_access(instruction.op) || step.step == Step::group ||
                              instruction.op == Opcode::barrier;
    switch (step.step) {
      case Step::kernel:
        step.kernel = kernel_of(instruction);
        break;
      case Step::memory:
        step.memory = memory_kernel(instruction);
        step.widen = widen_index(program.registers[instruction.a.index]);
        break;
      case Step::group:
        step.group = group_kernel(instruction.op, instruction.type);
        break;
      case Step::for_begin:
        step.counted = for_kernels(instruction.type);
        step.bounds_depth = fors++;
        decoded.for_depth = std::max(decoded.for_depth, fors);
        [[fallthrough]];
      case Step::if_begin:
      case Step::loop_begin:
        open.push_back(i);
        decoded.depth = std::max(decoded.depth, static_cast<uint32_t>(open.size()));
        break;
      case Step::jump:
        for (uint32_t region : open) decoded.steps[region].leaves = true;
        break;
      case Step::end: {
        DecodedInstruction& region = decoded.steps[open.back()];
        if (instruction.op == Opcode::if_else) {
          region.otherwise = i;
          break;
        }
        if (region.otherwise == 0) region.otherwise = i;
        region.end = i;
        if (region.step == Step::for_begin) --fors;
        open.pop_back();
        break;
      }
      default:
        break;
    }
  }
  return decoded;
}

LaneLaunch plan_launch(const Decoded& decoded, const LaunchShape& shape,
                       std::span<const Argument> arguments, uint64_t max_steps) {
  LaneLaunch launch{
      .shape = shape, .arguments = {arguments.begin(), arguments.end()}, .max_steps = max_steps};
  launch.threads = shape.block_threads() * shape.grid[0] * uint64_t{shape.grid[1]} * shape.grid[2];
  launch.group_size =
      decoded.is_cooperative
          ? static_cast<uint32_t>(shape.block_threads())
          : static_cast<uint32_t>(std::min<uint64_t>(kIndependentLanes, launch.threads));
  if (launch.threads != 0)
    launch.groups = (launch.threads + launch.group_size - 1) / launch.group_size;
  return launch;
}

}  // namespace hologram::isa
