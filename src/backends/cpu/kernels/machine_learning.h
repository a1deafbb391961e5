// What the kernels of ai.onnx.ml share, and those that have files of their own.
#pragma once

#include <span>
#include <string_view>

#include "backends/cpu/kernels/arena.h"
#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

// In the order of the numbers that TreeEnsemble gives them.
enum class PostTransform : uint8_t { none, softmax, logistic, softmax_zero, probit };
Result<PostTransform> post_transform_of(const KernelContext& c);
void transform_scores(PostTransform transform, std::span<double> row);

// The one score of two classes as both: logistic of it and of its negative; otherwise s beside
// 1 - s where all weights are positive (s is then a probability), and beside -s where they are not.
List<double> both_scores(PostTransform transform, double score, bool positive_weights);

// The labels of a classifier: strings or integers, whichever attribute is there.
class Labels {
 public:
  // `integers`: that attribute's name.
  static Result<Labels> read(const KernelContext& c, std::string_view integers);
  size_t count() const { return strings_.empty() ? integers_.size() : strings_.size(); }
  void write(const Tensor& out, int64_t row, size_t label) const;

 private:
  std::span<const int64_t> integers_;
  std::span<const std::string> strings_;
};

// Results a row; more cannot be meant, and each kernel keeps a row of them.
inline constexpr int64_t kMostTargets = 1 << 20;

// [N, F], or [F] as one row: any of f32, f64, i32, i64 as doubles.
struct Features {
  int64_t rows = 0, columns = 0;
  std::span<const double> values;  // scratch memory
  std::span<const double> row(int64_t i) const {
    return {values.data() + i * columns, static_cast<size_t>(columns)};
  }
};
Result<Features> read_features(KernelContext& c);

Status tree_ensemble(KernelContext& c);
Status tree_ensemble_classifier(KernelContext& c);
Status tree_ensemble_regressor(KernelContext& c);
Status svm_classifier(KernelContext& c);
Status svm_regressor(KernelContext& c);
Status linear_classifier(KernelContext& c);
Status linear_regressor(KernelContext& c);

}  // namespace hologram::kernels
