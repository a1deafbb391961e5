// Products by weights of 4, 8 or 16 bits: C = epilogue(A * B), A and C in f32, and
//     B(k, column) = scale(group, column) * (code(k, column) - zero(group, column))
// where a group is a run of rows of B that share a scale.
//
// The weights stay as small as they are stored until they are in registers, so that a few rows of A
// cost what reading the codes costs. Rules of gemm.h hold: a result's bits depend neither on m, n
// nor the number of threads. It is the exact sum over a run of A as integers of 24 bits (by weights
// of 16 bits: 20) of its largest value there, run after run; a run is a group, of more than 128
// rows each 128 of one. Zeros are taken off by the sum of these integers.
//
// packed: for each 32 columns, for each group: 32 scales, 32 zeros (where there are any), the codes
//     8 bits: [k / 4][32][4] bytes
//     4 bits: [k / 4][16][4] bytes, lower half: the code of a column, upper half: of the 16th after
//     16 bits: [k / 2][32][2] signed integers, which have no zeros
// in one run, which a product reads from end to end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/dense/epilogue.h"
#include "support/thread_pool.h"

namespace hologram::backends::dense {

// How a matrix is packed.
struct BitsForm {
  size_t k = 0, n = 0;
  unsigned bits = 8;  // 4, 8 or 16
  size_t group = 0;   // rows that share a scale; 0: all. Of 4 bits a multiple of 8
  bool zeros = false;

  size_t group_rows() const { return group == 0 ? k : group; }
  size_t groups() const { return (k + group_rows() - 1) / group_rows(); }
};

// The form of 16 bits that the compiler uses.
inline constexpr size_t kWordGroup = 128;
inline BitsForm word_form(size_t k, size_t n) {
  return {.k = k, .n = n, .bits = 16, .group = kWordGroup};
}

// What is packed of 4 or 8 bits. A code is a byte of its own, 0..255 or 0..15; a zero is a float in
// units of codes, left out: 128 or 8, the middle of the codes.
struct BitsWeights {
  const uint8_t* codes = nullptr;  // (k, column) at [k * n + column]; transposed: [column * k + k]
  bool transposed = false;
  const float* scales = nullptr;  // [column][group]
  const float* zeros = nullptr;   // the same, or null
};

struct GemmBits {
  size_t m = 0;
  BitsForm form;
  const float* a = nullptr;  // m x k, rows `lda` floats apart
  size_t lda = 0;
  const std::byte* packed_b = nullptr;  // 64-byte aligned, from pack_b_bits with the same form
  float* c = nullptr;
  size_t ldc = 0;
  Epilogue epilogue;
};

size_t packed_b_bits_bytes(const BitsForm& form);
void pack_b_bits(const BitsForm& form, const BitsWeights& weights, std::byte* packed);
// Of 16 bits: k x n floats (n x k when transposed, rows `ldb` apart), each group of a column by the
// scale that makes its largest value 32767. A group that is not finite makes its column NaN.
void pack_b_words(const BitsForm& form, const float* b, size_t ldb, bool transposed,
                  std::byte* packed);
// Whether this CPU multiplies 16-bit integers in pairs (VNNI of 512 bits): one row by weights of 16
// bits then takes about half the time of f32, and so do products of both sides as such
// (GemmShorts).
bool has_word_products();
size_t gemm_bits_scratch_bytes(const GemmBits& gemm);
void gemm_bits(const GemmBits& gemm, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
