#include "runtime/programs/integer_ops.h"

#include "isa/builder.h"

namespace hologram::runtime {
namespace {

using isa::Access;
using isa::Builder;
using isa::Opcode;
using isa::Register;

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
  b.assign(result, b.integer(type, 1));
  if (is_signed_integer(type)) {
    const Register negative = b.lt(exponent, b.integer(type, 0));
    b.assign(left, b.bitcast(b.select(negative, b.unary(Opcode::neg, exponent), exponent), bits));
    b.if_(negative, [&] { b.assign(square, b.div(b.integer(type, 1), base)); });
  } else {
    b.assign(left, exponent);
  }
  const Register none = b.integer(bits, 0), lowest = b.integer(bits, 1);
  const Register shift = b.integer(DType::u32, 1);
  b.loop([&] {
    b.if_(b.compare(Opcode::eq, left, none), [&] { b.break_(); });
    const Register odd = b.compare(Opcode::ne, b.binary(Opcode::bit_and, left, lowest), none);
    b.assign(result, b.select(odd, b.mul(result, square), result));
    b.assign(square, b.mul(square, square));
    b.assign(left, b.shift(Opcode::shr, left, shift));
  });
  return result;
}

}  // namespace

Result<isa::Program> build_integer_op(ElementwiseOp op, Variant variant, DType type) {
  Builder b(program_name(op, variant, type));
  constexpr const char* kNames[] = {"a", "b", "c"};
  std::vector<Builder::Array> arrays;
  for (const char* name : kNames)
    arrays.push_back(b.array(name, type, name == kNames[2] ? Access::write : Access::read));
  const Builder::Scalar n = b.scalar("n", DType::u32);
  std::vector<Register> starts;
  if (variant != Variant::flat) {
    std::vector<Builder::Scalar> rows;
    for (const char* name : kNames)
      rows.push_back(b.scalar(std::string(name) + "_row", DType::u64));
    const Register row = b.id(Opcode::block_id, 1, DType::u64);
    for (const Builder::Scalar& stride : rows) starts.push_back(b.mul(row, b.value(stride)));
  }
  const Register i = b.id(Opcode::global_id, 0, DType::u32);
  b.if_(b.lt(i, b.value(n)), [&] {
    const Register column = b.convert(i, DType::u64);
    const auto at = [&](size_t array) {
      if (variant == Variant::flat) return column;
      const bool same = (array == 0 && variant == Variant::rows_sv) ||
                        (array == 1 && variant == Variant::rows_vs);
      return same ? starts[array] : b.add(starts[array], column);
    };
    const Register x = b.load(arrays[0], at(0)), y = b.load(arrays[1], at(1));
    const Register result = op == ElementwiseOp::div ? b.div(x, y) : integer_power(b, x, y);
    b.store(arrays[2], at(2), result);
  });
  return b.finish();
}

}  // namespace hologram::runtime
