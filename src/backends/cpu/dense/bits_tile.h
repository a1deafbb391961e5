// BitsTile: some rows of A by one panel of weights of 4, 8 or 16 bits (gemm_bits.h).
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
  // Where it takes rows of A as integers: makes one.
  void (*pack)(const float* a, size_t k, size_t group, unsigned bits, uint32_t* to) = nullptr;
};

// A row of A as integers of 24 bits by a scale a run of values, each in three signed digits, for
// instructions that multiply bytes (VNNI). By 4 bits a run is a group of weights, by 8 bits at most
// 128 values of one. For each run 8 words: scale, sum of the integers as a float, -8 (of 8 bits
// -128) times the sums of the upper, middle and lower digits, three unused; then 6 words for each 8
// values: the upper, middle and lower digits of four, and of the other four. By 4 bits these are
// the even and the odd ones, by 8 bits the first and the last.
//
// By 16 bits: integers of 20 bits, 1024 * upper + lower digit, which are 16-bit integers as the
// weights are. For each run of at most 128 values its scale, the upper digits of all pairs and the
// lower ones of all pairs, up to a multiple of 8 pairs.
inline constexpr size_t kIntegerHead = 8, kIntegerStep = 6;
constexpr size_t integer_run(size_t group, unsigned bits) {
  return bits >= 8 && group > 128 ? 128 : group;
}
constexpr size_t padded_pairs(size_t values) { return (values + 15) / 16 * 8; }
constexpr size_t word_run_words(size_t values) { return 1 + 2 * padded_pairs(values); }
constexpr size_t integer_words(size_t k, size_t group, unsigned bits) {
  const auto words = [](size_t count, size_t run, auto of_run) {
    return count / run * of_run(run) + (count % run ? of_run(count % run) : 0);
  };
  return words(k, group, [&](size_t rows) {
    return words(rows, integer_run(group, bits), [&](size_t values) {
      return bits == 16 ? word_run_words(values) : kIntegerHead + (values + 7) / 8 * kIntegerStep;
    });
  });
}

namespace detail {
// Weights by rows of integers; null where the CPU lacks the instructions.
const BitsKernel* vnni_bits();
// Those of 16 bits, of at most two rows.
void vnni_words(const BitsTile& tile);
void pack_vnni_words(const float* a, size_t k, size_t group, uint32_t* to);
}  // namespace detail

}  // namespace hologram::backends::dense
