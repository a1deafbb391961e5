// The element-wise ops: one table that the programs are built from and the ops are launched by.
//
// Every program walks a row of `out` by its threads and the rows by its grid's y axis:
//   j = global_id.x, row = block_id.y, out[row * out_row + j] = op(a[row * a_row + j], ...)
// There is no test against a length: the launch covers the elements exactly. Parameters are, in
// this order: the input arrays, `out`, a row stride (u64) for each of them, the scalars.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "support/dtype.h"

namespace hologram::runtime {

// How the inputs are walked along a row: v an element at a time, s the same element throughout.
enum class Variant : uint8_t { v, vs, sv };
inline constexpr size_t kVariants = 3;

enum class TypeSet : uint8_t {
  numbers,         // integers and floats
  signed_numbers,  // signed integers and floats
  floats,
  words,  // u8, u16, u32, u64: bits, whatever they mean
};

// X(name, input arrays, scalars, types)
// Binary ops have the variants v, vs and, where the order matters, sv.
#define HOLOGRAM_ELEMENTWISE_OPS(X)   \
  X(add, 2, 0, numbers)               \
  X(sub, 2, 0, numbers)               \
  X(mul, 2, 0, numbers)               \
  X(div, 2, 0, numbers)               \
  X(min, 2, 0, numbers)               \
  X(max, 2, 0, numbers)               \
  X(pow, 2, 0, numbers)               \
  X(abs, 1, 0, signed_numbers)        \
  X(neg, 1, 0, signed_numbers)        \
  X(sqrt, 1, 0, floats)               \
  X(rsqrt, 1, 0, floats)              \
  X(relu, 1, 0, signed_numbers)       \
  X(sigmoid, 1, 0, floats)            \
  X(tanh, 1, 0, floats)               \
  X(gelu, 1, 0, floats)               \
  X(scalar_add, 1, 1, numbers)        \
  X(scalar_mul, 1, 1, numbers)        \
  X(clip, 1, 2, numbers)              \
  X(axpy, 2, 1, numbers)              \
  X(fill, 0, 1, words)                \
  X(squared_difference, 2, 0, floats) \
  X(binary_cross_entropy, 2, 0, floats)

enum class ElementwiseOp : uint8_t {
#define X(name, arrays, scalars, types) name,
  HOLOGRAM_ELEMENTWISE_OPS(X)
#undef X
};

struct ElementwiseInfo {
  std::string_view name;
  uint8_t inputs;
  uint8_t scalars;
  TypeSet types;
};

inline constexpr ElementwiseInfo kElementwiseOps[] = {
#define X(name, arrays, scalars, types) {#name, arrays, scalars, TypeSet::types},
    HOLOGRAM_ELEMENTWISE_OPS(X)
#undef X
};
inline constexpr size_t kElementwiseOpCount = std::size(kElementwiseOps);

constexpr const ElementwiseInfo& info(ElementwiseOp op) {
  return kElementwiseOps[static_cast<size_t>(op)];
}

// a op b == b op a: the program for vs serves sv with its operands swapped.
constexpr bool is_commutative(ElementwiseOp op) {
  return op == ElementwiseOp::add || op == ElementwiseOp::mul || op == ElementwiseOp::min ||
         op == ElementwiseOp::max;
}
// Ops of two arrays that broadcast; the others take arrays of one shape.
constexpr bool is_binary(ElementwiseOp op) { return op <= ElementwiseOp::pow; }

constexpr bool contains(TypeSet set, DType type) {
  switch (set) {
    case TypeSet::numbers:
      return is_integer(type) || is_float(type);
    case TypeSet::signed_numbers:
      return is_signed_integer(type) || is_float(type);
    case TypeSet::floats:
      return is_float(type);
    case TypeSet::words:
      return is_unsigned_integer(type);
  }
  return false;
}
std::string_view describe(TypeSet set);

constexpr bool has_program(ElementwiseOp op, Variant variant, DType type) {
  if (!contains(info(op).types, type)) return false;
  if (variant == Variant::v) return true;
  return is_binary(op) && (variant == Variant::vs || !is_commutative(op));
}

// Losses keep the accumulation type; they are the last of the table.
constexpr bool accumulates(ElementwiseOp op) { return op >= ElementwiseOp::squared_difference; }
// The type that arithmetic on `type` is done in: f32 for the 16-bit floats, else itself.
constexpr DType arithmetic_type(DType type) {
  return type == DType::f16 || type == DType::bf16 ? DType::f32 : type;
}
constexpr DType result_type(ElementwiseOp op, DType type) {
  return accumulates(op) ? arithmetic_type(type) : type;
}

// "add_f32", "sub_sv_i8"
std::string program_name(ElementwiseOp op, Variant variant, DType type);

}  // namespace hologram::runtime
