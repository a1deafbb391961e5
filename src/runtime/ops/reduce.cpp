#include "runtime/ops/reduce.h"

#include <bitset>

#include "runtime/ops/elementwise.h"
#include "runtime/ops/op_kernels.h"
#include "runtime/ops/rows.h"

namespace hologram::runtime::ops {
namespace {

std::string_view name_of_op(RowOp op) { return info(op).name; }

DType type_of(RowOp op, DType type) {
  if (op == RowOp::sum) return sum_type(type);
  if (op == RowOp::mean) return mean_type(type);
  return type;
}

// Where the axes of a reduction go.
struct Shapes {
  Dims order;   // the axes kept, then the axes reduced
  Dims result;  // the output's dimensions
  uint64_t rows = 1, columns = 1;
};

Result<Shapes> shapes_of(RowOp op, const Tensor& x, const Axes& axes) {
  std::bitset<kMaxRank> reduced;
  const auto rank = static_cast<int64_t>(x.rank());
  for (int64_t axis : axes.axes) {
    if (axis < -rank || axis >= rank)
      return fail(ErrorCode::out_of_range, "{}: there is no axis {} in {}", name_of_op(op), axis,
                  x.to_string());
    const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    if (reduced.test(at))
      return fail(ErrorCode::invalid_argument, "{}: axis {} of {} is given twice", name_of_op(op),
                  axis, x.to_string());
    reduced.set(at);
  }
  if (axes.axes.empty()) reduced.set();
  Shapes shapes;
  for (size_t i = 0; i < x.rank(); ++i) {
    if (!reduced.test(i)) {
      shapes.order.push_back(static_cast<int64_t>(i));
      shapes.rows *= static_cast<uint64_t>(x.dim(i));
      shapes.result.push_back(x.dim(i));
    } else if (axes.keep) {
      shapes.result.push_back(1);
    }
  }
  for (size_t i = 0; i < x.rank(); ++i) {
    if (!reduced.test(i)) continue;
    shapes.order.push_back(static_cast<int64_t>(i));
    shapes.columns *= static_cast<uint64_t>(x.dim(i));
  }
  return shapes;
}

Status call(const Executor& executor, RowOp op, const Tensor& x, const Tensor& out,
            const Shapes& shapes) {
  const RowArray inputs[] = {{x.address(), shapes.columns}};
  return reduce_rows(executor, op, x.type(), inputs, shapes.rows, shapes.columns, out.address(),
                     out.type());
}

// Any axes and layout. Apart, so that what it keeps on the stack costs the common case nothing.
[[gnu::noinline]] Status reduce_general(const Executor& executor, RowOp op, const Tensor& x,
                                        const Axes& axes, const Tensor& out) {
  HOLOGRAM_CHECK(check_input(executor, name_of_op(op), x));
  if (!contains(TypeSet::numbers, x.type()))
    return fail(ErrorCode::unsupported, "{} of {} is not supported; it takes {}", name_of_op(op),
                name_of(x.type()), describe(TypeSet::numbers));
  HOLOGRAM_TRY(const Shapes shapes, shapes_of(op, x, axes));
  HOLOGRAM_CHECK(check_output(executor, name_of_op(op), out, type_of(op, x.type()), shapes.result));
  if (shapes.rows == 0) return {};
  if (shapes.columns == 0 && (op == RowOp::min || op == RowOp::max))
    return fail(ErrorCode::invalid_argument, "{} of {} over no elements has no value",
                name_of_op(op), x.to_string());
  // The next one of this op and type may take the shortest way.
  if (x.type() == DType::f32 && out.rank() == 0)
    HOLOGRAM_CHECK(executor.op_kernels().load_flat(op));
  Tensor rows = x;
  if (!x.is_contiguous() || shapes.rows != 1) {
    HOLOGRAM_TRY(const Tensor turned, x.permute(shapes.order.span()));
    HOLOGRAM_TRY(rows, turned.contiguous());
  }
  // Rows are read while results of others are written.
  const bool apart = shapes.rows == 1 || !may_overlap(rows, out);
  if (out.is_contiguous() && apart) return call(executor, op, rows, out, shapes);
  HOLOGRAM_TRY(const Tensor whole, executor.empty(out.type(), out.dims(), Lifetime::short_lived));
  HOLOGRAM_CHECK(call(executor, op, rows, whole, shapes));
  return copy_elements(whole, out);
}

Status reduce(const Executor& executor, RowOp op, const Tensor& x, const Axes& axes,
              const Tensor& out) {
  // The common case, decided in a few nanoseconds: a whole contiguous tensor of f32.
  const backends::Backend* const backend = &executor.backend();
  const auto count = static_cast<uint64_t>(x.element_count());
  if (axes.axes.empty() && !axes.keep && x.is_contiguous() && x.type() == DType::f32 &&
      count - 1 < kShare && op != RowOp::mean && x.backend() == backend &&
      out.backend() == backend && out.writable() && out.rank() == 0 && out.type() == DType::f32) {
    if (const OpKernels::Slot* flat = executor.op_kernels().loaded_flat(op))
      return reduce_flat<1>(*flat, {x.address()}, out.address(), count);
  }
  return reduce_general(executor, op, x, axes, out);
}

Result<Tensor> make(const Executor& executor, RowOp op, const Tensor& x, const Axes& axes) {
  HOLOGRAM_TRY(const Shapes shapes, shapes_of(op, x, axes));
  HOLOGRAM_TRY(const Tensor out, executor.empty(type_of(op, x.type()), shapes.result));
  HOLOGRAM_CHECK(reduce(executor, op, x, axes, out));
  return out;
}

}  // namespace

Status sum(const Executor& executor, const Tensor& x, const Axes& axes, const Tensor& out) {
  return reduce(executor, RowOp::sum, x, axes, out);
}
Status mean(const Executor& executor, const Tensor& x, const Axes& axes, const Tensor& out) {
  return reduce(executor, RowOp::mean, x, axes, out);
}
Status reduce_min(const Executor& executor, const Tensor& x, const Axes& axes, const Tensor& out) {
  return reduce(executor, RowOp::min, x, axes, out);
}
Status reduce_max(const Executor& executor, const Tensor& x, const Axes& axes, const Tensor& out) {
  return reduce(executor, RowOp::max, x, axes, out);
}
Result<Tensor> sum(const Executor& executor, const Tensor& x, const Axes& axes) {
  return make(executor, RowOp::sum, x, axes);
}
Result<Tensor> mean(const Executor& executor, const Tensor& x, const Axes& axes) {
  return make(executor, RowOp::mean, x, axes);
}
Result<Tensor> reduce_min(const Executor& executor, const Tensor& x, const Axes& axes) {
  return make(executor, RowOp::min, x, axes);
}
Result<Tensor> reduce_max(const Executor& executor, const Tensor& x, const Axes& axes) {
  return make(executor, RowOp::max, x, axes);
}

}  // namespace hologram::runtime::ops
