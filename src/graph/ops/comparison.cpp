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

// A shift by the type's width or more gives 0, where the ISA's instruction would trap.
Register bit_shift(P& p) {
  const DType type = p.result;
  const Opcode op = p.attributes.text("direction") == "LEFT" ? Opcode::shl : Opcode::shr;
  Register width = p.number(static_cast<double>(bits_of(type)));
  Register fits = p.b.lt(p.in(1), width);
  Register amount = p.b.convert(p.b.select(fits, p.in(1), p.number(0)), DType::u32);
  return p.b.select(fits, p.b.shift(op, p.in(0), amount), p.number(0));
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
  bits("BitShift", kUnsignedIntegers, bit_shift).attributes("direction:s");
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
