// The only ops with programs of their own: div and pow of integers. The library's kernels of these
// names are Python's, whose / and pow() of integers are floats; the ops stay integers (division
// towards zero, powers that wrap, a trap for a divisor of 0), which the language has no word for.
#pragma once

#include "isa/program.h"
#include "runtime/programs/op_table.h"
#include "support/result.h"

namespace hologram::runtime {

constexpr bool is_integer_op(ElementwiseOp op, DType type) {
  return is_integer(type) && (op == ElementwiseOp::div || op == ElementwiseOp::pow);
}

// With the parameters of the kernels that are made from the library (op_table.h).
Result<isa::Program> build_integer_op(ElementwiseOp op, Variant variant, DType type);

}  // namespace hologram::runtime
