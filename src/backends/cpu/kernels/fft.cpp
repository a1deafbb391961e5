#include "backends/cpu/kernels/fft.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace hologram::kernels {
namespace {

constexpr int64_t kLongest = int64_t{1} << 32;

std::complex<double> unit(double turns) {
  const double angle = 2 * std::numbers::pi * turns;
  return {std::cos(angle), std::sin(angle)};
}

// std::complex's own operator* checks for infinities, which is slow.
template <typename T>
std::complex<T> times(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// -i * a
template <typename T>
std::complex<T> turn(std::complex<T> a) {
  return {a.imag(), -a.real()};
}

// Transforms of two to five numbers, in place.
template <int kCount, typename T>
void butterfly(std::complex<T>* v) {
  using C = std::complex<T>;
  if constexpr (kCount == 2) {
    const C a = v[0];
    v[0] = a + v[1];
    v[1] = a - v[1];
  } else if constexpr (kCount == 3) {
    const T re = T(-0.5), im = static_cast<T>(0.5 * std::numbers::sqrt3);
    const C sum = v[1] + v[2], difference = turn(v[1] - v[2]) * im, middle = v[0] + sum * re;
    v[0] += sum;
    v[1] = middle + difference;
    v[2] = middle - difference;
  } else if constexpr (kCount == 4) {
    const C a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = turn(v[1] - v[3]);
    v[0] = a + c;
    v[1] = b + d;
    v[2] = a - c;
    v[3] = b - d;
  } else {
    static_assert(kCount == 5);
    static const std::complex<double> one = unit(0.2), two = unit(0.4);
    const T ar = static_cast<T>(one.real()), ai = static_cast<T>(one.imag());
    const T br = static_cast<T>(two.real()), bi = static_cast<T>(two.imag());
    const C t0 = v[0], t1 = v[1] + v[4], t2 = v[2] + v[3];
    const C t3 = turn(v[2] - v[3]), t4 = turn(v[1] - v[4]);
    const C a = t0 + t1 * ar + t2 * br, b = t4 * ai + t3 * bi;
    const C c = t0 + t1 * br + t2 * ar, d = t4 * bi - t3 * ai;
    v[0] = t0 + t1 + t2;
    v[1] = a + b;
    v[4] = a - b;
    v[2] = c + d;
    v[3] = c - d;
  }
}

// One factor of a transform of n = before * kFactor * after numbers (Stockham: in order, without
// a separate reordering).
template <int kFactor, typename T>
void run_pass(int64_t before, int64_t after, const std::complex<T>* roots,
              const std::complex<T>* in, std::complex<T>* out) {
  for (int64_t c = 0; c < before; ++c)
    for (int64_t a = 0; a < after; ++a) {
      std::complex<T> v[kFactor];
      for (int j = 0; j < kFactor; ++j) v[j] = in[a + after * (j + kFactor * c)];
      butterfly<kFactor>(v);
      out[a + after * c] = v[0];
      for (int j = 1; j < kFactor; ++j)
        out[a + after * (c + before * j)] = a == 0 ? v[j] : times(v[j], roots[j * a * before]);
    }
}

}  // namespace

template <typename T>
bool SmoothFft<T>::fits(int64_t length) {
  for (int64_t factor : {2, 3, 5})
    while (length > 1 && length % factor == 0) length /= factor;
  return length == 1;
}

template <typename T>
Result<SmoothFft<T>> SmoothFft<T>::make(KernelContext& c, int64_t length) {
  SmoothFft fft;
  fft.length_ = length;
  int64_t rest = length;
  // A lone 2 first: fewer twiddles are multiplied in.
  if (std::countr_zero(static_cast<uint64_t>(length)) % 2 == 1)
    fft.factors_[fft.factor_count_++] = 2, rest /= 2;
  for (int factor : {4, 3, 5})
    for (; rest % factor == 0; rest /= factor) fft.factors_[fft.factor_count_++] = factor;
  HOLOGRAM_TRY(fft.roots_, c.scratch<Complex>(length));
  for (int64_t k = 0; k < length; ++k)
    fft.roots_[k] = Complex(unit(-static_cast<double>(k) / static_cast<double>(length)));
  return fft;
}

template <typename T>
void SmoothFft<T>::pass(int factor, int64_t before, const Complex* in, Complex* out) const {
  const int64_t after = length_ / (before * factor);
  switch (factor) {
    case 2:
      return run_pass<2>(before, after, roots_.data(), in, out);
    case 3:
      return run_pass<3>(before, after, roots_.data(), in, out);
    case 4:
      return run_pass<4>(before, after, roots_.data(), in, out);
    default:
      return run_pass<5>(before, after, roots_.data(), in, out);
  }
}

template <typename T>
void SmoothFft<T>::transform(Complex* data, Complex* work) const {
  Complex *in = data, *out = work;
  int64_t before = 1;
  for (int i = 0; i < factor_count_; ++i, std::swap(in, out)) {
    pass(factors_[i], before, in, out);
    before *= factors_[i];
  }
  if (in != data) std::copy_n(in, length_, data);
}

template <typename T>
Result<Fft<T>> Fft<T>::make(KernelContext& c, int64_t length) {
  if (length < 1 || length > kLongest)
    return fail(ErrorCode::invalid_argument, "a transform of length {}; 1 to {} expected", length,
                kLongest);
  Fft fft;
  fft.length_ = length;
  if (SmoothFft<T>::fits(length)) {
    HOLOGRAM_TRY(fft.smooth_, SmoothFft<T>::make(c, length));
    return fft;
  }
  const auto least = static_cast<uint64_t>(2 * length - 1);
  const auto padded = static_cast<int64_t>(std::bit_ceil(least));
  fft.padded_ = padded;
  HOLOGRAM_TRY(fft.convolution_, SmoothFft<double>::make(c, padded));
  HOLOGRAM_TRY(fft.chirp_, c.scratch<std::complex<double>>(length));
  HOLOGRAM_TRY(fft.spectrum_, c.scratch<std::complex<double>>(padded));
  HOLOGRAM_TRY(auto work, c.scratch<std::complex<double>>(padded));
  // k^2 modulo 2 * length, kept small so that the angle stays exact.
  int64_t square = 0;
  for (int64_t k = 0; k < length; ++k) {
    fft.chirp_[k] = unit(-static_cast<double>(square) / static_cast<double>(2 * length));
    square = (square + 2 * k + 1) % (2 * length);
  }
  std::ranges::fill(fft.spectrum_, std::complex<double>());
  for (int64_t k = 0; k < length; ++k) {
    const auto value = std::conj(fft.chirp_[k]) / static_cast<double>(padded);
    fft.spectrum_[k] = value;
    if (k > 0) fft.spectrum_[padded - k] = value;
  }
  fft.convolution_.transform(fft.spectrum_.data(), work.data());
  return fft;
}

template <typename T>
int64_t Fft<T>::work_bytes() const {
  return padded_ > 0 ? 2 * padded_ * static_cast<int64_t>(sizeof(std::complex<double>))
                     : (length_ * static_cast<int64_t>(sizeof(Complex)) + 15) / 16 * 16;
}

template <typename T>
void Fft<T>::transform(Complex* data, std::byte* work) const {
  if (padded_ == 0) return smooth_.transform(data, reinterpret_cast<Complex*>(work));
  auto* line = reinterpret_cast<std::complex<double>*>(work);
  auto* inner = line + padded_;
  for (int64_t k = 0; k < length_; ++k) line[k] = times(std::complex<double>(data[k]), chirp_[k]);
  std::fill(line + length_, line + padded_, std::complex<double>());
  convolution_.transform(line, inner);
  // The way back is the transform of the conjugate, conjugated.
  for (int64_t k = 0; k < padded_; ++k) line[k] = std::conj(times(line[k], spectrum_[k]));
  convolution_.transform(line, inner);
  for (int64_t k = 0; k < length_; ++k) data[k] = Complex(times(std::conj(line[k]), chirp_[k]));
}

template class SmoothFft<float>;
template class SmoothFft<double>;
template class Fft<float>;
template class Fft<double>;

}  // namespace hologram::kernels
