// Fft: discrete Fourier transforms of any length, in double precision.
//
// Lengths that are powers of two are done by the radix-2 algorithm; any other as a convolution with
// a chirp, which powers of two do (Bluestein). The time is O(n log n) for every length.
#pragma once

#include <complex>
#include <cstdint>
#include <span>

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

using Complex = std::complex<double>;

class Fft {
 public:
  // `length` is at least 1. Tables are scratch of `c`: the object lives no longer than the kernel.
  static Result<Fft> make(KernelContext& c, int64_t length);

  // Elements of memory that transform() needs for itself.
  int64_t work_size() const { return chirp_.empty() ? 0 : padded_; }
  // data[k] = sum of data[n] * exp(-2 pi i k n / length). `work` has work_size() elements. Any
  // number of threads may call it, each with data and work of its own.
  void transform(Complex* data, Complex* work) const;

 private:
  void radix2(Complex* data, bool inverse) const;

  int64_t length_ = 1;
  int64_t padded_ = 1;        // the power of two that is transformed
  std::span<Complex> roots_;  // exp(-2 pi i k / padded), k < padded / 2
  std::span<Complex> chirp_;  // exp(-pi i k^2 / length), k < length
  std::span<Complex>
      chirp_spectrum_;  // of the conjugate chirp, wrapped around; scaled by 1 / padded
};

}  // namespace hologram::kernels
