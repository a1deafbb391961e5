// BitsTile: some rows of A by one panel of weights of 4 or 8 bits (gemm_bits.h).
//
// Internal to products by such weights.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hologram::backends::dense {

inline constexpr size_t kMaxBitsRows = 4;

struct BitsTile {
  const float* a;
  size_t lda, rows;
  const float* row_sums;  // [row][group] of A; null without zeros
  size_t k, group, groups;
  unsigned bits;
  const std::byte* panel;
  float* sums;  // [rows][32]
  // The rows of A as integers, `integer_row` words apart, where the kernel takes those.
  const uint32_t* integers;
  size_t integer_row;
};

struct BitsKernel {
  size_t rows;
  void (*run)(const BitsTile&);
};

// A row of A as integers of 24 bits by a scale a group, each in three signed digits, for
// instructions that multiply bytes (VNNI). For each group 8 words: scale, sum of the integers as a
// float, -8 times the sums of the upper, middle and lower digits, three unused; then 6 words for
// each 8 values: the upper, middle and lower digits of the even ones, and of the odd ones.
inline constexpr size_t kIntegerHead = 8, kIntegerStep = 6;
constexpr size_t integer_words(size_t k, size_t group) {
  const size_t whole = k / group, rest = k % group;
  return whole * (kIntegerHead + (group + 7) / 8 * kIntegerStep) +
         (rest ? kIntegerHead + (rest + 7) / 8 * kIntegerStep : 0);
}
void pack_integers(const float* a, size_t k, size_t group, uint32_t* to);

namespace detail {
// Weights of 4 bits by rows of integers; null where the CPU lacks the instructions.
const BitsKernel* vnni_nibbles();
}  // namespace detail

}  // namespace hologram::backends::dense
