// isa: kernel programs. The instruction set, as one table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hologram::isa {

// How an instruction uses its fields; the verifier, the text form, the interpreter and the code
// generators all read this table instead of repeating it.
enum class Form : uint8_t {
  immediate,   // dst:type = immediate
  move,        // dst:type = a
  convert,     // dst:type = a:from          value conversion, see docs/isa.md
  bitcast,     // dst:type = a:from          same size, same bits
  parameter,   // dst:type = scalar parameter `symbol`
  length,      // dst:u64 = number of elements of array parameter `symbol`
  unary,       // dst:type = op a
  binary,      // dst:type = a op b
  shift,       // dst:type = a op b          b: u32; traps when b >= bits
  ternary,     // dst:type = op a b c
  compare,     // dst:bool = a:type op b:type
  select,      // dst:type = a:bool ? b : c
  id,          // dst:type (u32, i32, u64 or i64) = index `aux` (axis 0..2)
  load,        // dst:type = symbol[a]       a: any integer type
  store,       // symbol[a] = b:type
  atomic,      // dst:type = old symbol[a]; symbol[a] = op(old, b)
  atomic_cas,  // dst:type = old symbol[a]; if old == b then symbol[a] = c
  group,       // dst:type = reduction of a:type over the block, the same in every thread
  barrier,     // every thread of the block arrives
  fence,       // orders this thread's memory accesses
  if_begin,    // a:bool
  if_else,
  for_begin,   // dst:type counts from a while before b in steps of c; bounds are read once
  loop_begin,  // until a break
  end,         // ends the innermost if, for or loop
  jump,        // break, continue: innermost for or loop; return: the thread ends
};

// Which element types an instruction takes.
enum class Types : uint8_t {
  any,     // all compute types
  number,  // integers and floats
  integer,
  integer_or_bool,
  floating,
  signed_number,  // signed integers and floats
  atomics,        // i32, u32, i64, u64; f32 and f64 for add, min, max and exchange
  class_u8,       // u8 in, u8 out
  none,
};

// X(name, form, types)
#define HOLOGRAM_ISA_OPCODES(X)              \
  /* values */                               \
  X(imm, immediate, any)                     \
  X(mov, move, any)                          \
  X(convert, convert, any)                   \
  X(bitcast, bitcast, any)                   \
  X(param, parameter, any)                   \
  X(length, length, none)                    \
  /* arithmetic; integers wrap */            \
  X(add, binary, number)                     \
  X(sub, binary, number)                     \
  X(mul, binary, number)                     \
  X(div, binary, number)                     \
  X(rem, binary, number)                     \
  X(min, binary, number)                     \
  X(max, binary, number)                     \
  X(abs, unary, signed_number)               \
  X(neg, unary, signed_number)               \
  X(mad, ternary, number)                    \
  X(fma, ternary, floating)                  \
  /* bits, and logic on bool */              \
  X(bit_and, binary, integer_or_bool)        \
  X(bit_or, binary, integer_or_bool)         \
  X(bit_xor, binary, integer_or_bool)        \
  X(bit_not, unary, integer_or_bool)         \
  X(shl, shift, integer)                     \
  X(shr, shift, integer)                     \
  /* comparison */                           \
  X(eq, compare, any)                        \
  X(ne, compare, any)                        \
  X(lt, compare, number)                     \
  X(le, compare, number)                     \
  X(gt, compare, number)                     \
  X(ge, compare, number)                     \
  X(select, select, any)                     \
  /* mathematics */                          \
  X(exp, unary, floating)                    \
  X(exp2, unary, floating)                   \
  X(expm1, unary, floating)                  \
  X(log, unary, floating)                    \
  X(log1p, unary, floating)                  \
  X(log2, unary, floating)                   \
  X(log10, unary, floating)                  \
  X(sqrt, unary, floating)                   \
  X(rsqrt, unary, floating)                  \
  X(sin, unary, floating)                    \
  X(cos, unary, floating)                    \
  X(tan, unary, floating)                    \
  X(asin, unary, floating)                   \
  X(acos, unary, floating)                   \
  X(atan, unary, floating)                   \
  X(sinh, unary, floating)                   \
  X(cosh, unary, floating)                   \
  X(tanh, unary, floating)                   \
  X(asinh, unary, floating)                  \
  X(acosh, unary, floating)                  \
  X(atanh, unary, floating)                  \
  X(sigmoid, unary, floating)                \
  X(erf, unary, floating)                    \
  X(pow, binary, floating)                   \
  X(floor, unary, floating)                  \
  X(ceil, unary, floating)                   \
  X(round, unary, floating)                  \
  X(trunc, unary, floating)                  \
  /* class algebra: table look-ups */        \
  X(class_of, unary, class_u8)               \
  X(class_mirror, unary, class_u8)           \
  X(class_neighbour, binary, class_u8)       \
  /* where a thread is */                    \
  X(thread_id, id, integer)                  \
  X(block_id, id, integer)                   \
  X(block_size, id, integer)                 \
  X(grid_size, id, integer)                  \
  X(global_id, id, integer)                  \
  /* memory */                               \
  X(load, load, any)                         \
  X(store, store, any)                       \
  X(load_shared, load, any)                  \
  X(store_shared, store, any)                \
  X(atomic_add, atomic, atomics)             \
  X(atomic_min, atomic, atomics)             \
  X(atomic_max, atomic, atomics)             \
  X(atomic_exchange, atomic, atomics)        \
  X(atomic_cas, atomic_cas, atomics)         \
  X(atomic_add_shared, atomic, atomics)      \
  X(atomic_min_shared, atomic, atomics)      \
  X(atomic_max_shared, atomic, atomics)      \
  X(atomic_exchange_shared, atomic, atomics) \
  X(atomic_cas_shared, atomic_cas, atomics)  \
  /* a block together */                     \
  X(barrier, barrier, none)                  \
  X(fence, fence, none)                      \
  X(group_add, group, number)                \
  X(group_mul, group, number)                \
  X(group_min, group, number)                \
  X(group_max, group, number)                \
  /* structured control flow */              \
  X(if_begin, if_begin, none)                \
  X(if_else, if_else, none)                  \
  X(for_begin, for_begin, integer)           \
  X(loop_begin, loop_begin, none)            \
  X(end, end, none)                          \
  X(break_, jump, none)                      \
  X(continue_, jump, none)                   \
  X(return_, jump, none)

// These numbers are never written into files; binary.cpp has the stable ones.
enum class Opcode : uint8_t {
#define X(name, form, types) name,
  HOLOGRAM_ISA_OPCODES(X)
#undef X
};

struct OpcodeInfo {
  std::string_view name;  // as in the text form: "add", "and", "if", "else", "break"
  Form form;
  Types types;
};

// C++ keeps some words for itself, so the identifiers above carry what the text form does without.
constexpr std::string_view text_name(std::string_view identifier) {
  if (identifier == "if_else") return "else";
  if (identifier.starts_with("bit_")) identifier.remove_prefix(4);
  if (identifier.ends_with("_begin")) identifier.remove_suffix(6);
  if (identifier.ends_with("_")) identifier.remove_suffix(1);
  return identifier;
}

inline constexpr OpcodeInfo kOpcodes[] = {
#define X(name, form, types) {text_name(#name), Form::form, Types::types},
    HOLOGRAM_ISA_OPCODES(X)
#undef X
};
inline constexpr uint8_t kOpcodeCount = sizeof(kOpcodes) / sizeof(kOpcodes[0]);

constexpr const OpcodeInfo& info(Opcode op) { return kOpcodes[static_cast<uint8_t>(op)]; }
std::optional<Opcode> opcode_from_name(std::string_view name);

constexpr bool is_global_atomic(Opcode op) {
  return op >= Opcode::atomic_add && op <= Opcode::atomic_cas;
}
constexpr bool is_atomic(Opcode op) {
  return op >= Opcode::atomic_add && op <= Opcode::atomic_cas_shared;
}
constexpr bool is_shared_access(Opcode op) {
  return op == Opcode::load_shared || op == Opcode::store_shared ||
         (op >= Opcode::atomic_add_shared && op <= Opcode::atomic_cas_shared);
}

}  // namespace hologram::isa
