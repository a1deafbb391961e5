// Values as digits by AVX-512. Compiled by attribute for its CPUs only.
#include "backends/cpu/dense/digit_values.h"
#include "backends/cpu/dense/unit_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace hologram::backends::dense {
namespace {

#define HOLOGRAM_AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq")))
#define HOLOGRAM_AVX512_INLINE HOLOGRAM_AVX512 inline __attribute__((always_inline))

// The first `count` lanes, of which there are 16.
HOLOGRAM_AVX512_INLINE __mmask16 lanes(size_t count) {
  return count >= kDigitRun ? __mmask16{0xffff} : static_cast<__mmask16>((1u << count) - 1);
}

HOLOGRAM_AVX512 void collect(const float* from, size_t step, size_t pixels, size_t count,
                             int32_t* most, size_t most_step) {
  const __mmask16 used = lanes(count);
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  __m512i all = _mm512_loadu_si512(most);
  for (size_t p = 0; p < pixels; ++p, from += step) {
    const __m512i bits = _mm512_castps_si512(_mm512_maskz_loadu_ps(used, from));
    if (most_step != 0) all = _mm512_loadu_si512(most + p * most_step);
    all = _mm512_max_epi32(all, _mm512_and_si512(bits, magnitude));
    if (most_step != 0) _mm512_storeu_si512(most + p * most_step, all);
  }
  if (most_step == 0) _mm512_storeu_si512(most, all);
}

int32_t most_of(const int32_t* most) {
  const auto load = [&](size_t i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(most + 4 * i));
  };
  const __m128i four =
      _mm_max_epi32(_mm_max_epi32(load(0), load(1)), _mm_max_epi32(load(2), load(3)));
  const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

HOLOGRAM_AVX512 void pixel_digits(const DigitPixels& t) {
  // Integers are narrowed in pairs within each quarter of a register, then the quarters' parts put
  // in order: truncating them one by one takes half as long again.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i half = _mm512_set1_epi16(128), byte = _mm512_set1_epi16(255);
  const size_t runs = t.pixels * t.runs;
  size_t pixel = 0, run = 0;
  const float *from = t.from, *factor = t.factors;
  for (size_t at = 0; at < runs; at += 4) {
    __m512i q[4];
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      const size_t first = run * kDigitRun;
      // Nothing is read where no lane is.
      const __mmask16 used = pixel < t.pixels && first < t.count ? lanes(t.count - first) : 0;
      q[i] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_maskz_loadu_ps(used, from + run * t.block),
                                              _mm512_set1_ps(*factor)));
      if (++run == t.runs) {
        run = 0;
        from += t.step;
        if (++pixel < t.pixels) factor += t.factor_step;
      }
    }
    const __m512i a = _mm512_packs_epi32(q[0], q[1]), b = _mm512_packs_epi32(q[2], q[3]);
    const __m512i upper = _mm512_permutexvar_epi32(
        order, _mm512_packs_epi16(_mm512_srai_epi16(_mm512_add_epi16(a, half), 8),
                                  _mm512_srai_epi16(_mm512_add_epi16(b, half), 8)));
    const __m512i lower = _mm512_permutexvar_epi32(
        order, _mm512_packus_epi16(_mm512_and_si512(a, byte), _mm512_and_si512(b, byte)));
    const size_t to = at / 4 * t.chunk, bytes = (runs - at) * kDigitRun;
    const __mmask64 inside = bytes >= 64 ? ~__mmask64{0} : (__mmask64{1} << bytes) - 1;
    _mm512_mask_storeu_epi8(t.upper + to, inside, upper);
    _mm512_mask_storeu_epi8(t.lower + to, inside, lower);
  }
}

HOLOGRAM_AVX512_INLINE __m512 number(const int32_t* from) {
  return _mm512_cvtepi32_ps(_mm512_loadu_si512(from));
}

HOLOGRAM_AVX512 void scale_sums(void* sums, size_t rows, size_t width, const float* row_scales,
                                size_t row_step, const float* scales) {
  auto* at = static_cast<int32_t*>(sums);
  for (size_t r = 0; r < rows; ++r) {
    const __m512 row = _mm512_set1_ps(row_scales[r * row_step]);
    for (size_t j = 0; j < width; j += 16, at += 16) {
      const __m512 sum =
          _mm512_fmadd_ps(number(at), _mm512_set1_ps(256.0f), number(at + kDigitSums));
      _mm512_storeu_ps(at, _mm512_mul_ps(sum, _mm512_mul_ps(row, _mm512_loadu_ps(scales + j))));
    }
  }
}

}  // namespace

DigitFunctions detail::avx512_digits() { return {&collect, &most_of, &pixel_digits, &scale_sums}; }

}  // namespace hologram::backends::dense
#endif
