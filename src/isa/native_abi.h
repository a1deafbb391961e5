// The boundary between generated code and the runtime: one versioned header, no dependencies.
//
// Native code of a program is one position-independent blob without outside symbols. `entry` runs
// the blocks [first_block, last_block) of the launch one after another; the runtime calls it from
// several threads with disjoint ranges. Blocks are numbered x fastest, then y, then z.
#pragma once

#include <stdint.h>

namespace hologram::isa {

inline constexpr uint32_t kNativeAbiVersion = 1;

struct NativeLaunch {
  uint32_t grid[3];
  uint32_t block[3];
  // One word a parameter, in order: an array's address, or a scalar's bits zero-extended.
  const uint64_t* parameters;
  // One word a parameter: the number of elements of an array, 0 for a scalar.
  const uint64_t* lengths;
  uint64_t shared_bytes;  // dynamic shared bytes of this launch
  // Set to a TrapCode by code that meets one; 0 before the launch.
  uint32_t* trap;
};

enum TrapCode : uint32_t {
  kTrapNone = 0,
  kTrapDivisionByZero = 1,
  kTrapZeroStep = 2,
};

// `scratch`: this thread's own 64-byte aligned memory, at least NativeCode::scratch_bytes(block
// threads, dynamic shared bytes): shared arrays and values that live across barriers.
using NativeEntry = void (*)(const NativeLaunch* launch, uint64_t first_block, uint64_t last_block,
                             void* scratch);

// Code of a program that maps elements may have a second, shorter entry: a function of the
// parameters' words themselves, at most so many, that runs every thread which the program's bound
// lets through, on the calling thread.
inline constexpr unsigned kMaxWordsInRegisters = 6;

}  // namespace hologram::isa
