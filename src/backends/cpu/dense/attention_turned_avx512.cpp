#include "backends/cpu/dense/attention_turned.h"
#include "backends/cpu/dense/short_values.h"
#include "backends/cpu/dense/unit_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cmath>

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of the intrinsics' own "undefined" registers.
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace hologram::backends::dense {
namespace {

#define HOLOGRAM_TURNED \
  __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512vbmi,avx512bf16")))
#define HOLOGRAM_TURNED_INLINE HOLOGRAM_TURNED inline __attribute__((always_inline))

constexpr float kLog2E = 1.44269504f;
constexpr size_t kLanes = 16, kHalves = kPanelQueries / kLanes;
constexpr float kLeastSum = 0x1p-10f, kMostSum = 0x1p24f;
// In 1/128ths. Beyond, a base is not a whole number that is added to 1.5 * 2^23 without rounding.
constexpr float kSteps = 128.0f, kMostBase = 0x1p21f;
// Numbers near it are their own low bits; the bits of 1.0 as a bf16 are 127 * 128.
constexpr float kMagic = 12582912.0f, kOne = 127.0f * 128.0f;

// By how much the bits of a bf16 that are linear between powers of two lie above those of 2^x.
struct Curve {
  alignas(64) std::array<uint8_t, 128> bytes;
};
const Curve& curve() {
  static const Curve table = [] {
    Curve t;
    for (int i = 0; i < 128; ++i)
      t.bytes[i] = static_cast<uint8_t>(i - std::lround(128.0 * (std::exp2(i / 128.0) - 1.0)));
    return t;
  }();
  return table;
}

// Orders of words: lower halves of two vectors of 32 bits in turn, upper halves, and the words of
// both halves of one vector.
struct Interleave {
  alignas(64) std::array<uint16_t, 32> low, high, halves;
};
constexpr Interleave kInterleave = [] {
  Interleave t{};
  for (uint16_t i = 0; i < 16; ++i) {
    t.low[2 * i] = static_cast<uint16_t>(2 * i);
    t.low[2 * i + 1] = static_cast<uint16_t>(2 * i + 32);
    t.high[2 * i] = static_cast<uint16_t>(2 * i + 1);
    t.high[2 * i + 1] = static_cast<uint16_t>(2 * i + 33);
    t.halves[2 * i] = i;
    t.halves[2 * i + 1] = static_cast<uint16_t>(i + 16);
  }
  return t;
}();

// Weights of one part: pairs of scores, less their base in 1/128ths and with kMagic + kOne added.
class OnePart {
 public:
  static constexpr bool kTwo = false;
  HOLOGRAM_TURNED_INLINE OnePart()
      : order_(_mm512_load_si512(kInterleave.low.data())),
        curve_low_(_mm512_load_si512(curve().bytes.data())),
        curve_high_(_mm512_load_si512(curve().bytes.data() + 64)),
        ones_(_mm512_set1_epi32(0x3f803f80)),
        low_(_mm512_set1_ps(kMagic)),
        high_(_mm512_set1_ps(kMagic + 0x7f80)) {}  // infinity, which shows in the sum
  // From a base to what is added to a score.
  HOLOGRAM_TURNED_INLINE __m512 offset(__m512 base) const {
    return _mm512_sub_ps(_mm512_set1_ps(kMagic + kOne), base);
  }
  // Instructions return their second operand where one is NaN, so that becomes infinite as well.
  HOLOGRAM_TURNED_INLINE __m512i limited(__m512 x) const {
    return _mm512_castps_si512(_mm512_min_ps(_mm512_max_ps(low_, x), high_));
  }
  HOLOGRAM_TURNED_INLINE void weigh(__m512 first, __m512 second, uint32_t* to, __mmask16 lanes,
                                    __m512& sum) const {
    const __m512i line = _mm512_permutex2var_epi16(limited(first), order_, limited(second));
    const __m512i above =
        _mm512_maskz_permutex2var_epi8(0x5555555555555555u, curve_low_, line, curve_high_);
    const __m512i units = _mm512_sub_epi16(line, above);
    sum =
        _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(units), reinterpret_cast<__m512bh>(ones_));
    _mm512_mask_store_epi32(to, lanes, units);
  }

 private:
  __m512i order_, curve_low_, curve_high_, ones_;
  __m512 low_, high_;
};

// Of two: 2^x by a polynomial of the fraction, 2.6e-6.
class TwoParts {
 public:
  static constexpr bool kTwo = true;
  HOLOGRAM_TURNED_INLINE TwoParts()
      : upper_(_mm512_load_si512(kInterleave.high.data())),
        halves_(_mm512_load_si512(kInterleave.halves.data())) {}
  HOLOGRAM_TURNED_INLINE __m512 offset(__m512 base) const {
    return _mm512_sub_ps(_mm512_setzero_ps(), base);
  }
  static HOLOGRAM_TURNED_INLINE __m512 power(__m512 x) {
    const __m512 f = _mm512_reduce_ps(x, 1);  // x - floor(x)
    __m512 p = _mm512_set1_ps(0.0135341681f);
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.0520114603f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.241442757f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.693003834f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.00000259f));
    return _mm512_scalef_ps(p, x);  // by 2^floor(x); of -infinity 0
  }
  static HOLOGRAM_TURNED_INLINE __m512 rest(__m512 x) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    return _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), upper)));
  }
  HOLOGRAM_TURNED_INLINE void weigh(__m512 first, __m512 second, uint32_t* to, __mmask16 lanes,
                                    __m512& sum) const {
    const __m512 a = power(first), b = power(second);
    sum = _mm512_add_ps(sum, _mm512_add_ps(a, b));
    // Upper parts are cut off, not rounded: what they leave is exact, and rounded itself.
    const auto low = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(rest(b), rest(a)));
    _mm512_mask_store_epi32(
        to, lanes,
        _mm512_permutex2var_epi16(_mm512_castps_si512(a), upper_, _mm512_castps_si512(b)));
    _mm512_mask_store_epi32(to + kGroupKeys * kPanelQueries, lanes,
                            _mm512_permutexvar_epi16(halves_, low));
  }

 private:
  __m512i upper_, halves_;
};

// Weights as TwoParts makes them, rounded to integers by the scale of 16 keys: four times the
// largest is what the norm of 16 may be.
class Shorts {
 public:
  static constexpr bool kTwo = true, kScaled = true;
  HOLOGRAM_TURNED_INLINE Shorts() = default;
  HOLOGRAM_TURNED_INLINE __m512 offset(__m512 base) const {
    return _mm512_sub_ps(_mm512_setzero_ps(), base);
  }
  template <class Read>
  HOLOGRAM_TURNED_INLINE void group(const Read& read, uint32_t* to, float* scale, __mmask16 lanes,
                                    __m512& sum) const {
    constexpr float kMost = kShortNorm / 4;
    __m512 weights[kGroupKeys];
    __m512 most = _mm512_setzero_ps();
#pragma GCC unroll 16
    for (size_t i = 0; i < kGroupKeys; ++i) {
      weights[i] = TwoParts::power(read(i));
      most = _mm512_max_ps(most, weights[i]);
      sum = _mm512_add_ps(sum, weights[i]);
    }
    // Weights that are next to nothing are nothing.
    const __mmask16 any = _mm512_cmp_ps_mask(most, _mm512_set1_ps(1e-30f), _CMP_GT_OQ);
    const __m512 factor = _mm512_maskz_div_ps(any, _mm512_set1_ps(kMost), most);
    _mm512_mask_store_ps(scale, lanes, _mm512_mul_ps(most, _mm512_set1_ps(1 / kMost)));
#pragma GCC unroll 8
    for (size_t i = 0; i < kGroupKeys; i += 2) {
      const __m512i even = _mm512_cvtps_epi32(_mm512_mul_ps(weights[i], factor));
      const __m512i odd = _mm512_cvtps_epi32(_mm512_mul_ps(weights[i + 1], factor));
      _mm512_mask_store_epi32(
          to + i / 2 * kPanelQueries, lanes,
          _mm512_mask_blend_epi16(0xaaaaaaaau, even, _mm512_slli_epi32(odd, 16)));
    }
  }
};

// The weights of 16 keys, of scores that `read` gives.
template <class Part, class Read>
HOLOGRAM_TURNED_INLINE void weigh_group(const Part& part, const Read& read, uint32_t* to,
                                        float* scale, __mmask16 lanes, __m512& sum) {
  if constexpr (requires { Part::kScaled; }) {
    part.group(read, to, scale, lanes, sum);
  } else {
#pragma GCC unroll 8
    for (size_t i = 0; i < kGroupKeys; i += 2)
      part.weigh(read(i), read(i + 1), to + i / 2 * kPanelQueries, lanes, sum);
  }
}

// Of a pair of keys.
template <class Part>
HOLOGRAM_TURNED_INLINE uint32_t* weights_of(const TurnedBlock& block, size_t key) {
  constexpr size_t kParts = Part::kTwo && !requires { Part::kScaled; }
  ? 2 : 1;
  constexpr size_t kChunk = kParts * kGroupKeys * kPanelQueries;
  return block.weights + key / 32 * kChunk + key % 32 / 2 * kPanelQueries;
}

template <class Part>
HOLOGRAM_TURNED void weigh(const TurnedBlock& block, size_t key) {
  const Part part;
  for (size_t half = 0; half < kHalves; ++half) {
    const size_t lane = half * kLanes;
    const __m512 offset = part.offset(_mm512_load_ps(block.panel->base + lane));
    const float* scores = block.scores + key * kPanelQueries + lane;
    uint32_t* weights = weights_of<Part>(block, key) + lane;
    __m512 sum = _mm512_load_ps(block.sums + lane);
    const auto read = [&](size_t i) __attribute__((always_inline)) HOLOGRAM_TURNED {
      return _mm512_add_ps(offset, _mm512_load_ps(scores + i * kPanelQueries));
    };
    weigh_group(part, read, weights, block.scales + key / kGroupKeys * kPanelQueries + lane, 0xffff,
                sum);
    _mm512_store_ps(block.sums + lane, sum);
  }
}

template <class Part>
HOLOGRAM_TURNED_INLINE __m512 chosen(__m512 base) {
  // Where there is no score yet any number does.
  const __mmask16 number =
      _mm512_cmp_ps_mask(_mm512_abs_ps(base), _mm512_set1_ps(HUGE_VALF), _CMP_LT_OQ);
  base = _mm512_maskz_mov_ps(number, base);
  return Part::kTwo ? base : _mm512_roundscale_ps(base, 0);
}

template <class Part>
HOLOGRAM_TURNED void begin(const TurnedBlock& block) {
  for (size_t lane = 0; lane < kPanelQueries; lane += kLanes) {
    __m512 most = _mm512_set1_ps(-HUGE_VALF);
    for (size_t key = 0; key < 2 * kGroupKeys; ++key)
      most = _mm512_max_ps(most, _mm512_load_ps(block.scores + key * kPanelQueries + lane));
    _mm512_store_ps(block.panel->base + lane, chosen<Part>(most));
    _mm512_store_ps(block.panel->sum + lane, _mm512_setzero_ps());
  }
  block.panel->begun = true;
}

// Queries whose sum left its range, those of `lanes`: seldom.
template <class Part>
HOLOGRAM_TURNED __attribute__((noinline)) void weigh_again(const TurnedBlock& block, size_t lane,
                                                           __mmask16 lanes, float* out,
                                                           size_t rows) {
  const Part part;
  const __m512 sum = _mm512_load_ps(block.panel->sum + lane);
  const __m512 base = _mm512_load_ps(block.panel->base + lane);
  __m512 most = _mm512_set1_ps(-HUGE_VALF);
  __mmask16 nan = 0;
  for (size_t key = 0; key < block.keys; ++key) {
    const __m512 s = _mm512_load_ps(block.scores + key * kPanelQueries + lane);
    most = _mm512_max_ps(most, s);
    nan |= _mm512_cmp_ps_mask(s, s, _CMP_UNORD_Q);
  }
  const __mmask16 had = _mm512_cmp_ps_mask(sum, _mm512_setzero_ps(), _CMP_NEQ_UQ);
  const __m512 next =
      _mm512_mask_mov_ps(base, lanes, chosen<Part>(_mm512_mask_max_ps(most, had, most, base)));
  __m512 weighed = _mm512_setzero_ps();
  const __m512 offset = part.offset(_mm512_setzero_ps());
  for (size_t key = 0; key < block.keys; key += kGroupKeys) {
    const float* scores = block.scores + key * kPanelQueries + lane;
    const auto read = [&](size_t i) __attribute__((always_inline)) HOLOGRAM_TURNED {
      return _mm512_add_ps(offset, _mm512_sub_ps(_mm512_load_ps(scores + i * kPanelQueries), next));
    };
    weigh_group(part, read, weights_of<Part>(block, key) + lane,
                block.scales + key / kGroupKeys * kPanelQueries + lane, lanes, weighed);
  }
  const __m512 fall =
      _mm512_mul_ps(_mm512_sub_ps(base, next), _mm512_set1_ps(Part::kTwo ? 1.0f : 1.0f / kSteps));
  const __m512 factor = _mm512_mask_mov_ps(_mm512_set1_ps(1.0f), lanes,
                                           _mm512_maskz_mov_ps(had, TwoParts::power(fall)));
  for (size_t row = 0; row < rows; ++row) {
    float* at = out + row * kPanelQueries + lane;
    _mm512_store_ps(at, _mm512_mask_mul_ps(_mm512_load_ps(at), lanes, _mm512_load_ps(at), factor));
  }
  // What is not a number, or infinite, makes the sum so.
  nan |= _mm512_cmp_ps_mask(most, _mm512_set1_ps(HUGE_VALF), _CMP_EQ_OQ);
  weighed = _mm512_mask_mov_ps(weighed, nan, _mm512_set1_ps(NAN));
  const __m512 kept = _mm512_add_ps(sum, _mm512_load_ps(block.sums + lane));
  _mm512_store_ps(block.panel->sum + lane,
                  _mm512_mask_mov_ps(kept, lanes, _mm512_fmadd_ps(sum, factor, weighed)));
  _mm512_store_ps(block.panel->base + lane, next);
}

template <class Part>
HOLOGRAM_TURNED void settle(const TurnedBlock& block, float* out, size_t rows) {
  for (size_t lane = 0; lane < kPanelQueries; lane += kLanes) {
    const __m512 sum =
        _mm512_add_ps(_mm512_load_ps(block.panel->sum + lane), _mm512_load_ps(block.sums + lane));
    __mmask16 good = _mm512_cmp_ps_mask(sum, _mm512_set1_ps(kMostSum), _CMP_LE_OQ) &
                     _mm512_cmp_ps_mask(sum, _mm512_set1_ps(kLeastSum), _CMP_GE_OQ);
    if constexpr (!Part::kTwo)
      good &= _mm512_cmp_ps_mask(_mm512_abs_ps(_mm512_load_ps(block.panel->base + lane)),
                                 _mm512_set1_ps(kMostBase), _CMP_LT_OQ);
    if (good != 0xffff)
      weigh_again<Part>(block, lane, static_cast<__mmask16>(~good), out, rows);
    else
      _mm512_store_ps(block.panel->sum + lane, sum);
  }
}

HOLOGRAM_TURNED void scale_queries(const float* from, size_t stride, size_t rows, size_t depth,
                                   float factor, float* to) {
  const __m512 f = _mm512_set1_ps(factor);
  const auto used = static_cast<uint32_t>((1ull << depth) - 1);
  for (size_t r = 0; r < kPanelQueries; ++r, to += 32) {
    const bool is = r < rows;
    const float* row = from + (is ? r * stride : 0);
    for (size_t half = 0; half < 2; ++half) {
      const auto lanes = static_cast<__mmask16>(is ? used >> (16 * half) : 0);
      _mm512_store_ps(to + 16 * half,
                      _mm512_mul_ps(f, _mm512_maskz_loadu_ps(lanes, row + 16 * half)));
    }
  }
}

template <class Part>
HOLOGRAM_TURNED void add_mask(const float* mask, bool turned, size_t keys, float* scores) {
  const __m512 unit = _mm512_set1_ps(Part::kTwo ? kLog2E : kSteps * kLog2E);
  // What is masked by the lowest number stays above what is masked by -infinity.
  const __m512 least = _mm512_set1_ps(-1e36f), hidden = _mm512_set1_ps(-HUGE_VALF);
  for (size_t key = 0; key < keys; ++key)
    for (size_t lane = 0; lane < kPanelQueries; lane += kLanes) {
      const __m512 m =
          turned ? _mm512_load_ps(mask + key * kPanelQueries + lane) : _mm512_set1_ps(mask[key]);
      const __mmask16 is = _mm512_cmp_ps_mask(m, hidden, _CMP_NEQ_UQ);
      const __m512 scaled = _mm512_mask_max_ps(m, is, least, _mm512_mul_ps(m, unit));
      float* at = scores + key * kPanelQueries + lane;
      _mm512_store_ps(at, _mm512_add_ps(_mm512_load_ps(at), scaled));
    }
}

HOLOGRAM_TURNED void hide(ptrdiff_t first, size_t keys, float* scores) {
  for (ptrdiff_t key = std::max<ptrdiff_t>(first, 0); key < static_cast<ptrdiff_t>(keys); ++key) {
    const ptrdiff_t blind = key - first + 1;
    const auto lanes = static_cast<uint32_t>(blind < 32 ? (1u << blind) - 1 : 0xffffffffu);
    for (size_t half = 0; half < kHalves; ++half)
      _mm512_mask_store_ps(scores + key * kPanelQueries + half * kLanes,
                           static_cast<__mmask16>(lanes >> (16 * half)),
                           _mm512_set1_ps(-HUGE_VALF));
  }
}

HOLOGRAM_TURNED void add(const float* sums, size_t rows, float* out) {
  for (size_t i = 0; i < rows * kPanelQueries; i += kLanes)
    _mm512_store_ps(out + i, _mm512_add_ps(_mm512_load_ps(out + i), _mm512_load_ps(sums + i)));
}

HOLOGRAM_TURNED void divide(const TurnedPanel& panel, size_t rows, float* out) {
  for (size_t lane = 0; lane < kPanelQueries; lane += kLanes) {
    const __m512 inverse = _mm512_div_ps(_mm512_set1_ps(1.0f), _mm512_load_ps(panel.sum + lane));
    for (size_t row = 0; row < rows; ++row) {
      float* at = out + row * kPanelQueries + lane;
      _mm512_store_ps(at, _mm512_mul_ps(_mm512_load_ps(at), inverse));
    }
  }
}

HOLOGRAM_TURNED void value_units(const float* from, size_t stride, size_t rows, size_t columns,
                                 float* units) {
  const auto used = static_cast<__mmask16>((1u << columns) - 1);
  __m512 squares = _mm512_setzero_ps(), largest = squares, all = squares;
  for (size_t first = 0; first < rows; first += kShortRun) {
    __m512 sum = _mm512_setzero_ps();
    for (size_t i = first; i < std::min(first + kShortRun, rows); ++i) {
      const __m512 x = _mm512_maskz_loadu_ps(used, from + i * stride);
      sum = _mm512_fmadd_ps(x, x, sum);
      largest = _mm512_max_ps(largest, _mm512_abs_ps(x));
    }
    squares = _mm512_max_ps(squares, sum);
    all = _mm512_add_ps(all, sum);  // which a NaN does not leave
  }
  const __m512 unit =
      _mm512_max_ps(_mm512_mul_ps(_mm512_sqrt_ps(squares), _mm512_set1_ps(1 / kShortNorm)),
                    _mm512_mul_ps(largest, _mm512_set1_ps(1 / kMostShort)));
  // Squares beyond f32 are those of what is not finite, or as good as.
  const __mmask16 good = _mm512_cmp_ps_mask(all, _mm512_set1_ps(3e38f), _CMP_LE_OQ);
  _mm512_storeu_ps(units, _mm512_mask_mov_ps(_mm512_set1_ps(NAN), good, unit));
}

HOLOGRAM_TURNED void value_pairs(const float* from, size_t stride, size_t rows, size_t columns,
                                 const float* units, uint32_t* to) {
  const auto used = static_cast<__mmask16>((1u << columns) - 1);
  const __m512 unit = _mm512_loadu_ps(units);
  const __mmask16 any = _mm512_cmp_ps_mask(unit, _mm512_set1_ps(1e-35f), _CMP_GT_OQ);
  const __m512 factor = _mm512_maskz_div_ps(any, _mm512_set1_ps(1.0f), unit);
  const auto integers = [&](size_t row) __attribute__((always_inline)) HOLOGRAM_TURNED {
    const __mmask16 is = row < rows ? used : __mmask16{0};
    return _mm512_cvtps_epi32(
        _mm512_mul_ps(factor, _mm512_maskz_loadu_ps(is, from + row * stride)));
  };
  for (size_t pair = 0; pair < kGroupKeys; ++pair, to += kLanes)
    _mm512_storeu_si512(to, _mm512_mask_blend_epi16(0xaaaaaaaau, integers(2 * pair),
                                                    _mm512_slli_epi32(integers(2 * pair + 1), 16)));
}

HOLOGRAM_TURNED void add_scaled(const float* sums, const float* units, size_t rows, float* out) {
  for (size_t row = 0; row < rows; ++row) {
    const __m512 unit = _mm512_set1_ps(units[row]);
    for (size_t i = row * kPanelQueries; i < (row + 1) * kPanelQueries; i += kLanes)
      _mm512_store_ps(out + i,
                      _mm512_fmadd_ps(unit, _mm512_load_ps(sums + i), _mm512_load_ps(out + i)));
  }
}

template <class Part>
constexpr TurnedKernels kKernels = {.unit = Part::kTwo ? kLog2E : kSteps* kLog2E,
                                    .scale_queries = &scale_queries,
                                    .add_mask = &add_mask<Part>,
                                    .hide = &hide,
                                    .begin = &begin<Part>,
                                    .weigh = &weigh<Part>,
                                    .settle = &settle<Part>,
                                    .add = &add,
                                    .divide = &divide,
                                    .value_units = &value_units,
                                    .value_pairs = &value_pairs,
                                    .add_scaled = &add_scaled};

}  // namespace

const TurnedKernels* turned_kernels(TurnedForm form) {
  if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vbmi"))
    return nullptr;
  if (form == TurnedForm::shorts) return detail::vnni_shorts_tile() ? &kKernels<Shorts> : nullptr;
  return form == TurnedForm::two_parts ? &kKernels<TwoParts> : &kKernels<OnePart>;
}

}  // namespace hologram::backends::dense

#else

namespace hologram::backends::dense {
const TurnedKernels* turned_kernels(TurnedForm) { return nullptr; }
}  // namespace hologram::backends::dense

#endif
