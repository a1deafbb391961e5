// Two or more operands, element by element.
#include <algorithm>

#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

using isa::Opcode;
using isa::Register;
using P = PointwiseContext;

template <Opcode op>
Register binary(P& p) {
  return p.b.binary(op, p.in(0), p.in(1));
}

// x op y op z ...
template <Opcode op>
Register fold(P& p) {
  Register result = p.in(0);
  for (size_t i = 1; i < p.count(); ++i) result = p.b.binary(op, result, p.in(i));
  return result;
}

Register mean(P& p) {
  return p.b.div(fold<Opcode::add>(p), p.number(static_cast<double>(p.count())));
}

// Python's remainder takes the divisor's sign, C's (fmod=1) the dividend's.
Register mod(P& p) {
  const DType type = p.result;
  Register remainder = p.b.rem(p.in(0), p.in(1));
  if (p.attributes.integer("fmod") != 0 || is_unsigned_integer(type)) return remainder;
  Register zero = p.number(0);
  Register differ = p.b.binary(Opcode::bit_xor, p.b.lt(remainder, zero), p.b.lt(p.in(1), zero));
  Register nonzero = p.b.compare(Opcode::ne, remainder, zero);
  return p.b.select(p.b.binary(Opcode::bit_and, differ, nonzero), p.b.add(remainder, p.in(1)),
                    remainder);
}

// The result has the base's type; integers are raised in double, exactly up to 2^53.
Register pow(P& p) {
  const DType type = p.result;
  if (type == p.type(1) && is_float(type)) return p.b.binary(Opcode::pow, p.in(0), p.in(1));
  const bool wide =
      type == DType::f64 || is_integer(type) || p.type(1) == DType::f64 || is_integer(p.type(1));
  const DType compute = wide ? DType::f64 : DType::f32;
  Register power =
      p.b.binary(Opcode::pow, p.b.convert(p.in(0), compute), p.b.convert(p.in(1), compute));
  return p.b.convert(power, type);
}

// max(x, min) then min(that, max): the order of the standard when min > max.
Register clip(P& p) {
  Register x = p.in(0);
  if (p.has(1)) x = p.b.binary(Opcode::max, x, p.in(1));
  if (p.has(2)) x = p.b.binary(Opcode::min, x, p.in(2));
  return x;
}

// Before opset 11 the bounds were numbers of no particular type.
Register clip_to_numbers(P& p) {
  Register x = p.in(0);
  if (p.attributes.has("min")) x = p.b.binary(Opcode::max, x, p.number(p.attributes.number("min")));
  if (p.attributes.has("max")) x = p.b.binary(Opcode::min, x, p.number(p.attributes.number("max")));
  return x;
}

// Broadcasting before opset 7: B's axes are those of A from `axis` on. Axes of 1 are added behind
// them, after which today's rule says the same. As many as A leaves; none where B is as long.
size_t axes_behind(const Shape& a, const Shape& b, int64_t axis) {
  const int64_t rank = static_cast<int64_t>(a.rank());
  const int64_t behind = rank - (axis < 0 ? axis + rank : axis) - static_cast<int64_t>(b.rank());
  return static_cast<size_t>(std::clamp<int64_t>(behind, 0, rank));
}

Status align_axes_type(InferContext& c) {
  if (!c.shape(0) || !c.shape(1))
    return fail(ErrorCode::unsupported,
                "broadcasting from an axis (before opset 7) of operands of unknown rank; "
                "supported: known ranks, or a model of opset 7 or newer");
  std::vector<Dim> dims = c.shape(1)->dims();
  dims.resize(dims.size() + axes_behind(*c.shape(0), *c.shape(1), c.integer("axis")), Dim(1));
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

Result<std::vector<ValueId>> align_axes(ComposeContext& c) {
  const Shape &a = *c.type(0).shape, &b = *c.type(1).shape;
  std::vector<int64_t> fresh;
  for (size_t i = 0; i < axes_behind(a, b, c.attributes().integer("axis")); ++i)
    fresh.push_back(static_cast<int64_t>(b.rank() + i));
  if (fresh.empty()) return std::vector<ValueId>{c.in(1)};
  const ValueId axes = c.graph.constant(std::move(fresh));
  return std::vector<ValueId>{c.op("Unsqueeze").input(c.in(1)).input(axes).output()};
}

Status pow_type(InferContext& c) { return broadcast_all_inputs(c); }

}  // namespace

void add_arithmetic(OperatorTable& table) {
  auto binary_op = [&](const char* name, PointwiseFunction f) {
    return table.add(name)
        .signature("A:T, B:T -> C:T")
        .where("T", kNumbers)
        .infer(broadcast_all_inputs)
        .pointwise(f);
  };
  table.add("AlignAxes", "hologram")
      .signature("A:T, B:T1 -> C:T1")
      .where("T", kCompute)
      .where("T1", kCompute)
      .attributes("axis:i")
      .infer(align_axes_type)
      .compose(align_axes);
  binary_op("Add", binary<Opcode::add>);
  binary_op("Sub", binary<Opcode::sub>);
  binary_op("Mul", binary<Opcode::mul>);
  binary_op("Div", binary<Opcode::div>);
  binary_op("Mod", mod).attributes("fmod:i");
  table.add("Pow")
      .signature("X:T, Y:T1 -> Z:T")
      .where("T", kNumbers)
      .where("T1", kNumbers)
      .infer(pow_type)
      .pointwise(pow);

  auto variadic = [&](const char* name, TypeSet types, PointwiseFunction f) {
    table.add(name)
        .signature("data:T... -> result:T")
        .where("T", types)
        .infer(broadcast_all_inputs)
        .pointwise(f);
  };
  variadic("Sum", kFloats, fold<Opcode::add>);
  variadic("Mean", kFloats, mean);
  variadic("Min", kNumbers, fold<Opcode::min>);
  variadic("Max", kNumbers, fold<Opcode::max>);

  table.add("Clip")
      .signature("input:T, min:T?, max:T? -> output:T")
      .where("T", kNumbers)
      .infer(same_shape_as_first)
      .pointwise(clip);
  table.add("ClipToNumbers", "hologram")
      .signature("input:T -> output:T")
      .where("T", kFloats)
      .attributes("min:f, max:f")
      .infer(same_shape_as_first)
      .pointwise(clip_to_numbers);
}

}  // namespace hologram::graph::ops
