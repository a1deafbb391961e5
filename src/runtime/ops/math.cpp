#include "runtime/ops/math.h"

#include "runtime/ops/elementwise_op.h"

namespace hologram::runtime::ops {

#define HOLOGRAM_BINARY_OP(name)                                                               \
  Status name(const Executor& executor, const Tensor& a, const Tensor& b, const Tensor& out) { \
    return elementwise_op<ElementwiseOp::name, 2, 0>(executor, {&a, &b}, out, {});             \
  }                                                                                            \
  Result<Tensor> name(const Executor& executor, const Tensor& a, const Tensor& b) {            \
    const Tensor* const inputs[] = {&a, &b};                                                   \
    return make_elementwise(executor, ElementwiseOp::name, inputs, {});                        \
  }
#define HOLOGRAM_UNARY_OP(name)                                                \
  Status name(const Executor& executor, const Tensor& x, const Tensor& out) {  \
    return elementwise_op<ElementwiseOp::name, 1, 0>(executor, {&x}, out, {}); \
  }                                                                            \
  Result<Tensor> name(const Executor& executor, const Tensor& x) {             \
    const Tensor* const inputs[] = {&x};                                       \
    return make_elementwise(executor, ElementwiseOp::name, inputs, {});        \
  }
#define HOLOGRAM_SCALAR_OP(name)                                                            \
  Status name(const Executor& executor, const Tensor& x, Scalar value, const Tensor& out) { \
    HOLOGRAM_TRY(const uint64_t bits, value.bits_as(x.type()));                             \
    return elementwise_op<ElementwiseOp::name, 1, 1>(executor, {&x}, out, {bits});          \
  }                                                                                         \
  Result<Tensor> name(const Executor& executor, const Tensor& x, Scalar value) {            \
    HOLOGRAM_TRY(const uint64_t bits, value.bits_as(x.type()));                             \
    const Tensor* const inputs[] = {&x};                                                    \
    return make_elementwise(executor, ElementwiseOp::name, inputs, {&bits, 1});             \
  }

HOLOGRAM_BINARY_OP(add)
HOLOGRAM_BINARY_OP(sub)
HOLOGRAM_BINARY_OP(mul)
HOLOGRAM_BINARY_OP(div)
HOLOGRAM_BINARY_OP(min)
HOLOGRAM_BINARY_OP(max)
HOLOGRAM_BINARY_OP(pow)
HOLOGRAM_UNARY_OP(abs)
HOLOGRAM_UNARY_OP(neg)
HOLOGRAM_UNARY_OP(sqrt)
HOLOGRAM_UNARY_OP(rsqrt)
HOLOGRAM_SCALAR_OP(scalar_add)
HOLOGRAM_SCALAR_OP(scalar_mul)

#undef HOLOGRAM_BINARY_OP
#undef HOLOGRAM_UNARY_OP
#undef HOLOGRAM_SCALAR_OP

Status clip(const Executor& executor, const Tensor& x, Scalar low, Scalar high, const Tensor& out) {
  HOLOGRAM_TRY(const uint64_t low_bits, low.bits_as(x.type()));
  HOLOGRAM_TRY(const uint64_t high_bits, high.bits_as(x.type()));
  return elementwise_op<ElementwiseOp::clip, 1, 2>(executor, {&x}, out, {low_bits, high_bits});
}

Result<Tensor> clip(const Executor& executor, const Tensor& x, Scalar low, Scalar high) {
  HOLOGRAM_TRY(const Tensor out, executor.empty(x.type(), x.dims()));
  HOLOGRAM_CHECK(clip(executor, x, low, high, out));
  return out;
}

Status axpy(const Executor& executor, Scalar a, const Tensor& x, const Tensor& y,
            const Tensor& out) {
  HOLOGRAM_TRY(const uint64_t bits, a.bits_as(x.type()));
  return elementwise_op<ElementwiseOp::axpy, 2, 1>(executor, {&x, &y}, out, {bits});
}

Result<Tensor> axpy(const Executor& executor, Scalar a, const Tensor& x, const Tensor& y) {
  HOLOGRAM_TRY(const uint64_t bits, a.bits_as(x.type()));
  const Tensor* const inputs[] = {&x, &y};
  return make_elementwise(executor, ElementwiseOp::axpy, inputs, {&bits, 1});
}

}  // namespace hologram::runtime::ops
