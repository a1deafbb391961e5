// Matrix products of narrow types: 8-bit integers with zero points, bf16, and 16-bit integers.
//
// Rules of gemm.h hold. Integer sums are exact and the same on every level. bf16 sums are f32; with
// AMX or AVX512_BF16 they are those of its instruction, otherwise chains of fused multiply-adds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/dense/epilogue.h"
#include "support/function_ref.h"
#include "support/thread_pool.h"

namespace hologram::backends::dense {

enum class Int8Output : uint8_t { s32, f32, s8, u8 };

// Rows of A whose bytes lie apart: `pieces` runs of `bytes` each.
struct Int8Rows {
  static constexpr size_t kMaxPieces = 64, kMaxBytes = 8192;  // of a row
  size_t pieces = 0, bytes = 0;
  // Runs of whole chunks are found and packed one by one; others are put together first, where up
  // to 15 bytes more may be written.
  FunctionRef<void(size_t row, const uint8_t** pieces)> find;
  FunctionRef<void(size_t row, uint8_t* line)> fill;

  static bool supported(size_t pieces, size_t bytes) {
    return pieces <= kMaxPieces && (bytes % 64 == 0 || pieces * bytes <= kMaxBytes);
  }
};

// s32: C = sum (a - a_zero) * (b - b_zero) + bias32
// f32: C = epilogue(scale[column] * that)
// s8, u8: C = saturate(round_half_even(that / output_scale) + output_zero)
struct GemmInt8 {
  size_t m = 0, n = 0, k = 0;
  const void* a = nullptr;  // m x k bytes, rows `lda` apart
  size_t lda = 0;
  const Int8Rows* rows = nullptr;  // instead of a
  bool a_signed = false;
  int32_t a_zero = 0;
  // Instead of a: m x k of f32, rows `lda` floats apart, which become bytes row by row, each by a
  // scale and zero point of its own. For f32 outputs; B is signed and has no zeros.
  const float* values = nullptr;
  const std::byte* packed_b = nullptr;  // from pack_b_int8, which knows its signedness
  const int32_t* b_zeros = nullptr;     // n values, or null for 0
  const int32_t* bias32 = nullptr;      // n values, or null
  Int8Output output = Int8Output::s32;
  void* c = nullptr;
  size_t ldc = 0;                 // elements
  const float* scales = nullptr;  // n values, or null for 1
  Epilogue epilogue;              // of f32 and 8-bit outputs; a residual is f32
  float output_scale = 1.0f;
  int32_t output_zero = 0;
  int32_t output_low = -128, output_high = 255;  // narrower than the type: an activation that clips
};

// packed: sums of columns, signedness, panels of [k / 4][32][4].
size_t packed_b_int8_bytes(size_t k, size_t n);
void pack_b_int8(size_t k, size_t n, const void* b, size_t ldb, bool transposed, bool b_signed,
                 std::byte* packed);
size_t gemm_int8_scratch_bytes(const GemmInt8& gemm);
void gemm_int8(const GemmInt8& gemm, std::byte* scratch, ThreadPool& pool);

// How many bf16 values stand for an f32 operand: one rounds it to 8 bits; the sum of two keeps 16,
// and the product of their lower parts is left out (`fast` precision: a relative error of about
// 2^-17 an element, at three products).
enum class Bf16Parts : uint8_t { one, two };

// C = epilogue(A * B): A is f32 and taken apart (to nearest, ties to even), B was when packed.
struct GemmBf16 {
  size_t m = 0, n = 0, k = 0;
  const float* a = nullptr;  // m x k, rows `lda` floats apart
  size_t lda = 0;
  Bf16Parts parts = Bf16Parts::one;
  const std::byte* packed_b = nullptr;  // from pack_b_bf16 with the same parts
  float* c = nullptr;
  size_t ldc = 0;
  // C lies by columns, each `ldc` floats after the one before; the epilogue then has no residual
  // and no program.
  bool c_turned = false;
  Epilogue epilogue;
};

// packed: panels of [k / 2][32][2]; of two parts: [k / 32][part][16][32][2].
size_t packed_b_bf16_bytes(size_t k, size_t n, Bf16Parts parts = Bf16Parts::one);
void pack_b_bf16(size_t k, size_t n, const float* b, size_t ldb, bool transposed, std::byte* packed,
                 Bf16Parts parts = Bf16Parts::one);
size_t gemm_bf16_scratch_bytes(const GemmBf16& gemm);
void gemm_bf16(const GemmBf16& gemm, std::byte* scratch, ThreadPool& pool);

// C = epilogue(A * B) with both as 16-bit integers of two 8-bit digits: rows of A by a scale of
// their own, found at every call, columns of B by one found when packed. The product of two lower
// digits is left out. An element keeps 15 bits of the largest of its row or column, so that the
// error of a result is near 2^-16 of the largest terms of its sum: as small as that of two bf16
// parts where the elements of a row are alike, larger where one is a hundred times the others.
// Tiles (AMX) multiply twice as many bytes as bf16 at once, and weights take 2 bytes, not 4. A row
// or column that is not finite makes results NaN.
struct GemmDigits {
  size_t m = 0, n = 0, k = 0;
  const float* a = nullptr;  // m x k, rows `lda` floats apart
  size_t lda = 0;
  const std::byte* packed_b = nullptr;  // from pack_b_digits
  float* c = nullptr;
  size_t ldc = 0;
  Epilogue epilogue;
};

// packed: scales of columns, panels of [k / 64][digit][16][32][4].
size_t packed_b_digits_bytes(size_t k, size_t n);
void pack_b_digits(size_t k, size_t n, const float* b, size_t ldb, bool transposed,
                   std::byte* packed);
size_t gemm_digits_scratch_bytes(const GemmDigits& gemm);
void gemm_digits(const GemmDigits& gemm, std::byte* scratch, ThreadPool& pool);

// C = epilogue(A * B) with both as 16-bit integers: rows of A by a scale of their own, found at
// every call, columns of B by one found when packed. Dot products of pairs (VNNI) are twice the
// products of f32 in a second; 32 of them are added up as one integer, exactly, then in f32. An
// element keeps 15 bits of what shares its scale where that is alike, fewer where some elements are
// much larger than others. A row or column that is not finite makes results NaN.
struct GemmShorts {
  size_t m = 0, n = 0, k = 0;
  const float* a = nullptr;  // m x k, rows `lda` floats apart
  size_t lda = 0;
  const std::byte* packed_b = nullptr;  // from pack_b_shorts
  float* c = nullptr;
  size_t ldc = 0;
  Epilogue epilogue;
};

// packed: scales of columns, panels of [k / 2][32][2], k a multiple of 32.
size_t packed_b_shorts_bytes(size_t k, size_t n);
void pack_b_shorts(size_t k, size_t n, const float* b, size_t ldb, bool transposed,
                   std::byte* packed);
size_t gemm_shorts_scratch_bytes(const GemmShorts& gemm);
void gemm_shorts(const GemmShorts& gemm, std::byte* scratch, ThreadPool& pool);

// Whether this CPU multiplies bf16 in tiles (AMX): where it does not, two parts only cost time.
bool has_bf16_tiles();
// Whether it has instructions for bf16 products at all (AMX or AVX512_BF16).
bool has_bf16_products();

namespace detail {
// For tests: says so where there are none, so that what is compiled for them can be seen anywhere.
// Products are what they were.
void pretend_bf16_tiles(bool pretend);
}  // namespace detail

}  // namespace hologram::backends::dense
