// Matrix products: c = alpha a b + beta c, blocked and packed.
//
// Every element of c is a chain of multiply-adds over k in order, in blocks of fixed length,
// whatever the tile it falls in or the thread that computes it: the bits depend on the operands
// alone (and on whether the level has fused multiply-add).
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/dtype.h"

namespace hologram::backends {

// Strides count elements. The packed forms are panels of `rows` of a (k-major) and `columns` of b.
struct GemmKernel {
  size_t tile_rows, tile_columns;
  // a[rows x depth], tile_rows at a time, padded with zeros.
  void (*pack_a)(const void* a, int64_t row_stride, int64_t column_stride, size_t rows,
                 size_t depth, void* packed);
  // One panel of b[depth x columns], columns <= tile_columns, padded with zeros.
  void (*pack_b)(const void* b, int64_t row_stride, int64_t column_stride, size_t depth,
                 size_t columns, void* packed);
  // c[rows x columns] = alpha (panel of a) (panel of b) + (first ? beta : 1) c; beta = 0 does not
  // read c.
  void (*tile)(const void* a_panel, const void* b_panel, size_t depth, void* c, int64_t c_row,
               size_t rows, size_t columns, double alpha, double beta);
};

// For f16, bf16, f32 and f64. Panels and c are f32 for the 16-bit floats.
const GemmKernel& gemm_kernel(DType type);
// c as computed (f32) to c as asked for: out = value (+ beta out, before rounding).
void narrow_matrix(DType type, const float* from, size_t rows, size_t columns, void* to,
                   int64_t to_row, double beta);

}  // namespace hologram::backends
