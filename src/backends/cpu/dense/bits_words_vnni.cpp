// Products by weights of 16 bits in integers: A in two digits is two instructions for 32 weights,
// as fast as the second cache gives them. (By f32 they would be a shift, two conversions and two
// multiplications.)
#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/cpu/dense/bits_tile.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of the intrinsics' own "undefined" registers, and of lambdas as functions that no
// one calls.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wpsabi"
#endif
#include <immintrin.h>

namespace hologram::backends::dense {
namespace {

#define HOLOGRAM_VNNI __attribute__((target("avx512f,avx512vl,avx512bw,avx512vnni")))

// A digit is at most 512 and a weight 32767, so the sum of a run of 128 stays within 32 bits.
constexpr float kLargest = 524287.0f;
constexpr int kDigitBits = 10;
constexpr float kSmallest = 1e-30f;  // what is below is 0 beside the largest

HOLOGRAM_VNNI uint32_t* pack_run(const float* from, size_t count, uint32_t* to) {
  const auto load = [&](size_t i) HOLOGRAM_VNNI {
    const auto mask = static_cast<__mmask16>(count - i >= 16 ? 0xffff : (1u << (count - i)) - 1);
    return _mm512_maskz_loadu_ps(mask, from + i);
  };
  // Without signs, numbers are ordered as their bits are, infinity and NaN last.
  __m512i largest = _mm512_setzero_si512();
  for (size_t i = 0; i < count; i += 16)
    largest = _mm512_max_epi32(
        largest, _mm512_and_si512(_mm512_castps_si512(load(i)), _mm512_set1_epi32(0x7fffffff)));
  const float most = std::bit_cast<float>(_mm512_reduce_max_epi32(largest));
  const bool finite = std::isfinite(most), empty = !finite || most < kSmallest;
  to[0] = std::bit_cast<uint32_t>(!finite ? NAN : empty ? 0.0f : most / kLargest);
  const __m512 factor = _mm512_set1_ps(empty ? 0.0f : kLargest / most);
  uint32_t *upper = to + 1, *lower = upper + padded_pairs(count);
  for (size_t i = 0; i < count; i += 16) {
    // A value that is not finite is nobody's digit: the scale says so.
    const __m512i value =
        finite ? _mm512_cvtps_epi32(_mm512_mul_ps(load(i), factor)) : _mm512_setzero_si512();
    const __m512i high = _mm512_srai_epi32(
        _mm512_add_epi32(value, _mm512_set1_epi32(1 << (kDigitBits - 1))), kDigitBits);
    const __m512i low = _mm512_sub_epi32(value, _mm512_slli_epi32(high, kDigitBits));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(upper + i / 2), _mm512_cvtepi32_epi16(high));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lower + i / 2), _mm512_cvtepi32_epi16(low));
  }
  return to + word_run_words(count);
}

// kSteps pairs at a time have sums of their own: one instruction waits five cycles for the last.
template <size_t kCount, size_t kSteps>
HOLOGRAM_VNNI void run_words(const BitsTile& t) {
  __m512 totals[kCount][2];
#pragma GCC unroll 2
  for (size_t r = 0; r < kCount; ++r) totals[r][0] = totals[r][1] = _mm512_setzero_ps();
  const auto* at = reinterpret_cast<const uint32_t*>(t.panel);
  const uint32_t* a = t.integers;
  const size_t run = integer_run(t.group);
  for (size_t k = 0; k < t.k; k += t.group) {
    const size_t rows = std::min(t.group, t.k - k);
    const auto* scales = reinterpret_cast<const float*>(at);
    at += 32;
    for (size_t first = 0; first < rows; first += run) {
      const size_t values = std::min(run, rows - first), pairs = (values + 1) / 2;
      const uint32_t *upper = a + 1, *lower = upper + padded_pairs(values);
      __m512i sums[kSteps][kCount][2][2];  // digit, vector
#pragma GCC unroll 4
      for (auto& step : sums)
#pragma GCC unroll 2
        for (auto& row : step)
          row[0][0] = row[0][1] = row[1][0] = row[1][1] = _mm512_setzero_si512();
      const auto add = [&](size_t pair, __m512i(&into)[kCount][2][2]) __attribute__((always_inline))
      HOLOGRAM_VNNI {
        const __m512i weights[2] = {_mm512_loadu_si512(at + pair * 32),
                                    _mm512_loadu_si512(at + pair * 32 + 16)};
#pragma GCC unroll 2
        for (size_t r = 0; r < kCount; ++r) {
          const size_t place = r * t.integer_row + pair;
          const __m512i high = _mm512_set1_epi32(static_cast<int>(upper[place]));
          const __m512i low = _mm512_set1_epi32(static_cast<int>(lower[place]));
#pragma GCC unroll 2
          for (size_t v = 0; v < 2; ++v) {
            into[r][0][v] = _mm512_dpwssd_epi32(into[r][0][v], weights[v], high);
            into[r][1][v] = _mm512_dpwssd_epi32(into[r][1][v], weights[v], low);
          }
        }
      };
      size_t pair = 0;
      for (; pair + kSteps <= pairs; pair += kSteps)
#pragma GCC unroll 4
        for (size_t s = 0; s < kSteps; ++s) add(pair + s, sums[s]);
      for (; pair < pairs; ++pair) add(pair, sums[0]);
#pragma GCC unroll 2
      for (size_t r = 0; r < kCount; ++r) {
        const __m512 scale = _mm512_set1_ps(std::bit_cast<float>(a[r * t.integer_row]));
#pragma GCC unroll 2
        for (size_t v = 0; v < 2; ++v) {
          __m512i high = sums[0][r][0][v], low = sums[0][r][1][v];
#pragma GCC unroll 4
          for (size_t s = 1; s < kSteps; ++s) {
            high = _mm512_add_epi32(high, sums[s][r][0][v]);
            low = _mm512_add_epi32(low, sums[s][r][1][v]);
          }
          const __m512 value = _mm512_fmadd_ps(
              _mm512_cvtepi32_ps(high), _mm512_set1_ps(1 << kDigitBits), _mm512_cvtepi32_ps(low));
          totals[r][v] = _mm512_fmadd_ps(
              value, _mm512_mul_ps(scale, _mm512_loadu_ps(scales + v * 16)), totals[r][v]);
        }
      }
      at += pairs * 32;
      a += word_run_words(values);
    }
  }
#pragma GCC unroll 2
  for (size_t r = 0; r < kCount; ++r)
    for (size_t v = 0; v < 2; ++v) _mm512_storeu_ps(t.sums + r * 32 + v * 16, totals[r][v]);
}

}  // namespace

namespace detail {
void vnni_words(const BitsTile& t) { t.rows == 1 ? run_words<1, 4>(t) : run_words<2, 2>(t); }

void pack_vnni_words(const float* a, size_t k, size_t group, uint32_t* to) {
  const size_t run = integer_run(group);
  for (size_t first = 0; first < k; first += group) {
    const size_t end = std::min(first + group, k);
    for (size_t i = first; i < end; i += run) to = pack_run(a + i, std::min(run, end - i), to);
  }
}
}  // namespace detail

}  // namespace hologram::backends::dense
#endif
