// Normalisations: a group of elements brought to mean 0 and variance 1 (or norm 1), then scaled.
//
// Sums are taken in double and in the order of the elements, so results do not depend on threads.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/dense/normalize.h"
#include "backends/cpu/kernels/arena.h"
#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"

namespace hologram::kernels {
namespace {

using backends::dense::SumOrder;

constexpr double kEpsilon = 1e-5f;

struct Moments {
  double mean, variance;
};

template <typename T>
double sum_of(const T* x, int64_t n) {
  double lanes[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int lane = 0; lane < 8; ++lane) lanes[lane] += static_cast<double>(x[i + lane]);
  for (; i < n; ++i) lanes[0] += static_cast<double>(x[i]);
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

template <typename T>
double squares_of(const T* x, int64_t n, double centre) {
  double lanes[8] = {};
  const auto square = [&](T value) {
    const double d = static_cast<double>(value) - centre;
    return d * d;
  };
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int lane = 0; lane < 8; ++lane) lanes[lane] += square(x[i + lane]);
  for (; i < n; ++i) lanes[0] += square(x[i]);
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

// Two passes: the second over data that is still in cache.
template <typename T>
Moments moments(const T* x, int64_t n) {
  const double mean = sum_of(x, n) / static_cast<double>(n);
  return {mean, squares_of(x, n, mean) / static_cast<double>(n)};
}

size_t grain_for(int64_t line) {
  return static_cast<size_t>(std::max<int64_t>(1, 8192 / std::max<int64_t>(1, line)));
}

// A scale or bias of `count` values, as double; `fallback` everywhere when absent.
Result<List<double>> per_channel(KernelContext& c, size_t index, int64_t count, double fallback,
                                 const char* what) {
  if (c.has_input(index) && c.input(index).count() != count)
    return fail(ErrorCode::shape_mismatch, "{} has {} values, {} are needed", what,
                c.input(index).count(), count);
  List<double> values(static_cast<size_t>(count), fallback);
  if (!c.has_input(index)) return values;
  const Tensor& tensor = c.input(index);
  HOLOGRAM_CHECK(dispatch_float(tensor.dtype, [&]<typename T>() -> Status {
    std::copy_n(tensor.as<T>(), count, values.begin());
    return {};
  }));
  return values;
}

// `sum_order`, which the pass reference_order sets: 1 eight, 2 that of an axis that was not the
// last.
SumOrder sum_order(const KernelContext& c) {
  const int64_t order = c.integer("sum_order");
  if (order != 2) return order == 1 ? SumOrder::eight : SumOrder::tree;
  const Dims& dims = c.input(0).dims;
  return dims.rank() > 2 && dims.product(0, dims.rank() - 2) > 1 ? SumOrder::fours
                                                                 : SumOrder::sequence;
}

// Writes f32 or f64, whatever the tensor is.
void store(const Tensor& tensor, int64_t index, double value) {
  if (tensor.dtype == DType::f64)
    tensor.as<double>()[index] = value;
  else
    tensor.as<float>()[index] = static_cast<float>(value);
}

// LayerNormalization and RMSNormalization: lines are all axes from `axis` on. Scale and bias
// broadcast to a line, so they may also be shorter than one.
template <bool rms>
Status layer_norm(KernelContext& c) {
  const Tensor& x = c.input(0);
  HOLOGRAM_TRY(const size_t axis, c.axis("axis", -1, x.dims.rank()));
  const double epsilon = c.number("epsilon", kEpsilon);
  const int64_t n = x.dims.product(axis, x.dims.rank()), lines = x.dims.product(0, axis);
  HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
  Dims reduced = x.dims;
  for (size_t i = axis; i < x.dims.rank(); ++i) reduced[i] = 1;
  Tensor mean, deviation;
  if (!rms && c.wants_output(1)) {
    HOLOGRAM_TRY(mean, c.output(1, reduced));
  }
  if (!rms && c.wants_output(2)) {
    HOLOGRAM_TRY(deviation, c.output(2, reduced));
  }
  for (size_t i : {size_t{1}, size_t{2}}) {
    if (!c.has_input(i)) continue;
    if (c.input(i).count() == 0 || n % c.input(i).count() != 0)
      return fail(ErrorCode::shape_mismatch, "{} has {} values for lines of {}",
                  i == 1 ? "Scale" : "B", c.input(i).count(), n);
    // A shorter one must be the end of the line's shape to repeat along it.
    const Dims& dims = c.input(i).dims;
    for (size_t k = 0; k < std::min(dims.rank(), x.dims.rank() - axis); ++k)
      if (dims[dims.rank() - 1 - k] != x.dims[x.dims.rank() - 1 - k] && c.input(i).count() != 1)
        return fail(ErrorCode::shape_mismatch, "{} of shape {} does not fit lines of {}",
                    i == 1 ? "Scale" : "B", dims.to_string(), x.dims.to_string());
  }
  const auto covers_line = [&](size_t i) { return !c.has_input(i) || c.input(i).count() == n; };
  if (x.dtype == DType::f32 && y.dtype == DType::f32 && covers_line(1) && covers_line(2) &&
      !(mean.data && mean.dtype != DType::f32) &&
      !(deviation.data && deviation.dtype != DType::f32)) {
    const auto floats = [&](size_t i) { return c.has_input(i) ? c.input(i).as<float>() : nullptr; };
    const SumOrder order = rms || c.has_input(2) ? SumOrder::tree : sum_order(c);
    backends::dense::row_norm({.rows = static_cast<size_t>(lines),
                               .n = static_cast<size_t>(n),
                               .x = x.as<float>(),
                               .scale = floats(1),
                               .bias = rms ? nullptr : floats(2),
                               .epsilon = static_cast<float>(epsilon),
                               .rms = rms,
                               .order = order,
                               .y = y.as<float>(),
                               .mean = mean.as<float>(),
                               .inverse_deviation = deviation.as<float>()},
                              c.threads());
    return {};
  }
  // RMSNormalization may read one type; scale and result are of another.
  const auto run = [&]<typename T, typename V>() -> Status {
    const V* scale = c.has_input(1) ? c.input(1).as<V>() : nullptr;
    const V* bias = c.has_input(2) ? c.input(2).as<V>() : nullptr;
    const int64_t scales = scale ? c.input(1).count() : n, biases = bias ? c.input(2).count() : n;
    c.threads().parallel_for(
        static_cast<size_t>(lines), grain_for(n), [&](size_t begin, size_t end) {
          for (auto line = static_cast<int64_t>(begin); line < static_cast<int64_t>(end); ++line) {
            const T* in = x.as<T>() + line * n;
            V* out = y.as<V>() + line * n;
            const Moments m =
                rms ? Moments{0, squares_of(in, n, 0.0) / static_cast<double>(n)} : moments(in, n);
            const double inverse = 1 / std::sqrt(m.variance + epsilon);
            if (mean.data) store(mean, line, m.mean);
            if (deviation.data) store(deviation, line, inverse);
            const T shift = static_cast<T>(m.mean), factor = static_cast<T>(inverse);
            for (int64_t i = 0; i < n; ++i) out[i] = static_cast<V>((in[i] - shift) * factor);
            if (scale)
              for (int64_t i = 0; i < n; i += scales)
                for (int64_t k = 0; k < scales; ++k) out[i + k] *= scale[k];
            if (bias)
              for (int64_t i = 0; i < n; i += biases)
                for (int64_t k = 0; k < biases; ++k) out[i + k] += bias[k];
          }
        });
    return {};
  };
  return dispatch_float(x.dtype, [&]<typename T>() {
    return dispatch_float(y.dtype, [&]<typename V>() { return run.template operator()<T, V>(); });
  });
}

// [batch, channels, ...]: groups of channels of one sample. Scale and bias a channel, or a group
// (GroupNormalization before opset 21).
Status group_norm(KernelContext& c, int64_t groups) {
  const Tensor& x = c.input(0);
  const int64_t batch = x.dims[0], channels = x.dims[1], pixels = x.dims.product(2, x.dims.rank());
  if (groups <= 0 || channels % groups != 0)
    return fail(ErrorCode::shape_mismatch, "{} channels do not divide into {} groups", channels,
                groups);
  const double epsilon = c.number("epsilon", kEpsilon);
  const int64_t per_group = channels / groups;
  const bool by_group = c.has_input(1) && c.input(1).count() == groups && groups != channels;
  const auto a_channel = [&](size_t i) {
    return !c.has_input(i) || (c.input(i).count() == channels && c.input(i).dtype == DType::f32);
  };
  if (x.dtype == DType::f32 && !by_group && a_channel(1) && a_channel(2)) {
    const auto floats = [&](size_t i) { return c.has_input(i) ? c.input(i).as<float>() : nullptr; };
    HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
    backends::dense::group_norm({.batch = static_cast<size_t>(batch),
                                 .channels = static_cast<size_t>(channels),
                                 .pixels = static_cast<size_t>(pixels),
                                 .groups = static_cast<size_t>(groups),
                                 .x = x.as<float>(),
                                 .scale = floats(1),
                                 .bias = floats(2),
                                 .epsilon = static_cast<float>(epsilon),
                                 .order = per_group == 1 ? sum_order(c) : SumOrder::tree,
                                 .y = y.as<float>()},
                                c.threads());
    return {};
  }
  HOLOGRAM_TRY(const auto scale, per_channel(c, 1, by_group ? groups : channels, 1, "scale"));
  HOLOGRAM_TRY(const auto bias, per_channel(c, 2, by_group ? groups : channels, 0, "bias"));
  HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
  const int64_t n = per_group * pixels;
  if (n == 0) return {};
  return dispatch_float(x.dtype, [&]<typename T>() -> Status {
    c.threads().parallel_for(
        static_cast<size_t>(batch * groups), grain_for(n), [&](size_t begin, size_t end) {
          for (auto item = static_cast<int64_t>(begin); item < static_cast<int64_t>(end); ++item) {
            const int64_t group = item % groups;
            const T* in = x.as<T>() + item * n;
            T* out = y.as<T>() + item * n;
            const Moments m = moments(in, n);
            const double inverse = 1 / std::sqrt(m.variance + epsilon);
            for (int64_t k = 0; k < per_group; ++k) {
              const auto which = static_cast<size_t>(by_group ? group : group * per_group + k);
              const T factor = static_cast<T>(inverse * scale[which]),
                      shift = static_cast<T>(bias[which]), centre = static_cast<T>(m.mean);
              for (int64_t i = k * pixels; i < (k + 1) * pixels; ++i)
                out[i] = (in[i] - centre) * factor + shift;
            }
          }
        });
    return {};
  });
}

Status check_rank(KernelContext& c, size_t least) {
  if (c.input(0).dims.rank() >= least) return {};
  return fail(ErrorCode::shape_mismatch, "the input has {} axes, at least {} are needed",
              c.input(0).dims.rank(), least);
}

Status group_normalization(KernelContext& c) {
  HOLOGRAM_CHECK(check_rank(c, 2));
  return group_norm(c, c.integer("num_groups"));
}

Status instance_normalization(KernelContext& c) {
  HOLOGRAM_CHECK(check_rank(c, 2));
  return group_norm(c, c.input(0).dims[1]);
}

// A vector has one channel: its only axis is the batch.
Status batch_normalization(KernelContext& c) {
  HOLOGRAM_CHECK(check_rank(c, 1));
  const Tensor& x = c.input(0);
  const bool training = c.integer("training_mode") != 0;
  const double epsilon = c.number("epsilon", kEpsilon), momentum = c.number("momentum", 0.9f);
  const int64_t batch = x.dims[0], channels = x.dims.rank() > 1 ? x.dims[1] : 1;
  const int64_t pixels = x.dims.product(2, x.dims.rank());
  HOLOGRAM_TRY(const auto scale, per_channel(c, 1, channels, 1, "scale"));
  HOLOGRAM_TRY(const auto bias, per_channel(c, 2, channels, 0, "B"));
  HOLOGRAM_TRY(auto mean, per_channel(c, 3, channels, 0, "input_mean"));
  HOLOGRAM_TRY(auto variance, per_channel(c, 4, channels, 1, "input_var"));
  HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
  return dispatch_float(x.dtype, [&]<typename T>() -> Status {
    if (training) {
      const List<double> old_mean = mean, old_variance = variance;
      const double count = static_cast<double>(batch * pixels);
      for (int64_t k = 0; k < channels; ++k) {
        double sum = 0, squares = 0;
        for (int64_t b = 0; b < batch; ++b)
          sum += sum_of(x.as<T>() + (b * channels + k) * pixels, pixels);
        const auto at = static_cast<size_t>(k);
        mean[at] = sum / count;
        for (int64_t b = 0; b < batch; ++b)
          squares += squares_of(x.as<T>() + (b * channels + k) * pixels, pixels, mean[at]);
        variance[at] = squares / count;
      }
      for (size_t output : {size_t{1}, size_t{2}}) {
        if (!c.wants_output(output)) continue;
        HOLOGRAM_TRY(Tensor running, c.output(output, Dims{channels}));
        const auto& before = output == 1 ? old_mean : old_variance;
        const auto& now = output == 1 ? mean : variance;
        for (size_t k = 0; k < now.size(); ++k)
          store(running, static_cast<int64_t>(k), before[k] * momentum + now[k] * (1 - momentum));
      }
    } else if (c.wants_output(1)) {
      return fail(ErrorCode::invalid_argument,
                  "running_mean and running_var are results of training_mode=1 only");
    }
    c.threads().parallel_for(
        static_cast<size_t>(batch * channels), grain_for(pixels), [&](size_t begin, size_t end) {
          for (auto plane = static_cast<int64_t>(begin); plane < static_cast<int64_t>(end);
               ++plane) {
            const auto k = static_cast<size_t>(plane % channels);
            const double factor = scale[k] / std::sqrt(variance[k] + epsilon);
            const T a = static_cast<T>(factor), centre = static_cast<T>(mean[k]),
                    shift = static_cast<T>(bias[k]);
            for (int64_t i = plane * pixels; i < (plane + 1) * pixels; ++i)
              y.as<T>()[i] = (x.as<T>()[i] - centre) * a + shift;
          }
        });
    return {};
  });
}

Status lp_normalization(KernelContext& c) {
  const Tensor& x = c.input(0);
  HOLOGRAM_TRY(const size_t axis, c.axis("axis", -1, x.dims.rank()));
  const int64_t p = c.integer("p", 2), n = x.dims[axis],
                inner = x.dims.product(axis + 1, x.dims.rank());
  if (p != 1 && p != 2) return fail(ErrorCode::unsupported, "p = {}; supported: 1 and 2", p);
  HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
  return dispatch_float(x.dtype, [&]<typename T>() -> Status {
    for (int64_t line = 0; line < (n == 0 ? 0 : x.count() / n); ++line) {
      const int64_t start = line / inner * n * inner + line % inner;
      double norm = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double value = std::fabs(static_cast<double>(x.as<T>()[start + i * inner]));
        norm += p == 1 ? value : value * value;
      }
      if (p == 2) norm = std::sqrt(norm);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = start + i * inner;
        y.as<T>()[at] =
            norm == 0 ? T(0) : static_cast<T>(static_cast<double>(x.as<T>()[at]) / norm);
      }
    }
    return {};
  });
}

Status local_response(KernelContext& c) {
  HOLOGRAM_CHECK(check_rank(c, 2));
  const Tensor& x = c.input(0);
  const int64_t size = c.integer("size");
  if (size <= 0)
    return fail(ErrorCode::invalid_argument, "size is {}; it counts channels and must be positive",
                size);
  const double alpha = c.number("alpha", 1e-4f), beta = c.number("beta", 0.75),
               bias = c.number("bias", 1);
  const int64_t channels = x.dims[1], pixels = x.dims.product(2, x.dims.rank());
  HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
  return dispatch_float(x.dtype, [&]<typename T>() -> Status {
    c.threads().parallel_for(
        static_cast<size_t>(x.dims[0] * channels), grain_for(pixels),
        [&](size_t begin, size_t end) {
          for (auto plane = static_cast<int64_t>(begin); plane < static_cast<int64_t>(end);
               ++plane) {
            const int64_t k = plane % channels;
            const int64_t first = std::max<int64_t>(0, k - (size - 1) / 2),
                          last = std::min(channels - 1, k + size / 2);
            const T* sample = x.as<T>() + (plane - k) * pixels;
            for (int64_t i = 0; i < pixels; ++i) {
              double squares = 0;
              for (int64_t other = first; other <= last; ++other) {
                const double value = static_cast<double>(sample[other * pixels + i]);
                squares += value * value;
              }
              const double x_value = static_cast<double>(sample[k * pixels + i]);
              y.as<T>()[plane * pixels + i] = static_cast<T>(
                  x_value / std::pow(bias + alpha / static_cast<double>(size) * squares, beta));
            }
          }
        });
    return {};
  });
}

constexpr Kernel kKernels[] = {
    {"BatchNormalization", batch_normalization, true},
    {"GroupNormalization", group_normalization, true},
    {"InstanceNormalization", instance_normalization, true},
    {"LRN", local_response, true},
    {"LayerNormalization", layer_norm<false>, true},
    {"LpNormalization", lp_normalization, true},
    {"RMSNormalization", layer_norm<true>, true},
};

}  // namespace

std::span<const Kernel> normalisation_kernels() { return kKernels; }

}  // namespace hologram::kernels
