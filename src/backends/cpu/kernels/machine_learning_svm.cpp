// Support vector machines, as libsvm keeps them: one classifier for each pair of classes.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/cpu/kernels/machine_learning.h"

namespace hologram::kernels {
namespace {

// The function of two vectors that takes the place of their product.
class Similarity {
 public:
  static Result<Similarity> read(const KernelContext& c) {
    Similarity s;
    static constexpr std::string_view kNames[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
    const std::string_view name = c.text("kernel_type", "LINEAR");
    const auto found = std::ranges::find(kNames, name) - std::begin(kNames);
    if (found == std::ssize(kNames))
      return fail(ErrorCode::invalid_argument,
                  "kernel_type '{}'; supported: LINEAR, POLY, RBF, SIGMOID", name);
    s.kind_ = static_cast<Kind>(found);
    const auto parameters = c.attributes().numbers("kernel_params");
    if (!parameters.empty() && parameters.size() != 3)
      return fail(ErrorCode::invalid_argument, "{} kernel_params; gamma, coef0 and degree expected",
                  parameters.size());
    if (parameters.size() == 3)
      s.gamma_ = parameters[0], s.coef0_ = parameters[1], s.degree_ = parameters[2];
    return s;
  }

  double operator()(std::span<const double> x, std::span<const float> v) const {
    double sum = 0;
    if (kind_ == rbf) {
      for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - v[i]) * (x[i] - v[i]);
      return std::exp(-gamma_ * sum);
    }
    for (size_t i = 0; i < x.size(); ++i) sum += x[i] * v[i];
    if (kind_ == linear) return sum;
    sum = gamma_ * sum + coef0_;
    return kind_ == poly ? std::pow(sum, degree_) : std::tanh(sum);
  }

 private:
  enum Kind : uint8_t { linear, poly, rbf, sigmoid };
  Kind kind_ = linear;
  double gamma_ = 0, coef0_ = 0, degree_ = 0;
};

// Probabilities of classes from those of each pair (Wu, Lin and Weng, 2004, method 2): the p with
// sum 1 that minimises sum over pairs of (r_ji p_i - r_ij p_j)^2, a coordinate at a time.
List<double> couple(const List<double>& r, size_t n) {
  List<double> q(n * n, 0.0), p(n, 1.0 / static_cast<double>(n)), product(n);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      if (i == j) continue;
      q[i * n + i] += r[j * n + i] * r[j * n + i];
      q[i * n + j] = -r[j * n + i] * r[i * n + j];
    }
  const double enough = 0.005 / static_cast<double>(n);
  for (int round = 0; round < 100; ++round) {
    double total = 0, worst = 0;
    for (size_t i = 0; i < n; ++i) {
      product[i] =
          std::inner_product(p.begin(), p.end(), q.begin() + static_cast<int64_t>(i * n), 0.0);
      total += p[i] * product[i];
    }
    for (size_t i = 0; i < n; ++i) worst = std::max(worst, std::fabs(product[i] - total));
    if (worst < enough) break;
    for (size_t i = 0; i < n; ++i) {
      const double step = (total - product[i]) / q[i * n + i], scale = 1 + step;
      p[i] += step;
      total = (total + step * (step * q[i * n + i] + 2 * product[i])) / (scale * scale);
      for (size_t j = 0; j < n; ++j) {
        product[j] = (product[j] + step * q[i * n + j]) / scale;
        p[j] /= scale;
      }
    }
  }
  return p;
}

struct Machine {
  Similarity similarity;
  std::span<const float> vectors, coefficients, rho;
  size_t count = 0;  // of support vectors; 0: the coefficients are weights of features

  Status check(int64_t columns, size_t rows_of_coefficients) const {
    const size_t width = static_cast<size_t>(columns);
    const size_t expected = rows_of_coefficients * (count > 0 ? count : width);
    // A plan may name any numbers; with a real count the products do not wrap.
    if (count <= std::max(vectors.size(), coefficients.size()) && vectors.size() == count * width &&
        coefficients.size() == expected)
      return {};
    return fail(ErrorCode::shape_mismatch,
                "{} numbers of support vectors and {} coefficients for {} features; {} and {} "
                "expected",
                vectors.size(), coefficients.size(), columns, count * width, expected);
  }
  List<double> similarities(std::span<const double> x) const {
    List<double> result(count);
    for (size_t i = 0; i < count; ++i)
      result[i] = similarity(x, vectors.subspan(i * x.size(), x.size()));
    return result;
  }
};

Result<Machine> machine_of(const KernelContext& c) {
  Machine m;
  HOLOGRAM_TRY(m.similarity, Similarity::read(c));
  m.vectors = c.attributes().numbers("support_vectors");
  m.coefficients = c.attributes().numbers("coefficients");
  m.rho = c.attributes().numbers("rho");
  return m;
}

}  // namespace

Status svm_regressor(KernelContext& c) {
  HOLOGRAM_TRY(const Features x, read_features(c));
  HOLOGRAM_TRY(const PostTransform transform, post_transform_of(c));
  HOLOGRAM_TRY(Machine m, machine_of(c));
  const int64_t count = c.integer("n_supports");
  if (count < 0 || m.rho.empty())
    return fail(ErrorCode::invalid_argument, "n_supports {} and {} of rho", count, m.rho.size());
  m.count = static_cast<size_t>(count);
  HOLOGRAM_CHECK(m.check(x.columns, 1));
  const bool one_class = c.integer("one_class") != 0;
  HOLOGRAM_TRY(Tensor y, c.output(0, {x.rows, 1}));
  for (int64_t i = 0; i < x.rows; ++i) {
    double score = m.rho[0];
    if (count > 0) {
      const List<double> near = m.similarities(x.row(i));
      score = std::inner_product(near.begin(), near.end(), m.coefficients.begin(), score);
    } else {
      const auto row = x.row(i);
      score = std::inner_product(row.begin(), row.end(), m.coefficients.begin(), score);
    }
    if (one_class)
      score = score > 0 ? 1 : -1;
    else
      transform_scores(transform, std::span(&score, 1));
    y.as<float>()[i] = static_cast<float>(score);
  }
  return {};
}

Status svm_classifier(KernelContext& c) {
  HOLOGRAM_TRY(const Features x, read_features(c));
  HOLOGRAM_TRY(const PostTransform transform, post_transform_of(c));
  HOLOGRAM_TRY(const Labels labels, Labels::read(c, "classlabels_ints"));
  HOLOGRAM_TRY(Machine m, machine_of(c));
  const auto of_class = c.integers("vectors_per_class");
  const auto slope = c.attributes().numbers("prob_a"), offset = c.attributes().numbers("prob_b");
  const size_t classes = labels.count(), pairs = classes * (classes - 1) / 2;
  List<size_t> start = {0};
  for (const int64_t count : of_class) {
    if (count < 0) return fail(ErrorCode::invalid_argument, "vectors_per_class {}", count);
    start.push_back(start.back() + static_cast<size_t>(count));
  }
  m.count = start.back();
  const bool linear = m.count == 0, probable = !slope.empty() && !linear;
  HOLOGRAM_CHECK(m.check(x.columns, linear ? classes : classes - 1));
  if ((!linear && (of_class.size() != classes || m.rho.size() != pairs)) || m.rho.empty() ||
      slope.size() != offset.size() || (probable && slope.size() != pairs))
    return fail(ErrorCode::invalid_argument,
                "{} vectors_per_class, {} of rho, {} of prob_a and {} of prob_b for {} classes",
                of_class.size(), m.rho.size(), slope.size(), offset.size(), classes);
  const bool one_score = !linear && !probable && classes == 2;
  const size_t columns = linear || probable ? classes : one_score ? 2 : pairs;
  HOLOGRAM_TRY(Tensor y, c.output(0, {x.rows}));
  Tensor z;
  if (c.wants_output(1)) {
    HOLOGRAM_TRY(z, c.output(1, {x.rows, static_cast<int64_t>(columns)}));
  }
  for (int64_t row = 0; row < x.rows; ++row) {
    List<double> scores, votes(classes, 0.0), share(probable ? classes * classes : 0, 0.0);
    if (linear) {
      for (size_t i = 0; i < classes; ++i)
        scores.push_back(
            m.similarity(x.row(row), m.coefficients.subspan(i * static_cast<size_t>(x.columns),
                                                            static_cast<size_t>(x.columns))) +
            m.rho[0]);
      votes = scores;
    } else {
      const List<double> near = m.similarities(x.row(row));
      for (size_t i = 0; i < classes; ++i)
        for (size_t j = i + 1; j < classes; ++j) {
          const size_t pair = scores.size();
          double score = m.rho[pair];
          for (size_t k = start[i]; k < start[i + 1]; ++k)
            score += m.coefficients[(j - 1) * m.count + k] * near[k];
          for (size_t k = start[j]; k < start[j + 1]; ++k)
            score += m.coefficients[i * m.count + k] * near[k];
          votes[score > 0 ? i : j] += 1;
          scores.push_back(score);
          if (!probable) continue;
          const double p = 1 / (1 + std::exp(score * slope[pair] + offset[pair]));
          share[i * classes + j] = std::clamp(p, 1e-7, 1 - 1e-7);
          share[j * classes + i] = 1 - share[i * classes + j];
        }
    }
    labels.write(y, row, static_cast<size_t>(std::ranges::max_element(votes) - votes.begin()));
    if (probable) scores = couple(share, classes);
    if (one_score)
      scores = both_scores(transform, scores[0], transform != PostTransform::none);
    else
      transform_scores(transform, scores);
    if (z.data) std::ranges::copy(scores, z.as<float>() + row * z.dims[1]);
  }
  return {};
}

}  // namespace hologram::kernels
