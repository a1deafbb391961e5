// Other forms of a kernel, made from its IR: the library is written once, for f32 and flat arrays,
// and its kernels serve every type and rows of a larger array from the same source.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "lang/ir.h"
#include "support/result.h"

namespace hologram::lang {

// The type that arithmetic on `type` is done in: f32 for the 16-bit floats, else itself.
constexpr DType arithmetic_type(DType type) {
  return type == DType::f16 || type == DType::bf16 ? DType::f32 : type;
}

// The kernel with `element` in place of f32: its f32 arrays and scalar parameters become of that
// type, the arrays it stores to of type `result`, and what it computes in f32 is computed in
// `inner`, by default the arithmetic type: a 16-bit float is widened when it is read and rounded
// once when it is stored.
//
// unsupported for a kernel that does more with f32 arrays than read and store elements (helpers,
// maps, reductions, atomics, shared memory), and for a literal that the type cannot hold.
Result<ir::Kernel> retype(ir::Kernel kernel, DType element, DType result, DType inner);
inline Result<ir::Kernel> retype(ir::Kernel kernel, DType element, DType result) {
  return retype(std::move(kernel), element, result, arithmetic_type(element));
}

// The kernel over rows: every array `a` brings a parameter `a_row` (u64, behind the others, in
// order), and a[i] becomes a[row * a_row + i] with row = get_group_id(1); a[row * a_row] for the
// arrays named in `staying`, which have one element a row. The launch is the caller's: a block of
// one row and as many blocks along y as there are rows.
//
// unsupported for arrays of more than one dimension and whatever retype() does not take.
Result<ir::Kernel> by_rows(ir::Kernel kernel, std::span<const std::string> staying);

}  // namespace hologram::lang
