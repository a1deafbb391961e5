// Scores to labels and probabilities.
#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/machine_learning.h"

namespace hologram::kernels {
namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// The inverse of the normal distribution: a first guess (Winitzki's), then Newton's steps.
double probit(double p) {
  if (!(p > 0 && p < 1)) return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
  const double y = 2 * p - 1, log = std::log1p(-y * y), a = 0.147;
  const double half = 2 / (M_PI * a) + log / 2;
  double x = std::copysign(std::sqrt(std::sqrt(half * half - log / a) - half), y) * M_SQRT2;
  for (int i = 0; i < 4; ++i) {
    const double error = 0.5 * std::erfc(-x * M_SQRT1_2) - p;
    x -= error * std::sqrt(2 * M_PI) * std::exp(x * x / 2);
  }
  return x;
}

}  // namespace

Result<PostTransform> post_transform_of(const KernelContext& c) {
  const std::string_view name = c.text("post_transform", "NONE");
  static constexpr std::string_view kNames[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                                "PROBIT"};
  const auto found = std::ranges::find(kNames, name);
  if (found != std::end(kNames)) return static_cast<PostTransform>(found - std::begin(kNames));
  return fail(ErrorCode::invalid_argument,
              "post_transform '{}'; supported: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT",
              name);
}

void transform_scores(PostTransform transform, std::span<double> row) {
  if (transform == PostTransform::logistic)
    for (double& x : row) x = logistic(x);
  if (transform == PostTransform::probit)
    for (double& x : row) x = probit(x);
  const bool keep_zeros = transform == PostTransform::softmax_zero;
  if ((transform != PostTransform::softmax && !keep_zeros) || row.empty()) return;
  const double top = *std::ranges::max_element(row);
  double sum = 0;
  for (double& x : row) {
    if (keep_zeros && x == 0) continue;
    x = std::exp(x - top);
    sum += x;
  }
  for (double& x : row)
    if (sum > 0) x /= sum;
}

List<double> both_scores(PostTransform transform, double score, bool positive_weights) {
  if (transform == PostTransform::logistic) return {logistic(-score), logistic(score)};
  if (transform == PostTransform::probit) return {probit(1 - score), probit(score)};
  return {positive_weights ? 1 - score : -score, score};
}

Result<Labels> Labels::read(const KernelContext& c, std::string_view integers) {
  Labels labels;
  labels.integers_ = c.integers(integers);
  labels.strings_ = c.attributes().texts("classlabels_strings");
  if (labels.integers_.empty() == labels.strings_.empty())
    return fail(ErrorCode::invalid_argument, "one of {} and classlabels_strings is expected",
                integers);
  if ((c.output_type(0) == DType::string) != labels.integers_.empty())
    return fail(ErrorCode::type_mismatch, "labels of another type than the result, {}",
                name_of(c.output_type(0)));
  return labels;
}

void Labels::write(const Tensor& out, int64_t row, size_t label) const {
  if (out.dtype == DType::string)
    out.as<std::string>()[row] = strings_[label];
  else
    out.as<int64_t>()[row] = integers_[label];
}

Result<Features> read_features(KernelContext& c) {
  const Tensor& x = c.input(0);
  if (x.dims.rank() != 1 && x.dims.rank() != 2)
    return fail(ErrorCode::shape_mismatch, "input {}; [N, F] or [F] expected", x.dims.to_string());
  Features f;
  f.rows = x.dims.rank() == 2 ? x.dims[0] : 1;
  f.columns = x.dims.back();
  HOLOGRAM_TRY(const auto values, c.scratch<double>(static_cast<size_t>(x.count())));
  HOLOGRAM_CHECK(dispatch_number(x.dtype, [&]<typename T>() -> Status {
    std::copy_n(x.as<T>(), x.count(), values.begin());
    return {};
  }));
  f.values = values;
  return f;
}

namespace {

// One sum of products for each row of coefficients.
struct Linear {
  int64_t outputs;
  std::span<const float> coefficients, intercepts;

  void score(std::span<const double> x, std::span<double> scores) const {
    for (size_t j = 0; j < scores.size(); ++j) {
      double sum = intercepts.empty() ? 0 : intercepts[j];
      for (size_t k = 0; k < x.size(); ++k) sum += x[k] * coefficients[j * x.size() + k];
      scores[j] = sum;
    }
  }
};

// `outputs` is 0 where the number of coefficients says it.
Result<Linear> linear_of(const KernelContext& c, int64_t columns, int64_t outputs) {
  Linear l{outputs, c.attributes().numbers("coefficients"), c.attributes().numbers("intercepts")};
  if (outputs == 0 && columns > 0)
    l.outputs = static_cast<int64_t>(l.coefficients.size()) / columns;
  if (l.outputs < 1 || static_cast<size_t>(l.outputs * columns) != l.coefficients.size() ||
      (!l.intercepts.empty() && static_cast<int64_t>(l.intercepts.size()) != l.outputs))
    return fail(ErrorCode::shape_mismatch,
                "{} coefficients and {} intercepts for {} features and {} results",
                l.coefficients.size(), l.intercepts.size(), columns, l.outputs);
  return l;
}

}  // namespace

Status linear_regressor(KernelContext& c) {
  HOLOGRAM_TRY(const Features x, read_features(c));
  HOLOGRAM_TRY(const PostTransform transform, post_transform_of(c));
  const int64_t targets = c.integer("targets", 1);
  if (targets < 1 || targets > kMostTargets)
    return fail(ErrorCode::invalid_argument, "targets {}; 1 to {}", targets, kMostTargets);
  HOLOGRAM_TRY(const Linear linear, linear_of(c, x.columns, targets));
  HOLOGRAM_TRY(Tensor y, c.output(0, {x.rows, targets}));
  List<double> scores(static_cast<size_t>(targets));
  for (int64_t i = 0; i < x.rows; ++i) {
    linear.score(x.row(i), scores);
    transform_scores(transform, scores);
    std::ranges::copy(scores, y.as<float>() + i * targets);
  }
  return {};
}

Status linear_classifier(KernelContext& c) {
  HOLOGRAM_TRY(const Features x, read_features(c));
  HOLOGRAM_TRY(const PostTransform transform, post_transform_of(c));
  HOLOGRAM_TRY(const Labels labels, Labels::read(c, "classlabels_ints"));
  HOLOGRAM_TRY(const Linear linear, linear_of(c, x.columns, 0));
  const bool one_score = linear.outputs == 1 && labels.count() == 2;
  if (!one_score && static_cast<size_t>(linear.outputs) > labels.count())
    return fail(ErrorCode::shape_mismatch, "{} scores for {} labels", linear.outputs,
                labels.count());
  HOLOGRAM_TRY(Tensor y, c.output(0, {x.rows}));
  Tensor z;
  if (c.wants_output(1)) {
    HOLOGRAM_TRY(z, c.output(1, {x.rows, one_score ? 2 : linear.outputs}));
  }
  for (int64_t i = 0; i < x.rows; ++i) {
    List<double> scores(static_cast<size_t>(linear.outputs));
    linear.score(x.row(i), scores);
    if (one_score) {
      labels.write(y, i, scores[0] > 0 ? 1 : 0);
      scores = both_scores(transform, scores[0], true);
    } else {
      labels.write(y, i, static_cast<size_t>(std::ranges::max_element(scores) - scores.begin()));
      transform_scores(transform, scores);
    }
    if (z.data) std::ranges::copy(scores, z.as<float>() + i * z.dims[1]);
  }
  return {};
}

}  // namespace hologram::kernels
