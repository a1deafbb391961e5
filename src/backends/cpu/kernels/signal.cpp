// DFT and STFT.
#include "backends/cpu/kernels/signal.h"

#include <algorithm>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/fft.h"

namespace hologram::kernels {

Result<int64_t> scalar_integer(const KernelContext& c, size_t index, std::string_view name) {
  HOLOGRAM_TRY(const Dims values, c.input_integers(index));
  if (values.rank() != 1)
    return fail(ErrorCode::shape_mismatch, "{} has {} elements; a scalar expected", name,
                values.rank());
  return values[0];
}

namespace {

// Calls f(line, data, work) for every line, `data` being room for a transform and `work` what the
// transform needs. Lines are dealt out in a fixed number of pieces, each with memory of its own.
template <typename T, typename F>
Status for_each_line(KernelContext& c, const Fft<T>& fft, int64_t length, int64_t lines,
                     const F& f) {
  constexpr int64_t kPieces = 64;
  const int64_t pieces = std::min(lines, kPieces);
  const int64_t room = (length * static_cast<int64_t>(sizeof(std::complex<T>)) + 15) / 16 * 16;
  const int64_t each = room + fft.work_bytes();
  HOLOGRAM_TRY(auto memory, c.scratch<std::byte>(pieces * each));
  c.threads().parallel_for(pieces, 1, [&](size_t begin, size_t end) {
    for (size_t piece = begin; piece < end; ++piece) {
      std::byte* own = memory.data() + static_cast<int64_t>(piece) * each;
      const int64_t first = lines * static_cast<int64_t>(piece) / pieces;
      const int64_t last = lines * static_cast<int64_t>(piece + 1) / pieces;
      for (int64_t line = first; line < last; ++line)
        f(line, reinterpret_cast<std::complex<T>*>(own), own + room);
    }
  });
  return {};
}

template <typename T>
void conjugate(std::complex<T>* data, int64_t count) {
  for (int64_t i = 0; i < count; ++i) data[i] = std::conj(data[i]);
}

// body<T, A>: elements of type T, arithmetic in A. Real signals are transformed in double. Complex
// ones in their own precision, as NumPy does it: the standard's cases for them hold numbers that
// are nothing but its rounding errors, and ask for these.
template <typename Body>
Status dispatch_precision(DType type, int64_t parts, Body&& body) {
  if (type == DType::f64) return body.template operator()<double, double>();
  return parts == 2 ? body.template operator()<float, float>()
                    : body.template operator()<float, double>();
}

// The inverse transform is that of the conjugate, conjugated and divided by the length.
Status dft(KernelContext& c) {
  const Tensor& x = c.input(0);
  const size_t rank = x.dims.rank();
  if (rank < 2 || x.dims.back() < 1 || x.dims.back() > 2)
    return fail(ErrorCode::shape_mismatch, "input {}; the last axis has 1 or 2 elements",
                x.dims.to_string());
  int64_t axis_value = -2;
  if (c.has_input(2)) {
    HOLOGRAM_TRY(axis_value, scalar_integer(c, 2, "axis"));
  }
  HOLOGRAM_TRY(const size_t axis, normalise_axis(axis_value, rank));
  if (axis == rank - 1)
    return fail(ErrorCode::out_of_range, "axis {}: the last axis holds real and imaginary parts",
                axis_value);
  const bool inverse = c.integer("inverse") != 0, onesided = c.integer("onesided") != 0;
  const int64_t parts = x.dims.back(), in = x.dims[axis];
  int64_t length = inverse && onesided ? 2 * (in - 1) : in;
  if (c.has_input(1)) {
    HOLOGRAM_TRY(length, scalar_integer(c, 1, "dft_length"));
  }
  if (onesided && (inverse ? parts == 1 : parts == 2))
    return fail(ErrorCode::shape_mismatch, "a onesided transform {}; the input is {}",
                inverse ? "back needs complex input" : "needs real input", x.dims.to_string());
  if (length < 1)
    return fail(ErrorCode::invalid_argument, "a transform of length {}; at least 1 expected",
                length);
  Dims dims = x.dims;
  dims[axis] = onesided && !inverse ? length / 2 + 1 : length;
  dims[rank - 1] = onesided && inverse ? 1 : 2;
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  if (y.count() == 0) return {};
  const int64_t out = dims[axis], out_parts = dims.back();
  const int64_t inner = dims.product(axis + 1, rank - 1), outer = dims.product(0, axis);
  // Half a spectrum says all about a real signal: the other half is its mirror image.
  const int64_t used = std::min(in, inverse && onesided ? length / 2 + 1 : length);
  return dispatch_precision(x.dtype, parts, [&]<typename T, typename A>() -> Status {
    using Complex = std::complex<A>;
    const A scale = inverse ? static_cast<A>(1 / static_cast<double>(length)) : A(1);
    HOLOGRAM_TRY(const auto fft, Fft<A>::make(c, length));
    return for_each_line(c, fft, length, outer * inner,
                         [&](int64_t line, Complex* data, std::byte* work) {
                           const int64_t o = line / inner, i = line % inner;
                           const T* from = x.as<T>() + (o * in * inner + i) * parts;
                           std::fill(data, data + length, Complex{});
                           for (int64_t k = 0; k < used; ++k) {
                             const T* value = from + k * inner * parts;
                             data[k] = Complex(value[0], parts == 2 ? value[1] : T(0));
                           }
                           if (inverse && onesided) {
                             // What is its own mirror image has no imaginary part.
                             data[0] = data[0].real();
                             if (length % 2 == 0) data[length / 2] = data[length / 2].real();
                             for (int64_t k = 1; k < (length + 1) / 2; ++k)
                               data[length - k] = std::conj(data[k]);
                           }
                           if (inverse) conjugate(data, length);
                           fft.transform(data, work);
                           if (inverse) conjugate(data, length);
                           T* to = y.as<T>() + (o * out * inner + i) * out_parts;
                           for (int64_t k = 0; k < out; ++k) {
                             T* value = to + k * inner * out_parts;
                             value[0] = static_cast<T>(data[k].real() * scale);
                             if (out_parts == 2) value[1] = static_cast<T>(data[k].imag() * scale);
                           }
                         });
  });
}

Status stft(KernelContext& c) {
  const Tensor& x = c.input(0);
  const size_t rank = x.dims.rank();
  const int64_t parts = rank == 3 ? x.dims[2] : 1;
  if ((rank != 2 && rank != 3) || parts < 1 || parts > 2)
    return fail(ErrorCode::shape_mismatch,
                "signal {}; [batch, length, 1] or [batch, length, 2] expected", x.dims.to_string());
  const int64_t samples = x.dims[1];
  HOLOGRAM_TRY(const int64_t step, scalar_integer(c, 1, "frame_step"));
  int64_t length = c.has_input(2) ? c.input(2).count() : samples;
  if (c.has_input(3)) {
    HOLOGRAM_TRY(length, scalar_integer(c, 3, "frame_length"));
  }
  const bool onesided = c.integer("onesided", 1) != 0;
  if (step < 1 || length < 1 || length > samples)
    return fail(ErrorCode::invalid_argument, "frames of {} every {} samples of a signal {}", length,
                step, x.dims.to_string());
  if (c.has_input(2) && (c.input(2).dims.rank() != 1 || c.input(2).count() != length))
    return fail(ErrorCode::shape_mismatch, "window {} for frames of {}",
                c.input(2).dims.to_string(), length);
  if (onesided && parts == 2)
    return fail(ErrorCode::shape_mismatch, "a onesided transform needs a real signal, not {}",
                x.dims.to_string());
  const int64_t frames = (samples - length) / step + 1, out = onesided ? length / 2 + 1 : length;
  HOLOGRAM_TRY(Tensor y, c.output(0, {x.dims[0], frames, out, 2}));
  if (y.count() == 0) return {};
  return dispatch_precision(x.dtype, parts, [&]<typename T, typename A>() -> Status {
    using Complex = std::complex<A>;
    const T* window = c.has_input(2) ? c.input(2).as<T>() : nullptr;
    HOLOGRAM_TRY(const auto fft, Fft<A>::make(c, length));
    return for_each_line(
        c, fft, length, x.dims[0] * frames, [&](int64_t line, Complex* data, std::byte* work) {
          const T* from = x.as<T>() + (line / frames * samples + line % frames * step) * parts;
          for (int64_t k = 0; k < length; ++k) {
            const A weight = window ? static_cast<A>(window[k]) : A(1);
            const T* value = from + k * parts;
            data[k] = Complex(value[0], parts == 2 ? value[1] : T(0)) * weight;
          }
          fft.transform(data, work);
          T* to = y.as<T>() + line * out * 2;
          for (int64_t k = 0; k < out; ++k) {
            to[2 * k] = static_cast<T>(data[k].real());
            to[2 * k + 1] = static_cast<T>(data[k].imag());
          }
        });
  });
}

constexpr Kernel kKernels[] = {
    {"BlackmanWindow", blackman_window, true},    {"DFT", dft, true},
    {"HammingWindow", hamming_window, true},      {"HannWindow", hann_window, true},
    {"MelWeightMatrix", mel_weight_matrix, true}, {"STFT", stft, true},
};

}  // namespace

std::span<const Kernel> signal_kernels() { return kKernels; }

}  // namespace hologram::kernels
