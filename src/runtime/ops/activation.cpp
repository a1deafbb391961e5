#include "runtime/ops/activation.h"

#include "runtime/ops/elementwise_op.h"
#include "runtime/ops/op_kernels.h"

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
  HOLOGRAM_TRY(const backends::Builtin* builtin,
               executor.op_kernels().builtin(BuiltinOp::softmax, x.type()));
  // The axis goes last; rows are then contiguous.
  HOLOGRAM_TRY(const Tensor turned, in_context(x.transpose(axis, -1), [] { return "softmax"; }));
  HOLOGRAM_TRY(const Tensor rows, turned.contiguous());
  if (rows.element_count() == 0) return {};
  HOLOGRAM_TRY(const Tensor turned_out, out.transpose(axis, -1));
  const bool direct = turned_out.is_contiguous();
  Tensor result = turned_out;
  if (!direct) {
    HOLOGRAM_TRY(result, executor.empty(x.type(), turned.dims(), Lifetime::short_lived));
  }
  const auto columns = static_cast<uint64_t>(rows.dim(rows.rank() - 1));
  const auto count = static_cast<uint64_t>(rows.element_count());
  const Argument arguments[] = {Argument::array_of(x.type(), rows.address(), count, false),
                                Argument::array_of(x.type(), result.address(), count, true),
                                Argument::scalar(count / columns), Argument::scalar(columns)};
  HOLOGRAM_CHECK(executor.backend().call(*builtin, arguments));
  return direct ? Status() : copy_elements(result, turned_out);
}

Result<Tensor> softmax(const Executor& executor, const Tensor& x, int64_t axis) {
  HOLOGRAM_TRY(const Tensor out, executor.empty(x.type(), x.dims()));
  HOLOGRAM_CHECK(softmax(executor, x, axis, out));
  return out;
}

}  // namespace hologram::runtime::ops
