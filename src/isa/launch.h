// LaunchShape and Argument: what a launch of a program is given beside the program.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>

#include "isa/program.h"
#include "support/result.h"

namespace hologram::isa {

inline constexpr uint32_t kMaxBlockThreads = 1024;
inline constexpr uint64_t kMaxDynamicSharedBytes = 1 << 20;

// Blocks in the grid and threads in a block, along x, y and z. A grid with a 0 runs nothing.
struct LaunchShape {
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  uint64_t shared_bytes = 0;  // for the dynamic shared array
  // About how often the loops of a thread turn, where the caller knows: whether the work is worth
  // sharing out. It never changes a result.
  uint32_t turns = 0;

  uint64_t block_threads() const { return uint64_t{block[0]} * block[1] * block[2]; }
};

// One argument a parameter, in order. Arrays are borrowed: `count` elements at `data`, aligned to
// their element. A scalar is its bits, zero-extended.
struct Argument {
  void* data = nullptr;
  uint64_t count = 0;
  uint64_t bits = 0;

  static Argument array(void* data, uint64_t count) { return {data, count, 0}; }
  template <typename T>
  static Argument array(std::span<T> elements) {
    return {const_cast<void*>(static_cast<const void*>(elements.data())), elements.size(), 0};
  }
  template <typename T>
  requires(sizeof(T) <= 8) static Argument scalar(T value) {
    Argument argument;
    std::memcpy(&argument.bits, &value, sizeof value);
    return argument;
  }
};

// What can be seen to be wrong before anything runs: the number of arguments, null or misaligned
// arrays, scalars whose bits do not fit their type, an empty or too large block, a grid whose
// number of threads does not fit 63 bits, too many or pointless shared bytes.
Status check_launch(const Program& program, const LaunchShape& shape,
                    std::span<const Argument> arguments);

}  // namespace hologram::isa
