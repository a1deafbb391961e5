// Decoded: a program as the interpreter runs it. Kernels picked, regions matched, done once.
#pragma once

#include <cstdint>
#include <vector>

#include "isa/lanes/lanes.h"
#include "isa/launch.h"
#include "isa/program.h"

namespace hologram::isa {

enum class Step : uint8_t {
  kernel,  // anything that only touches registers
  memory,
  immediate,
  parameter,
  length,
  id,
  group,
  nothing,  // barrier, fence: lockstep already orders everything
  if_begin,
  for_begin,
  loop_begin,
  jump,
  end,  // else and end, met only as the end of a range
};

struct DecodedInstruction {
  Step step = Step::nothing;
  LaneKernel kernel = nullptr;
  MemoryKernel memory = nullptr;
  WidenKernel widen = nullptr;
  GroupKernel group = nullptr;
  ForKernels counted;
  uint32_t otherwise = 0;     // if: its else, or its end
  uint32_t end = 0;           // if, for, loop: its end
  bool leaves = false;        // if, for, loop: has a jump inside, so lanes may not come back
  uint32_t bounds_depth = 0;  // for: which saved bounds are its own
};

struct Decoded {
  Program program;
  std::vector<DecodedInstruction> steps;  // one an instruction
  uint32_t depth = 0;                     // of regions inside each other
  uint32_t for_depth = 0;                 // of fors inside each other
  bool has_global_atomics = false;
  bool is_cooperative = false;  // barriers, group reductions or shared memory
};
// `program` must be verified.
Decoded decode_lanes(const Program& program);

// A launch cut into groups of threads that run in lockstep: a block each for a cooperative program,
// else any threads that follow each other.
struct LaneLaunch {
  LaunchShape shape;
  std::vector<Argument> arguments;
  uint64_t threads = 0;     // of the launch
  uint32_t group_size = 0;  // threads of a group; the last group may have less
  uint64_t groups = 0;
  uint64_t max_steps = 0;
};
LaneLaunch plan_launch(const Decoded& decoded, const LaunchShape& shape,
                       std::span<const Argument> arguments, uint64_t max_steps);

}  // namespace hologram::isa
