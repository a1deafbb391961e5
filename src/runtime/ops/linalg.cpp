#include "runtime/ops/linalg.h"

#include "runtime/ops/elementwise.h"
#include "runtime/ops/op_kernels.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/rows.h"

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

// As it is where strides are not negative and it does not share memory with the output.
Result<Tensor> readable(const Tensor& input, const Tensor& out) {
  bool good = !may_overlap(input, out);
  for (int64_t stride : input.strides()) good &= stride >= 0;
  return good ? Result<Tensor>(input) : input.clone();
}

Argument array(const Tensor& tensor, bool writable) {
  uint64_t reach = tensor.element_count() == 0 ? 0 : 1;
  for (size_t i = 0; reach != 0 && i < tensor.rank(); ++i)
    reach += static_cast<uint64_t>((tensor.dim(i) - 1) * tensor.strides()[i]);
  return Argument::array_of(tensor.type(), tensor.address(), reach, writable);
}

// Kernels count rows and columns by 32 bits.
constexpr int64_t kMostAtOnce = int64_t{1} << 31;

Argument size(int64_t value) { return Argument::scalar(static_cast<uint32_t>(value)); }

Status check_extents(std::string_view op, const Tensor& matrix, int64_t row_stride) {
  if (matrix.dim(0) <= kMostAtOnce && matrix.dim(1) <= kMostAtOnce && row_stride <= kMostAtOnce)
    return {};
  return fail(ErrorCode::unsupported, "{} of {}: a matrix may have up to {} rows and columns", op,
              matrix.to_string(), kMostAtOnce);
}

Status check_number(std::string_view op, DType type) {
  if (contains(TypeSet::numbers, type)) return {};
  return fail(ErrorCode::unsupported, "{} of {} is not supported; it takes {}", op, name_of(type),
              describe(TypeSet::numbers));
}

Result<const Kernel*> product_kernel(const Executor& executor, MatrixOp op, std::string_view name,
                                     DType type) {
  HOLOGRAM_CHECK(check_number(name, type));
  return executor.op_kernels().find(matrix_program_name(op, type));
}

}  // namespace

namespace {

// Rows of neighbouring elements.
bool has_rows(const Tensor& matrix) {
  return (matrix.strides()[1] == 1 || matrix.dim(1) == 1) &&
         (matrix.dim(0) == 1 || matrix.strides()[0] >= matrix.dim(1)) &&
         matrix.strides()[0] <= kMostAtOnce;
}
bool has_rows_or_columns(const Tensor& matrix) {
  return matrix.strides()[0] == 1 || matrix.strides()[1] == 1 || matrix.dim(0) == 1 ||
         matrix.dim(1) == 1;
}

// f32: the dense kernels, which take transposed operands as they are.
Status gemm_f32(const Executor& executor, const Tensor& a, const Tensor& b, const Tensor& c,
                uint64_t alpha, uint64_t beta) {
  const auto extent = [](int64_t value) { return Argument::scalar(static_cast<uint64_t>(value)); };
  HOLOGRAM_TRY(const Tensor left, has_rows_or_columns(a) ? Result<Tensor>(a) : a.clone());
  HOLOGRAM_TRY(const Tensor right, has_rows_or_columns(b) ? Result<Tensor>(b) : b.clone());
  const Argument arguments[] = {array(left, false),
                                array(right, false),
                                array(c, true),
                                extent(a.dim(0)),
                                extent(b.dim(1)),
                                extent(a.dim(1)),
                                extent(left.strides()[0]),
                                extent(left.strides()[1]),
                                extent(right.strides()[0]),
                                extent(right.strides()[1]),
                                extent(c.strides()[0]),
                                Argument::scalar_of(DType::f32, alpha),
                                Argument::scalar_of(DType::f32, beta)};
  return executor.backend().call("gemm_f32", arguments);
}

// Every other type: the library's kernel.
Status gemm_library(const Executor& executor, const Tensor& a, const Tensor& b, const Tensor& c,
                    uint64_t alpha, uint64_t beta) {
  HOLOGRAM_TRY(const Kernel* kernel, product_kernel(executor, MatrixOp::gemm, "gemm", a.type()));
  HOLOGRAM_TRY(const Tensor left, has_rows(a) ? Result<Tensor>(a) : a.clone());
  HOLOGRAM_TRY(const Tensor right, has_rows(b) ? Result<Tensor>(b) : b.clone());
  HOLOGRAM_CHECK(check_extents("gemm", left, left.strides()[0]));
  HOLOGRAM_CHECK(check_extents("gemm", right, right.strides()[0]));
  const Argument arguments[] = {array(left, false),
                                array(right, false),
                                array(c, true),
                                size(a.dim(0)),
                                size(b.dim(1)),
                                size(a.dim(1)),
                                size(left.strides()[0]),
                                size(right.strides()[0]),
                                size(c.strides()[0]),
                                Argument::scalar_of(a.type(), alpha),
                                Argument::scalar_of(a.type(), beta)};
  // As the kernel's own launch() says.
  constexpr uint32_t kColumns = 64, kGroups = 16, kRows = 4;
  const auto blocks = [](int64_t count, uint32_t each) {
    return static_cast<uint32_t>((static_cast<uint64_t>(count) + each - 1) / each);
  };
  LaunchShape shape;
  shape.grid = {blocks(b.dim(1), kColumns), blocks(a.dim(0), kRows * kGroups), 1};
  shape.block = {kColumns, kGroups, 1};
  shape.turns = static_cast<uint32_t>(a.dim(1));
  return executor.launch(*kernel, shape, arguments);
}

}  // namespace

Status gemm(const Executor& executor, const Tensor& a, const Tensor& b, const Tensor& out,
            Scalar alpha, Scalar beta) {
  HOLOGRAM_CHECK(check_pair(executor, "gemm", a, 2, b, 2));
  HOLOGRAM_CHECK(check_output(executor, "gemm", out, a.type(), {a.dim(0), b.dim(1)}));
  HOLOGRAM_CHECK(check_number("gemm", a.type()));
  HOLOGRAM_TRY(const uint64_t alpha_bits, alpha.bits_as(a.type()));
  HOLOGRAM_TRY(const uint64_t beta_bits, beta.bits_as(a.type()));
  if (out.element_count() == 0) return {};
  HOLOGRAM_TRY(const Tensor left, readable(a, out));
  HOLOGRAM_TRY(const Tensor right, readable(b, out));
  Tensor result = out;
  if (!has_rows(out)) {
    HOLOGRAM_TRY(result, out.clone());
  }
  const auto multiply = a.type() == DType::f32 ? gemm_f32 : gemm_library;
  HOLOGRAM_CHECK(multiply(executor, left, right, result, alpha_bits, beta_bits));
  return has_rows(out) ? Status() : copy_elements(result, out);
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
  HOLOGRAM_TRY(const Kernel* kernel, product_kernel(executor, MatrixOp::gemv, "matvec", a.type()));
  if (out.element_count() == 0) return {};
  HOLOGRAM_TRY(Tensor left, readable(a, out));
  if ((left.strides()[1] != 1 && left.dim(1) > 1) || left.strides()[0] > kMostAtOnce) {
    HOLOGRAM_TRY(left, left.clone());
  }
  HOLOGRAM_TRY(Tensor right, readable(x, out));
  HOLOGRAM_TRY(right, right.contiguous());
  HOLOGRAM_CHECK(check_extents("matvec", left, left.strides()[0]));
  Tensor result = out;
  if (!out.is_contiguous()) {
    HOLOGRAM_TRY(result, executor.empty(out.type(), out.dims(), Lifetime::short_lived));
  }
  const Argument arguments[] = {array(left, false), array(right, false), array(result, true),
                                size(a.dim(0)),     size(a.dim(1)),      size(left.strides()[0])};
  LaunchShape shape;
  shape.grid[0] = static_cast<uint32_t>(a.dim(0));
  shape.block[0] = kRowBlock;
  shape.turns = static_cast<uint32_t>(a.dim(1) / kRowBlock + 1);
  HOLOGRAM_CHECK(executor.launch(*kernel, shape, arguments));
  return out.is_contiguous() ? Status() : copy_elements(result, out);
}

Result<Tensor> matvec(const Executor& executor, const Tensor& a, const Tensor& x) {
  HOLOGRAM_CHECK(check_pair(executor, "matvec", a, 2, x, 1));
  HOLOGRAM_TRY(const Tensor out, executor.empty(a.type(), {a.dim(0)}));
  HOLOGRAM_CHECK(matvec(executor, a, x, out));
  return out;
}

namespace {

// Any layout. Apart, so that what it keeps on the stack costs the common case nothing.
[[gnu::noinline]] Status dot_general(const Executor& executor, const Tensor& x, const Tensor& y,
                                     const Tensor& out) {
  HOLOGRAM_CHECK(check_pair(executor, "dot", x, 1, y, 1));
  HOLOGRAM_CHECK(check_output(executor, "dot", out, sum_type(x.type()), {}));
  HOLOGRAM_CHECK(executor.op_kernels().rows(RowOp::dot, x.type(), sum_accumulator(x.type())));
  // The next one may take the shortest way.
  if (x.type() == DType::f32) HOLOGRAM_CHECK(executor.op_kernels().load_flat(RowOp::dot));
  HOLOGRAM_TRY(const Tensor left, x.contiguous());
  HOLOGRAM_TRY(const Tensor right, y.contiguous());
  const auto count = static_cast<uint64_t>(x.element_count());
  const RowArray inputs[] = {{left.address(), count}, {right.address(), count}};
  return reduce_rows(executor, RowOp::dot, x.type(), inputs, 1, count, out.address(), out.type());
}

}  // namespace

Status dot(const Executor& executor, const Tensor& x, const Tensor& y, const Tensor& out) {
  const auto here = [&](const Tensor& t) { return t.backend() == &executor.backend(); };
  const auto count = static_cast<uint64_t>(x.element_count());
  // The common case, decided in a few nanoseconds.
  if (x.rank() == 1 && y.rank() == 1 && x.element_count() == y.element_count() &&
      count - 1 < kShare && x.type() == DType::f32 && y.type() == DType::f32 && x.is_contiguous() &&
      y.is_contiguous() && out.rank() == 0 && out.type() == DType::f32 && here(x) && here(y) &&
      here(out) && out.writable()) {
    if (const OpKernels::Slot* flat = executor.op_kernels().loaded_flat(RowOp::dot))
      return reduce_flat<2>(*flat, {x.address(), y.address()}, out.address(), count);
  }
  return dot_general(executor, x, y, out);
}

Result<Tensor> dot(const Executor& executor, const Tensor& x, const Tensor& y) {
  HOLOGRAM_TRY(const Tensor out, executor.empty(sum_type(x.type()), {}));
  HOLOGRAM_CHECK(dot(executor, x, y, out));
  return out;
}

}  // namespace hologram::runtime::ops
