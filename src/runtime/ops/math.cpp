#include "runtime/ops/math.h"

#include "runtime/ops/elementwise.h"

namespace hologram::runtime::ops {

#define HOLOGRAM_BINARY_OP(name)                                                               \
  Status name(const Executor& executor, const Tensor& a, const Tensor& b, const Tensor& out) { \
    const Tensor* const inputs[] = {&a, &b};                                                   \
    return run_elementwise(executor, ElementwiseOp::name, inputs, {}, out);                    \
  }                                                                                            \
  Result<Tensor> name(const Executor& executor, const Tensor& a, const Tensor& b) {            \
    const Tensor* const inputs[] = {&a, &b};                                                   \
    return make_elementwise(executor, ElementwiseOp::name, inputs, {});                        \
  }
#define HOLOGRAM_UNARY_OP(name)                                               \
  Status name(const Executor& executor, const Tensor& x, const Tensor& out) { \
    const Tensor* const inputs[] = {&x};                                      \
    return run_elementwise(executor, ElementwiseOp::name, inputs, {}, out);   \
  }                                                                           \
  Result<Tensor> name(const Executor& executor, const Tensor& x) {            \
    const Tensor* const inputs[] = {&x};                                      \
    return make_elementwise(executor, ElementwiseOp::name, inputs, {});       \
  }
#define HOLOGRAM_SCALAR_OP(name)                                                            \
  Status name(const Executor& executor, const Tensor& x, Scalar value, const Tensor& out) { \
    HOLOGRAM_TRY(const uint64_t bits, value.bits_as(x.type()));                             \
    const Tensor* const inputs[] = {&x};                                                    \
    return run_elementwise(executor, ElementwiseOp::name, inputs, {&bits, 1}, out);         \
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
  const Tensor* const inputs[] = {&x};
  const uint64_t scalars[] = {low_bits, high_bits};
  return run_elementwise(executor, ElementwiseOp::clip, inputs, scalars, out);
}

Result<Tensor> clip(const Executor& executor, const Tensor& x, Scalar low, Scalar high) {
  HOLOGRAM_TRY(const Tensor out, executor.empty(x.type(), x.dims()));
  HOLOGRAM_CHECK(clip(executor, x, low, high, out));
  return out;
}

Status axpy(const Executor& executor, Scalar a, const Tensor& x, const Tensor& y,
            const Tensor& out) {
  HOLOGRAM_TRY(const uint64_t bits, a.bits_as(x.type()));
  const Tensor* const inputs[] = {&x, &y};
  return run_elementwise(executor, ElementwiseOp::axpy, inputs, {&bits, 1}, out);
}

Result<Tensor> axpy(const Executor& executor, Scalar a, const Tensor& x, const Tensor& y) {
  HOLOGRAM_TRY(const uint64_t bits, a.bits_as(x.type()));
  const Tensor* const inputs[] = {&x, &y};
  return make_elementwise(executor, ElementwiseOp::axpy, inputs, {&bits, 1});
}

}  // namespace hologram::runtime::ops
