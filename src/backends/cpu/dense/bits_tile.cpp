// Products by weights of 4, 8 and 16 bits in integers, on any CPU: pairs of 16-bit integers are
// multiplied and added at once (pmaddwd and its like), so a byte of codes makes half of one. A in
// two digits keeps what f32 keeps of the largest value of a run; by 16 bits 20 bits of it.
#include "backends/cpu/dense/bits_tile.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/bits_tile.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/tile.h"

HWY_BEFORE_NAMESPACE();
#include "backends/cpu/dense/oldest_level-inl.h"
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DI = hn::ScalableTag<int32_t>;
using VF = hn::Vec<DF>;
using VI = hn::Vec<DI>;
constexpr size_t kLanes = hn::MaxLanes(DF()), kHalf = kPanelColumns / 2;
constexpr size_t kVectors = kLanes < kHalf ? 2 : 1;  // of each half of a panel at a time
constexpr size_t kDigitWords = 4;                    // of four values
constexpr int kDigitBits = 12, kWordDigitBits = 10;
constexpr float kLargestByWords = 524287.0f;
constexpr size_t kAheadBytes = 7168;  // from the codes that are read to those asked for

HWY_INLINE VI add_pairs(VI sum, VI a, VI b) {
#if HWY_ARCH_X86 || HWY_ARCH_WASM
  const hn::Repartition<int16_t, DI> dw;
  VI none = sum;  // the sum of a pair stays in its lane
  return hn::ReorderWidenMulAccumulate(DI(), hn::BitCast(dw, a), hn::BitCast(dw, b), sum, none);
#else
  const auto first = [](VI pairs) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(pairs)); };
  const auto second = [](VI pairs) { return hn::ShiftRight<16>(pairs); };
  return hn::Add(sum, hn::Add(hn::Mul(first(a), first(b)), hn::Mul(second(a), second(b))));
#endif
}

HWY_INLINE VI word(uint32_t bits) { return hn::Set(DI(), static_cast<int32_t>(bits)); }
HWY_INLINE VF number(uint32_t bits) { return hn::Set(DF(), std::bit_cast<float>(bits)); }

// What the two digits of a row and codes come to, of both halves of a panel.
struct Sums {
  VI digits[2][2][kVectors];

  HWY_INLINE void add(size_t half, size_t v, VI upper, VI lower, VI pairs) {
    digits[0][half][v] = add_pairs(digits[0][half][v], upper, pairs);
    digits[1][half][v] = add_pairs(digits[1][half][v], lower, pairs);
  }
  // Without the scale.
  template <int kBits>
  HWY_INLINE VF value(size_t half, size_t v) const {
    const DF df;
    return hn::MulAdd(hn::ConvertTo(df, digits[0][half][v]), hn::Set(df, 1 << kBits),
                      hn::ConvertTo(df, digits[1][half][v]));
  }
};

struct Totals {
  VF values[2][kVectors];

  HWY_INLINE Totals() {
    for (auto& half : values)
      for (VF& value : half) value = hn::Zero(DF());
  }
  HWY_INLINE void add(size_t half, size_t v, VF value, uint32_t scale, const float* scales) {
    const VF by = hn::Mul(number(scale), hn::LoadU(DF(), scales));
    values[half][v] = hn::MulAdd(value, by, values[half][v]);
  }
  HWY_INLINE void store(float* to) const {
    for (size_t half = 0; half < 2; ++half)
      for (size_t v = 0; v < kVectors; ++v)
        hn::StoreU(values[half][v], DF(), to + half * kHalf + v * kLanes);
  }
};

// Four rows of codes; of 4 bits upper halves of bytes are those of the upper columns, whose sums
// have those of the lower ones in them.
template <unsigned kBits>
HWY_INLINE void add_four(const uint32_t* a, const int32_t* codes, Sums& sums) {
  const DI di;
  const hn::Repartition<uint16_t, DI> du;
  const VI digits[4] = {word(a[0]), word(a[1]), word(a[2]), word(a[3])};
  const auto add = [&](size_t half, size_t v, VI bytes) HWY_ATTR {
    sums.add(half, v, digits[0], digits[2], hn::And(bytes, word(0x00ff00ff)));
    sums.add(half, v, digits[1], digits[3],
             hn::BitCast(di, hn::ShiftRight<8>(hn::BitCast(du, bytes))));
  };
#pragma GCC unroll 2
  for (size_t v = 0; v < kVectors; ++v) {
    const VI first = hn::LoadU(di, codes + v * kLanes);
    if constexpr (kBits == 4) {
      add(0, v, hn::And(first, word(0x0f0f0f0f)));
      add(1, v, first);
    } else {
      add(0, v, first);
      add(1, v, hn::LoadU(di, codes + kHalf + v * kLanes));
    }
  }
}

// kVectors vectors of each half of the panel, from `column` on.
template <unsigned kBits>
void strip_of_bytes(const BitsTile& t, size_t column) {
  constexpr size_t kStepBytes = 4 * kPanelColumns * kBits / 8;
  Totals totals;
  const std::byte* at = t.panel;
  const uint32_t* a = t.integers;
  for (size_t first = 0; first < t.k; first += t.group) {
    const auto* scales = reinterpret_cast<const float*>(at) + column;
    at += (t.zeros ? 2 : 1) * kPanelColumns * sizeof(float);
    const size_t end = std::min(first + t.group, t.k);
    for (size_t k = first; k < end; k += kIntegerRun) {
      const uint32_t* heads = a;
      Sums sums;
      for (size_t d = 0; d < 2; ++d)
        for (size_t half = 0; half < 2; ++half)
          for (VI& sum : sums.digits[d][half]) sum = word(heads[half * kIntegerHead + 2 + d]);
      a += 2 * kIntegerHead;
      const size_t values = std::min(kIntegerRun, end - k);
      for (size_t i = 0; i < values; i += 4, a += kDigitWords, at += kStepBytes) {
        if (column == 0)
          for (size_t line = 0; line < kStepBytes; line += 64)
            __builtin_prefetch(at + kAheadBytes + line);
        add_four<kBits>(a, reinterpret_cast<const int32_t*>(at) + column, sums);
      }
      if constexpr (kBits == 4)
        for (auto& digit : sums.digits)
          for (size_t v = 0; v < kVectors; ++v) digit[1][v] = hn::Sub(digit[1][v], digit[0][v]);
#pragma GCC unroll 2
      for (size_t half = 0; half < 2; ++half)
#pragma GCC unroll 2
        for (size_t v = 0; v < kVectors; ++v) {
          const uint32_t* head = heads + half * kIntegerHead;
          const float* from = scales + half * kHalf + v * kLanes;
          VF value = sums.value<kDigitBits>(half, v);
          if (t.zeros)
            value = hn::NegMulAdd(number(head[1]), hn::LoadU(DF(), from + kPanelColumns), value);
          totals.add(half, v, value, head[0], from);
        }
    }
  }
  totals.store(t.sums + column);
}

void strip_of_words(const BitsTile& t, size_t column) {
  const DI di;
  Totals totals;
  const std::byte* at = t.panel;
  const uint32_t* a = t.integers;
  for (size_t first = 0; first < t.k; first += t.group) {
    const auto* scales = reinterpret_cast<const float*>(at) + column;
    at += kPanelColumns * sizeof(float);
    const size_t end = std::min(first + t.group, t.k);
    for (size_t k = first; k < end; k += kIntegerRun) {
      const size_t values = std::min(kIntegerRun, end - k);
      const uint32_t *upper = a + 1, *lower = upper + padded_pairs(values);
      Sums sums;
      for (auto& digit : sums.digits)
        for (auto& half : digit)
          for (VI& sum : half) sum = hn::Zero(di);
      for (size_t pair = 0; pair < (values + 1) / 2; ++pair) {
        const VI high = word(upper[pair]), low = word(lower[pair]);
        const auto* codes = reinterpret_cast<const int32_t*>(at) + column;
#pragma GCC unroll 2
        for (size_t half = 0; half < 2; ++half)
#pragma GCC unroll 2
          for (size_t v = 0; v < kVectors; ++v)
            sums.add(half, v, high, low, hn::LoadU(di, codes + half * kHalf + v * kLanes));
        at += kPanelColumns * sizeof(uint32_t);
      }
      for (size_t half = 0; half < 2; ++half)
        for (size_t v = 0; v < kVectors; ++v)
          totals.add(half, v, sums.value<kWordDigitBits>(half, v), a[0],
                     scales + half * kHalf + v * kLanes);
      a += word_run_words(values);
    }
  }
  totals.store(t.sums + column);
}

void run_row(const BitsTile& t) {
  for (size_t column = 0; column < kHalf; column += kVectors * kLanes)
    if (t.bits == 4)
      strip_of_bytes<4>(t, column);
    else if (t.bits == 8)
      strip_of_bytes<8>(t, column);
    else
      strip_of_words(t, column);
}

// The values of a run as integers, 0 beyond it, and their scale.
float make_integers(const float* from, size_t count, float largest,
                    std::array<int32_t, kIntegerRun>& to) {
  // Without signs, numbers are ordered as their bits are, infinity and NaN last.
  uint32_t bits = 0;
  for (size_t i = 0; i < count; ++i)
    bits = std::max(bits, std::bit_cast<uint32_t>(from[i]) & 0x7fffffff);
  const float most = std::bit_cast<float>(bits);
  const bool finite = std::isfinite(most), empty = !finite || most < kSmallestOfRun;
  to.fill(0);
  if (empty) return finite ? 0.0f : NAN;
  const DF df;
  const VF factor = hn::Set(df, largest / most);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    hn::StoreU(hn::NearestInt(hn::Mul(hn::LoadU(df, from + i), factor)), DI(), to.data() + i);
  for (; i < count; ++i) to[i] = static_cast<int32_t>(std::nearbyint(from[i] * (largest / most)));
  return most / largest;
}

uint32_t pair_of(int32_t first, int32_t second) {
  return static_cast<uint32_t>(first & 0xffff) | static_cast<uint32_t>(second) << 16;
}

uint32_t* pack_digits(const float* from, size_t count, unsigned bits, uint32_t* to) {
  std::array<int32_t, kIntegerRun> upper, lower;
  const float scale = make_integers(from, count, kLargestInteger, upper);
  int64_t sums[2] = {0, 0};
  for (size_t i = 0; i < upper.size(); ++i) {
    lower[i] = static_cast<int32_t>(static_cast<uint32_t>(upper[i]) << (32 - kDigitBits)) >>
               (32 - kDigitBits);
    upper[i] = (upper[i] - lower[i]) >> kDigitBits;
    sums[0] += upper[i];
    sums[1] += lower[i];
  }
  write_heads(bits, scale, sums, 1 << kDigitBits, to);
  to += 2 * kIntegerHead;
  for (size_t i = 0; i < count; i += 4, to += kDigitWords) {
    to[0] = pair_of(upper[i], upper[i + 2]);
    to[1] = pair_of(upper[i + 1], upper[i + 3]);
    to[2] = pair_of(lower[i], lower[i + 2]);
    to[3] = pair_of(lower[i + 1], lower[i + 3]);
  }
  return to;
}

uint32_t* pack_words(const float* from, size_t count, uint32_t* to) {
  std::array<int32_t, kIntegerRun> values;
  to[0] = std::bit_cast<uint32_t>(make_integers(from, count, kLargestByWords, values));
  uint32_t *upper = to + 1, *lower = upper + padded_pairs(count);
  for (size_t i = 0; i < padded_pairs(count); ++i) {
    int32_t high[2], low[2];
    for (size_t j = 0; j < 2; ++j) {
      const int32_t value = values[2 * i + j];
      high[j] = (value + (1 << (kWordDigitBits - 1))) >> kWordDigitBits;
      low[j] = value - (high[j] << kWordDigitBits);
    }
    upper[i] = pair_of(high[0], high[1]);
    lower[i] = pair_of(low[0], low[1]);
  }
  return to + word_run_words(count);
}

void pack_integers(const float* a, size_t k, size_t group, unsigned bits, uint32_t* to) {
  for (size_t first = 0; first < k; first += group) {
    const size_t end = std::min(first + group, k);
    for (size_t i = first; i < end; i += kIntegerRun) {
      const size_t count = std::min(kIntegerRun, end - i);
      to = bits == 16 ? pack_words(a + i, count, to) : pack_digits(a + i, count, bits, to);
    }
  }
}

BitsKernel get_bits_kernel() {
#if HWY_TARGET == HWY_AVX3
  if (const BitsKernel* vnni = detail::vnni_bits()) return *vnni;
#endif
  return {1, &run_row, &pack_integers};
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(get_bits_kernel);

BitsKernel bits_kernel() { return HWY_DYNAMIC_DISPATCH(get_bits_kernel)(); }

void write_heads(unsigned bits, float scale, std::span<const int64_t> digits, int64_t base,
                 uint32_t* to) {
  double sum = 0;
  for (const int64_t digit : digits)
    sum = static_cast<double>(base) * sum + static_cast<double>(digit);
  for (unsigned half = 0; half < 2; ++half, to += kIntegerHead) {
    const bool upper = bits == 4 && half == 1;
    const float unit = upper ? 16.0f : 1.0f;
    const int64_t middle = bits == 8 ? 128 : upper ? 8 * 16 + 8 : 8;
    to[0] = std::bit_cast<uint32_t>(scale / unit);
    to[1] = std::bit_cast<uint32_t>(static_cast<float>(sum) * unit);
    for (size_t d = 0; d < digits.size(); ++d)
      to[2 + d] = static_cast<uint32_t>(-middle * digits[d]);
  }
}

}  // namespace hologram::backends::dense
#endif
