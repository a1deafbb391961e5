#include "runtime/ops/activation.h"

#include "runtime/ops/elementwise_op.h"
#include "runtime/ops/op_kernels.h"
#include "runtime/ops/rows.h"

namespace hologram::runtime::ops {

#define HOLOGRAM_UNARY_OP(name)                                                \
  Status name(const Executor& executor, const Tensor& x, const Tensor& out) {  \
    return elementwise_op<ElementwiseOp::name, 1, 0>(executor, {&x}, out, {}); \
  }                                                                            \
  Result<Tensor> name(const Executor& executor, const Tensor& x) {             \
    const Tensor* const inputs[] = {&x};                                       \
    return make_elementwise(executor, ElementwiseOp::name, inputs, {});        \
  }
HOLOGRAM_UNARY_OP(relu)
HOLOGRAM_UNARY_OP(sigmoid)
HOLOGRAM_UNARY_OP(tanh)
HOLOGRAM_UNARY_OP(gelu)
#undef HOLOGRAM_UNARY_OP

Status softmax(const Executor& executor, const Tensor& x, int64_t axis, const Tensor& out) {
  HOLOGRAM_CHECK(check_input(executor, "softmax", x));
  HOLOGRAM_CHECK(check_output(executor, "softmax", out, x.type(), x.dims()));
  const RowOp op =
      x.type() == DType::f16 || x.type() == DType::bf16 ? RowOp::softmax_narrow : RowOp::softmax;
  HOLOGRAM_CHECK(executor.op_kernels().rows(op, x.type(), x.type()));
  // The axis goes last; rows are then contiguous.
  HOLOGRAM_TRY(const Tensor turned, in_context(x.transpose(axis, -1), [] { return "softmax"; }));
  HOLOGRAM_TRY(const Tensor rows, turned.contiguous());
  if (rows.element_count() == 0) return {};
  HOLOGRAM_TRY(const Tensor turned_out, out.transpose(axis, -1));
  // A row is read to its end before it is written, but others are not.
  const bool direct = turned_out.is_contiguous() &&
                      (rows.address() == turned_out.address() || !may_overlap(rows, out));
  Tensor result = turned_out;
  if (!direct) {
    HOLOGRAM_TRY(result, executor.empty(x.type(), turned.dims(), Lifetime::short_lived));
  }
  const auto columns = static_cast<uint64_t>(rows.dim(rows.rank() - 1));
  const auto count = static_cast<uint64_t>(rows.element_count());
  const RowArray inputs[] = {{rows.address(), columns}};
  HOLOGRAM_CHECK(run_rows(executor, op, x.type(), inputs, count / columns, columns,
                          {result.address(), columns}, x.type()));
  return direct ? Status() : copy_elements(result, turned_out);
}

Result<Tensor> softmax(const Executor& executor, const Tensor& x, int64_t axis) {
  HOLOGRAM_TRY(const Tensor out, executor.empty(x.type(), x.dims()));
  HOLOGRAM_CHECK(softmax(executor, x, axis, out));
  return out;
}

}  // namespace hologram::runtime::ops
