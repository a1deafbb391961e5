// Products by weights of 4 bits in integers. A code and its neighbour are a shift and two masks for
// four values each, where f32 takes a shift and a permutation a value; A in three digits keeps what
// f32 keeps of the largest value of a group.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "backends/cpu/dense/bits_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hologram::backends::dense {

void pack_integers(const float* a, size_t k, size_t group, uint32_t* to) {
  constexpr float kLargest = 8e6f;     // the upper digit stays below 128
  constexpr float kSmallest = 1e-30f;  // what is below is 0 beside it
  for (size_t first = 0; first < k; first += group) {
    const size_t rows = std::min(group, k - first), steps = (rows + 7) / 8;
    const float* from = a + first;
    float most = 0;
    bool finite = true;
    for (size_t i = 0; i < rows; ++i) {
      most = std::max(most, std::abs(from[i]));
      finite &= std::isfinite(from[i]);
    }
    const bool empty = !finite || most < kSmallest;
    const float inverse = empty ? 0.0f : kLargest / most;
    auto* digits = reinterpret_cast<int8_t*>(to + kIntegerHead);
    std::memset(digits, 0, steps * kIntegerStep * sizeof(uint32_t));
    int64_t sums[3] = {};
    for (size_t i = 0; i < rows && !empty; ++i) {
      const auto value = static_cast<int32_t>(std::lrintf(from[i] * inverse));
      const auto low = static_cast<int8_t>(value);
      const int32_t above = (value - low) >> 8;
      const auto middle = static_cast<int8_t>(above);
      const auto high = static_cast<int8_t>((above - middle) >> 8);
      int8_t* at = digits + (i / 8 * kIntegerStep + i % 2 * 3) * sizeof(uint32_t) + i % 8 / 2;
      at[0] = high;
      at[4] = middle;
      at[8] = low;
      sums[0] += high;
      sums[1] += middle;
      sums[2] += low;
    }
    const float scale = !finite ? NAN : empty ? 0.0f : most / kLargest;
    const double sum = 65536.0 * static_cast<double>(sums[0]) +
                       256.0 * static_cast<double>(sums[1]) + static_cast<double>(sums[2]);
    to[0] = std::bit_cast<uint32_t>(scale);
    to[1] = std::bit_cast<uint32_t>(static_cast<float>(sum));
    for (size_t i = 0; i < 3; ++i) to[2 + i] = static_cast<uint32_t>(-8 * sums[i]);
    to += kIntegerHead + steps * kIntegerStep;
  }
}

#if defined(__x86_64__)
namespace {

#define HOLOGRAM_VNNI __attribute__((target("avx512f,avx512vl,avx512bw,avx512vnni")))

template <size_t kCount>
HOLOGRAM_VNNI void run_nibbles(const BitsTile& t) {
  __m512 totals[kCount][2];
#pragma GCC unroll 4
  for (size_t r = 0; r < kCount; ++r) totals[r][0] = totals[r][1] = _mm512_setzero_ps();
  const __m512i mask = _mm512_set1_epi8(15);
  const auto* at = reinterpret_cast<const uint32_t*>(t.panel);
  const uint32_t* a = t.integers;
  for (size_t g = 0; g < t.groups; ++g) {
    const size_t rows = std::min(t.group, t.k - g * t.group), steps = (rows + 7) / 8;
    const auto* scales = reinterpret_cast<const float*>(at);
    const float* zeros = scales + 32;
    at += t.row_sums ? 64 : 32;
    __m512i sums[kCount][3][2];
#pragma GCC unroll 4
    for (size_t r = 0; r < kCount; ++r)
#pragma GCC unroll 3
      for (size_t d = 0; d < 3; ++d)
        sums[r][d][0] = sums[r][d][1] =
            _mm512_set1_epi32(static_cast<int>(a[r * t.integer_row + 2 + d]));
    const uint32_t* digits = a + kIntegerHead;
    for (size_t s = 0; s < steps; ++s, digits += kIntegerStep, at += 32) {
      const __m512i first = _mm512_loadu_si512(at), second = _mm512_loadu_si512(at + 16);
      const __m512i codes[2][2] = {{_mm512_and_si512(first, mask), _mm512_and_si512(second, mask)},
                                   {_mm512_and_si512(_mm512_srli_epi32(first, 4), mask),
                                    _mm512_and_si512(_mm512_srli_epi32(second, 4), mask)}};
#pragma GCC unroll 2
      for (size_t odd = 0; odd < 2; ++odd)
#pragma GCC unroll 4
        for (size_t r = 0; r < kCount; ++r)
#pragma GCC unroll 3
          for (size_t d = 0; d < 3; ++d) {
            const __m512i four =
                _mm512_set1_epi32(static_cast<int>(digits[r * t.integer_row + odd * 3 + d]));
            sums[r][d][0] = _mm512_dpbusd_epi32(sums[r][d][0], codes[odd][0], four);
            sums[r][d][1] = _mm512_dpbusd_epi32(sums[r][d][1], codes[odd][1], four);
          }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kCount; ++r) {
      const uint32_t* head = a + r * t.integer_row;
      const __m512 scale = _mm512_set1_ps(std::bit_cast<float>(head[0]));
      const __m512 sum = _mm512_set1_ps(std::bit_cast<float>(head[1]));
#pragma GCC unroll 2
      for (size_t v = 0; v < 2; ++v) {
        __m512 value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[r][1][v]), _mm512_set1_ps(256.0f),
                                       _mm512_cvtepi32_ps(sums[r][2][v]));
        value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[r][0][v]), _mm512_set1_ps(65536.0f), value);
        if (t.row_sums) value = _mm512_fnmadd_ps(sum, _mm512_loadu_ps(zeros + v * 16), value);
        totals[r][v] = _mm512_fmadd_ps(
            value, _mm512_mul_ps(scale, _mm512_loadu_ps(scales + v * 16)), totals[r][v]);
      }
    }
    a += kIntegerHead + steps * kIntegerStep;
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < kCount; ++r)
    for (size_t v = 0; v < 2; ++v) _mm512_storeu_ps(t.sums + r * 32 + v * 16, totals[r][v]);
}

void run_any(const BitsTile& t) {
  constexpr void (*kRun[])(const BitsTile&) = {&run_nibbles<1>, &run_nibbles<2>, &run_nibbles<3>,
                                               &run_nibbles<4>};
  kRun[t.rows - 1](t);
}

}  // namespace

namespace detail {
const BitsKernel* vnni_nibbles() {
  static constexpr BitsKernel kKernel{kMaxBitsRows, &run_any};
  return __builtin_cpu_supports("avx512vnni") ? &kKernel : nullptr;
}
}  // namespace detail
#else
namespace detail {
const BitsKernel* vnni_nibbles() { return nullptr; }
}  // namespace detail
#endif

}  // namespace hologram::backends::dense
