// Operators whose Python meaning is not one instruction.
#include <cmath>

#include "lang/lower_impl.h"

namespace hologram::lang {

using ir::Expr;
using Kind = ir::Expr::Kind;

namespace {

// The literal's value when it is a positive integer of a signed type, otherwise 0.
int64_t positive_literal(const Expr& e) {
  if (e.kind != Kind::literal || !is_signed_integer(*e.type)) return 0;
  return std::max<int64_t>(0, static_cast<int64_t>(e.integer));
}

bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

}  // namespace

Register Lowering::needs_step(Register remainder, Register divisor) {
  const DType type = builder_.type_of(remainder);
  const Register zero = constant(type, 0);
  const Register signs =
      builder_.binary(Opcode::bit_xor, builder_.lt(remainder, zero), builder_.lt(divisor, zero));
  return builder_.binary(Opcode::bit_and, builder_.compare(Opcode::ne, remainder, zero), signs);
}

Register Lowering::floor_div(Register a, Register b, const Expr& divisor) {
  const DType type = builder_.type_of(a);
  if (is_float(type)) return float_floor_div(a, b);
  if (is_unsigned_integer(type)) return builder_.div(a, b);
  const int64_t by = positive_literal(divisor);
  if (is_power_of_two(by))  // an arithmetic shift rounds down
    return builder_.shift(
        Opcode::shr, a, builder_.integer(DType::u32, std::countr_zero(static_cast<uint64_t>(by))));
  const Register q = builder_.div(a, b);
  const Register r = builder_.rem(a, b);
  const Register step = by > 0 ? builder_.lt(r, constant(type, 0)) : needs_step(r, b);
  return builder_.select(step, builder_.sub(q, constant(type, 1)), q);
}

Register Lowering::mod(Register a, Register b, const Expr& divisor) {
  const DType type = builder_.type_of(a);
  if (is_float(type)) return float_mod(a, b);
  if (is_unsigned_integer(type)) return builder_.rem(a, b);
  const int64_t by = positive_literal(divisor);
  if (is_power_of_two(by)) return builder_.binary(Opcode::bit_and, a, constant(type, by - 1));
  const Register r = builder_.rem(a, b);
  const Register step = by > 0 ? builder_.lt(r, constant(type, 0)) : needs_step(r, b);
  return builder_.select(step, builder_.add(r, b), r);
}

Register Lowering::float_mod(Register a, Register b) {
  const DType type = builder_.type_of(a);
  const Register r = builder_.rem(a, b);
  const Register stepped = builder_.select(needs_step(r, b), builder_.add(r, b), r);
  // A zero takes the divisor's sign.
  const Register zero = constant(type, 0);
  const Register signed_zero =
      builder_.select(builder_.lt(b, zero), builder_.floating(type, -0.0), zero);
  return builder_.select(builder_.compare(Opcode::eq, r, zero), signed_zero, stepped);
}

Register Lowering::float_floor_div(Register a, Register b) {
  // As CPython does it: (a - fmod(a, b)) / b is nearly whole; round it, correct by one.
  const DType type = builder_.type_of(a);
  const Register r = builder_.rem(a, b);
  const Register one = constant(type, 1);
  const Register raw = builder_.div(builder_.sub(a, r), b);
  const Register q = builder_.select(needs_step(r, b), builder_.sub(raw, one), raw);
  const Register down = builder_.unary(Opcode::floor, q);
  const Register up =
      builder_.compare(Opcode::gt, builder_.sub(q, down), builder_.floating(type, 0.5));
  return builder_.select(up, builder_.add(down, one), down);
}

Register Lowering::shift(ir::BinaryOp op, Register a, Register by, const Expr& amount) {
  const DType type = builder_.type_of(a);
  const unsigned bits = bits_of(type);
  const Opcode code = op == ir::BinaryOp::shl ? Opcode::shl : Opcode::shr;
  const bool keeps_sign = code == Opcode::shr && is_signed_integer(type);
  const auto count = [&](uint32_t n) { return builder_.unsigned_integer(DType::u32, n); };
  if (amount.kind == Kind::literal) {
    if (amount.integer < bits) return builder_.shift(code, a, by);
    return keeps_sign ? builder_.shift(code, a, count(bits - 1)) : zero(type);
  }
  // The ISA traps on a count past the width; Python moves every bit out.
  if (keeps_sign) return builder_.shift(code, a, builder_.binary(Opcode::min, by, count(bits - 1)));
  const Register inside = builder_.lt(by, count(bits));
  const Register safe = builder_.binary(Opcode::bit_and, by, count(bits - 1));
  return builder_.select(inside, builder_.shift(code, a, safe), zero(type));
}

Register Lowering::power_of(Register base, uint64_t exponent) {
  std::optional<Register> result;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = result ? builder_.mul(*result, base) : base;
    if (exponent > 1) base = builder_.mul(base, base);
  }
  return result ? *result : constant(builder_.type_of(base), 1);
}

Register Lowering::power(const Expr& e) {
  const Expr& exponent = e.args[1];
  const Register base = expression(e.args[0]);
  if (is_integer(*e.type)) {
    if (exponent.kind == Kind::literal && exponent.integer <= 64)
      return power_of(base, exponent.integer);
    return integer_power(base, expression(exponent));
  }
  // Small whole powers by products: at most three roundings, and much faster. Not for the 16-bit
  // types, where each rounding would show.
  if (exponent.kind == Kind::literal && bits_of(*e.type) >= 32 &&
      exponent.number == std::trunc(exponent.number) && std::abs(exponent.number) <= 8) {
    const Register p = power_of(base, static_cast<uint64_t>(std::abs(exponent.number)));
    return exponent.number < 0 ? builder_.div(constant(*e.type, 1), p) : p;
  }
  return builder_.binary(Opcode::pow, base, expression(exponent));
}

Register Lowering::integer_power(Register base, Register exponent) {
  const DType type = builder_.type_of(base);
  const Register result = builder_.variable(type), square = builder_.variable(type);
  const Register left = builder_.variable(DType::u32);
  const Register none = zero(DType::u32);
  const Register one = builder_.unsigned_integer(DType::u32, 1);
  builder_.assign(result, constant(type, 1));
  builder_.assign(square, base);
  builder_.assign(left, exponent);
  builder_.begin_loop();
  builder_.begin_if(builder_.compare(Opcode::eq, left, none));
  builder_.break_();
  builder_.end();
  const Register odd =
      builder_.compare(Opcode::ne, builder_.binary(Opcode::bit_and, left, one), none);
  builder_.assign(result, builder_.select(odd, builder_.mul(result, square), result));
  builder_.assign(square, builder_.mul(square, square));
  builder_.assign(left, builder_.shift(Opcode::shr, left, one));
  builder_.end();
  return result;
}

}  // namespace hologram::lang
