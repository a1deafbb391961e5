// Which fields of an Instruction a form uses, and what types its registers must have. The verifier,
// the binary form and the interpreter read this instead of repeating it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "isa/program.h"

namespace hologram::isa {

enum Field : uint16_t {
  kFieldType = 1,
  kFieldFrom = 2,
  kFieldAxis = 4,
  kFieldDst = 8,
  kFieldA = 16,
  kFieldB = 32,
  kFieldC = 64,
  kFieldSymbol = 128,
  kFieldImmediate = 256,
};

constexpr uint16_t fields_of(Form form) {
  switch (form) {
    case Form::immediate:
      return kFieldType | kFieldDst | kFieldImmediate;
    case Form::move:
    case Form::unary:
    case Form::group:
      return kFieldType | kFieldDst | kFieldA;
    case Form::convert:
    case Form::bitcast:
      return kFieldType | kFieldFrom | kFieldDst | kFieldA;
    case Form::parameter:
    case Form::length:
      return kFieldType | kFieldDst | kFieldSymbol;
    case Form::binary:
    case Form::shift:
    case Form::compare:
      return kFieldType | kFieldDst | kFieldA | kFieldB;
    case Form::ternary:
    case Form::select:
    case Form::for_begin:
      return kFieldType | kFieldDst | kFieldA | kFieldB | kFieldC;
    case Form::id:
      return kFieldType | kFieldAxis | kFieldDst;
    case Form::load:
      return kFieldType | kFieldDst | kFieldA | kFieldSymbol;
    case Form::store:
      return kFieldType | kFieldA | kFieldB | kFieldSymbol;
    case Form::atomic:
      return kFieldType | kFieldDst | kFieldA | kFieldB | kFieldSymbol;
    case Form::atomic_cas:
      return kFieldType | kFieldDst | kFieldA | kFieldB | kFieldC | kFieldSymbol;
    case Form::if_begin:
      return kFieldA;
    case Form::barrier:
    case Form::fence:
    case Form::if_else:
    case Form::loop_begin:
    case Form::end:
    case Form::jump:
      return 0;
  }
  return 0;
}
constexpr bool uses(const Instruction& instruction, Field field) {
  return (fields_of(info(instruction.op).form) & field) != 0;
}

// The type register `field` (dst, a, b or c) must have; nothing where any integer type will do
// (the index of a memory access).
constexpr std::optional<DType> register_type(const Instruction& instruction, Field field) {
  const Form form = info(instruction.op).form;
  switch (form) {
    case Form::convert:
    case Form::bitcast:
      return field == kFieldA ? instruction.from : instruction.type;
    case Form::shift:
      return field == kFieldB ? DType::u32 : instruction.type;
    case Form::compare:
      return field == kFieldDst ? DType::boolean : instruction.type;
    case Form::select:
      return field == kFieldA ? DType::boolean : instruction.type;
    case Form::if_begin:
      return DType::boolean;
    case Form::load:
    case Form::store:
    case Form::atomic:
    case Form::atomic_cas:
      if (field == kFieldA) return std::nullopt;
      return instruction.type;
    default:
      return instruction.type;
  }
}

struct Operand {
  Field field;
  Register reg;
};

// The registers an instruction reads: `count` of `operands`.
struct Operands {
  std::array<Operand, 3> operands;
  unsigned count = 0;
  const Operand* begin() const { return operands.data(); }
  const Operand* end() const { return operands.data() + count; }
};
constexpr Operands operands_of(const Instruction& instruction) {
  Operands result{};
  const uint16_t fields = fields_of(info(instruction.op).form);
  if (fields & kFieldA) result.operands[result.count++] = {kFieldA, instruction.a};
  if (fields & kFieldB) result.operands[result.count++] = {kFieldB, instruction.b};
  if (fields & kFieldC) result.operands[result.count++] = {kFieldC, instruction.c};
  return result;
}

// Does the table let this operation work on `type`? Says nothing of convert's source.
constexpr bool accepts(Opcode op, DType type) {
  if (!is_compute(type)) return false;
  switch (info(op).form) {
    case Form::length:
      return type == DType::u64;
    case Form::id:
      return type == DType::u32 || type == DType::i32 || type == DType::u64 || type == DType::i64;
    case Form::bitcast:
      return type != DType::boolean;
    case Form::atomic_cas:
      return is_integer(type) && bits_of(type) >= 32;
    default:
      break;
  }
  switch (info(op).types) {
    case Types::any:
      return true;
    case Types::number:
      return type != DType::boolean;
    case Types::integer:
      return is_integer(type);
    case Types::integer_or_bool:
      return !is_float(type);
    case Types::floating:
      return is_float(type);
    case Types::signed_number:
      return is_signed_integer(type) || is_float(type);
    case Types::atomics:
      return type != DType::boolean && bits_of(type) >= 32;
    case Types::class_u8:
      return type == DType::u8;
    case Types::none:
      return false;
  }
  return false;
}

}  // namespace hologram::isa
