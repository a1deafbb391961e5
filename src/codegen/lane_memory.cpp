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

Value* LaneEmitter::spill(Value* vector) {
  llvm::AllocaInst* const slot = kernel_.slot(vector->getType());
  b.CreateStore(vector, slot);
  return slot;
}

void LaneEmitter::for_each_active_lane(FunctionRef<void(Value*)> body) {
  Value* const active =
      mask_ ? spill(b.CreateZExt(mask_, LaneOps::with_lanes(b.getInt8Ty(), lanes_))) : nullptr;
  kernel_.count(kernel_.i64(0), kernel_.i64(lanes_), kernel_.i64(1), "lane", [&](Value* lane) {
    if (!active) return body(lane);
    llvm::BasicBlock* const run = kernel_.block_named("lane.active");
    llvm::BasicBlock* const next = kernel_.block_named("lane.next");
    Value* const is_active = b.CreateLoad(b.getInt8Ty(), b.CreateGEP(b.getInt8Ty(), active, lane));
    b.CreateCondBr(b.CreateICmpNE(is_active, b.getInt8(0)), run, next);
    b.SetInsertPoint(run);
    body(lane);
    kernel_.go_to(next);
  });
}

// Under a mask LLVM writes what the machine has no instruction for as a branch a lane, again and
// again; a loop over the lanes is shorter, and sooner compiled.
bool LaneEmitter::has_masked_access(DType type, bool is_load, bool in_a_row) const {
  const Level level = kernel_.target.level();
  if (in_a_row && level == Level::v4) return true;
  if (bits_of(type) < 32 || level == Level::v2) return false;
  return level == Level::v4 || is_load || in_a_row;
}

Value* LaneEmitter::load_lane_by_lane(const Instruction& i) {
  llvm::Type* const element = ops_.memory_type(i.type);
  llvm::Type* const wide = LaneOps::with_lanes(element, lanes_);
  const Align align(size_of(i.type));
  Value* const indices = spill(wide_index(i.a, read_vector(i.a)));
  Value* const results = spill(llvm::Constant::getNullValue(wide));
  for_each_active_lane([&](Value* lane) {
    Value* const index = b.CreateLoad(b.getInt64Ty(), b.CreateGEP(b.getInt64Ty(), indices, lane));
    Value* const value =
        b.CreateAlignedLoad(element, b.CreateGEP(element, base_of(i), index), align);
    b.CreateStore(value, b.CreateGEP(element, results, lane));
  });
  return b.CreateLoad(wide, results);
}

void LaneEmitter::store_lane_by_lane(const Instruction& i, Value* value) {
  llvm::Type* const element = ops_.memory_type(i.type);
  const Align align(size_of(i.type));
  Value* const indices = spill(wide_index(i.a, read_vector(i.a)));
  Value* const values = spill(value);
  for_each_active_lane([&](Value* lane) {
    Value* const index = b.CreateLoad(b.getInt64Ty(), b.CreateGEP(b.getInt64Ty(), indices, lane));
    Value* const of_lane = b.CreateLoad(element, b.CreateGEP(element, values, lane));
    b.CreateAlignedStore(of_lane, b.CreateGEP(element, base_of(i), index), align);
  });
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
  const bool in_a_row = index.is_linear() && index.stride == 1;
  Value* value;
  if (mask_ && !has_masked_access(i.type, true, in_a_row)) {
    value = load_lane_by_lane(i);
  } else if (in_a_row) {
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
  const bool in_a_row = index.is_linear() && index.stride == 1;
  if (mask_ && !has_masked_access(i.type, false, in_a_row)) return store_lane_by_lane(i, value);
  if (in_a_row) {
    Value* const address = row_address(i, element);
    if (mask_)
      b.CreateMaskedStore(value, address, align, mask_);
    else if (stream_)
      b.CreateAlignedStore(value, address, Align(size_of(i.type) * lanes_))
          ->setMetadata(
              llvm::LLVMContext::MD_nontemporal,
              llvm::MDNode::get(b.getContext(), llvm::ConstantAsMetadata::get(b.getInt32(1))));
    else
      b.CreateAlignedStore(value, address, align);
    return;
  }
  Value* const addresses = b.CreateGEP(element, base_of(i), wide_index(i.a, read_vector(i.a)));
  b.CreateMaskedScatter(value, addresses, align, full_mask());
}

}  // namespace hologram::codegen
