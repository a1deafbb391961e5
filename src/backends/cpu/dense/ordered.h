// The orders in which ONNX Runtime adds the products of a matrix product, for what is rounded to 8
// bits behind it (docs/quantize.md).
#pragma once

#include <cstddef>

namespace hologram::backends::dense {

// Sums of `terms` products are ended after so many and added up: a multiple of 128, more where the
// matrix has few columns.
constexpr size_t ordered_part(size_t columns, size_t terms) {
  size_t part = 128;
  if (columns < terms)
    for (size_t width = 128; width > 16 && width / 2 >= columns; width /= 2) part *= 2;
  return part;
}

// c = a B for one row of k values and k x n values, rows `ldb` floats apart: four rounded products
// are added, then their sum to what was there. c overlaps neither.
void row_by_fours(size_t n, size_t k, const float* a, const float* b, size_t ldb, float* c);

}  // namespace hologram::backends::dense
