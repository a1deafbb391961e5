// Products by weights of 4 and 8 bits in integers. By 8 bits four codes of a column meet four
// digits of A as they lie in memory, by 4 bits after one mask: the upper columns are what a whole
// byte says less what its lower half does. (By f32 a code takes a shift, a conversion or
// permutation, and a multiplication of its own.) A in three digits keeps what f32 keeps of the
// largest value of a run.
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
constexpr size_t kNearBytes = 4096, kLine = 64;
constexpr size_t far_bytes(Ahead ahead, size_t rows) {
  return ahead == Ahead::both_caches ? 16384 : rows == 1 ? 7168 : 12288;
}

constexpr size_t kDigits = 3;  // of A
constexpr size_t kRows = 2;    // of more, the sums leave the registers

#define HOLOGRAM_VNNI_ALWAYS HOLOGRAM_VNNI __attribute__((always_inline))
#define HOLOGRAM_VNNI_INLINE HOLOGRAM_VNNI_ALWAYS inline

// What digits of A and codes come to, of 16 columns each. Codes are above their middle, which sums
// start without.
template <size_t kCount>
struct Sums {
  __m512i digits[kCount][kDigits][2];

  HOLOGRAM_VNNI_INLINE Sums(const BitsTile& t, const uint32_t* heads) {
#pragma GCC unroll 2
    for (size_t r = 0; r < kCount; ++r)
#pragma GCC unroll 3
      for (size_t d = 0; d < kDigits; ++d)
#pragma GCC unroll 2
        for (size_t v = 0; v < 2; ++v)
          digits[r][d][v] = _mm512_set1_epi32(
              static_cast<int>(heads[r * t.integer_row + v * kIntegerHead + 2 + d]));
  }

  // Four rows of codes by the digits of four values.
  HOLOGRAM_VNNI_INLINE void add(const BitsTile& t, const uint32_t* a, __m512i first,
                                __m512i second) {
#pragma GCC unroll 2
    for (size_t r = 0; r < kCount; ++r)
#pragma GCC unroll 3
      for (size_t d = 0; d < kDigits; ++d) {
        const __m512i four = _mm512_set1_epi32(static_cast<int>(a[r * t.integer_row + d]));
        digits[r][d][0] = _mm512_dpbusd_epi32(digits[r][d][0], first, four);
        digits[r][d][1] = _mm512_dpbusd_epi32(digits[r][d][1], second, four);
      }
  }
};

template <size_t kCount>
struct Totals {
  __m512 values[kCount][2];

  HOLOGRAM_VNNI_INLINE Totals() {
#pragma GCC unroll 2
    for (auto& row : values) row[0] = row[1] = _mm512_setzero_ps();
  }

  // Zeros follow the scales where there are any.
  HOLOGRAM_VNNI_INLINE void add(const BitsTile& t, const uint32_t* heads, const Sums<kCount>& sums,
                                const float* scales) {
#pragma GCC unroll 2
    for (size_t r = 0; r < kCount; ++r)
#pragma GCC unroll 2
      for (size_t v = 0; v < 2; ++v) {
        const uint32_t* head = heads + r * t.integer_row + v * kIntegerHead;
        const auto digit = [&](size_t d) HOLOGRAM_VNNI_ALWAYS {
          return _mm512_cvtepi32_ps(sums.digits[r][d][v]);
        };
        __m512 value = _mm512_fmadd_ps(digit(1), _mm512_set1_ps(256.0f), digit(2));
        value = _mm512_fmadd_ps(digit(0), _mm512_set1_ps(65536.0f), value);
        if (t.zeros)
          value = _mm512_fnmadd_ps(_mm512_set1_ps(std::bit_cast<float>(head[1])),
                                   _mm512_loadu_ps(scales + 32 + v * 16), value);
        values[r][v] = _mm512_fmadd_ps(value,
                                       _mm512_mul_ps(_mm512_set1_ps(std::bit_cast<float>(head[0])),
                                                     _mm512_loadu_ps(scales + v * 16)),
                                       values[r][v]);
      }
  }

  HOLOGRAM_VNNI_INLINE void store(const BitsTile& t) const {
#pragma GCC unroll 2
    for (size_t r = 0; r < kCount; ++r)
#pragma GCC unroll 2
      for (size_t v = 0; v < 2; ++v) _mm512_storeu_ps(t.sums + r * 32 + v * 16, values[r][v]);
  }
};

// One run of A; says where the next one starts.
HOLOGRAM_VNNI uint32_t* pack_run(const float* from, size_t count, unsigned bits, uint32_t* to) {
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
  const bool finite = std::isfinite(most), empty = !finite || most < kSmallestOfRun;
  const size_t words = (count + 3) / 4 * kDigits;
  uint32_t *const digits_begin = to + 2 * kIntegerHead, *digits = digits_begin;
  if (empty) std::memset(digits, 0, words * sizeof(uint32_t));
  const __m512 inverse = _mm512_set1_ps(empty ? 0.0f : kLargestInteger / most);
  const __m512i places = _mm512_setr_epi32(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11, 0, 0, 0, 0);
  const auto signed_byte = [](__m512i v) HOLOGRAM_VNNI {
    return _mm512_srai_epi32(_mm512_slli_epi32(v, 24), 24);
  };
  const auto above = [](__m512i v, __m512i digit)
                         HOLOGRAM_VNNI { return _mm512_srai_epi32(_mm512_sub_epi32(v, digit), 8); };
  __m512i sums[3] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
  for (size_t i = 0; i < count && !empty; i += 16, digits += 4 * kDigits) {
    const __m512i value = _mm512_cvtps_epi32(_mm512_mul_ps(load(i), inverse));
    const __m512i low = signed_byte(value), rest = above(value, low);
    const __m512i middle = signed_byte(rest), high = above(rest, middle);
    const __m512i three[3] = {high, middle, low};
    __m512i all = _mm512_setzero_si512();
#pragma GCC unroll 3
    for (size_t d = 0; d < kDigits; ++d) {
      sums[d] = _mm512_add_epi32(sums[d], three[d]);
      const __m128i bytes = _mm512_cvtepi32_epi8(three[d]);
      all = d == 0   ? _mm512_inserti32x4(all, bytes, 0)
            : d == 1 ? _mm512_inserti32x4(all, bytes, 1)
                     : _mm512_inserti32x4(all, bytes, 2);
    }
    const size_t fours = std::min<size_t>(4, (count - i + 3) / 4);
    _mm512_mask_storeu_epi32(digits, static_cast<__mmask16>((1u << (fours * kDigits)) - 1),
                             _mm512_permutexvar_epi32(places, all));
  }
  int64_t of_digits[kDigits];
#pragma GCC unroll 3
  for (size_t d = 0; d < kDigits; ++d) of_digits[d] = _mm512_reduce_add_epi32(sums[d]);
  write_heads(bits, !finite ? NAN : empty ? 0.0f : most / kLargestInteger, of_digits, 256, to);
  return digits_begin + words;
}

void pack_integers(const float* a, size_t k, size_t group, unsigned bits, uint32_t* to) {
  if (bits == 16) return detail::pack_vnni_words(a, k, group, to);
  const size_t run = integer_run(group);
  for (size_t first = 0; first < k; first += group) {
    const size_t end = std::min(first + group, k);
    for (size_t i = first; i < end; i += run)
      to = pack_run(a + i, std::min(run, end - i), bits, to);
  }
}

// Of a line that is read.
template <Ahead kAhead, size_t kCount>
HOLOGRAM_VNNI_INLINE void ask_ahead(const std::byte* at) {
  if constexpr (kAhead == Ahead::both_caches) {
    __builtin_prefetch(at + far_bytes(kAhead, kCount), 0, 2);
    __builtin_prefetch(at + kNearBytes);
  } else {
    __builtin_prefetch(at + far_bytes(kAhead, kCount));
  }
}

// Scales, and zeros where there are any; says what follows.
template <Ahead kAhead, size_t kCount>
HOLOGRAM_VNNI_INLINE const std::byte* pass_scales(const std::byte* at, bool zeros) {
  for (size_t line = 0; line < (zeros ? 4 : 2); ++line, at += kLine) ask_ahead<kAhead, kCount>(at);
  return at;
}

// A run of `values` rows of codes; where kKnown says how many, their loop is unrolled. Of 4 bits
// upper halves of bytes are codes of the upper 16 columns: a byte is multiplied as it is, and what
// its lower half says is taken off at the end.
template <Ahead kAhead, size_t kCount, unsigned kBits, size_t kKnown = 0>
HOLOGRAM_VNNI_INLINE void add_run(const BitsTile& t, size_t values, const float* scales,
                                  const uint32_t*& a, const std::byte*& at,
                                  Totals<kCount>& totals) {
  const uint32_t* heads = a;
  Sums<kCount> sums(t, heads);
  a += 2 * kIntegerHead;
  const auto add_four = [&]() HOLOGRAM_VNNI_ALWAYS {
    ask_ahead<kAhead, kCount>(at);
    const __m512i codes = _mm512_loadu_si512(at);
    at += kLine;
    if constexpr (kBits == 4) {
      sums.add(t, a, _mm512_and_si512(codes, _mm512_set1_epi8(15)), codes);
    } else {
      ask_ahead<kAhead, kCount>(at);
      sums.add(t, a, codes, _mm512_loadu_si512(at));
      at += kLine;
    }
    a += kDigits;
  };
  if constexpr (kKnown != 0) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kKnown; i += 4) add_four();
  } else {
    for (size_t i = 0; i < values; i += 4) add_four();
  }
  if constexpr (kBits == 4)
#pragma GCC unroll 2
    for (auto& row : sums.digits)
#pragma GCC unroll 3
      for (auto& digit : row) digit[1] = _mm512_sub_epi32(digit[1], digit[0]);
  totals.add(t, heads, sums, scales);
}

template <Ahead kAhead, size_t kCount, unsigned kBits>
HOLOGRAM_VNNI void run_panel(const BitsTile& t) {
  constexpr size_t kUsual = 32;  // rows of a group of 4 bits
  Totals<kCount> totals;
  const std::byte* at = t.panel;
  const uint32_t* a = t.integers;
  const size_t run = integer_run(t.group);
  for (size_t k = 0; k < t.k; k += t.group) {
    const auto* scales = reinterpret_cast<const float*>(at);
    at = pass_scales<kAhead, kCount>(at, t.zeros);
    const size_t end = std::min(k + t.group, t.k);
    if (kBits == 4 && end - k == kUsual)
      add_run<kAhead, kCount, kBits, kUsual>(t, kUsual, scales, a, at, totals);
    else
      for (size_t i = k; i < end; i += run)
        add_run<kAhead, kCount, kBits>(t, std::min(run, end - i), scales, a, at, totals);
  }
  totals.store(t);
}

template <Ahead kAhead>
void run_any(const BitsTile& t) {
  if (t.bits == 16) return detail::vnni_words(t);
  constexpr void (*kRun[2][kRows])(const BitsTile&) = {
      {&run_panel<kAhead, 1, 4>, &run_panel<kAhead, 2, 4>},
      {&run_panel<kAhead, 1, 8>, &run_panel<kAhead, 2, 8>}};
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
