// The functions every kernel can call, as one table. The checker, the validator and the lowering
// read it; docs/kernel-language.md lists it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "isa/opcode.h"

namespace hologram::lang {

enum class IntrinsicKind : uint8_t {
  math,        // T f(T...) on floats, one ISA instruction
  number,      // T f(T...) on integers and floats, one ISA instruction
  class_byte,  // u8 f(u8...)
  id,          // u32 f(axis literal); aux: see below
  atomic,      // T f(array, indices..., T value)
  atomic_cas,  // T f(array, indices..., T expected, T desired)
  group,       // T f(T) over the block
};

struct Intrinsic {
  std::string_view name;
  IntrinsicKind kind;
  isa::Opcode op;
  uint8_t arity;  // of values; an id's axis is optional in the source and present in the IR
};

// Null when there is none. In the IR only the plain names exist (exp, not expf).
const Intrinsic* find_intrinsic(std::string_view name);
std::span<const Intrinsic> intrinsics();

}  // namespace hologram::lang
