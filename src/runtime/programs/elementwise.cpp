#include "runtime/programs/elementwise.h"

#include "isa/builder.h"

namespace hologram::runtime {
namespace {

using isa::Access;
using isa::Builder;
using isa::Opcode;
using isa::Register;

// 1 or 1.0.
Register one(Builder& b, DType type) {
  return is_float(type) ? b.floating(type, 1) : b.integer(type, 1);
}
Register zero(Builder& b, DType type) {
  return is_float(type) ? b.floating(type, 0) : b.integer(type, 0);
}

DType unsigned_of(DType type) {
  switch (size_of(type)) {
    case 1:
      return DType::u8;
    case 2:
      return DType::u16;
    case 4:
      return DType::u32;
    default:
      return DType::u64;
  }
}

// By squaring; wraps like any product. A negative exponent raises 1 / base, which is an integer
// too: 0, 1 or -1, or a trap for a base of 0.
Register integer_power(Builder& b, Register base, Register exponent) {
  const DType type = b.type_of(base), bits = unsigned_of(type);
  const Register square = b.variable(type), result = b.variable(type), left = b.variable(bits);
  b.assign(square, base);
  b.assign(result, one(b, type));
  if (is_signed_integer(type)) {
    const Register negative = b.lt(exponent, zero(b, type));
    b.assign(left, b.bitcast(b.select(negative, b.unary(Opcode::neg, exponent), exponent), bits));
    b.if_(negative, [&] { b.assign(square, b.div(one(b, type), base)); });
  } else {
    b.assign(left, exponent);
  }
  const Register none = zero(b, bits), lowest = one(b, bits), shift = b.integer(DType::u32, 1);
  b.loop([&] {
    b.if_(b.compare(Opcode::eq, left, none), [&] { b.break_(); });
    const Register odd = b.compare(Opcode::ne, b.binary(Opcode::bit_and, left, lowest), none);
    b.assign(result, b.select(odd, b.mul(result, square), result));
    b.assign(square, b.mul(square, square));
    b.assign(left, b.shift(Opcode::shr, left, shift));
  });
  return result;
}

// x / 2 * (1 + erf(x / sqrt(2)))
Register gelu(Builder& b, Register x) {
  const DType type = b.type_of(x);
  const Register scaled = b.mul(x, b.floating(type, 0.70710678118654752440));
  const Register sum = b.add(b.unary(Opcode::erf, scaled), one(b, type));
  return b.mul(b.mul(x, b.floating(type, 0.5)), sum);
}

// -(t log p + (1 - t) log(1 - p)), the logarithms held above -100 so that p = 0 and 1 stay finite.
Register binary_cross_entropy(Builder& b, Register p, Register t) {
  const DType type = b.type_of(p);
  const Register floor = b.floating(type, -100);
  const Register log_p = b.binary(Opcode::max, b.unary(Opcode::log, p), floor);
  const Register log_q =
      b.binary(Opcode::max, b.unary(Opcode::log1p, b.unary(Opcode::neg, p)), floor);
  const Register sum = b.add(b.mul(t, log_p), b.mul(b.sub(one(b, type), t), log_q));
  return b.unary(Opcode::neg, sum);
}

// `x`: the inputs, then the scalars, in the arithmetic type.
Register compute(Builder& b, ElementwiseOp op, std::span<const Register> x) {
  switch (op) {
    case ElementwiseOp::add:
      return b.add(x[0], x[1]);
    case ElementwiseOp::sub:
      return b.sub(x[0], x[1]);
    case ElementwiseOp::mul:
      return b.mul(x[0], x[1]);
    case ElementwiseOp::div:
      return b.div(x[0], x[1]);
    case ElementwiseOp::min:
      return b.binary(Opcode::min, x[0], x[1]);
    case ElementwiseOp::max:
      return b.binary(Opcode::max, x[0], x[1]);
    case ElementwiseOp::pow:
      return is_float(b.type_of(x[0])) ? b.binary(Opcode::pow, x[0], x[1])
                                       : integer_power(b, x[0], x[1]);
    case ElementwiseOp::abs:
      return b.unary(Opcode::abs, x[0]);
    case ElementwiseOp::neg:
      return b.unary(Opcode::neg, x[0]);
    case ElementwiseOp::sqrt:
      return b.unary(Opcode::sqrt, x[0]);
    case ElementwiseOp::rsqrt:
      return b.unary(Opcode::rsqrt, x[0]);
    case ElementwiseOp::relu: {
      // A select rather than a maximum: not-a-number stays one.
      const Register nothing = zero(b, b.type_of(x[0]));
      return b.select(b.lt(x[0], nothing), nothing, x[0]);
    }
    case ElementwiseOp::sigmoid:
      return b.unary(Opcode::sigmoid, x[0]);
    case ElementwiseOp::tanh:
      return b.unary(Opcode::tanh, x[0]);
    case ElementwiseOp::gelu:
      return gelu(b, x[0]);
    case ElementwiseOp::scalar_add:
      return b.add(x[0], x[1]);
    case ElementwiseOp::scalar_mul:
      return b.mul(x[0], x[1]);
    case ElementwiseOp::clip:
      return b.binary(Opcode::min, b.binary(Opcode::max, x[0], x[1]), x[2]);
    // Product and sum rounded apart: the same bits on levels with and without fused instructions.
    case ElementwiseOp::axpy:
      return b.add(b.mul(x[2], x[0]), x[1]);
    case ElementwiseOp::fill:
      return x[0];
    case ElementwiseOp::squared_difference: {
      const Register difference = b.sub(x[0], x[1]);
      return b.mul(difference, difference);
    }
    case ElementwiseOp::binary_cross_entropy:
      return binary_cross_entropy(b, x[0], x[1]);
  }
  return x[0];
}

}  // namespace

Result<isa::Program> build_elementwise(ElementwiseOp op, Variant variant, DType type) {
  const ElementwiseInfo& about = info(op);
  const DType inner = arithmetic_type(type), outer = result_type(op, type);
  Builder b(program_name(op, variant, type));
  constexpr const char* kNames[] = {"a", "b"};
  std::vector<Builder::Array> inputs;
  for (uint8_t i = 0; i < about.inputs; ++i)
    inputs.push_back(b.array(kNames[i], type, Access::read));
  const Builder::Array out = b.array("out", outer, Access::write);
  std::vector<Builder::Scalar> rows;
  for (uint8_t i = 0; i < about.inputs; ++i)
    rows.push_back(b.scalar(std::string(kNames[i]) + "_row", DType::u64));
  const Builder::Scalar out_row = b.scalar("out_row", DType::u64);
  std::vector<Builder::Scalar> scalars;
  for (uint8_t i = 0; i < about.scalars; ++i)
    scalars.push_back(b.scalar(i == 0 ? "value" : "high", type));

  const Register row = b.id(Opcode::block_id, 1, DType::u64);
  const Register column = b.id(Opcode::global_id, 0, DType::u64);
  std::vector<Register> x;
  for (uint8_t i = 0; i < about.inputs; ++i) {
    const bool same = (i == 0 && variant == Variant::sv) || (i == 1 && variant == Variant::vs);
    const Register start = b.mul(row, b.value(rows[i]));
    const Register value = b.load(inputs[i], same ? start : b.add(start, column));
    x.push_back(inner == type ? value : b.convert(value, inner));
  }
  for (const Builder::Scalar scalar : scalars) {
    const Register value = b.value(scalar);
    x.push_back(inner == type ? value : b.convert(value, inner));
  }
  const Register result = compute(b, op, x);
  const Register at = b.add(b.mul(row, b.value(out_row)), column);
  b.store(out, at, inner == outer ? result : b.convert(result, outer));
  return b.finish();
}

Result<std::vector<isa::Program>> build_op_programs() {
  std::vector<isa::Program> programs;
  for (size_t op = 0; op < kElementwiseOpCount; ++op)
    for (size_t variant = 0; variant < kVariants; ++variant)
      for (uint8_t code = 0; code <= static_cast<uint8_t>(DType::f64); ++code) {
        const auto which = static_cast<ElementwiseOp>(op);
        const auto how = static_cast<Variant>(variant);
        const auto type = static_cast<DType>(code);
        if (!has_program(which, how, type)) continue;
        HOLOGRAM_TRY(isa::Program program, in_context(build_elementwise(which, how, type), [&] {
                       return program_name(which, how, type);
                     }));
        programs.push_back(std::move(program));
      }
  return programs;
}

}  // namespace hologram::runtime
