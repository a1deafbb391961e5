// Functions of one operand.
#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

using isa::Opcode;
using isa::Register;
using P = PointwiseContext;

template <Opcode op>
Register unary(P& p) {
  return p.b.unary(op, p.in(0));
}
Register absolute(P& p) {
  return is_unsigned_integer(p.result) ? p.in(0) : p.b.unary(Opcode::abs, p.in(0));
}
Register reciprocal(P& p) { return p.b.div(p.number(1), p.in(0)); }
Register sign(P& p) {
  Register zero = p.number(0), one = p.number(1);
  Register positive = p.b.select(p.b.compare(Opcode::gt, p.in(0), zero), one, zero);
  if (is_unsigned_integer(p.result)) return positive;
  Register result = p.b.select(p.b.lt(p.in(0), zero), p.number(-1), positive);
  if (!is_float(p.result)) return result;
  // A NaN stays a NaN.
  return p.b.select(p.b.compare(Opcode::ne, p.in(0), p.in(0)), p.in(0), result);
}
Register is_nan(P& p) { return p.b.compare(Opcode::ne, p.in(0), p.in(0)); }
Register is_inf(P& p) {
  const DType type = p.type();
  Register result = p.b.boolean(false);
  auto test = [&](double value) {
    result =
        p.b.binary(Opcode::bit_or, result, p.b.compare(Opcode::eq, p.in(0), p.number(type, value)));
  };
  if (p.attributes.integer("detect_positive", 1) != 0) test(__builtin_inf());
  if (p.attributes.integer("detect_negative", 1) != 0) test(-__builtin_inf());
  return result;
}

}  // namespace

constexpr TypeSet kFloat8 = {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz};

void add_mathematics(OperatorTable& table) {
  auto unary_op = [&](const char* name, TypeSet types, PointwiseFunction f) {
    table.add(name)
        .signature("X:T -> Y:T")
        .where("T", types)
        .infer(same_shape_as_first)
        .pointwise(f);
  };
  constexpr TypeSet kSigned = kSignedIntegers | kFloats;
  unary_op("Abs", kNumbers, absolute);
  unary_op("Neg", kSigned, unary<Opcode::neg>);
  unary_op("Sign", kNumbers, sign);
  unary_op("Reciprocal", kFloats, reciprocal);
  unary_op("Floor", kFloats, unary<Opcode::floor>);
  unary_op("Ceil", kFloats, unary<Opcode::ceil>);
  unary_op("Round", kFloats, unary<Opcode::round>);
  unary_op("Sqrt", kFloats, unary<Opcode::sqrt>);
  unary_op("Exp", kFloats, unary<Opcode::exp>);
  unary_op("Log", kFloats, unary<Opcode::log>);
  unary_op("Erf", kNumbers, [](P& p) {
    if (is_float(p.result)) return p.b.unary(Opcode::erf, p.in(0));
    return p.b.convert(p.b.unary(Opcode::erf, p.b.convert(p.in(0), DType::f64)), p.result);
  });
  unary_op("Sin", kFloats, unary<Opcode::sin>);
  unary_op("Cos", kFloats, unary<Opcode::cos>);
  unary_op("Tan", kFloats, unary<Opcode::tan>);
  unary_op("Asin", kFloats, unary<Opcode::asin>);
  unary_op("Acos", kFloats, unary<Opcode::acos>);
  unary_op("Atan", kFloats, unary<Opcode::atan>);
  unary_op("Sinh", kFloats, unary<Opcode::sinh>);
  unary_op("Cosh", kFloats, unary<Opcode::cosh>);
  unary_op("Asinh", kFloats, unary<Opcode::asinh>);
  unary_op("Acosh", kFloats, unary<Opcode::acosh>);
  unary_op("Atanh", kFloats, unary<Opcode::atanh>);
  auto test_op = [&](const char* name, PointwiseFunction f) {
    return table.add(name)
        .signature("X:T -> Y:bool")
        .where("T", kFloats | kFloat8)
        .infer(same_shape_as_first)
        .pointwise(f)
        .kernel();
  };
  test_op("IsNaN", is_nan);
  test_op("IsInf", is_inf).attributes("detect_negative:i, detect_positive:i");
}

}  // namespace hologram::graph::ops
