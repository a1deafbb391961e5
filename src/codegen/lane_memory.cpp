// Loads and stores of the lane emitter.
#include "codegen/lane_emitter.h"

namespace hologram::codegen {

using isa::Instruction;
using llvm::Align;
using llvm::Value;

Value* LaneEmitter::base_of(const Instruction& i) {
  return isa::is_shared_access(i.op) ? kernel_.shared[i.symbol] : kernel_.parameters[i.symbol];
}

Value* LaneEmitter::full_mask() {
  return mask_ ? mask_
               : llvm::Constant::getAllOnesValue(LaneOps::with_lanes(b.getInt1Ty(), lanes_));
}

Value* LaneEmitter::wide_index(isa::Register r, Value* index) {
  llvm::Type* const wide = LaneOps::with_lanes(b.getInt64Ty(), index);
  return is_signed_integer(kernel_.program.registers[r.index]) ? b.CreateSExt(index, wide)
                                                               : b.CreateZExt(index, wide);
}

// The address of lane 0 where the lanes' elements lie side by side.
//
// A 32-bit unsigned index may wrap around between two lanes, as `i - 1` does at i = 0. When all
// lanes are active those before the wrap would be out of range of any array shorter than 2^32 -
// lanes (longer ones run lane by lane, see thread_loops.cpp); so if it happens, they are masked,
// and the row starts below the array.
Value* LaneEmitter::row_address(const Instruction& i, llvm::Type* element) {
  Value* const index = read_scalar(i.a);
  Value* wide = wide_index(i.a, index);
  if (mask_ && kernel_.program.registers[i.a.index] == DType::u32 && !shape(i.a).exact) {
    Value* const wraps = b.CreateICmpUGT(wide, kernel_.i64(0xffffffff - (lanes_ - 1)));
    wide = b.CreateSelect(wraps, b.CreateSub(wide, kernel_.i64(uint64_t{1} << 32)), wide);
  }
  return b.CreateGEP(element, base_of(i), wide);
}

LaneEmitter::Lanes LaneEmitter::load(const Instruction& i) {
  llvm::Type* const element = ops_.memory_type(i.type);
  const Align align(size_of(i.type));
  const LaneShape& index = shape(i.a);
  if (index.is_uniform()) {
    Value* const address = b.CreateGEP(element, base_of(i), wide_index(i.a, read_scalar(i.a)));
    return {ops_.from_memory(i.type, b.CreateAlignedLoad(element, address, align))};
  }
  llvm::Type* const wide = LaneOps::with_lanes(element, lanes_);
  Value* value;
  if (index.is_linear() && index.stride == 1) {
    Value* const address = row_address(i, element);
    value = mask_ ? static_cast<Value*>(b.CreateMaskedLoad(wide, address, align, mask_,
                                                           llvm::Constant::getNullValue(wide)))
                  : b.CreateAlignedLoad(wide, address, align);
  } else {
    Value* const addresses = b.CreateGEP(element, base_of(i), wide_index(i.a, read_vector(i.a)));
    value = b.CreateMaskedGather(wide, addresses, align, full_mask(),
                                 llvm::Constant::getNullValue(wide));
  }
  return {ops_.from_memory(i.type, value), 0, true};
}

void LaneEmitter::store(const Instruction& i) {
  llvm::Type* const element = ops_.memory_type(i.type);
  const Align align(size_of(i.type));
  const LaneShape& index = shape(i.a);
  if (index.is_uniform() && (shape(i.b).is_uniform() || !mask_)) {
    // All lanes store to one element: as if one after the other, so the last one stays.
    Value* value = read_scalar(i.b);
    if (shape(i.b).is_varying())
      value = b.CreateExtractElement(value, lanes_ - 1);
    else if (shape(i.b).stride != 0)
      value = b.CreateExtractElement(read_vector(i.b), lanes_ - 1);
    Value* const address = b.CreateGEP(element, base_of(i), wide_index(i.a, read_scalar(i.a)));
    b.CreateAlignedStore(ops_.to_memory(i.type, value), address, align);
    return;
  }
  Value* const value = ops_.to_memory(i.type, read_vector(i.b));
  if (index.is_linear() && index.stride == 1) {
    Value* const address = row_address(i, element);
    if (mask_)
      b.CreateMaskedStore(value, address, align, mask_);
    else
      b.CreateAlignedStore(value, address, align);
    return;
  }
  Value* const addresses = b.CreateGEP(element, base_of(i), wide_index(i.a, read_vector(i.a)));
  b.CreateMaskedScatter(value, addresses, align, full_mask());
}

}  // namespace hologram::codegen
