// The part of the generator that draws values and operations.
#include "isa/fields.h"
#include "isa/testing/generator.h"

namespace hologram::isa::testing {
namespace {

bool is_function(Opcode op) { return op >= Opcode::exp && op <= Opcode::pow && op != Opcode::sqrt; }

// Everything that makes a value from values and is rounded exactly.
const std::vector<Opcode>& exact_operations() {
  static const std::vector<Opcode> operations = [] {
    std::vector<Opcode> result;
    for (uint8_t i = 0; i < kOpcodeCount; ++i) {
      const auto op = static_cast<Opcode>(i);
      switch (info(op).form) {
        case Form::move:
        case Form::convert:
        case Form::bitcast:
        case Form::unary:
        case Form::binary:
        case Form::shift:
        case Form::ternary:
        case Form::compare:
        case Form::select:
          if (!is_function(op)) result.push_back(op);
          break;
        default:
          break;
      }
    }
    return result;
  }();
  return operations;
}

}  // namespace

Register Generator::keep(Register r) {
  pool_[static_cast<size_t>(b_.type_of(r))].push_back(r);
  if (checksum_.valid() && random_.one_in(4)) absorb(r);
  return r;
}

// Makes a result count, even of a type that has no output array.
void Generator::absorb(Register r) {
  const Register clean = no_nan(r);
  const DType type = b_.type_of(clean);
  const DType integer = bits_of(type) == 16   ? DType::u16
                        : bits_of(type) == 32 ? DType::u32
                                              : DType::u64;
  const Register bits = is_float(type) ? b_.bitcast(clean, integer) : clean;
  const Register wide = b_.convert(bits, DType::u64);
  const Register factor = b_.unsigned_integer(DType::u64, 0x9e3779b97f4a7c15);
  const Register sum = b_.ternary(Opcode::mad, checksum_, factor, wide);
  b_.assign(checksum_, sum);
}

DType Generator::draw_type(Opcode op) {
  std::vector<DType> good;
  for (DType type : types_)
    if (accepts(op, type)) good.push_back(type);
  if (good.empty() || random_.one_in(8))
    for (uint8_t code = 0; code <= static_cast<uint8_t>(DType::f64); ++code)
      if (accepts(op, static_cast<DType>(code))) good.push_back(static_cast<DType>(code));
  return random_.pick(good);
}

Register Generator::value(DType type) {
  const std::vector<Register>& known = pool_[static_cast<size_t>(type)];
  if (!known.empty() && !random_.one_in(known.size() < 4 ? 2 : 6)) return random_.pick(known);
  const Register fresh = fresh_value(type);
  return keep(fresh);
}

Register Generator::fresh_value(DType type) {
  const uint32_t kind = random_.below(6);
  if (kind < 2) {
    for (const Input& input : inputs_) {
      if (input.array.type != type) continue;
      const Register count = b_.integer(DType::u32, input.count);
      const Register index = b_.rem(self_, count);
      return b_.load(input.array, index);
    }
  }
  if (kind == 2)
    for (const Builder::Scalar& scalar : scalars_)
      if (scalar.type == type) return b_.value(scalar);
  if (kind == 3 && is_integer(type)) {
    if (random_.one_in(4)) {
      const Register count = b_.length(random_.pick(outputs_));
      return b_.convert(count, type);
    }
    const Opcode op = random_.pick({Opcode::thread_id, Opcode::block_id, Opcode::block_size,
                                    Opcode::grid_size, Opcode::global_id});
    const int axis = static_cast<int>(random_.below(3));
    const DType id_type = random_.pick({DType::u32, DType::i32, DType::u64, DType::i64});
    const Register id = b_.id(op, axis, id_type);
    return b_.convert(id, type);
  }
  if (kind == 4) {
    for (const Builder::Array& output : outputs_) {
      if (output.type != type) continue;
      const Register slot = b_.integer(DType::u32, random_.below(kSlots));
      const Register index = b_.add(self_base_, slot);
      return b_.load(output, index);
    }
  }
  const uint64_t bits = random_.bits(type);
  return b_.bits(type, bits);
}

// The same in all threads of a block, and provably so.
Register Generator::uniform_value(DType type) {
  if (random_.one_in(3)) {
    const Register block = b_.id(Opcode::block_id, 0);
    return b_.convert(block, type);
  }
  if (random_.one_in(2))
    for (const Builder::Scalar& scalar : scalars_)
      if (scalar.type == type) return b_.value(scalar);
  for (const Input& input : inputs_) {
    if (input.array.type != type) continue;
    const Register index = b_.integer(DType::u32, random_.below(input.count));
    return b_.load(input.array, index);
  }
  const uint64_t bits = random_.bits(type);
  return b_.bits(type, bits);
}

Register Generator::condition() {
  if (random_.one_in(3)) return value(DType::boolean);
  const Opcode op =
      random_.pick({Opcode::eq, Opcode::ne, Opcode::lt, Opcode::le, Opcode::gt, Opcode::ge});
  const DType type = draw_type(op);
  const Register a = value(type);
  const Register b = value(type);
  return keep(b_.compare(op, a, b));
}

Register Generator::index_below(uint32_t count) {
  const DType type = random_.pick({DType::u32, DType::u32, DType::u8, DType::u64, DType::i16});
  const Register any = value(type);
  const Register wide = b_.convert(any, DType::u32);
  const Register limit = b_.integer(DType::u32, count);
  const Register index = b_.rem(wide, limit);
  if (count <= 128 && random_.one_in(3))
    return b_.convert(index, random_.pick({DType::i8, DType::u8, DType::i16, DType::u16}));
  return b_.convert(index, random_.pick({DType::u32, DType::i32, DType::u64, DType::i64}));
}

// NaNs have no bits one can rely on: not to be looked at as an integer.
Register Generator::no_nan(Register r) {
  if (!is_float(b_.type_of(r))) return r;
  const Register ordered = b_.compare(Opcode::eq, r, r);
  const Register one = b_.floating(b_.type_of(r), 1.0);
  return b_.select(ordered, r, one);
}

void Generator::operation() {
  const Opcode op = random_.pick(exact_operations());
  apply(op);
}

void Generator::apply(Opcode op) {
  const DType type = draw_type(op);
  switch (info(op).form) {
    case Form::move: {
      const Register copy = b_.variable(type);
      const Register a = value(type);
      b_.assign(copy, a);
      keep(copy);
      break;
    }
    case Form::convert: {
      const DType from = random_.pick(types_);
      const Register a = value(from);
      keep(b_.convert(a, type));
      break;
    }
    case Form::bitcast: {
      std::vector<DType> sources;
      for (uint8_t code = 1; code <= static_cast<uint8_t>(DType::f64); ++code)
        if (bits_of(static_cast<DType>(code)) == bits_of(type))
          sources.push_back(static_cast<DType>(code));
      const DType from = random_.pick(sources);
      const Register a = value(from);
      const Register clean = no_nan(a);
      keep(b_.bitcast(clean, type));
      break;
    }
    case Form::unary: {
      const Register a = value(type);
      keep(b_.unary(op, a));
      break;
    }
    case Form::binary: {
      const Register a = value(type);
      Register b = value(type);
      if ((op == Opcode::div || op == Opcode::rem) && is_integer(type)) {
        const Register one = b_.integer(type, 1);
        b = b_.binary(Opcode::bit_or, b, one);
      }
      keep(b_.binary(op, a, b));
      break;
    }
    case Form::shift: {
      const Register a = value(type);
      const Register any = value(DType::u32);
      const Register mask = b_.integer(DType::u32, bits_of(type) - 1);
      const Register amount = b_.binary(Opcode::bit_and, any, mask);
      keep(b_.shift(op, a, amount));
      break;
    }
    case Form::ternary: {
      const Register a = value(type);
      const Register b = value(type);
      const Register c = value(type);
      keep(b_.ternary(op, a, b, c));
      break;
    }
    case Form::compare: {
      const Register a = value(type);
      const Register b = value(type);
      keep(b_.compare(op, a, b));
      break;
    }
    default: {
      const Register c = condition();
      const Register a = value(type);
      const Register b = value(type);
      keep(b_.select(c, a, b));
      break;
    }
  }
}

}  // namespace hologram::isa::testing
