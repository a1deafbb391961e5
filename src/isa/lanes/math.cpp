#include "isa/lanes/apply.h"

namespace hologram::isa {
namespace {

template <typename T>
LaneKernel function(Opcode op) {
  switch (op) {
    case Opcode::exp:
      return unary_kernel<T, T, scalar::exp<T>>;
    case Opcode::exp2:
      return unary_kernel<T, T, scalar::exp2<T>>;
    case Opcode::expm1:
      return unary_kernel<T, T, scalar::expm1<T>>;
    case Opcode::log:
      return unary_kernel<T, T, scalar::log<T>>;
    case Opcode::log1p:
      return unary_kernel<T, T, scalar::log1p<T>>;
    case Opcode::log2:
      return unary_kernel<T, T, scalar::log2<T>>;
    case Opcode::log10:
      return unary_kernel<T, T, scalar::log10<T>>;
    case Opcode::sqrt:
      return unary_kernel<T, T, scalar::sqrt<T>>;
    case Opcode::rsqrt:
      return unary_kernel<T, T, scalar::rsqrt<T>>;
    case Opcode::sin:
      return unary_kernel<T, T, scalar::sin<T>>;
    case Opcode::cos:
      return unary_kernel<T, T, scalar::cos<T>>;
    case Opcode::tan:
      return unary_kernel<T, T, scalar::tan<T>>;
    case Opcode::asin:
      return unary_kernel<T, T, scalar::asin<T>>;
    case Opcode::acos:
      return unary_kernel<T, T, scalar::acos<T>>;
    case Opcode::atan:
      return unary_kernel<T, T, scalar::atan<T>>;
    case Opcode::sinh:
      return unary_kernel<T, T, scalar::sinh<T>>;
    case Opcode::cosh:
      return unary_kernel<T, T, scalar::cosh<T>>;
    case Opcode::tanh:
      return unary_kernel<T, T, scalar::tanh<T>>;
    case Opcode::asinh:
      return unary_kernel<T, T, scalar::asinh<T>>;
    case Opcode::acosh:
      return unary_kernel<T, T, scalar::acosh<T>>;
    case Opcode::atanh:
      return unary_kernel<T, T, scalar::atanh<T>>;
    case Opcode::sigmoid:
      return unary_kernel<T, T, scalar::sigmoid<T>>;
    case Opcode::erf:
      return unary_kernel<T, T, scalar::erf<T>>;
    case Opcode::floor:
      return unary_kernel<T, T, scalar::floor<T>>;
    case Opcode::ceil:
      return unary_kernel<T, T, scalar::ceil<T>>;
    case Opcode::round:
      return unary_kernel<T, T, scalar::round<T>>;
    case Opcode::trunc:
      return unary_kernel<T, T, scalar::trunc<T>>;
    case Opcode::pow:
      return binary_kernel<T, T, scalar::pow<T>>;
    default:
      return nullptr;
  }
}

}  // namespace

LaneKernel math_kernel(const Instruction& instruction) {
  switch (instruction.type) {
    case DType::f16:
      return function<Half>(instruction.op);
    case DType::bf16:
      return function<BFloat16>(instruction.op);
    case DType::f32:
      return function<float>(instruction.op);
    case DType::f64:
      return function<double>(instruction.op);
    default:
      return nullptr;
  }
}

}  // namespace hologram::isa
