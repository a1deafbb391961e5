// Losses over classes: axis 1 of [batch, classes, ...] against labels [batch, ...].
#include <cmath>
#include <limits>
#include <optional>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"

namespace hologram::kernels {
namespace {

Result<std::span<const int64_t>> read_labels(KernelContext& c, const Tensor& labels,
                                             int64_t classes, std::optional<int64_t> ignored) {
  HOLOGRAM_TRY(const auto values, c.scratch<int64_t>(static_cast<size_t>(labels.count())));
  HOLOGRAM_CHECK(dispatch_index(labels.dtype, [&]<typename T>() -> Status {
    for (size_t i = 0; i < values.size(); ++i) values[i] = labels.as<T>()[i];
    return {};
  }));
  for (const int64_t label : values)
    if (label != ignored && (label < 0 || label >= classes))
      return fail(ErrorCode::out_of_range, "label {} is not a class below {}", label, classes);
  return std::span<const int64_t>(values);
}

// -log_prob[label] * weight[label], reduced as the attribute says. `log_prob` is dense and of the
// scores' shape.
template <typename T>
Status reduce_loss(KernelContext& c, const Dims& shape, const T* log_prob) {
  const Tensor& labels = c.input(1);
  if (shape.rank() < 2 || labels.dims.rank() + 1 != shape.rank())
    return fail(ErrorCode::shape_mismatch,
                "scores are {} and labels {}: labels lack the class axis and nothing else",
                shape.to_string(), labels.dims.to_string());
  for (size_t i = 0; i < labels.dims.rank(); ++i)
    if (labels.dims[i] != shape[i == 0 ? 0 : i + 1])
      return fail(ErrorCode::shape_mismatch, "scores are {} and labels {}", shape.to_string(),
                  labels.dims.to_string());
  const int64_t classes = shape[1], pixels = shape.product(2, shape.rank());
  const auto* ignore = c.attributes().find("ignore_index");
  const std::optional<int64_t> ignored = ignore ? std::optional(ignore->integer) : std::nullopt;
  HOLOGRAM_TRY(const auto targets, read_labels(c, labels, classes, ignored));
  const T* weights = nullptr;
  if (c.has_input(2)) {
    if (c.input(2).count() != classes)
      return fail(ErrorCode::shape_mismatch, "{} weights for {} classes", c.input(2).count(),
                  classes);
    weights = c.input(2).as<T>();
  }
  const std::string_view reduction = c.text("reduction", "mean");
  const bool each = reduction == "none";
  if (!each && reduction != "mean" && reduction != "sum")
    return fail(ErrorCode::invalid_argument, "reduction '{}'; supported: none, sum, mean",
                reduction);
  HOLOGRAM_TRY(Tensor out, c.output(0, each ? labels.dims : Dims()));
  double total = 0, weight_sum = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    const auto position = static_cast<int64_t>(i);
    double loss = 0;
    if (targets[i] != ignored) {
      const double weight = weights ? static_cast<double>(weights[targets[i]]) : 1;
      const int64_t at = (position / pixels * classes + targets[i]) * pixels + position % pixels;
      loss = -static_cast<double>(log_prob[at]) * weight;
      weight_sum += weight;
    }
    if (each) out.as<T>()[i] = static_cast<T>(loss);
    total += loss;
  }
  if (!each) out.as<T>()[0] = static_cast<T>(reduction == "mean" ? total / weight_sum : total);
  return {};
}

Status negative_log_likelihood(KernelContext& c) {
  return dispatch_float(c.input(0).dtype, [&]<typename T>() {
    return reduce_loss(c, c.input(0).dims, c.input(0).as<T>());
  });
}

Status softmax_cross_entropy(KernelContext& c) {
  const Tensor& scores = c.input(0);
  if (scores.dims.rank() < 2)
    return fail(ErrorCode::shape_mismatch, "scores are {}: [batch, classes, ...] is needed",
                scores.dims.to_string());
  const int64_t classes = scores.dims[1], pixels = scores.dims.product(2, scores.dims.rank());
  return dispatch_float(scores.dtype, [&]<typename T>() -> Status {
    T* log_prob = nullptr;
    if (c.wants_output(1)) {
      HOLOGRAM_TRY(const Tensor second, c.output(1, scores.dims));
      log_prob = second.as<T>();
    } else {
      HOLOGRAM_TRY(const std::span<T> scratch, c.scratch<T>(static_cast<size_t>(scores.count())));
      log_prob = scratch.data();
    }
    for (int64_t line = 0; line < (classes == 0 ? 0 : scores.count() / classes); ++line) {
      const int64_t start = line / pixels * classes * pixels + line % pixels;
      const T* x = scores.as<T>() + start;
      T top = -std::numeric_limits<T>::infinity();
      for (int64_t k = 0; k < classes; ++k) top = std::max(top, x[k * pixels]);
      double sum = 0;
      for (int64_t k = 0; k < classes; ++k)
        sum += std::exp(static_cast<double>(x[k * pixels] - top));
      const double log_sum = std::log(sum);
      for (int64_t k = 0; k < classes; ++k)
        log_prob[start + k * pixels] =
            static_cast<T>(static_cast<double>(x[k * pixels] - top) - log_sum);
    }
    return reduce_loss(c, scores.dims, log_prob);
  });
}

constexpr Kernel kKernels[] = {
    {"NegativeLogLikelihoodLoss", negative_log_likelihood, true},
    {"SoftmaxCrossEntropyLoss", softmax_cross_entropy, true},
};

}  // namespace

std::span<const Kernel> loss_kernels() { return kKernels; }

}  // namespace hologram::kernels
