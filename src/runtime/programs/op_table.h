// The element-wise ops: one table that their kernels are made from and launched by.
//
// An op is a kernel of the standard library (kernels/, in Python), which is written for f32 and
// flat arrays: `i = get_global_id(); if i < n: c[i] = ...`. Its parameters are, in this order: the
// input arrays, the output, the scalars, `n` (u32). From the same source the build makes it for the
// other types and, for arrays that are rows of something larger, over rows (lang/variant.h): a row
// stride (u64) for each array comes behind `n`, and the grid's y axis counts the rows.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "support/dtype.h"

namespace hologram::runtime {

// flat: contiguous arrays, the library's own form. rows: v an element at a time, s the same element
// for the whole row.
enum class Variant : uint8_t { flat, rows, rows_vs, rows_sv };
inline constexpr size_t kVariants = 4;

enum class TypeSet : uint8_t {
  numbers,         // integers and floats
  signed_numbers,  // signed integers and floats
  floats,
  words,  // u8, u16, u32, u64: bits, whatever they mean
};

// X(name, the library's kernel, input arrays, scalars, types)
// Binary ops have rows_vs and, where the order matters, rows_sv.
#define HOLOGRAM_ELEMENTWISE_OPS(X)                            \
  X(add, vector_add, 2, 0, numbers)                            \
  X(sub, vector_sub, 2, 0, numbers)                            \
  X(mul, vector_mul, 2, 0, numbers)                            \
  X(div, vector_div, 2, 0, numbers)                            \
  X(min, vector_min, 2, 0, numbers)                            \
  X(max, vector_max, 2, 0, numbers)                            \
  X(pow, vector_pow, 2, 0, numbers)                            \
  X(abs, vector_abs, 1, 0, signed_numbers)                     \
  X(neg, vector_neg, 1, 0, signed_numbers)                     \
  X(sqrt, vector_sqrt, 1, 0, floats)                           \
  X(rsqrt, vector_rsqrt, 1, 0, floats)                         \
  X(relu, relu, 1, 0, signed_numbers)                          \
  X(sigmoid, sigmoid, 1, 0, floats)                            \
  X(tanh, tanh_activation, 1, 0, floats)                       \
  X(gelu, onnx_gelu, 1, 0, floats)                             \
  X(scalar_add, vector_scalar_add, 1, 1, numbers)              \
  X(scalar_mul, onnx_scalar_mul, 1, 1, numbers)                \
  X(clip, vector_clip, 1, 2, numbers)                          \
  X(axpy, vector_axpy, 2, 1, numbers)                          \
  X(fill, onnx_constant_fill, 0, 1, words)                     \
  X(squared_difference, loss_squared_difference, 2, 0, floats) \
  X(binary_cross_entropy, loss_binary_cross_entropy, 2, 0, floats)

enum class ElementwiseOp : uint8_t {
#define X(name, kernel, arrays, scalars, types) name,
  HOLOGRAM_ELEMENTWISE_OPS(X)
#undef X
};

struct ElementwiseInfo {
  std::string_view name;
  std::string_view kernel;
  uint8_t inputs;
  uint8_t scalars;
  TypeSet types;
};

inline constexpr ElementwiseInfo kElementwiseOps[] = {
#define X(name, kernel, arrays, scalars, types) {#name, #kernel, arrays, scalars, TypeSet::types},
    HOLOGRAM_ELEMENTWISE_OPS(X)
#undef X
};
inline constexpr size_t kElementwiseOpCount = std::size(kElementwiseOps);

constexpr const ElementwiseInfo& info(ElementwiseOp op) {
  return kElementwiseOps[static_cast<size_t>(op)];
}

// a op b == b op a: the kernel for vs serves sv with its operands swapped.
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
  if (variant == Variant::flat) return true;
  if (variant == Variant::rows) return info(op).inputs != 0;  // an output alone is always flat
  return is_binary(op) && (variant == Variant::rows_vs || !is_commutative(op));
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

// The name in the bundle: "vector_add" for the library's own form, "vector_add_i8",
// "vector_sub_rows_sv_f32" for what was made from it.
std::string program_name(ElementwiseOp op, Variant variant, DType type);

}  // namespace hologram::runtime
