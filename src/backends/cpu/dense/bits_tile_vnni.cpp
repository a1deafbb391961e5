// Products by weights of 4 and 8 bits in integers. By 4 bits a code and its neighbour are a shift
// and two masks for four values each, where f32 takes a shift and a permutation a value; by 8 bits
// four rows are turned by six shuffles, where f32 takes a shuffle and a conversion for every 16
// values. A in three digits keeps what f32 keeps of the largest value of a run.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "backends/cpu/dense/bits_tile.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of the intrinsics' own "undefined" registers, and of lambdas as functions that no
// one calls.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wpsabi"
#endif
#include <immintrin.h>
#endif

namespace hologram::backends::dense {

#if defined(__x86_64__)
namespace {

#define HOLOGRAM_VNNI __attribute__((target("avx512f,avx512vl,avx512bw,avx512vnni,ssse3")))

// CPUs that bring near by themselves what comes next keep too few lines on their way for memory
// that one core has alone. Intel's first cache waits for 16 lines at most and the second for 48,
// which memory needs: there lines come into the second first. (Zen's first waits for enough of
// them, and twice the instructions cost it a sixth.)
enum class Ahead { first_cache, both_caches };
// From what is read to what is asked for.
constexpr size_t kNearBytes = 2048;
constexpr size_t far_bytes(Ahead ahead, size_t rows) {
  return ahead == Ahead::first_cache && rows == 1 ? 7168 : 12288;
}
constexpr size_t kRows = 2;  // of more, the sums of three digits leave the registers

#define HOLOGRAM_VNNI_ALWAYS HOLOGRAM_VNNI __attribute__((always_inline))
#define HOLOGRAM_VNNI_INLINE HOLOGRAM_VNNI_ALWAYS inline

// sums: [row][digit][vector]; codes are above their middle, which the sums start without.
template <size_t kCount>
HOLOGRAM_VNNI_INLINE void begin_run(const BitsTile& t, const uint32_t* a,
                                    __m512i (&sums)[kCount][3][2]) {
#pragma GCC unroll 2
  for (size_t r = 0; r < kCount; ++r)
#pragma GCC unroll 3
    for (size_t d = 0; d < 3; ++d)
      sums[r][d][0] = sums[r][d][1] =
          _mm512_set1_epi32(static_cast<int>(a[r * t.integer_row + 2 + d]));
}

// Zeros follow the scales where there are any.
template <size_t kCount>
HOLOGRAM_VNNI_INLINE void add_run(const BitsTile& t, const uint32_t* a,
                                  const __m512i (&sums)[kCount][3][2], const float* scales,
                                  __m512 (&totals)[kCount][2]) {
#pragma GCC unroll 2
  for (size_t r = 0; r < kCount; ++r) {
    const uint32_t* head = a + r * t.integer_row;
    const __m512 scale = _mm512_set1_ps(std::bit_cast<float>(head[0]));
    const __m512 sum = _mm512_set1_ps(std::bit_cast<float>(head[1]));
#pragma GCC unroll 2
    for (size_t v = 0; v < 2; ++v) {
      __m512 value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[r][1][v]), _mm512_set1_ps(256.0f),
                                     _mm512_cvtepi32_ps(sums[r][2][v]));
      value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[r][0][v]), _mm512_set1_ps(65536.0f), value);
      if (t.row_sums) value = _mm512_fnmadd_ps(sum, _mm512_loadu_ps(scales + 32 + v * 16), value);
      totals[r][v] = _mm512_fmadd_ps(value, _mm512_mul_ps(scale, _mm512_loadu_ps(scales + v * 16)),
                                     totals[r][v]);
    }
  }
}

// One run of A; says where the next one starts.
HOLOGRAM_VNNI uint32_t* pack_run(const float* from, size_t count, unsigned bits, uint32_t* to) {
  constexpr float kLargest = 8e6f;     // the upper digit stays below 128
  constexpr float kSmallest = 1e-30f;  // what is below is 0 beside it
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
  const size_t words = (count + 7) / 8 * kIntegerStep;
  uint32_t* digits = to + kIntegerHead;
  if (empty) std::memset(digits, 0, words * sizeof(uint32_t));
  const __m512 inverse = _mm512_set1_ps(empty ? 0.0f : kLargest / most);
  // By 4 bits the even and the odd ones of each eight.
  const __m128i order = bits == 4
                            ? _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15)
                            : _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i places = _mm512_setr_epi32(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11, 0, 0, 0, 0);
  const auto signed_byte = [](__m512i v) HOLOGRAM_VNNI {
    return _mm512_srai_epi32(_mm512_slli_epi32(v, 24), 24);
  };
  const auto above = [](__m512i v, __m512i digit)
                         HOLOGRAM_VNNI { return _mm512_srai_epi32(_mm512_sub_epi32(v, digit), 8); };
  __m512i sums[3] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
  for (size_t i = 0; i < count && !empty; i += 16, digits += 2 * kIntegerStep) {
    const __m512i value = _mm512_cvtps_epi32(_mm512_mul_ps(load(i), inverse));
    const __m512i low = signed_byte(value), rest = above(value, low);
    const __m512i middle = signed_byte(rest), high = above(rest, middle);
    const __m512i three[3] = {high, middle, low};
    __m512i all = _mm512_setzero_si512();
#pragma GCC unroll 3
    for (int d = 0; d < 3; ++d) {
      sums[d] = _mm512_add_epi32(sums[d], three[d]);
      const __m128i bytes = _mm_shuffle_epi8(_mm512_cvtepi32_epi8(three[d]), order);
      all = d == 0   ? _mm512_inserti32x4(all, bytes, 0)
            : d == 1 ? _mm512_inserti32x4(all, bytes, 1)
                     : _mm512_inserti32x4(all, bytes, 2);
    }
    _mm512_mask_storeu_epi32(digits, count - i > 8 ? 0xfff : 0x3f,
                             _mm512_permutexvar_epi32(places, all));
  }
  const int64_t middle_code = bits == 4 ? 8 : 128;
  double sum = 0;
#pragma GCC unroll 3
  for (size_t d = 0; d < 3; ++d) {
    const int64_t of_digit = _mm512_reduce_add_epi32(sums[d]);
    sum = 256.0 * sum + static_cast<double>(of_digit);
    to[2 + d] = static_cast<uint32_t>(-middle_code * of_digit);
  }
  to[0] = std::bit_cast<uint32_t>(!finite ? NAN : empty ? 0.0f : most / kLargest);
  to[1] = std::bit_cast<uint32_t>(static_cast<float>(sum));
  return to + kIntegerHead + words;
}

void pack_integers(const float* a, size_t k, size_t group, unsigned bits, uint32_t* to) {
  if (bits == 16) return detail::pack_vnni_words(a, k, group, to);
  const size_t run = integer_run(group, bits);
  for (size_t first = 0; first < k; first += group) {
    const size_t end = std::min(first + group, k);
    for (size_t i = first; i < end; i += run)
      to = pack_run(a + i, std::min(run, end - i), bits, to);
  }
}

// Of two lines that are read.
template <Ahead kAhead, size_t kCount>
HOLOGRAM_VNNI_INLINE void ask_ahead(const void* at) {
  constexpr size_t kLine = 64;
  const auto* bytes = static_cast<const std::byte*>(at);
  const std::byte* near = bytes + far_bytes(kAhead, kCount);
  if constexpr (kAhead == Ahead::both_caches) {
    __builtin_prefetch(near, 0, 2);
    __builtin_prefetch(near + kLine, 0, 2);
    near = bytes + kNearBytes;
  }
  __builtin_prefetch(near);
  __builtin_prefetch(near + kLine);
}

// Eight rows of codes.
template <Ahead kAhead, size_t kCount>
HOLOGRAM_VNNI_INLINE void add_step(const BitsTile& t, const uint32_t* digits, const uint32_t* at,
                                   __m512i (&sums)[kCount][3][2]) {
  ask_ahead<kAhead, kCount>(at);
  const __m512i mask = _mm512_set1_epi8(15);
  const __m512i first = _mm512_loadu_si512(at), second = _mm512_loadu_si512(at + 16);
  const __m512i codes[2][2] = {{_mm512_and_si512(first, mask), _mm512_and_si512(second, mask)},
                               {_mm512_and_si512(_mm512_srli_epi32(first, 4), mask),
                                _mm512_and_si512(_mm512_srli_epi32(second, 4), mask)}};
#pragma GCC unroll 2
  for (size_t odd = 0; odd < 2; ++odd)
#pragma GCC unroll 2
    for (size_t r = 0; r < kCount; ++r)
#pragma GCC unroll 3
      for (size_t d = 0; d < 3; ++d) {
        const __m512i four =
            _mm512_set1_epi32(static_cast<int>(digits[r * t.integer_row + odd * 3 + d]));
        sums[r][d][0] = _mm512_dpbusd_epi32(sums[r][d][0], codes[odd][0], four);
        sums[r][d][1] = _mm512_dpbusd_epi32(sums[r][d][1], codes[odd][1], four);
      }
}

// kSteps: how many, or 0: as many as said.
template <Ahead kAhead, size_t kCount, size_t kSteps>
HOLOGRAM_VNNI_INLINE void add_nibbles(const BitsTile& t, const uint32_t* a, const uint32_t* at,
                                      size_t steps, const float* scales,
                                      __m512 (&totals)[kCount][2]) {
  __m512i sums[kCount][3][2];
  begin_run<kCount>(t, a, sums);
  const uint32_t* digits = a + kIntegerHead;
  if constexpr (kSteps != 0) {
#pragma GCC unroll 4
    for (size_t s = 0; s < kSteps; ++s)
      add_step<kAhead, kCount>(t, digits + s * kIntegerStep, at + s * 32, sums);
  } else {
    for (size_t s = 0; s < steps; ++s, digits += kIntegerStep, at += 32)
      add_step<kAhead, kCount>(t, digits, at, sums);
  }
  add_run<kCount>(t, a, sums, scales, totals);
}

template <Ahead kAhead, size_t kCount>
HOLOGRAM_VNNI void run_nibbles(const BitsTile& t) {
  __m512 totals[kCount][2];
#pragma GCC unroll 2
  for (size_t r = 0; r < kCount; ++r) totals[r][0] = totals[r][1] = _mm512_setzero_ps();
  const auto* at = reinterpret_cast<const uint32_t*>(t.panel);
  const uint32_t* a = t.integers;
  for (size_t g = 0; g < t.groups; ++g) {
    const size_t rows = std::min(t.group, t.k - g * t.group), steps = (rows + 7) / 8;
    const auto* scales = reinterpret_cast<const float*>(at);
    ask_ahead<kAhead, kCount>(scales);
    at += t.row_sums ? 64 : 32;
    // Fewer instructions a byte let a CPU look further ahead: one row waits for the memory alone.
    if (kCount == 1 && steps == 4)  // a group of 32
      add_nibbles<kAhead, kCount, 4>(t, a, at, 4, scales, totals);
    else
      add_nibbles<kAhead, kCount, 0>(t, a, at, steps, scales, totals);
    at += steps * 32;
    a += kIntegerHead + steps * kIntegerStep;
  }
#pragma GCC unroll 2
  for (size_t r = 0; r < kCount; ++r)
    for (size_t v = 0; v < 2; ++v) _mm512_storeu_ps(t.sums + r * 32 + v * 16, totals[r][v]);
}

// Four rows of 32 signed bytes -> the four codes of a column beside each other. Columns by fours:
// 0, 4, 2, 6 of the first vector and 1, 5, 3, 7 of the second, as Turned::order has it.
struct Turned {
  __m512i vectors[2];
  HOLOGRAM_VNNI_INLINE Turned(__m512i rows01, __m512i rows23) {
    const __m512i even = _mm512_shuffle_i64x2(rows01, rows23, 0x44);
    const __m512i odd = _mm512_shuffle_i64x2(rows01, rows23, 0xee);
    const __m512i low = _mm512_unpacklo_epi8(even, odd), high = _mm512_unpackhi_epi8(even, odd);
    const __m512i upper = _mm512_shuffle_i64x2(low, high, 0x44);
    const __m512i lower = _mm512_shuffle_i64x2(low, high, 0xee);
    const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
    vectors[0] = _mm512_xor_si512(_mm512_unpacklo_epi16(upper, lower), sign);
    vectors[1] = _mm512_xor_si512(_mm512_unpackhi_epi16(upper, lower), sign);
  }
  // The first four columns of both, then the next; `half` of them.
  HOLOGRAM_VNNI_INLINE static __m512i order(__m512i first, __m512i second, bool half) {
    const __m512i low = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
    const __m512i high =
        _mm512_setr_epi32(4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
    return _mm512_permutex2var_epi32(first, half ? high : low, second);
  }
};

template <Ahead kAhead, size_t kCount>
HOLOGRAM_VNNI void run_bytes(const BitsTile& t) {
  __m512 totals[kCount][2];
#pragma GCC unroll 2
  for (size_t r = 0; r < kCount; ++r) totals[r][0] = totals[r][1] = _mm512_setzero_ps();
  const std::byte* at = t.panel;
  const uint32_t* a = t.integers;
  for (size_t g = 0; g < t.groups; ++g) {
    const size_t rows = std::min(t.group, t.k - g * t.group);
    const auto* scales = reinterpret_cast<const float*>(at);
    ask_ahead<kAhead, kCount>(scales);
    at += (t.row_sums ? 64 : 32) * sizeof(float);
    const size_t run = integer_run(t.group, 8);
    for (size_t first = 0; first < rows; first += run) {
      const size_t values = std::min(run, rows - first);
      __m512i sums[kCount][3][2];
      begin_run<kCount>(t, a, sums);
      const uint32_t* digits = a + kIntegerHead;
      const auto add = [&](const Turned& codes) HOLOGRAM_VNNI_ALWAYS {
#pragma GCC unroll 2
        for (size_t r = 0; r < kCount; ++r)
#pragma GCC unroll 3
          for (size_t d = 0; d < 3; ++d) {
            const __m512i four = _mm512_set1_epi32(static_cast<int>(digits[r * t.integer_row + d]));
            sums[r][d][0] = _mm512_dpbusd_epi32(sums[r][d][0], codes.vectors[0], four);
            sums[r][d][1] = _mm512_dpbusd_epi32(sums[r][d][1], codes.vectors[1], four);
          }
        digits += 3;
      };
      for (size_t i = 0; i + 4 <= values; i += 4, at += 128) {
        ask_ahead<kAhead, kCount>(at);
        add(Turned(_mm512_loadu_si512(at), _mm512_loadu_si512(at + 64)));
      }
      if (const size_t rest = values % 4; rest != 0) {
        const auto mask = [](size_t count) {
          return count >= 2 ? ~uint64_t{0} : count == 1 ? uint64_t{0xffffffff} : uint64_t{0};
        };
        add(Turned(_mm512_maskz_loadu_epi8(mask(rest), at),
                   _mm512_maskz_loadu_epi8(mask(rest - std::min<size_t>(rest, 2)), at + 64)));
        at += rest * 32;
      }
#pragma GCC unroll 2
      for (size_t r = 0; r < kCount; ++r)
#pragma GCC unroll 3
        for (size_t d = 0; d < 3; ++d) {
          const __m512i one = sums[r][d][0], other = sums[r][d][1];
          sums[r][d][0] = Turned::order(one, other, false);
          sums[r][d][1] = Turned::order(one, other, true);
        }
      add_run<kCount>(t, a, sums, scales, totals);
      a += kIntegerHead + (values + 7) / 8 * kIntegerStep;
    }
  }
#pragma GCC unroll 2
  for (size_t r = 0; r < kCount; ++r)
    for (size_t v = 0; v < 2; ++v) _mm512_storeu_ps(t.sums + r * 32 + v * 16, totals[r][v]);
}

template <Ahead kAhead>
void run_any(const BitsTile& t) {
  if (t.bits == 16) return detail::vnni_words(t);
  constexpr void (*kRun[2][kRows])(const BitsTile&) = {
      {&run_nibbles<kAhead, 1>, &run_nibbles<kAhead, 2>},
      {&run_bytes<kAhead, 1>, &run_bytes<kAhead, 2>}};
  kRun[t.bits / 8][t.rows - 1](t);
}

}  // namespace

namespace detail {
const BitsKernel* vnni_bits() {
  static constexpr BitsKernel kIntel{kRows, &run_any<Ahead::both_caches>, &pack_integers},
      kOther{kRows, &run_any<Ahead::first_cache>, &pack_integers};
  if (!__builtin_cpu_supports("avx512vnni")) return nullptr;
  return __builtin_cpu_is("intel") ? &kIntel : &kOther;
}
}  // namespace detail
#else
namespace detail {
const BitsKernel* vnni_bits() { return nullptr; }
}  // namespace detail
#endif

}  // namespace hologram::backends::dense
