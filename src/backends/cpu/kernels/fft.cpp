#include "backends/cpu/kernels/fft.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace hologram::kernels {
namespace {

Complex unit(double turns) {
  const double angle = 2 * std::numbers::pi * turns;
  return {std::cos(angle), std::sin(angle)};
}

// std::complex's own operator* checks for infinities, which is slow.
Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

Result<Fft> Fft::make(KernelContext& c, int64_t length) {
  constexpr int64_t kLongest = int64_t{1} << 40;
  if (length < 1 || length > kLongest)
    return fail(ErrorCode::invalid_argument, "a transform of length {}; 1 to {} expected", length,
                kLongest);
  Fft fft;
  fft.length_ = length;
  const bool direct = std::has_single_bit(static_cast<uint64_t>(length));
  fft.padded_ =
      direct ? length : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * length - 1)));
  HOLOGRAM_TRY(fft.roots_, c.scratch<Complex>(std::max<int64_t>(1, fft.padded_ / 2)));
  for (int64_t k = 0; k < static_cast<int64_t>(fft.roots_.size()); ++k)
    fft.roots_[k] = unit(-static_cast<double>(k) / static_cast<double>(fft.padded_));
  if (direct) return fft;

  HOLOGRAM_TRY(fft.chirp_, c.scratch<Complex>(length));
  HOLOGRAM_TRY(fft.chirp_spectrum_, c.scratch<Complex>(fft.padded_));
  // k^2 modulo 2 * length, kept small so that the angle stays exact.
  int64_t square = 0;
  for (int64_t k = 0; k < length; ++k) {
    fft.chirp_[k] = unit(-static_cast<double>(square) / static_cast<double>(2 * length));
    square = (square + 2 * k + 1) % (2 * length);
  }
  std::ranges::fill(fft.chirp_spectrum_, Complex{});
  const double scale = 1 / static_cast<double>(fft.padded_);
  for (int64_t k = 0; k < length; ++k) {
    const Complex value = std::conj(fft.chirp_[k]) * scale;
    fft.chirp_spectrum_[k] = value;
    if (k > 0) fft.chirp_spectrum_[fft.padded_ - k] = value;
  }
  fft.radix2(fft.chirp_spectrum_.data(), false);
  return fft;
}

void Fft::radix2(Complex* data, bool inverse) const {
  const int64_t n = padded_;
  for (int64_t i = 1, j = 0; i < n; ++i) {
    int64_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(data[i], data[j]);
  }
  for (int64_t half = 1; half < n; half *= 2) {
    const int64_t step = n / (2 * half);
    for (int64_t start = 0; start < n; start += 2 * half)
      for (int64_t k = 0; k < half; ++k) {
        const Complex root = inverse ? std::conj(roots_[k * step]) : roots_[k * step];
        const Complex odd = times(data[start + half + k], root), even = data[start + k];
        data[start + k] = even + odd;
        data[start + half + k] = even - odd;
      }
  }
}

void Fft::transform(Complex* data, Complex* work) const {
  if (chirp_.empty()) return radix2(data, false);
  for (int64_t k = 0; k < length_; ++k) work[k] = times(data[k], chirp_[k]);
  std::fill(work + length_, work + padded_, Complex{});
  radix2(work, false);
  for (int64_t k = 0; k < padded_; ++k) work[k] = times(work[k], chirp_spectrum_[k]);
  radix2(work, true);
  for (int64_t k = 0; k < length_; ++k) data[k] = times(work[k], chirp_[k]);
}

}  // namespace hologram::kernels
