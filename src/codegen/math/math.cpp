#include "codegen/math/math.h"

#include "codegen/math/number.h"

namespace hologram::codegen::math {

Pair exact_sum(Number a, Number b) {
  const Number sum = a + b;
  const Number back = sum - a;
  return {sum, (a - (sum - back)) + (b - back)};
}

Pair exact_product(Number a, Number b) {
  const Number product = a * b;
  if (a.ops->target().has_fma()) return {product, mad(a, b, -product)};
  // Dekker: halves of 26 bits, whose products are exact.
  const auto split = [](Number x) {
    const Number big = x * 134217729.0;  // 2^27 + 1
    const Number high = big - (big - x);
    return Pair{high, x - high};
  };
  const auto [ah, al] = split(a);
  const auto [bh, bl] = split(b);
  return {product, ((ah * bh - product) + ah * bl + al * bh) + al * bl};
}

llvm::Value* unary(LaneOps& ops, isa::Opcode op, llvm::Value* value) {
  using isa::Opcode;
  const Number x{value, &ops};
  switch (op) {
    case Opcode::exp:
      return exp(x).value;
    case Opcode::exp2:
      return exp2(x).value;
    case Opcode::log:
      return log(x).value;
    case Opcode::sin:
      return sin(x).value;
    case Opcode::cos:
      return cos(x).value;
    case Opcode::tanh:
      return tanh(x).value;
    case Opcode::sigmoid:
      return sigmoid(x).value;
    case Opcode::erf:
      return erf(x).value;
    default:
      break;
  }
  // The others are written in f64 only, which leaves f32 with half an ulp of error.
  const Number wide = x.is_f32() ? widen(x) : x;
  const auto function = [&]() -> Number {
    switch (op) {
      case Opcode::expm1:
        return expm1(wide);
      case Opcode::log1p:
        return log1p(wide);
      case Opcode::log2:
        return log2(wide);
      case Opcode::log10:
        return log10(wide);
      case Opcode::tan:
        return tan(wide);
      case Opcode::asin:
        return asin(wide);
      case Opcode::acos:
        return acos(wide);
      case Opcode::atan:
        return atan(wide);
      case Opcode::sinh:
        return sinh(wide);
      case Opcode::cosh:
        return cosh(wide);
      case Opcode::asinh:
        return asinh(wide);
      case Opcode::acosh:
        return acosh(wide);
      case Opcode::atanh:
        return atanh(wide);
      default:
        return 1.0 / sqrt(wide);  // rsqrt
    }
  };
  const Number result = function();
  return x.is_f32() ? narrow(result).value : result.value;
}

llvm::Value* pow(LaneOps& ops, llvm::Value* base, llvm::Value* exponent) {
  const Number x{base, &ops}, y{exponent, &ops};
  return x.is_f32() ? narrow(pow(widen(x), widen(y))).value : pow(x, y).value;
}

}  // namespace hologram::codegen::math
