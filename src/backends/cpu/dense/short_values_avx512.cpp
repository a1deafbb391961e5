// Values as shorts by AVX-512. Compiled by attribute for its CPUs only.
#include "backends/cpu/dense/short_values.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace hologram::backends::dense {
namespace {

#define HOLOGRAM_AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq")))
#define HOLOGRAM_AVX512_INLINE HOLOGRAM_AVX512 inline __attribute__((always_inline))

// The first `count` lanes, of which there are 16.
HOLOGRAM_AVX512_INLINE __mmask16 lanes(size_t count) {
  return count >= kShortRun ? __mmask16{0xffff} : static_cast<__mmask16>((1u << count) - 1);
}

struct Sum {
  HOLOGRAM_AVX512_INLINE __m512 operator()(__m512 a, __m512 b) const { return _mm512_add_ps(a, b); }
};
struct Largest {
  HOLOGRAM_AVX512_INLINE __m512 operator()(__m512 a, __m512 b) const { return _mm512_max_ps(a, b); }
};

// Lane i of each quarter of the result: all lanes of `from[i]`.
template <class Joined>
HOLOGRAM_AVX512_INLINE __m512 across(const __m512 (&from)[4], Joined joined) {
  const auto turn = [&](__m512 a, __m512 b) HOLOGRAM_AVX512 {
    return _mm512_castps_pd(joined(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)));
  };
  const __m512d even = turn(from[0], from[1]), odd = turn(from[2], from[3]);
  __m512 all = joined(_mm512_castpd_ps(_mm512_unpacklo_pd(even, odd)),
                      _mm512_castpd_ps(_mm512_unpackhi_pd(even, odd)));
  all = joined(all, _mm512_shuffle_f32x4(all, all, 0x4e));
  return joined(all, _mm512_shuffle_f32x4(all, all, 0xb1));
}

// Four pixels at a time.
HOLOGRAM_AVX512 void units(const ShortPixels& p, float* units) {
  for (size_t first = 0; first < p.pixels; first += 4) {
    const float* from[4];
    const size_t last = p.pixels - 1;
    __m512 values[4];  // the largest of each lane
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      from[i] = p.from + (first + i < last ? first + i : last) * p.step;
      values[i] = _mm512_setzero_ps();
    }
    __m512 most = _mm512_setzero_ps(), all = _mm512_setzero_ps();
    for (size_t at = 0; at < p.count; at += kShortRun) {
      const __mmask16 used = lanes(p.count - at);
      const size_t place = at / kShortRun * p.block;
      __m512 squares[4];
#pragma GCC unroll 4
      for (size_t i = 0; i < 4; ++i) {
        const __m512 x = _mm512_maskz_loadu_ps(used, from[i] + place);
        squares[i] = _mm512_mul_ps(x, x);
        values[i] = _mm512_max_ps(values[i], _mm512_abs_ps(x));
      }
      const __m512 sums = across(squares, Sum());
      most = _mm512_max_ps(most, sums);
      all = _mm512_add_ps(all, sums);  // which a NaN does not leave
    }
    const __m128 squares = _mm512_castps512_ps128(most), sum = _mm512_castps512_ps128(all);
    const __m128 unit = _mm_max_ps(
        _mm_mul_ps(_mm_sqrt_ps(squares), _mm_set1_ps(1 / kShortNorm)),
        _mm_mul_ps(_mm512_castps512_ps128(across(values, Largest())), _mm_set1_ps(1 / kMostShort)));
    // Squares that f32 does not hold, or not all digits of, are rare.
    constexpr float kLeast = 1e-30f, kMost = 3e38f;
    const auto plain = static_cast<unsigned>(_mm_movemask_ps(_mm_and_ps(
        _mm_cmple_ps(sum, _mm_set1_ps(kMost)), _mm_cmpge_ps(squares, _mm_set1_ps(kLeast)))));
    alignas(16) float four[4];
    _mm_store_ps(four, unit);
    for (size_t i = 0; i < 4 && first + i < p.pixels; ++i) {
      if ((plain >> i & 1) != 0) {
        units[first + i] = four[i];
      } else {
        ShortPixels one = p;
        one.from = from[i];
        units[first + i] = detail::careful_unit(one);
      }
    }
  }
}

HOLOGRAM_AVX512 void pixel_runs(const ShortRuns& t) {
  const ShortPixels& v = t.values;
  const size_t runs = v.pixels * t.runs;
  // Packing takes quarters of two registers in turn.
  const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  size_t pixel = 0, run = 0;
  const float *from = v.from, *factor = t.factors;
  for (size_t at = 0; at < runs; at += 2) {
    __m512i q[2];
#pragma GCC unroll 2
    for (size_t i = 0; i < 2; ++i) {
      const size_t first = run * kShortRun;
      // Nothing is read where no lane is.
      const __mmask16 used = pixel < v.pixels && first < v.count ? lanes(v.count - first) : 0;
      q[i] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_maskz_loadu_ps(used, from + run * v.block),
                                              _mm512_set1_ps(*factor)));
      if (++run == t.runs) {
        run = 0;
        from += v.step;
        if (++pixel < v.pixels) factor += t.factor_step;
      }
    }
    const __m512i both = _mm512_permutexvar_epi64(order, _mm512_packs_epi32(q[0], q[1]));
    const __mmask32 inside = runs - at >= 2 ? ~__mmask32{0} : __mmask32{0xffff};
    _mm512_mask_storeu_epi16(t.to + at / 2 * (t.chunk / sizeof(int16_t)), inside, both);
  }
}

HOLOGRAM_AVX512 void scale_sums(float* sums, size_t rows, size_t width, const float* row_scales,
                                size_t row_step, const float* scales) {
  for (size_t r = 0; r < rows; ++r) {
    const __m512 row = _mm512_set1_ps(row_scales[r * row_step]);
    for (size_t j = 0; j < width; j += 16, sums += 16)
      _mm512_storeu_ps(sums, _mm512_mul_ps(_mm512_loadu_ps(sums),
                                           _mm512_mul_ps(row, _mm512_loadu_ps(scales + j))));
  }
}

}  // namespace

ShortFunctions detail::avx512_shorts() { return {&units, &pixel_runs, &scale_sums}; }

}  // namespace hologram::backends::dense
#endif
