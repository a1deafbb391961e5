#include "backends/cpu/dense/fourier.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/fourier.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/transpose.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Frames lie side by side, one a lane: row n of `rows` is sample n of each. Two rows are taken as
// one complex number, so a transform of half the length does; what it mixes up is taken apart at
// the end.
template <class D>
class FrameGroup {
  using V = hn::Vec<D>;
  struct Complex {
    V re, im;
  };

 public:
  FrameGroup(const Fourier& t, float* rows)
      : t_(t), half_(t.taps / 2), roots_(t.table + t.taps), rows_(rows) {}

  // `count` frames from `input` on; `output` is the place of the first in the first row, `sines`
  // in that of sines.
  void run(const float* input, size_t count, float* output, float* sines) const {
    const D d;
    const size_t lanes = hn::Lanes(d);
    if (count < lanes) std::memset(rows_, 0, t_.taps * lanes * sizeof(float));
    transpose_block(count, t_.taps, input, t_.stride, rows_, lanes);
    for (size_t n = 0; n < t_.taps; ++n)
      hn::Store(hn::Mul(hn::Load(d, rows_ + n * lanes), hn::Set(d, t_.table[n])), d,
                rows_ + n * lanes);
    size_t length = half_;
    for (; length >= 4; length /= 4) fours(length);
    if (length == 2) twos();
    take_apart(count, output, sines);
  }

 private:
  Complex load(size_t index) const {
    const D d;
    const float* at = rows_ + 2 * index * hn::Lanes(d);
    return {hn::Load(d, at), hn::Load(d, at + hn::Lanes(d))};
  }
  void store(size_t index, Complex z) const {
    const D d;
    float* at = rows_ + 2 * index * hn::Lanes(d);
    hn::Store(z.re, d, at);
    hn::Store(z.im, d, at + hn::Lanes(d));
  }
  static Complex add(Complex a, Complex b) { return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)}; }
  static Complex sub(Complex a, Complex b) { return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)}; }
  // By exp(-2 pi i turn / taps).
  Complex turned(Complex z, size_t turn) const {
    const D d;
    const V c = hn::Set(d, roots_[2 * turn]), s = hn::Set(d, roots_[2 * turn + 1]);
    return {hn::MulAdd(z.re, c, hn::Mul(z.im, s)), hn::NegMulAdd(z.re, s, hn::Mul(z.im, c))};
  }

  // Two steps at once of halving transforms of `length`: results end up in the order of reversed
  // bits.
  void fours(size_t length) const {
    const size_t q = length / 4, turn = t_.taps / length;
    for (size_t block = 0; block < half_; block += length)
      for (size_t j = 0; j < q; ++j) {
        const size_t at = block + j;
        const Complex a = load(at), b = load(at + q), c = load(at + 2 * q), e = load(at + 3 * q);
        const Complex sum = add(a, c), other = add(b, e), rest = sub(a, c), last = sub(b, e);
        const Complex side{last.im, hn::Neg(last.re)};  // by -i
        store(at, add(sum, other));
        if (j == 0) {
          store(at + q, sub(sum, other));
          store(at + 2 * q, add(rest, side));
          store(at + 3 * q, sub(rest, side));
        } else {
          store(at + q, turned(sub(sum, other), 2 * j * turn));
          store(at + 2 * q, turned(add(rest, side), j * turn));
          store(at + 3 * q, turned(sub(rest, side), 3 * j * turn));
        }
      }
  }

  void twos() const {
    for (size_t at = 0; at < half_; at += 2) {
      const Complex a = load(at), b = load(at + 1);
      store(at, add(a, b));
      store(at + 1, sub(a, b));
    }
  }

  void put(V value, size_t count, float* to) const {
    const D d;
    if (count == hn::Lanes(d)) return hn::StoreU(value, d, to);
    alignas(64) float few[16];
    hn::Store(value, d, few);
    std::memcpy(to, few, count * sizeof(float));
  }

  // Of z = even samples + i times the odd ones to the transform of all. The halves in this are in
  // the window.
  void take_apart(size_t count, float* output, float* sine_rows) const {
    const D d;
    const bool cosines = t_.waves != Waves::sines, sines = t_.waves != Waves::cosines;
    const V sign = hn::Set(d, t_.sine);
    // Where results are: the numbers of reversed bits.
    uint16_t place[kMostTaps / 2 + 1];
    place[0] = place[half_] = 0;
    for (size_t k = 1; k < half_; ++k)
      place[k] = static_cast<uint16_t>(place[k / 2] / 2 + (k % 2) * (half_ / 2));
    for (size_t k = 0; k <= half_; ++k) {
      const Complex z = load(place[k]), m = load(place[half_ - k]);
      const V even_re = hn::Add(z.re, m.re), even_im = hn::Sub(z.im, m.im);
      const V odd_re = hn::Add(z.im, m.im), odd_im = hn::Sub(m.re, z.re);
      const V c = hn::Set(d, roots_[2 * k]), s = hn::Set(d, roots_[2 * k + 1]);
      if (cosines)
        put(hn::MulAdd(odd_re, c, hn::MulAdd(odd_im, s, even_re)), count, output + k * t_.frames);
      if (sines)
        put(hn::Mul(sign, hn::Sub(hn::Mul(odd_re, s), hn::MulAdd(odd_im, c, even_im))), count,
            sine_rows + k * t_.frames);
    }
  }

  const Fourier& t_;
  const size_t half_;
  const float* roots_;
  float* rows_;
};

// Lanes of a group.
size_t fourier_lanes(size_t frames) {
  return frames <= 4 ? 4 : hn::Lanes(hn::CappedTag<float, 16>());
}

void fourier_group(const Fourier& t, const float* input, size_t count, float* output,
                   float* sines) {
  alignas(64) float rows[kMostTaps * 16];
  if (t.frames <= 4)
    FrameGroup<hn::CappedTag<float, 4>>(t, rows).run(input, count, output, sines);
  else
    FrameGroup<hn::CappedTag<float, 16>>(t, rows).run(input, count, output, sines);
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(fourier_lanes);
HWY_EXPORT(fourier_group);

namespace {

double angle(size_t turn, size_t taps) {
  return 2 * std::numbers::pi * static_cast<double>(turn % taps) / static_cast<double>(taps);
}

}  // namespace

bool fourier_supported(size_t taps) {
  return taps >= kFewestTaps && taps <= kMostTaps && (taps & (taps - 1)) == 0;
}

size_t fourier_rows(Waves waves, size_t taps) {
  return (taps / 2 + 1) * (waves == Waves::both ? 2 : 1);
}

std::optional<FourierFilters> fourier_filters(size_t filters, size_t taps, const float* weights) {
  if (!fourier_supported(taps)) return std::nullopt;
  const size_t rows = taps / 2 + 1;
  if (filters != rows && filters != 2 * rows) return std::nullopt;
  float largest = 0;
  for (size_t i = 0; i < filters * taps; ++i) {
    if (!std::isfinite(weights[i])) return std::nullopt;
    largest = std::max(largest, std::abs(weights[i]));
  }
  // The filter of frequency 0 is the window itself if it is a cosine and zero if it is a sine.
  const bool zero = std::all_of(weights, weights + taps, [](float w) { return w == 0; });
  FourierFilters found{filters == 2 * rows ? Waves::both
                       : zero              ? Waves::sines
                                           : Waves::cosines,
                       1.0f, std::vector<float>(weights, weights + taps)};
  if (found.waves == Waves::sines)
    for (size_t n = 1; n < taps; ++n) {
      // Of each sample but the first and the middle one some sine is 1 or -1.
      size_t k = 0;
      while (k < rows && k * n % taps != taps / 4 && k * n % taps != taps / 4 * 3) ++k;
      if (k < rows)
        found.window[n] = weights[k * taps + n] * (k * n % taps == taps / 4 ? 1.0f : -1.0f);
    }
  if (found.waves == Waves::both) {
    const float* sine = weights + (rows + 1) * taps + taps / 4;  // of frequency 1 at its peak
    if ((*sine < 0) != (found.window[taps / 4] < 0)) found.sine = -1.0f;
  }
  // As near as two roundings are, of the window and of the product.
  const double allowed = static_cast<double>(largest) * 0x1p-23;
  for (size_t f = 0; f < filters; ++f) {
    const bool is_sine = found.waves == Waves::sines || f >= rows;
    for (size_t n = 0; n < taps; ++n) {
      const double turned = angle(f % rows * n, taps);
      const double wave =
          is_sine ? static_cast<double>(found.sine) * std::sin(turned) : std::cos(turned);
      if (!(std::abs(weights[f * taps + n] - found.window[n] * wave) <= allowed))
        return std::nullopt;
    }
  }
  return found;
}

size_t fourier_table_floats(size_t taps) { return 3 * taps; }

void make_fourier_table(const FourierFilters& filters, float* table) {
  const size_t taps = filters.window.size();
  for (size_t n = 0; n < taps; ++n) {
    table[n] = filters.window[n] / 2;
    table[taps + 2 * n] = static_cast<float>(std::cos(angle(n, taps)));
    table[taps + 2 * n + 1] = static_cast<float>(std::sin(angle(n, taps)));
  }
}

void fourier(const Fourier& t, ThreadPool& pool) {
  if (t.frames == 0) return;
  const auto run = HWY_DYNAMIC_DISPATCH(fourier_group);
  const size_t lanes = HWY_DYNAMIC_DISPATCH(fourier_lanes)(t.frames);
  const size_t groups = (t.frames + lanes - 1) / lanes;
  const size_t half = fourier_rows(Waves::sines, t.taps) * t.frames;
  const size_t sample_size = t.waves == Waves::both && !t.sines ? 2 * half : half;
  float* const sines = t.sines ? t.sines : t.output + (t.waves == Waves::both ? half : 0);
  // A group takes a few microseconds.
  constexpr size_t kFewGroups = 4;
  pool.parallel_for(
      t.batch * groups, 1,
      [&](size_t begin, size_t end) {
        for (size_t job = begin; job < end; ++job) {
          const size_t sample = job / groups, first = job % groups * lanes;
          const size_t place = sample * sample_size + first;
          run(t, t.input + sample * t.samples + first * t.stride, std::min(lanes, t.frames - first),
              t.output + place, sines + place);
        }
      },
      Schedule::dynamic, t.batch * groups <= kFewGroups ? 1 : 0);
}

}  // namespace hologram::backends::dense
#endif
