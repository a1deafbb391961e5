// The ops that make one value, or one row, of each row: sums, extrema, products, softmax, losses.
//
// Like the element-wise ops (op_table.h) each is a kernel of the standard library, written for f32
// and one row, in which a block of kRowBlock threads strides through the row together. From the
// same source the build makes it for other types and over rows (lang/variant.h): the grid's y axis
// counts the rows, and each array has its row stride behind the other parameters. Kernels that
// reduce a row in shares take as many blocks along x as there are shares.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "runtime/programs/op_table.h"
#include "support/dtype.h"

namespace hologram::runtime {

inline constexpr uint32_t kRowBlock = 64;

// X(name, the library's kernel, input arrays, scalars behind n)
// Parameters: the inputs, the output, n (u32), the scalars; then a row stride (u64) an array.
#define HOLOGRAM_ROW_OPS(X)                  \
  X(sum, vector_sum, 1, 0)                   \
  X(mean, reduce_mean, 1, 1)                 \
  X(min, reduce_min, 1, 0)                   \
  X(max, reduce_max, 1, 0)                   \
  X(dot, vector_dot, 2, 0)                   \
  X(softmax, softmax, 1, 0)                  \
  X(softmax_narrow, softmax_narrow, 1, 0)    \
  X(cross_entropy, loss_cross_entropy, 2, 0) \
  X(cross_entropy_class, loss_cross_entropy_class, 2, 0)

enum class RowOp : uint8_t {
#define X(name, kernel, inputs, scalars) name,
  HOLOGRAM_ROW_OPS(X)
#undef X
};

struct RowInfo {
  std::string_view name;
  std::string_view kernel;
  uint8_t inputs;
  uint8_t scalars;
};
inline constexpr RowInfo kRowOps[] = {
#define X(name, kernel, inputs, scalars) {#name, #kernel, inputs, scalars},
    HOLOGRAM_ROW_OPS(X)
#undef X
};
inline constexpr size_t kRowOpCount = std::size(kRowOps);
constexpr const RowInfo& info(RowOp op) { return kRowOps[static_cast<size_t>(op)]; }

// The type that sums and products of elements are added up in: 64 bits for integers.
constexpr DType sum_accumulator(DType type) {
  if (is_integer(type)) return is_signed_integer(type) ? DType::i64 : DType::u64;
  return arithmetic_type(type);
}
// The type that a kernel from `element` to `result` computes in.
constexpr DType row_arithmetic(DType element, DType result) {
  return arithmetic_type(is_float(element) ? element : result);
}

// Whether there is a kernel of the op from elements of one type to results of another. Sums and
// means of 16-bit floats are made in two: to f32, and from f32.
constexpr bool has_row_program(RowOp op, DType element, DType result) {
  const bool number = is_integer(element) || is_float(element);
  const bool narrows = element == DType::f32 && (result == DType::f16 || result == DType::bf16);
  switch (op) {
    case RowOp::sum:
      return (number && result == sum_accumulator(element)) || narrows ||
             (is_integer(element) && result == DType::f64);  // for their mean
    case RowOp::mean:
      return narrows ||
             (is_float(element) && element == arithmetic_type(element) && result == element);
    case RowOp::min:
    case RowOp::max:
      return number && result == element;
    case RowOp::dot:
      return number && result == sum_accumulator(element);
    case RowOp::softmax:
      return is_float(element) && result == element && element == arithmetic_type(element);
    case RowOp::softmax_narrow:
      return is_float(element) && result == element && element != arithmetic_type(element);
    case RowOp::cross_entropy:
    case RowOp::cross_entropy_class:
      return is_float(element) && result == arithmetic_type(element);
  }
  return false;
}

// The name in the bundle: "vector_sum_rows_f32", "vector_sum_rows_i8_i64".
std::string row_program_name(RowOp op, DType element, DType result);

// Products of matrices: kernels of their own form, made for every type.
enum class MatrixOp : uint8_t { gemv, gemm };
inline constexpr std::string_view kMatrixKernels[] = {"gemv_f32", "gemm_blocked"};
inline constexpr size_t kMatrixOpCount = std::size(kMatrixKernels);
// "gemv_f32" is the library's own; "gemv_i8", "gemm_f64".
std::string matrix_program_name(MatrixOp op, DType type);

}  // namespace hologram::runtime
