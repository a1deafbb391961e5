// Comparisons, logic and bits.
#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

using isa::Opcode;
using isa::Register;
using P = PointwiseContext;

template <Opcode op>
Register compare(P& p) {
  return p.b.compare(op, p.in(0), p.in(1));
}
template <Opcode op>
Register binary(P& p) {
  return p.b.binary(op, p.in(0), p.in(1));
}
Register invert(P& p) { return p.b.unary(Opcode::bit_not, p.in(0)); }
Register where(P& p) { return p.b.select(p.in(0), p.in(1), p.in(2)); }

// A shift by less than nothing or by the type's width or more, where the ISA's instruction would
// trap, shifts every bit out: what comes in is 0, or the sign of a signed number shifted right.
Register bit_shift(P& p) {
  const DType type = p.result;
  const bool left = p.attributes.text("direction") == "LEFT";
  const Register x = p.in(0), amount = p.in(1), zero = p.number(0);
  Register fits = p.b.lt(amount, p.number(static_cast<double>(bits_of(type))));
  if (is_signed_integer(type))
    fits = p.b.binary(Opcode::bit_and, fits, p.b.compare(Opcode::ge, amount, zero));
  const Register shifted = p.b.shift(left ? Opcode::shl : Opcode::shr, x,
                                     p.b.convert(p.b.select(fits, amount, zero), DType::u32));
  Register gone = zero;
  if (is_signed_integer(type) && !left) gone = p.b.select(p.b.lt(x, zero), p.number(-1), zero);
  return p.b.select(fits, shifted, gone);
}

Status shift_direction(InferContext& c) {
  const std::string_view direction = c.text("direction");
  if (direction != "LEFT" && direction != "RIGHT")
    return fail(ErrorCode::invalid_argument, "direction '{}'; supported: LEFT, RIGHT", direction);
  return broadcast_all_inputs(c);
}

}  // namespace

void add_comparison(OperatorTable& table) {
  auto comparison = [&](const char* name, TypeSet types, PointwiseFunction f) {
    return table.add(name)
        .signature("A:T, B:T -> C:bool")
        .where("T", types)
        .infer(broadcast_all_inputs)
        .pointwise(f);
  };
  comparison("Equal", kCompute | kStrings, compare<Opcode::eq>).kernel("EqualStrings");
  comparison("Less", kNumbers, compare<Opcode::lt>);
  comparison("LessOrEqual", kNumbers, compare<Opcode::le>);
  comparison("Greater", kNumbers, compare<Opcode::gt>);
  comparison("GreaterOrEqual", kNumbers, compare<Opcode::ge>);

  auto bits = [&](const char* name, TypeSet types, PointwiseFunction f) {
    return table.add(name)
        .signature("A:T, B:T -> C:T")
        .where("T", types)
        .infer(broadcast_all_inputs)
        .pointwise(f);
  };
  bits("And", kBool, binary<Opcode::bit_and>);
  bits("Or", kBool, binary<Opcode::bit_or>);
  bits("Xor", kBool, binary<Opcode::bit_xor>);
  bits("BitwiseAnd", kIntegers, binary<Opcode::bit_and>);
  bits("BitwiseOr", kIntegers, binary<Opcode::bit_or>);
  bits("BitwiseXor", kIntegers, binary<Opcode::bit_xor>);
  bits("BitShift", kIntegers, bit_shift).attributes("direction:s").infer(shift_direction);
  table.add("Not")
      .signature("X:T -> Y:T")
      .where("T", kBool)
      .infer(same_shape_as_first)
      .pointwise(invert);
  table.add("BitwiseNot")
      .signature("X:T -> Y:T")
      .where("T", kIntegers)
      .infer(same_shape_as_first)
      .pointwise(invert);
  table.add("Where")
      .signature("condition:bool, X:T, Y:T -> output:T")
      .where("T", kAll)
      .infer(broadcast_all_inputs)
      .pointwise(where)
      .kernel();
}

}  // namespace hologram::graph::ops
