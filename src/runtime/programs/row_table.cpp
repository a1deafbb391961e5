#include "runtime/programs/row_table.h"

namespace hologram::runtime {

std::string row_program_name(RowOp op, DType element, DType result) {
  std::string name(info(op).kernel);
  name += "_rows_";
  name += name_of(element);
  if (result == element) return name;
  name += "_";
  return name += name_of(result);
}

std::string matrix_program_name(MatrixOp op, DType type) {
  std::string name = op == MatrixOp::gemv ? "gemv_" : "gemm_";
  return name += name_of(type);
}

}  // namespace hologram::runtime
