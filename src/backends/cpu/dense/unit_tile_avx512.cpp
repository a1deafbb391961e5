// The dot-product instructions that this version of Highway does not offer: VNNI and AVX512_BF16.
// Compiled by attribute for their CPUs only, called only where the CPU has them.
#include "backends/cpu/dense/bf16_values.h"
#include "backends/cpu/dense/tile.h"
#include "backends/cpu/dense/unit_ahead.h"
#include "backends/cpu/dense/unit_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <array>
#include <cstring>
#include <utility>

namespace hologram::backends::dense {
namespace {

#define HOLOGRAM_VNNI __attribute__((target("avx512f,avx512vl,avx512bw,avx512vnni")))
#define HOLOGRAM_BF16 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512bf16")))

// Nothing of its callers is known to what is compiled of a function.
#if defined(__clang__)
#define HOLOGRAM_OPAQUE __attribute__((noinline))
#else
#define HOLOGRAM_OPAQUE __attribute__((noipa))
#endif

// Of few rows kSteps units at a time have sums of their own: one instruction waits five cycles for
// the last.
template <size_t kRows, size_t kVectors>
HOLOGRAM_VNNI void vnni_strip(const UnitTile& tile) {
  constexpr size_t kSums = kRows * kVectors, kSteps = kSums < 3 ? 4 : kSums < 8 ? 2 : 1;
  __m512i sums[kSteps][kRows][kVectors];
#pragma GCC unroll 4
  for (size_t s = 0; s < kSteps; ++s)
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 2
      for (size_t v = 0; v < kVectors; ++v) sums[s][r][v] = _mm512_setzero_si512();
  const uint32_t* b = tile.b;
  const size_t row = tile.a_row;
  UnitAhead ahead(tile, (tile.units + kChunk - 1) / kChunk);
  for (size_t first = 0; first < tile.units; first += kChunk) {
    ahead.advance();
    const size_t count = tile.units - first < kChunk ? tile.units - first : kChunk;
    // Three rows from each pointer: addresses that an instruction can make of few registers.
    const uint32_t* a[(kRows + 2) / 3];
#pragma GCC unroll 6
    for (size_t i = 0; i < (kRows + 2) / 3; ++i) a[i] = tile.chunk(first / kChunk) + 3 * i * row;
    const auto add = [&](size_t u, __m512i(&into)[kRows][kVectors]) __attribute__((always_inline))
    HOLOGRAM_VNNI {
      __m512i bs[kVectors];
#pragma GCC unroll 2
      for (size_t v = 0; v < kVectors; ++v) bs[v] = _mm512_loadu_si512(b + v * 16);
#pragma GCC unroll 16
      for (size_t r = 0; r < kRows; ++r) {
        const __m512i as = _mm512_set1_epi32(static_cast<int>(a[r / 3][r % 3 * row + u]));
#pragma GCC unroll 2
        for (size_t v = 0; v < kVectors; ++v)
          into[r][v] = _mm512_dpbusd_epi32(into[r][v], as, bs[v]);
      }
      b += kVectors * 16;
    };
    size_t u = 0;
    for (; u + kSteps <= count; u += kSteps)
#pragma GCC unroll 4
      for (size_t s = 0; s < kSteps; ++s) add(u + s, sums[s]);
    for (; u < count; ++u) add(u, sums[0]);
  }
  auto* out = static_cast<int32_t*>(tile.sums);
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (size_t v = 0; v < kVectors; ++v) {
#pragma GCC unroll 4
      for (size_t s = 1; s < kSteps; ++s)
        sums[0][r][v] = _mm512_add_epi32(sums[0][r][v], sums[s][r][v]);
      _mm512_storeu_si512(out + (r * kVectors + v) * 16, sums[0][r][v]);
    }
}

// In the register of the sum: GCC would take another for the result, and has none left.
HOLOGRAM_VNNI inline __attribute__((always_inline)) void add_as_f32(__m512i sum, float* to) {
  asm("vcvtdq2ps %0, %0\n\tvaddps %1, %0, %0"
      : "+v"(sum)
      : "m"(*reinterpret_cast<const __m512*>(to)));
  _mm512_store_si512(to, sum);
}
HOLOGRAM_VNNI inline __attribute__((always_inline)) void add_scaled(__m512i sum, __m512 scale,
                                                                    float* to) {
  asm("vcvtdq2ps %0, %0\n\tvfmadd213ps %1, %2, %0"
      : "+v"(sum)
      : "m"(*reinterpret_cast<const __m512*>(to)), "v"(scale));
  _mm512_store_si512(to, sum);
}

// Some units of 16-bit integers: their sums in registers, then added to those of the tile as f32. A
// function of its own that must not know how many: GCC keeps sums that are cleared within a loop,
// or added up in one of a known length, in memory.
template <size_t kRows, size_t kVectors, bool kScaled>
HOLOGRAM_VNNI HOLOGRAM_OPAQUE void shorts_run(const uint32_t* from, size_t row, const uint32_t* b,
                                              size_t units, const float* scales, float* to) {
  __m512i sums[kRows][kVectors];
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (size_t v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_si512();
  const uint32_t* a[(kRows + 2) / 3];
#pragma GCC unroll 6
  for (size_t i = 0; i < (kRows + 2) / 3; ++i) a[i] = from + 3 * i * row;
  for (size_t u = 0; u < units; ++u, b += kVectors * 16) {
    __m512i bs[kVectors];
#pragma GCC unroll 2
    for (size_t v = 0; v < kVectors; ++v) bs[v] = _mm512_loadu_si512(b + v * 16);
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) {
      const __m512i as = _mm512_set1_epi32(static_cast<int>(a[r / 3][r % 3 * row + u]));
#pragma GCC unroll 2
      for (size_t v = 0; v < kVectors; ++v) sums[r][v] = _mm512_dpwssd_epi32(sums[r][v], as, bs[v]);
    }
  }
  // Additions do not take the place of products, as multiplications do.
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (size_t v = 0; v < kVectors; ++v) {
      float* const at = to + (r * kVectors + v) * 16;
      if constexpr (kScaled)
        add_scaled(sums[r][v], _mm512_loadu_ps(scales + v * 16), at);
      else
        add_as_f32(sums[r][v], at);
    }
}

template <size_t kRows, size_t kVectors>
HOLOGRAM_BF16 void bf16_strip(const UnitTile& tile) {
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (size_t v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_ps();
  const uint32_t* b = tile.b;
  UnitAhead ahead(tile, (tile.units + kChunk - 1) / kChunk);
  for (size_t first = 0; first < tile.units; first += kChunk) {
    ahead.advance();
    const uint32_t* a = tile.chunk(first / kChunk);
    const size_t count = tile.units - first < kChunk ? tile.units - first : kChunk;
    for (size_t u = 0; u < count; ++u, b += kVectors * 16) {
      __m512i bs[kVectors];
#pragma GCC unroll 2
      for (size_t v = 0; v < kVectors; ++v) bs[v] = _mm512_loadu_si512(b + v * 16);
#pragma GCC unroll 16
      for (size_t r = 0; r < kRows; ++r) {
        const __m512i as = _mm512_set1_epi32(static_cast<int>(a[r * kChunk + u]));
#pragma GCC unroll 2
        for (size_t v = 0; v < kVectors; ++v)
          sums[r][v] = _mm512_dpbf16_ps(sums[r][v], reinterpret_cast<__m512bh>(as),
                                        reinterpret_cast<__m512bh>(bs[v]));
      }
    }
  }
  auto* out = static_cast<float*>(tile.sums);
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (size_t v = 0; v < kVectors; ++v)
      _mm512_storeu_ps(out + (r * kVectors + v) * 16, sums[r][v]);
}

HOLOGRAM_BF16 inline __m512 widen(__m256i half) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

HOLOGRAM_BF16 void split_pixels_bf16(const float* first, const float* second, size_t pixels,
                                     size_t step, size_t count, uint32_t* high, uint32_t* low) {
  const auto used = [](size_t n) { return static_cast<__mmask16>((1u << (n < 16 ? n : 16)) - 1); };
  const __mmask16 a_used = used(count), b_used = second && count > 16 ? used(count - 16) : 0;
  for (size_t p = 0; p < pixels; ++p) {
    const __m512 a = _mm512_maskz_loadu_ps(a_used, first + p * step);
    const __m512 b =
        b_used ? _mm512_maskz_loadu_ps(b_used, second + p * step) : _mm512_setzero_ps();
    const auto upper = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b, a));
    _mm512_storeu_si512(high + p * kChunk, upper);
    if (!low) continue;
    const __m512 a_rest = _mm512_sub_ps(a, widen(_mm512_castsi512_si256(upper)));
    const __m512 b_rest = _mm512_sub_ps(b, widen(_mm512_extracti64x4_epi64(upper, 1)));
    _mm512_storeu_si512(low + p * kChunk,
                        reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b_rest, a_rest)));
  }
}

HOLOGRAM_BF16 void split_row_pairs_bf16(const float* from, size_t step, size_t rows, size_t columns,
                                        size_t width, size_t chunk, uint32_t* high, uint32_t* low) {
  alignas(64) uint16_t order[32];
  for (uint16_t i = 0; i < 16; ++i) order[2 * i] = i, order[2 * i + 1] = i + 16;
  const __m512i interleave = _mm512_load_si512(order);
  const size_t pairs = (rows + 31) / 32 * 16;
  for (size_t u = 0; u < pairs; ++u) {
    const float* first = from + 2 * u * step;
    const size_t at = u / 16 * chunk + u % 16 * width;
    for (size_t j = 0; j < width; j += 16) {
      const size_t left = columns > j ? columns - j : 0;
      const auto used = static_cast<__mmask16>((1u << (left < 16 ? left : 16)) - 1);
      const __m512 a = _mm512_maskz_loadu_ps(2 * u < rows ? used : __mmask16{0}, first + j);
      const __m512 b =
          _mm512_maskz_loadu_ps(2 * u + 1 < rows ? used : __mmask16{0}, first + step + j);
      const auto upper = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b, a));
      _mm512_storeu_si512(high + at + j, _mm512_permutexvar_epi16(interleave, upper));
      if (!low) continue;
      const __m512 a_rest = _mm512_sub_ps(a, widen(_mm512_castsi512_si256(upper)));
      const __m512 b_rest = _mm512_sub_ps(b, widen(_mm512_extracti64x4_epi64(upper, 1)));
      _mm512_storeu_si512(
          low + at + j,
          _mm512_permutexvar_epi16(interleave,
                                   reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b_rest, a_rest))));
    }
  }
}

HOLOGRAM_BF16 void interleave_bf16(const float* from, size_t stride, size_t channels, size_t count,
                                   uint32_t* high, uint32_t* low) {
  alignas(64) uint16_t order[32];
  alignas(64) uint32_t places[2][16];
  for (uint16_t i = 0; i < 16; ++i) order[2 * i] = i, order[2 * i + 1] = i + 16;
  for (uint32_t i = 0; i < 16; ++i)
    places[0][i] = i / 2 + i % 2 * 16, places[1][i] = places[0][i] + 8;
  const __m512i pairs = _mm512_load_si512(order);
  const __m512i first = _mm512_load_si512(places[0]), second = _mm512_load_si512(places[1]);
  const auto used = [](size_t n) { return static_cast<__mmask16>((1u << (n < 16 ? n : 16)) - 1); };
  for (size_t i = 0; i < count; i += 16, high += 32, low += low ? 32 : 0) {
    const size_t left = count - i;
    __m512 values[4];
    for (size_t c = 0; c < 4; ++c)
      values[c] = c < channels ? _mm512_maskz_loadu_ps(used(left), from + c * stride + i)
                               : _mm512_setzero_ps();
    for (uint32_t* to = high;; to = low) {
      __m512i units[2];
      for (size_t u = 0; u < 2; ++u) {
        const auto upper =
            reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(values[2 * u + 1], values[2 * u]));
        units[u] = _mm512_permutexvar_epi16(pairs, upper);
        values[2 * u] = _mm512_sub_ps(values[2 * u], widen(_mm512_castsi512_si256(upper)));
        values[2 * u + 1] =
            _mm512_sub_ps(values[2 * u + 1], widen(_mm512_extracti64x4_epi64(upper, 1)));
      }
      _mm512_mask_storeu_epi32(to, used(2 * left),
                               _mm512_permutex2var_epi32(units[0], first, units[1]));
      _mm512_mask_storeu_epi32(to + 16, left > 8 ? used(2 * left - 16) : __mmask16{0},
                               _mm512_permutex2var_epi32(units[0], second, units[1]));
      if (!low || to == low) break;
    }
  }
}

HOLOGRAM_BF16 void narrow_bf16(const float* from, size_t count, uint16_t* to) {
  size_t i = 0;
  for (; i + 32 <= count; i += 32)
    _mm512_storeu_si512(to + i, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(
                                    _mm512_loadu_ps(from + i + 16), _mm512_loadu_ps(from + i))));
  for (; i < count; i += 16) {
    const size_t left = count - i;
    const auto used = static_cast<__mmask16>((1u << (left < 16 ? left : 16)) - 1);
    _mm256_mask_storeu_epi16(
        to + i, used,
        reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(used, from + i))));
  }
}

// The limits come first: a NaN passes.
HOLOGRAM_BF16 void scale_bf16(const ScaleRun& run) {
  const __m512 scale = _mm512_loadu_ps(run.scale), shift = _mm512_loadu_ps(run.shift);
  const __m512 low = _mm512_set1_ps(run.low), high = _mm512_set1_ps(run.high);
  const auto scaled = [&](const uint16_t* from) HOLOGRAM_BF16 {
    const __m512 x = widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    return _mm512_max_ps(low, _mm512_min_ps(high, _mm512_fmadd_ps(x, scale, shift)));
  };
  size_t i = 0;
  for (; i + 2 <= run.pixels; i += 2)
    _mm512_storeu_si512(run.to + i * 16,
                        reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(
                            scaled(run.from + (i + 1) * 16), scaled(run.from + i * 16))));
  if (i < run.pixels)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(run.to + i * 16),
                        reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(scaled(run.from + i * 16))));
}

// x * sigmoid(x) within 2e-4 of itself, a tenth of what bf16 rounds off.
HOLOGRAM_BF16 inline __m512 coarse_silu(__m512 x) {
  const __m512 limit = _mm512_set1_ps(126.0f);
  // The limits come first: a NaN passes.
  const __m512 power =
      _mm512_max_ps(_mm512_set1_ps(-126.0f),
                    _mm512_min_ps(limit, _mm512_mul_ps(x, _mm512_set1_ps(-1.44269504f))));
  constexpr int kFromBelow = 1;
  const __m512 f = _mm512_reduce_ps(power, kFromBelow);  // in [0, 1)
  __m512 p = _mm512_fmadd_ps(f, _mm512_set1_ps(7.8024521e-2f), _mm512_set1_ps(2.2606716e-1f));
  p = _mm512_fmadd_ps(f, p, _mm512_set1_ps(6.9583356e-1f));
  p = _mm512_fmadd_ps(f, p, _mm512_set1_ps(9.9992520e-1f));
  const __m512 e = _mm512_scalef_ps(p, power);
  return _mm512_mul_ps(x, _mm512_rcp14_ps(_mm512_add_ps(e, _mm512_set1_ps(1.0f))));
}

HOLOGRAM_BF16 void narrow_silu_bf16(const float* from, size_t count, uint16_t* to) {
  for (size_t i = 0; i < count; i += 16) {
    const size_t left = count - i;
    const auto used = static_cast<__mmask16>((1u << (left < 16 ? left : 16)) - 1);
    _mm256_mask_storeu_epi16(to + i, used,
                             reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(
                                 coarse_silu(_mm512_maskz_loadu_ps(used, from + i)))));
  }
}

// more: a slope of negative values and what comes after the activation.
enum class Finish { clip, silu, more };
template <Finish kFinish>
HOLOGRAM_BF16 void finish_bf16(const DirectRun& run) {
  const __m512 slope = _mm512_set1_ps(run.slope), scale = _mm512_set1_ps(run.scale);
  const __m512 shift = _mm512_set1_ps(run.shift), least = _mm512_set1_ps(run.least);
  const __m512 low = _mm512_set1_ps(run.low), high = _mm512_set1_ps(run.high);
  for (size_t j = 0; j < run.columns; j += 16) {
    const __m512 bias = run.bias ? _mm512_loadu_ps(run.bias + j) : _mm512_setzero_ps();
    const float* sums = run.sums + j;
    const ptrdiff_t place = static_cast<ptrdiff_t>(j / 16) * run.block;
    uint16_t* to = run.to + place;
    const uint16_t* residual = run.residual ? run.residual + place : nullptr;
    // The limits come first: a NaN passes.
    const auto finish = [&](const float* from, const uint16_t* other) HOLOGRAM_BF16 {
      __m512 x = _mm512_add_ps(_mm512_loadu_ps(from), bias);
      if (other)
        x = _mm512_add_ps(x, widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(other))));
      if constexpr (kFinish == Finish::silu) return coarse_silu(x);
      // A slope of at most 1: the larger of the two.
      if constexpr (kFinish == Finish::more) x = _mm512_max_ps(_mm512_mul_ps(x, slope), x);
      x = _mm512_max_ps(low, _mm512_min_ps(high, x));
      if constexpr (kFinish == Finish::more)
        x = _mm512_max_ps(least, _mm512_fmadd_ps(x, scale, shift));
      return x;
    };
    size_t r = 0;
    for (; r + 2 <= run.rows; r += 2, sums += 2 * run.width, to += 32) {
      const __m512 first = finish(sums, residual);
      const __m512 second = finish(sums + run.width, residual ? residual + 16 : nullptr);
      if (residual) residual += 32;
      _mm512_storeu_si512(to, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first)));
    }
    if (r < run.rows)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                          reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(finish(sums, residual))));
  }
}

using Strip = void (*)(const UnitTile&);
template <size_t kVectors, size_t... kRows>
constexpr std::array<Strip, kMaxTileRows> vnni_strips(std::index_sequence<kRows...>) {
  return {&vnni_strip<kRows + 1, kVectors>...};
}
template <size_t kVectors, size_t... kRows>
constexpr std::array<Strip, kMaxTileRows> bf16_strips(std::index_sequence<kRows...>) {
  return {&bf16_strip<kRows + 1, kVectors>...};
}
constexpr auto kAll = std::make_index_sequence<kMaxTileRows>();
constexpr std::array<Strip, kMaxTileRows> kVnni[2] = {vnni_strips<1>(kAll), vnni_strips<2>(kAll)};
constexpr std::array<Strip, kMaxTileRows> kBf16[2] = {bf16_strips<1>(kAll), bf16_strips<2>(kAll)};

// In strips of few rows: while the sums of one are put down the next one's products run.
constexpr size_t kShortStrip = kShortRows / 2;
using ShortsRun = void (*)(const uint32_t*, size_t, const uint32_t*, size_t, const float*, float*);
template <size_t kVectors, bool kScaled, size_t... kRows>
constexpr std::array<ShortsRun, kShortStrip> shorts_runs(std::index_sequence<kRows...>) {
  return {&shorts_run<kRows + 1, kVectors, kScaled>...};
}
constexpr auto kShortStrips = std::make_index_sequence<kShortStrip>();
constexpr std::array<ShortsRun, kShortStrip> kShorts[3] = {shorts_runs<1, false>(kShortStrips),
                                                           shorts_runs<2, false>(kShortStrips),
                                                           shorts_runs<2, true>(kShortStrips)};

HOLOGRAM_VNNI void run_shorts(const UnitTile& tile) {
  const auto& runs = kShorts[tile.run_scales ? 2 : tile.width / 32];
  const size_t below = tile.rows > kShortStrip ? tile.rows / 2 : 0, above = tile.rows - below;
  const ShortsRun upper = runs[above - 1], lower = runs[below != 0 ? below - 1 : 0];
  auto* const sums = static_cast<float*>(tile.sums);
  float* const lower_sums = sums + above * tile.width;
  for (size_t i = 0; i < tile.rows * tile.width; i += 16)
    _mm512_store_ps(sums + i, _mm512_setzero_ps());
  const size_t row = tile.a_row, run = kShortUnits * tile.width, lower_row = above * row;
  const size_t chunks = tile.units / kChunk, scale_step = tile.run_scales ? tile.width : 0;
  const uint32_t* b = tile.b;
  const float* scales = tile.run_scales;
  UnitAhead ahead(tile, chunks);
  for (size_t c = 0; c < chunks; ++c) {
    ahead.advance();
    const uint32_t* a = tile.chunk(c);
    for (size_t half = 0; half < kChunk / kShortUnits; ++half) {
      upper(a, row, b, kShortUnits, scales, sums);
      if (below != 0) lower(a + lower_row, row, b, kShortUnits, scales, lower_sums);
      a += kShortUnits;
      b += run;
      scales += scale_step;
    }
  }
}

void run_vnni(const UnitTile& tile) { kVnni[tile.width / 32][tile.rows - 1](tile); }
void run_bf16(const UnitTile& tile) { kBf16[tile.width / 32][tile.rows - 1](tile); }

}  // namespace

namespace detail {
UnitFunction vnni_tile() { return __builtin_cpu_supports("avx512vnni") ? &run_vnni : nullptr; }
UnitFunction vnni_shorts_tile() {
  return __builtin_cpu_supports("avx512vnni") ? &run_shorts : nullptr;
}
UnitFunction avx512_bf16_tile() {
  return __builtin_cpu_supports("avx512bf16") ? &run_bf16 : nullptr;
}
SplitFunction avx512_bf16_split() {
  return __builtin_cpu_supports("avx512bf16") ? &split_pixels_bf16 : nullptr;
}
PairFunction avx512_bf16_pairs() {
  return __builtin_cpu_supports("avx512bf16") ? &split_row_pairs_bf16 : nullptr;
}
InterleaveFunction avx512_bf16_interleave() {
  return __builtin_cpu_supports("avx512bf16") ? &interleave_bf16 : nullptr;
}
FinishFunction avx512_bf16_finish() {
  return __builtin_cpu_supports("avx512bf16") ? &finish_bf16<Finish::clip> : nullptr;
}
FinishFunction avx512_bf16_finish_more() {
  return __builtin_cpu_supports("avx512bf16") ? &finish_bf16<Finish::more> : nullptr;
}
FinishFunction avx512_bf16_finish_silu() {
  return __builtin_cpu_supports("avx512bf16") ? &finish_bf16<Finish::silu> : nullptr;
}
NarrowFunction avx512_bf16_narrow_silu() {
  return __builtin_cpu_supports("avx512bf16") ? &narrow_silu_bf16 : nullptr;
}
ScaleFunction avx512_bf16_scale() {
  return __builtin_cpu_supports("avx512bf16") ? &scale_bf16 : nullptr;
}
NarrowFunction avx512_bf16_narrow() {
  return __builtin_cpu_supports("avx512bf16") ? &narrow_bf16 : nullptr;
}
}  // namespace detail

}  // namespace hologram::backends::dense

#else

namespace hologram::backends::dense::detail {
UnitFunction vnni_tile() { return nullptr; }
UnitFunction vnni_shorts_tile() { return nullptr; }
UnitFunction avx512_bf16_tile() { return nullptr; }
SplitFunction avx512_bf16_split() { return nullptr; }
PairFunction avx512_bf16_pairs() { return nullptr; }
InterleaveFunction avx512_bf16_interleave() { return nullptr; }
FinishFunction avx512_bf16_finish() { return nullptr; }
FinishFunction avx512_bf16_finish_more() { return nullptr; }
FinishFunction avx512_bf16_finish_silu() { return nullptr; }
NarrowFunction avx512_bf16_narrow_silu() { return nullptr; }
ScaleFunction avx512_bf16_scale() { return nullptr; }
NarrowFunction avx512_bf16_narrow() { return nullptr; }
}  // namespace hologram::backends::dense::detail

#endif
