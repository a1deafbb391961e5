#include "runtime/ops/loss.h"

#include <vector>

#include "runtime/ops/elementwise.h"
#include "runtime/ops/op_kernels.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/rows.h"

namespace hologram::runtime::ops {
namespace {

// The mean of per-element losses in the accumulation type, as `type`.
Result<Tensor> mean_as(const Executor& executor, const Tensor& losses, DType type) {
  HOLOGRAM_TRY(const Tensor whole, mean(executor, losses));
  if (type == losses.type()) return whole;
  HOLOGRAM_TRY(const std::vector<float> value, whole.to_vector<float>());
  if (type == DType::f16) return executor.tensor({Half(value[0])}, {});
  return executor.tensor({BFloat16(value[0])}, {});
}

Result<Tensor> elementwise_loss(const Executor& executor, ElementwiseOp op, const Tensor& a,
                                const Tensor& b) {
  if (a.dims() != b.dims())
    return fail(ErrorCode::shape_mismatch, "{} of {} and {}: the shapes differ", info(op).name,
                a.to_string(), b.to_string());
  const Tensor* const inputs[] = {&a, &b};
  HOLOGRAM_TRY(const Tensor losses,
               executor.empty(result_type(op, a.type()), a.dims(), Lifetime::short_lived));
  HOLOGRAM_CHECK(run_elementwise(executor, op, inputs, {}, losses));
  return mean_as(executor, losses, a.type());
}

// Class numbers as i64, contiguous.
Result<Tensor> classes_of(const Executor& executor, const Tensor& target) {
  if (target.type() == DType::i64) return target.contiguous();
  HOLOGRAM_TRY(const std::vector<int32_t> narrow, target.to_vector<int32_t>());
  const std::vector<int64_t> wide(narrow.begin(), narrow.end());
  return executor.tensor(std::span<const int64_t>(wide), target.dims());
}

// All are looked at before anything is computed: kernels do not check what they index with.
Status check_classes(const Tensor& targets, uint64_t columns) {
  HOLOGRAM_TRY(const std::vector<int64_t> values, targets.to_vector<int64_t>());
  for (size_t r = 0; r < values.size(); ++r)
    if (values[r] < 0 || static_cast<uint64_t>(values[r]) >= columns)
      return fail(ErrorCode::out_of_range,
                  "cross_entropy: target {} of row {} is no class of 0 to {}", values[r], r,
                  columns - 1);
  return {};
}

}  // namespace

Result<Tensor> mse(const Executor& executor, const Tensor& prediction, const Tensor& target) {
  return elementwise_loss(executor, ElementwiseOp::squared_difference, prediction, target);
}

Result<Tensor> binary_cross_entropy(const Executor& executor, const Tensor& probability,
                                    const Tensor& target) {
  return elementwise_loss(executor, ElementwiseOp::binary_cross_entropy, probability, target);
}

Result<Tensor> cross_entropy(const Executor& executor, const Tensor& logits, const Tensor& target) {
  HOLOGRAM_CHECK(check_input(executor, "cross_entropy", logits));
  HOLOGRAM_CHECK(check_input(executor, "cross_entropy", target));
  if (logits.rank() == 0)
    return fail(ErrorCode::shape_mismatch, "cross_entropy: logits {} have no axis of classes",
                logits.to_string());
  Dims rows = logits.dims();
  rows.erase(rows.size() - 1);
  const bool classes = target.type() == DType::i64 || target.type() == DType::i32;
  if (!classes && target.type() != logits.type())
    return fail(ErrorCode::type_mismatch,
                "cross_entropy of {} and {}: targets are classes (i32, i64) or of the logits' type",
                logits.to_string(), target.to_string());
  if (target.dims() != (classes ? rows : logits.dims()))
    return fail(ErrorCode::shape_mismatch,
                "cross_entropy of {} and {}: targets must be of shape {}", logits.to_string(),
                target.to_string(), (classes ? rows : logits.dims()).to_string());
  const RowOp op = classes ? RowOp::cross_entropy_class : RowOp::cross_entropy;
  HOLOGRAM_CHECK(executor.op_kernels().rows(op, logits.type(), arithmetic_type(logits.type())));
  HOLOGRAM_TRY(const Tensor x, logits.contiguous());
  HOLOGRAM_TRY(const Tensor t, classes ? classes_of(executor, target) : target.contiguous());
  HOLOGRAM_TRY(const Tensor losses,
               executor.empty(arithmetic_type(logits.type()), rows, Lifetime::short_lived));
  const auto count = static_cast<uint64_t>(losses.element_count());
  const auto columns = static_cast<uint64_t>(logits.dim(logits.rank() - 1));
  if (count != 0) {
    if (columns == 0)
      return fail(ErrorCode::invalid_argument, "cross_entropy of {}: there are no classes",
                  logits.to_string());
    if (classes) HOLOGRAM_CHECK(check_classes(t, columns));
    const RowArray inputs[] = {{x.address(), columns}, {t.address(), classes ? 1 : columns}};
    HOLOGRAM_CHECK(run_rows(executor, op, logits.type(), inputs, count, columns,
                            {losses.address(), 1}, losses.type()));
  }
  return mean_as(executor, losses, logits.type());
}

}  // namespace hologram::runtime::ops
