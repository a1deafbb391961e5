#include "runtime/ops/linalg.h"

#include "runtime/ops/elementwise.h"
#include "runtime/ops/op_kernels.h"
#include "runtime/ops/reduce.h"

namespace hologram::runtime::ops {
namespace {

Status check_pair(const Executor& executor, std::string_view op, const Tensor& a, size_t a_rank,
                  const Tensor& b, size_t b_rank) {
  HOLOGRAM_CHECK(check_input(executor, op, a));
  HOLOGRAM_CHECK(check_input(executor, op, b));
  if (a.type() != b.type())
    return fail(ErrorCode::type_mismatch, "{} of {} and {}: the types differ", op, a.to_string(),
                b.to_string());
  if (a.rank() != a_rank || b.rank() != b_rank || a.dim(a_rank - 1) != b.dim(0))
    return fail(ErrorCode::shape_mismatch,
                "{} of {} and {}: they must have {} and {} dimensions, the last of the first equal "
                "to the first of the second",
                op, a.to_string(), b.to_string(), a_rank, b_rank);
  return {};
}

bool overlap(const Tensor& a, const Tensor& b) {
  return a.storage()->address() < b.storage()->address() + b.storage()->size() &&
         b.storage()->address() < a.storage()->address() + a.storage()->size();
}

// As it is where strides are not negative and it does not share memory with the output.
Result<Tensor> readable(const Tensor& input, const Tensor& out) {
  bool good = !overlap(input, out);
  for (int64_t stride : input.strides()) good &= stride >= 0;
  return good ? Result<Tensor>(input) : input.clone();
}

Argument array(const Tensor& tensor, bool writable) {
  uint64_t reach = tensor.element_count() == 0 ? 0 : 1;
  for (size_t i = 0; reach != 0 && i < tensor.rank(); ++i)
    reach += static_cast<uint64_t>((tensor.dim(i) - 1) * tensor.strides()[i]);
  return Argument::array_of(tensor.type(), tensor.address(), reach, writable);
}

Argument size(int64_t value) { return Argument::scalar(static_cast<uint64_t>(value)); }

}  // namespace

Status gemm(const Executor& executor, const Tensor& a, const Tensor& b, const Tensor& out,
            Scalar alpha, Scalar beta) {
  HOLOGRAM_CHECK(check_pair(executor, "gemm", a, 2, b, 2));
  HOLOGRAM_CHECK(check_output(executor, "gemm", out, a.type(), {a.dim(0), b.dim(1)}));
  HOLOGRAM_TRY(const backends::Builtin* builtin,
               executor.op_kernels().builtin(BuiltinOp::gemm, a.type()));
  HOLOGRAM_TRY(const uint64_t alpha_bits, alpha.bits_as(a.type()));
  HOLOGRAM_TRY(const uint64_t beta_bits, beta.bits_as(a.type()));
  if (out.element_count() == 0) return {};
  HOLOGRAM_TRY(const Tensor left, readable(a, out));
  HOLOGRAM_TRY(const Tensor right, readable(b, out));
  // The kernel writes rows of neighbouring elements.
  const bool direct = (out.strides()[1] == 1 || out.dim(1) == 1) &&
                      (out.dim(0) == 1 || out.strides()[0] >= out.dim(1));
  Tensor result = out;
  if (!direct) {
    HOLOGRAM_TRY(result, out.clone());
  }
  const Argument arguments[] = {array(left, false),
                                array(right, false),
                                array(result, true),
                                size(a.dim(0)),
                                size(b.dim(1)),
                                size(a.dim(1)),
                                size(left.strides()[0]),
                                size(left.strides()[1]),
                                size(right.strides()[0]),
                                size(right.strides()[1]),
                                size(result.strides()[0]),
                                Argument::scalar_of(a.type(), alpha_bits),
                                Argument::scalar_of(a.type(), beta_bits)};
  HOLOGRAM_CHECK(executor.backend().call(*builtin, arguments));
  return direct ? Status() : copy_elements(result, out);
}

Result<Tensor> gemm(const Executor& executor, const Tensor& a, const Tensor& b) {
  HOLOGRAM_CHECK(check_pair(executor, "gemm", a, 2, b, 2));
  HOLOGRAM_TRY(const Tensor out, executor.empty(a.type(), {a.dim(0), b.dim(1)}));
  HOLOGRAM_CHECK(gemm(executor, a, b, out));
  return out;
}

Status matvec(const Executor& executor, const Tensor& a, const Tensor& x, const Tensor& out) {
  HOLOGRAM_CHECK(check_pair(executor, "matvec", a, 2, x, 1));
  HOLOGRAM_CHECK(check_output(executor, "matvec", out, a.type(), {a.dim(0)}));
  HOLOGRAM_TRY(const backends::Builtin* builtin,
               executor.op_kernels().builtin(BuiltinOp::matvec, a.type()));
  if (out.element_count() == 0) return {};
  HOLOGRAM_TRY(Tensor left, readable(a, out));
  if (left.strides()[1] != 1 && left.dim(1) > 1) {
    HOLOGRAM_TRY(left, left.clone());
  }
  HOLOGRAM_TRY(Tensor right, readable(x, out));
  HOLOGRAM_TRY(right, right.contiguous());
  Tensor result = out;
  if (!out.is_contiguous()) {
    HOLOGRAM_TRY(result, executor.empty(out.type(), out.dims(), Lifetime::short_lived));
  }
  const Argument arguments[] = {array(left, false), array(right, false), array(result, true),
                                size(a.dim(0)),     size(a.dim(1)),      size(left.strides()[0])};
  HOLOGRAM_CHECK(executor.backend().call(*builtin, arguments));
  return out.is_contiguous() ? Status() : copy_elements(result, out);
}

Result<Tensor> matvec(const Executor& executor, const Tensor& a, const Tensor& x) {
  HOLOGRAM_CHECK(check_pair(executor, "matvec", a, 2, x, 1));
  HOLOGRAM_TRY(const Tensor out, executor.empty(a.type(), {a.dim(0)}));
  HOLOGRAM_CHECK(matvec(executor, a, x, out));
  return out;
}

namespace {

// Of contiguous vectors.
Status run_dot(const Executor& executor, const backends::Builtin& builtin, const Tensor& x,
               const Tensor& y, const Tensor& out) {
  const auto count = static_cast<uint64_t>(x.element_count());
  uint64_t words[4];
  backends::put_word(words[0], x.address());
  backends::put_word(words[1], y.address());
  backends::put_word(words[2], out.address());
  backends::put_word(words[3], count);
  const uint64_t lengths[] = {count, count, 1, 0};
  return executor.backend().call_checked(builtin, words, lengths);
}

// Any layout. Apart, so that what it keeps on the stack costs the common case nothing.
[[gnu::noinline]] Status dot_general(const Executor& executor, const Tensor& x, const Tensor& y,
                                     const Tensor& out) {
  HOLOGRAM_CHECK(check_pair(executor, "dot", x, 1, y, 1));
  HOLOGRAM_CHECK(check_output(executor, "dot", out, sum_type(x.type()), {}));
  HOLOGRAM_TRY(const backends::Builtin* builtin,
               executor.op_kernels().builtin(BuiltinOp::dot, x.type()));
  HOLOGRAM_TRY(const Tensor left, x.contiguous());
  HOLOGRAM_TRY(const Tensor right, y.contiguous());
  return run_dot(executor, *builtin, left, right, out);
}

}  // namespace

Status dot(const Executor& executor, const Tensor& x, const Tensor& y, const Tensor& out) {
  const auto here = [&](const Tensor& t) { return t.backend() == &executor.backend(); };
  // The common case, decided in a few nanoseconds.
  if (x.rank() == 1 && y.rank() == 1 && x.element_count() == y.element_count() &&
      x.type() == y.type() && x.is_contiguous() && y.is_contiguous() && out.rank() == 0 &&
      out.type() == sum_type(x.type()) && here(x) && here(y) && here(out) && out.writable()) {
    if (const backends::Builtin* builtin = executor.op_kernels().loaded(BuiltinOp::dot, x.type()))
      return run_dot(executor, *builtin, x, y, out);
  }
  return dot_general(executor, x, y, out);
}

Result<Tensor> dot(const Executor& executor, const Tensor& x, const Tensor& y) {
  HOLOGRAM_TRY(const Tensor out, executor.empty(sum_type(x.type()), {}));
  HOLOGRAM_CHECK(dot(executor, x, y, out));
  return out;
}

}  // namespace hologram::runtime::ops
