#include "codegen/math/math.h"

#include "codegen/lane_ops.h"

namespace hologram::codegen::math {

llvm::Value* unary(LaneOps& ops, isa::Opcode op, llvm::Value* x) {
  (void)op;
  return ops.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
}
llvm::Value* pow(LaneOps& ops, llvm::Value* x, llvm::Value* y) { return ops.b.CreateFMul(x, y); }

}  // namespace hologram::codegen::math
