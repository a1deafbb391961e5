// Activation functions.
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
// x where x >= 0, otherwise `below`; keeps a NaN.
Register where_positive(P& p, Register above, Register below) {
  return p.b.select(p.b.lt(p.in(0), p.number(0)), below, above);
}

Register relu(P& p) { return p.b.binary(Opcode::max, p.in(0), p.number(0)); }
Register leaky_relu(P& p) {
  return where_positive(p, p.in(0), p.b.mul(p.in(0), p.number(p.attributes.number("alpha", 0.01))));
}
Register prelu(P& p) { return where_positive(p, p.in(0), p.b.mul(p.in(0), p.in(1))); }
Register elu(P& p) {
  Register below =
      p.b.mul(p.number(p.attributes.number("alpha", 1)), p.b.unary(Opcode::expm1, p.in(0)));
  return where_positive(p, p.in(0), below);
}
Register celu(P& p) {
  Register alpha = p.number(p.attributes.number("alpha", 1));
  Register below = p.b.mul(alpha, p.b.unary(Opcode::expm1, p.b.div(p.in(0), alpha)));
  return where_positive(p, p.in(0), below);
}
Register selu(P& p) {
  const double alpha = p.attributes.number("alpha", 1.67326319217681884765625);
  const double gamma = p.attributes.number("gamma", 1.05070102214813232421875);
  Register below = p.b.mul(p.number(alpha), p.b.unary(Opcode::expm1, p.in(0)));
  return p.b.mul(p.number(gamma), where_positive(p, p.in(0), below));
}
Register thresholded_relu(P& p) {
  Register above = p.b.compare(Opcode::gt, p.in(0), p.number(p.attributes.number("alpha", 1)));
  return p.b.select(above, p.in(0), p.number(0));
}
Register hard_sigmoid_of(P& p, double alpha, double beta) {
  Register line = p.b.add(p.b.mul(p.in(0), p.number(alpha)), p.number(beta));
  return p.b.binary(Opcode::max, p.number(0), p.b.binary(Opcode::min, p.number(1), line));
}
Register hard_sigmoid(P& p) {
  return hard_sigmoid_of(p, p.attributes.number("alpha", 0.2), p.attributes.number("beta", 0.5));
}
// The standard defines it by an attribute of HardSigmoid, an f32. `alpha` is ours: what a model
// that spells it out divides by or has in its place (see fold_patterns.h).
Register hard_swish(P& p) {
  const double alpha = p.attributes.number("alpha", 1.0f / 6);
  return p.b.mul(p.in(0), hard_sigmoid_of(p, alpha, 0.5));
}
Register swish(P& p) {
  Register scaled = p.b.mul(p.in(0), p.number(p.attributes.number("alpha", 1)));
  return p.b.mul(p.in(0), p.b.unary(Opcode::sigmoid, scaled));
}
// log(1 + exp(x)) without overflow: max(x, 0) + log1p(exp(-|x|)).
Register softplus_of(P& p, Register x) {
  Register tail = p.b.unary(Opcode::exp, p.b.unary(Opcode::neg, p.b.unary(Opcode::abs, x)));
  return p.b.add(p.b.binary(Opcode::max, x, p.number(0)), p.b.unary(Opcode::log1p, tail));
}
Register softplus(P& p) { return softplus_of(p, p.in(0)); }
Register softsign(P& p) {
  return p.b.div(p.in(0), p.b.add(p.number(1), p.b.unary(Opcode::abs, p.in(0))));
}
Register mish(P& p) { return p.b.mul(p.in(0), p.b.unary(Opcode::tanh, softplus_of(p, p.in(0)))); }
Register gelu(P& p) {
  Register half_x = p.b.mul(p.in(0), p.number(0.5));
  Register inner;
  if (p.attributes.text("approximate", "none") == "tanh") {
    Register cube = p.b.mul(p.b.mul(p.in(0), p.in(0)), p.in(0));
    Register sum = p.b.add(p.in(0), p.b.mul(cube, p.number(0.044715)));
    inner = p.b.unary(Opcode::tanh, p.b.mul(sum, p.number(0.79788456080286535588)));
  } else {
    inner = p.b.unary(Opcode::erf, p.b.mul(p.in(0), p.number(0.70710678118654752440)));
  }
  return p.b.mul(half_x, p.b.add(p.number(1), inner));
}
// y = x + bias below -lambd, x - bias above lambd, 0 between; in f64 for integers.
Register shrink(P& p) {
  const DType type = p.result, compute = is_float(type) ? type : DType::f64;
  Register x = p.b.convert(p.in(0), compute);
  Register lambda = p.number(compute, p.attributes.number("lambd", 0.5));
  Register minus = p.number(compute, -p.attributes.number("lambd", 0.5));
  Register bias = p.number(compute, p.attributes.number("bias", 0));
  Register inner =
      p.b.select(p.b.compare(Opcode::gt, x, lambda), p.b.sub(x, bias), p.number(compute, 0));
  Register y = p.b.select(p.b.lt(x, minus), p.b.add(x, bias), inner);
  return p.b.convert(y, type);
}

}  // namespace

void add_activation(OperatorTable& table) {
  auto add = [&](const char* name, TypeSet types, const char* attributes, PointwiseFunction f) {
    table.add(name)
        .signature("X:T -> Y:T")
        .where("T", types)
        .attributes(attributes)
        .infer(same_shape_as_first)
        .pointwise(f);
  };
  add("Relu", kFloats | kSignedIntegers, "", relu);
  add("LeakyRelu", kFloats, "alpha:f", leaky_relu);
  add("Elu", kFloats, "alpha:f", elu);
  add("Celu", kFloats, "alpha:f", celu);
  add("Selu", kFloats, "alpha:f, gamma:f", selu);
  add("ThresholdedRelu", kFloats, "alpha:f", thresholded_relu);
  add("Sigmoid", kFloats, "", unary<Opcode::sigmoid>);
  add("Tanh", kFloats, "", unary<Opcode::tanh>);
  add("HardSigmoid", kFloats, "alpha:f, beta:f", hard_sigmoid);
  add("HardSwish", kFloats, "alpha:f", hard_swish);
  add("Swish", kFloats, "alpha:f", swish);
  add("Softplus", kFloats, "", softplus);
  add("Softsign", kFloats, "", softsign);
  add("Mish", kFloats, "", mish);
  add("Gelu", kFloats, "approximate:s", gelu);
  add("Shrink", kNumbers, "bias:f, lambd:f", shrink);
  table.add("PRelu")
      .signature("X:T, slope:T -> Y:T")
      .where("T", kNumbers)
      .infer(same_shape_as_first)
      .pointwise(prelu);
}

}  // namespace hologram::graph::ops
