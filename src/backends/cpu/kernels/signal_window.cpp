// Windows for signals, and the weights of mel bands.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/saturate.h"
#include "backends/cpu/kernels/signal.h"

namespace hologram::kernels {
namespace {

// a0 - a1 cos(t) + a2 cos(2t), t once around over the window.
Status cosine_window(KernelContext& c, double a0, double a1, double a2) {
  HOLOGRAM_TRY(const int64_t size, scalar_integer(c, 0, "size"));
  if (size < 0) return fail(ErrorCode::invalid_argument, "a window of {} elements", size);
  HOLOGRAM_TRY(Tensor y, c.output(0, {size}));
  const double period = static_cast<double>(c.integer("periodic", 1) != 0 ? size : size - 1);
  return dispatch_number(y.dtype, [&]<typename T>() -> Status {
    for (int64_t i = 0; i < size; ++i) {
      const double t = 2 * std::numbers::pi * static_cast<double>(i) / period;
      // A symmetric window of one element is its peak.
      y.as<T>()[i] = saturated<T>(period == 0 ? 1 : a0 - a1 * std::cos(t) + a2 * std::cos(2 * t));
    }
    return {};
  });
}

Result<double> scalar_number(const KernelContext& c, size_t index, std::string_view name) {
  const Tensor& t = c.input(index);
  if (t.count() != 1)
    return fail(ErrorCode::shape_mismatch, "{} is {}; a scalar expected", name, t.dims.to_string());
  return t.dtype == DType::f64 ? *t.as<double>() : static_cast<double>(*t.as<float>());
}

}  // namespace

Status hann_window(KernelContext& c) { return cosine_window(c, 0.5, 0.5, 0); }
Status hamming_window(KernelContext& c) { return cosine_window(c, 25.0 / 46, 21.0 / 46, 0); }
Status blackman_window(KernelContext& c) { return cosine_window(c, 0.42, 0.5, 0.08); }

// Triangles over the bins of a spectrum, evenly spaced in mel between the two edges.
Status mel_weight_matrix(KernelContext& c) {
  HOLOGRAM_TRY(const int64_t bands, scalar_integer(c, 0, "num_mel_bins"));
  HOLOGRAM_TRY(const int64_t length, scalar_integer(c, 1, "dft_length"));
  HOLOGRAM_TRY(const int64_t rate, scalar_integer(c, 2, "sample_rate"));
  HOLOGRAM_TRY(const double low, scalar_number(c, 3, "lower_edge_hertz"));
  HOLOGRAM_TRY(const double high, scalar_number(c, 4, "upper_edge_hertz"));
  if (bands < 0 || length < 0 || rate < 1 || !(low >= 0 && low <= high && high < 1e12))
    return fail(ErrorCode::invalid_argument,
                "{} bands from {} to {} Hz of transforms of {} at {} Hz", bands, low, high, length,
                rate);
  const int64_t bins = length / 2 + 1;
  HOLOGRAM_TRY(Tensor y, c.output(0, {bins, bands}));
  auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (mel(high) - mel(low)) / static_cast<double>(bands + 2);
  // The bin of edge i of the triangles.
  auto edge = [&](int64_t i) {
    const double hertz =
        700 * (std::pow(10, (static_cast<double>(i) * step + mel(low)) / 2595) - 1);
    return truncated<int64_t>(
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate)));
  };
  if (bands > 0 && edge(bands + 1) > bins)
    return fail(ErrorCode::out_of_range, "upper_edge_hertz {} is beyond half of sample_rate {}",
                high, rate);
  return dispatch_number(y.dtype, [&]<typename T>() -> Status {
    std::fill_n(y.as<T>(), y.count(), T(0));
    for (int64_t band = 0; band < bands; ++band) {
      const int64_t left = edge(band), peak = edge(band + 1), right = edge(band + 2);
      auto put = [&](int64_t bin, double weight) {
        if (bin < bins) y.as<T>()[bin * bands + band] = saturated<T>(weight);
      };
      if (left == peak) put(peak, 1);
      for (int64_t bin = left; bin <= peak && left < peak; ++bin)
        put(bin, static_cast<double>(bin - left) / static_cast<double>(peak - left));
      for (int64_t bin = peak; bin < right; ++bin)
        put(bin, static_cast<double>(right - bin) / static_cast<double>(right - peak));
    }
    return {};
  });
}

}  // namespace hologram::kernels
