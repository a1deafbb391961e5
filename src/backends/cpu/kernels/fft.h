// Fft: discrete Fourier transforms of any length.
//
// Lengths whose prime factors are 2, 3 and 5 are done in the element's own precision, a pass a
// factor. Any other length is a convolution with a chirp (Bluestein), which a power of two does in
// double precision. The time is O(n log n) for every length.
#pragma once

#include <complex>
#include <cstdint>
#include <span>

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

// For float and double.
template <typename T>
class SmoothFft {
 public:
  using Complex = std::complex<T>;
  static bool fits(int64_t length);

  // `length` must fit. Tables are scratch of `c`: the object lives no longer than the kernel's run.
  static Result<SmoothFft> make(KernelContext& c, int64_t length);

  // data[k] = sum of data[n] * exp(-2 pi i k n / length). `work` is as long as the data.
  void transform(Complex* data, Complex* work) const;

 private:
  void pass(int factor, int64_t before, const Complex* in, Complex* out) const;

  int64_t length_ = 1;
  std::span<Complex> roots_;  // exp(-2 pi i k / length)
  int factors_[64];
  int factor_count_ = 0;
};

template <typename T>
class Fft {
 public:
  using Complex = std::complex<T>;
  static Result<Fft> make(KernelContext& c, int64_t length);

  // Bytes that transform() needs for itself, 16-byte aligned.
  int64_t work_bytes() const;
  // As above. Any number of threads may call it, each with data and work of its own.
  void transform(Complex* data, std::byte* work) const;

 private:
  int64_t length_ = 1, padded_ = 0;  // padded: 0 for lengths that fit
  SmoothFft<T> smooth_;
  SmoothFft<double> convolution_;
  std::span<std::complex<double>> chirp_;     // exp(-pi i k^2 / length), k < length
  std::span<std::complex<double>> spectrum_;  // of its conjugate, wrapped around, over padded
};

}  // namespace hologram::kernels
