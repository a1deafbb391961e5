// Lane kernels: one instruction done for many threads ("lanes") at once.
//
// A register is an array with one element a lane. Kernels are picked once when a program is
// decoded; running an instruction is one indirect call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "isa/program.h"

namespace hologram::isa {

inline constexpr uint32_t kNoLane = 0xffffffff;

// The lanes that take part, ascending. When all do (`dense`), they are 0..count-1.
struct Lanes {
  const uint32_t* index = nullptr;
  uint32_t count = 0;
  bool dense = false;
};

// Registers by role; those an instruction does not have are null. bool is one byte, 0 or 1.
struct LaneRegisters {
  std::byte* dst = nullptr;
  std::byte* a = nullptr;
  std::byte* b = nullptr;
  std::byte* c = nullptr;
};

// Returns the first lane that traps, or kNoLane.
using LaneKernel = uint32_t (*)(const LaneRegisters& registers, const Lanes& lanes);

// mov, select, arithmetic, bits, shifts, comparison and the class algebra; null for the rest.
LaneKernel arithmetic_kernel(const Instruction& instruction);
// exp .. trunc and pow; null for the rest.
LaneKernel math_kernel(const Instruction& instruction);
LaneKernel convert_kernel(DType to, DType from);

// ---- memory: `indices` are in register a, already widened to u64 by widen_index

struct LaneMemory {
  std::byte* base = nullptr;
  uint64_t count = 0;  // elements
};
using MemoryKernel = uint32_t (*)(const LaneRegisters& registers, const LaneMemory& memory,
                                  const Lanes& lanes);
// Loads, stores and atomics; traps where an index is not below the count.
MemoryKernel memory_kernel(const Instruction& instruction);

// Widens an index register to u64; negative indices become huge.
using WidenKernel = void (*)(const std::byte* from, uint64_t* to, const Lanes& lanes);
WidenKernel widen_index(DType type);

// ---- counted loops: a, b and c are begin, end and step, dst the counter

struct ForKernels {
  // Sets the counters, writes the lanes that run the body to `running` and returns how many; a step
  // of zero stores its lane to `*trap`.
  uint32_t (*begin)(const LaneRegisters& registers, const Lanes& lanes, uint32_t* running,
                    uint32_t* trap);
  // Counts on; keeps the lanes that run the body again, in place.
  uint32_t (*next)(const LaneRegisters& registers, uint32_t* running, uint32_t count);
};
ForKernels for_kernels(DType type);

// ---- reductions of all lanes by the fixed tree; the result goes to every lane

using GroupKernel = void (*)(std::byte* dst, const std::byte* a, std::byte* scratch,
                             uint32_t count);
GroupKernel group_kernel(Opcode op, DType type);

}  // namespace hologram::isa
