#include "runtime/ops/reduce.h"

#include <bitset>

#include "runtime/ops/elementwise.h"
#include "runtime/ops/op_kernels.h"

namespace hologram::runtime::ops {
namespace {

std::string_view name_of_op(BuiltinOp op) { return kBuiltinOpNames[static_cast<size_t>(op)]; }

DType type_of(BuiltinOp op, DType type) {
  if (op == BuiltinOp::sum) return sum_type(type);
  if (op == BuiltinOp::mean) return mean_type(type);
  return type;
}

// Where the axes of a reduction go.
struct Shapes {
  Dims order;   // the axes kept, then the axes reduced
  Dims result;  // the output's dimensions
  uint64_t rows = 1, columns = 1;
};

Result<Shapes> shapes_of(BuiltinOp op, const Tensor& x, const Axes& axes) {
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

Status call(const Executor& executor, const backends::Builtin& builtin, const Tensor& x,
            const Tensor& out, uint64_t rows, uint64_t columns) {
  uint64_t words[4];
  backends::put_word(words[0], x.address());
  backends::put_word(words[1], out.address());
  backends::put_word(words[2], rows);
  backends::put_word(words[3], columns);
  const uint64_t lengths[] = {static_cast<uint64_t>(x.element_count()),
                              static_cast<uint64_t>(out.element_count()), 0, 0};
  return executor.backend().call_checked(builtin, words, lengths);
}

// Any axes and layout. Apart, so that what it keeps on the stack costs the common case nothing.
[[gnu::noinline]] Status reduce_general(const Executor& executor, BuiltinOp op, const Tensor& x,
                                        const Axes& axes, const Tensor& out) {
  HOLOGRAM_CHECK(check_input(executor, name_of_op(op), x));
  HOLOGRAM_TRY(const backends::Builtin* builtin, executor.op_kernels().builtin(op, x.type()));
  HOLOGRAM_TRY(const Shapes shapes, shapes_of(op, x, axes));
  HOLOGRAM_CHECK(check_output(executor, name_of_op(op), out, type_of(op, x.type()), shapes.result));
  if (shapes.rows == 0) return {};
  if (shapes.columns == 0 && (op == BuiltinOp::min || op == BuiltinOp::max))
    return fail(ErrorCode::invalid_argument, "{} of {} over no elements has no value",
                name_of_op(op), x.to_string());
  Tensor rows = x;
  if (!x.is_contiguous() || shapes.rows != 1) {
    HOLOGRAM_TRY(const Tensor turned, x.permute(shapes.order.span()));
    HOLOGRAM_TRY(rows, turned.contiguous());
  }
  if (out.is_contiguous()) return call(executor, *builtin, rows, out, shapes.rows, shapes.columns);
  HOLOGRAM_TRY(const Tensor whole, executor.empty(out.type(), out.dims(), Lifetime::short_lived));
  HOLOGRAM_CHECK(call(executor, *builtin, rows, whole, shapes.rows, shapes.columns));
  return copy_elements(whole, out);
}

Status reduce(const Executor& executor, BuiltinOp op, const Tensor& x, const Axes& axes,
              const Tensor& out) {
  // The common case, decided in a few nanoseconds: a whole contiguous tensor.
  const backends::Backend* const backend = &executor.backend();
  if (axes.axes.empty() && !axes.keep && x.is_contiguous() && x.element_count() != 0 &&
      x.backend() == backend && out.backend() == backend && out.writable() && out.rank() == 0 &&
      out.type() == type_of(op, x.type())) {
    if (const backends::Builtin* builtin = executor.op_kernels().loaded(op, x.type()))
      return call(executor, *builtin, x, out, 1, static_cast<uint64_t>(x.element_count()));
  }
  return reduce_general(executor, op, x, axes, out);
}

Result<Tensor> make(const Executor& executor, BuiltinOp op, const Tensor& x, const Axes& axes) {
  HOLOGRAM_TRY(const Shapes shapes, shapes_of(op, x, axes));
  HOLOGRAM_TRY(const Tensor out, executor.empty(type_of(op, x.type()), shapes.result));
  HOLOGRAM_CHECK(reduce(executor, op, x, axes, out));
  return out;
}

}  // namespace

Status sum(const Executor& executor, const Tensor& x, const Axes& axes, const Tensor& out) {
  return reduce(executor, BuiltinOp::sum, x, axes, out);
}
Status mean(const Executor& executor, const Tensor& x, const Axes& axes, const Tensor& out) {
  return reduce(executor, BuiltinOp::mean, x, axes, out);
}
Status reduce_min(const Executor& executor, const Tensor& x, const Axes& axes, const Tensor& out) {
  return reduce(executor, BuiltinOp::min, x, axes, out);
}
Status reduce_max(const Executor& executor, const Tensor& x, const Axes& axes, const Tensor& out) {
  return reduce(executor, BuiltinOp::max, x, axes, out);
}
Result<Tensor> sum(const Executor& executor, const Tensor& x, const Axes& axes) {
  return make(executor, BuiltinOp::sum, x, axes);
}
Result<Tensor> mean(const Executor& executor, const Tensor& x, const Axes& axes) {
  return make(executor, BuiltinOp::mean, x, axes);
}
Result<Tensor> reduce_min(const Executor& executor, const Tensor& x, const Axes& axes) {
  return make(executor, BuiltinOp::min, x, axes);
}
Result<Tensor> reduce_max(const Executor& executor, const Tensor& x, const Axes& axes) {
  return make(executor, BuiltinOp::max, x, axes);
}

}  // namespace hologram::runtime::ops
