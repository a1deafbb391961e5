#include "backends/cpu/dense/byte_values.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>

#include "backends/cpu/dense/unit_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of the intrinsics' own "undefined" registers.
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace hologram::backends::dense {
namespace {

uint32_t bits_at(const BytePixels& t, size_t at) {
  if (t.bf16) return uint32_t{static_cast<const uint16_t*>(t.from)[at]} << 16;
  return std::bit_cast<uint32_t>(static_cast<const float*>(t.from)[at]);
}

void include(ByteRange& range, uint32_t bits) { range.include({bits, static_cast<int32_t>(bits)}); }

ByteRange range_of(const BytePixels& t, size_t count) {
  ByteRange range;
  for (size_t p = 0; p < t.pixels; ++p)
    for (size_t i = 0; i < count; ++i) include(range, bits_at(t, p * t.step + i));
  return range;
}

void ranges_of(const BytePixels& t, ByteRange* each) {
  for (size_t p = 0; p < t.pixels; ++p) {
    each[p] = {};
    for (size_t i = 0; i < t.count; ++i)
      include(each[p], bits_at(t, p * t.step + i / kByteRun * t.block + i % kByteRun));
  }
}

void pixel_bytes(const BytePixels& t) {
  for (size_t run = 0; run < t.pixels * t.runs; ++run) {
    const size_t pixel = run / t.runs, first = run % t.runs * kByteRun;
    const size_t from = pixel * t.step + run % t.runs * t.block;
    uint8_t* to = t.to + run / 4 * t.chunk + run % 4 * kByteRun;
    const float factor = t.factors[pixel * t.scale_step], zero = t.zeros[pixel * t.scale_step];
    for (size_t i = 0; i < kByteRun; ++i) {
      const float value =
          first + i < t.count ? std::bit_cast<float>(bits_at(t, from + i)) * factor + zero : 0.0f;
      // What is not finite makes no bytes that matter.
      to[i] = static_cast<uint8_t>(
          std::isnan(value) ? 0.0f : std::nearbyint(std::clamp(value, 0.0f, 255.0f)));
    }
  }
}

void scale_sums(const ByteSums& t) {
  int32_t* at = t.sums;
  for (size_t r = 0; r < t.rows; ++r) {
    const auto zero = static_cast<uint32_t>(t.zeros[r * t.row_step]);
    for (size_t j = 0; j < t.width; ++j, ++at) {
      // Of hostile weights it wraps.
      const auto sum = static_cast<int32_t>(static_cast<uint32_t>(*at) -
                                            zero * static_cast<uint32_t>(t.column_sums[j]));
      *at =
          std::bit_cast<int32_t>(static_cast<float>(sum) * (t.backs[r * t.row_step] * t.scales[j]));
    }
  }
}

#if defined(__x86_64__)
#define HOLOGRAM_AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq")))
#define HOLOGRAM_AVX512_INLINE HOLOGRAM_AVX512 inline __attribute__((always_inline))

HOLOGRAM_AVX512_INLINE __mmask16 lanes(size_t count) {
  return count >= kByteRun ? __mmask16{0xffff} : static_cast<__mmask16>((1u << count) - 1);
}

template <bool kBf16>
HOLOGRAM_AVX512_INLINE __m512i load_bits(const void* from, size_t at, __mmask16 used) {
  if constexpr (kBf16)
    return _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(
                                 used, static_cast<const uint16_t*>(from) + at)),
                             16);
  else
    return _mm512_maskz_loadu_epi32(used, static_cast<const float*>(from) + at);
}

template <bool kBf16>
HOLOGRAM_AVX512 ByteRange range_as(const BytePixels& t, size_t count) {
  const __mmask16 used = lanes(count);
  __m512i low = _mm512_setzero_si512(), high = low;
  for (size_t p = 0; p < t.pixels; ++p) {
    const __m512i bits = load_bits<kBf16>(t.from, p * t.step, used);
    low = _mm512_max_epu32(low, bits);
    high = _mm512_max_epi32(high, bits);
  }
  return {_mm512_reduce_max_epu32(low), _mm512_reduce_max_epi32(high)};
}

template <bool kBf16>
HOLOGRAM_AVX512 void ranges_as(const BytePixels& t, ByteRange* each) {
  const size_t whole = t.count / kByteRun * t.block;
  const __mmask16 last = lanes(t.count % kByteRun);
  for (size_t p = 0; p < t.pixels; ++p) {
    const size_t from = p * t.step;
    __m512i low = load_bits<kBf16>(t.from, from + whole, last), high = low;
    high = _mm512_max_epi32(high, _mm512_setzero_si512());
    for (size_t at = 0; at < whole; at += t.block) {
      const __m512i bits = load_bits<kBf16>(t.from, from + at, 0xffff);
      low = _mm512_max_epu32(low, bits);
      high = _mm512_max_epi32(high, bits);
    }
    each[p] = {_mm512_reduce_max_epu32(low), _mm512_reduce_max_epi32(high)};
  }
}

template <bool kBf16>
HOLOGRAM_AVX512 void pixels_as(const BytePixels& t) {
  // Narrowed in pairs within each quarter of a register, then the quarters' parts put in order.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const size_t runs = t.pixels * t.runs;
  size_t pixel = 0, run = 0, from = 0, scale = 0;
  for (size_t at = 0; at < runs; at += 4) {
    __m512i q[4];
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      const size_t first = run * kByteRun;
      // Nothing is read where no lane is.
      const __mmask16 used = pixel < t.pixels && first < t.count ? lanes(t.count - first) : 0;
      const __m512 value =
          _mm512_castsi512_ps(load_bits<kBf16>(t.from, from + run * t.block, used));
      q[i] = _mm512_cvtps_epi32(
          _mm512_fmadd_ps(value, _mm512_set1_ps(t.factors[scale]), _mm512_set1_ps(t.zeros[scale])));
      if (++run == t.runs) {
        run = 0;
        from += t.step;
        if (++pixel < t.pixels) scale += t.scale_step;
      }
    }
    const __m512i bytes = _mm512_permutexvar_epi32(
        order, _mm512_packus_epi16(_mm512_packs_epi32(q[0], q[1]), _mm512_packs_epi32(q[2], q[3])));
    const size_t left = (runs - at) * kByteRun;
    const __mmask64 inside = left >= 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    _mm512_mask_storeu_epi8(t.to + at / 4 * t.chunk, inside, bytes);
  }
}

HOLOGRAM_AVX512 void scale_sums_avx512(const ByteSums& t) {
  for (size_t j = 0; j < t.width; j += 16) {
    const __m512i column_sums = _mm512_loadu_si512(t.column_sums + j);
    const __m512 scales = _mm512_loadu_ps(t.scales + j);
    for (size_t r = 0; r < t.rows; ++r) {
      int32_t* at = t.sums + r * t.width + j;
      const auto zero = static_cast<int32_t>(t.zeros[r * t.row_step]);
      __m512i sum = _mm512_loadu_si512(at);
      // Behind a ReLU there is none, and the product takes as long as all else.
      if (zero != 0)
        sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(_mm512_set1_epi32(zero), column_sums));
      const __m512 scale = _mm512_mul_ps(_mm512_set1_ps(t.backs[r * t.row_step]), scales);
      _mm512_storeu_ps(at, _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale));
    }
  }
}

ByteRange range_avx512(const BytePixels& t, size_t count) {
  return (t.bf16 ? &range_as<true> : &range_as<false>)(t, count);
}
void ranges_avx512(const BytePixels& t, ByteRange* each) {
  (t.bf16 ? &ranges_as<true> : &ranges_as<false>)(t, each);
}
void pixels_avx512(const BytePixels& t) { (t.bf16 ? &pixels_as<true> : &pixels_as<false>)(t); }
#endif

}  // namespace

ByteFunctions byte_functions() {
#if defined(__x86_64__)
  if (unit_kernels().avx512)
    return {&range_avx512, &ranges_avx512, &pixels_avx512, &scale_sums_avx512};
#endif
  return {&range_of, &ranges_of, &pixel_bytes, &scale_sums};
}

ByteScale::ByteScale(const ByteRange& range) {
  constexpr int32_t kInfinity = 0x7f800000;
  constexpr uint32_t kSign = 0x80000000u;
  if (range.high >= kInfinity || range.low >= kSign + uint32_t{kInfinity} ||
      (range.low < kSign && range.low >= uint32_t{kInfinity})) {
    back = std::numeric_limits<float>::quiet_NaN();
    return;
  }
  const float high = std::bit_cast<float>(range.high) / 255.0f;
  const float low = range.low > kSign ? std::bit_cast<float>(range.low) / 255.0f : 0.0f;
  back = high - low;
  // Of zeros, or so small that its reciprocal is not finite.
  if (back < FLT_MIN) {
    back = 0;
    return;
  }
  factor = 1.0f / back;
  zero = std::nearbyint(std::min(-low * factor * 255.0f, 255.0f));
}

}  // namespace hologram::backends::dense
