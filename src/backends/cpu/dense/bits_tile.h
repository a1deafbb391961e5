// BitsTile: some rows of A by one panel of weights of 4, 8 or 16 bits (gemm_bits.h).
//
// Internal to products by such weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hologram::backends::dense {

inline constexpr size_t kMaxBitsRows = 2;

// The codes of some rows of a panel of 32 columns.
constexpr size_t bits_code_bytes(unsigned bits, size_t rows) {
  return bits == 16 ? (rows + 1) / 2 * 128 : (rows + 3) / 4 * 16 * bits;
}

struct BitsTile {
  size_t rows;
  const uint32_t* integers;  // rows of A, `integer_row` words apart
  size_t integer_row;
  size_t k, group;
  unsigned bits;
  bool zeros;
  const std::byte* panel;
  float* sums;  // [rows][32]
};

struct BitsKernel {
  size_t rows;
  void (*run)(const BitsTile&);
  // Makes a row of A one of integers.
  void (*pack)(const float* a, size_t k, size_t group, unsigned bits, uint32_t* to);
};

// This CPU's.
BitsKernel bits_kernel();

// A row of A as integers of 24 bits by a scale a run of values, which is a group of weights, of
// more than 128 rows each 128 of it. For each run two heads, of the lower and the upper 16 columns:
// scale, sum of the integers as a float, and what the sums of each digit start with, -128 times the
// digits' own; then words for each four values. Three signed digits are a word each (VNNI); two are
// two words each, of the first and third value and of the others. By 4 bits sums start with -8
// times the digits', and those of the upper columns are 16 times as large and have those of the
// lower ones in them (gemm_bits.h).
//
// By 16 bits: integers of 20 bits, 1024 * upper + lower digit, which are 16-bit integers as the
// weights are. For each run its scale, the upper digits of all pairs and the lower ones of all
// pairs, up to a multiple of 8 pairs.
inline constexpr size_t kIntegerHead = 5, kMostIntegerWords = 4;  // those for four values
inline constexpr size_t kIntegerRun = 128;
constexpr size_t integer_run(size_t group) { return group > kIntegerRun ? kIntegerRun : group; }
constexpr size_t padded_pairs(size_t values) { return (values + 15) / 16 * 8; }
constexpr size_t word_run_words(size_t values) { return 1 + 2 * padded_pairs(values); }
// At most.
constexpr size_t integer_words(size_t k, size_t group, unsigned bits) {
  const auto words = [](size_t count, size_t run, auto of_run) {
    return count / run * of_run(run) + (count % run ? of_run(count % run) : 0);
  };
  return words(k, group, [&](size_t rows) {
    return words(rows, integer_run(group), [&](size_t values) {
      return bits == 16 ? word_run_words(values)
                        : 2 * kIntegerHead + (values + 3) / 4 * kMostIntegerWords;
    });
  });
}
// The largest of a run becomes the one; a run below the other is 0.
inline constexpr float kLargestInteger = 8e6f, kSmallestOfRun = 1e-30f;

// The heads of a run whose digits sum to `digits`, the upper first.
void write_heads(unsigned bits, float scale, std::span<const int64_t> digits, int64_t base,
                 uint32_t* to);

namespace detail {
// Weights by rows of integers; null where the CPU lacks the instructions.
const BitsKernel* vnni_bits();
// Those of 16 bits, of at most two rows.
void vnni_words(const BitsTile& tile);
void pack_vnni_words(const float* a, size_t k, size_t group, uint32_t* to);
}  // namespace detail

}  // namespace hologram::backends::dense
