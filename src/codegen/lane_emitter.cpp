// Registers and instructions of the lane emitter.
#include "codegen/lane_emitter.h"

#include "isa/fields.h"

namespace hologram::codegen {

using isa::Form;
using isa::Instruction;
using isa::Opcode;
using llvm::Value;

LaneEmitter::LaneEmitter(Kernel& kernel, unsigned lanes, const LaneShapes& shapes)
    : kernel_(kernel),
      b(kernel.b),
      ops_(kernel.ops),
      lanes_(lanes),
      shapes_(shapes),
      slots_(kernel.program.registers.size(), nullptr) {}

llvm::AllocaInst* LaneEmitter::slot(isa::Register r) {
  llvm::AllocaInst*& slot = slots_[r.index];
  if (!slot) {
    llvm::Type* const element = ops_.register_type(kernel_.program.registers[r.index]);
    slot = kernel_.slot(shape(r).is_varying() ? LaneOps::with_lanes(element, lanes_) : element);
  }
  return slot;
}

LaneEmitter::Lanes LaneEmitter::read(isa::Register r) {
  if (const Instruction* const constant = kernel_.constants[r.index])
    return {ops_.bits(constant->type, constant->immediate)};
  llvm::AllocaInst* const from = slot(r);
  Value* const value = b.CreateLoad(from->getAllocatedType(), from);
  return {value, shape(r).stride, shape(r).is_varying()};
}

Value* LaneEmitter::vector(Lanes lanes) {
  if (lanes.is_vector || lanes_ == 1) return lanes.value;
  Value* const base = ops_.splat(lanes.value, lanes_);
  if (lanes.stride == 0) return base;
  llvm::Type* const element = lanes.value->getType();
  Value* const steps = b.CreateMul(ops_.lane_numbers(element, lanes_),
                                   llvm::ConstantInt::get(base->getType(), lanes.stride, true));
  return b.CreateAdd(base, steps);
}

void LaneEmitter::assign(isa::Register dst, Lanes value, uint32_t instruction) {
  guards_.erase(dst.index);
  llvm::AllocaInst* const to = slot(dst);
  if (!shape(dst).is_varying()) {
    b.CreateStore(value.value, to);
    return;
  }
  Value* next = vector(value);
  if (mask_ && shapes_.keeps_old_lanes[instruction])
    next = b.CreateSelect(mask_, next, b.CreateLoad(to->getAllocatedType(), to));
  b.CreateStore(next, to);
}

Value* LaneEmitter::evaluate(const Instruction& i, llvm::ArrayRef<Value*> operands) {
  switch (isa::info(i.op).form) {
    case Form::move:
      return operands[0];
    case Form::convert:
      return ops_.convert(i.type, i.from, operands[0]);
    case Form::bitcast:
      return ops_.bitcast(i.type, i.from, operands[0]);
    case Form::unary:
      return ops_.unary(i.op, i.type, operands[0]);
    case Form::binary:
      return ops_.binary(i.op, i.type, operands[0], operands[1]);
    case Form::shift:
      return ops_.shift(i.op, i.type, operands[0], operands[1]);
    case Form::ternary:
      return ops_.ternary(i.op, i.type, operands[0], operands[1], operands[2]);
    case Form::compare:
      return ops_.compare(i.op, i.type, operands[0], operands[1]);
    default:
      return b.CreateSelect(operands[0], operands[1], operands[2]);  // select
  }
}

LaneEmitter::Lanes LaneEmitter::id(const Instruction& i) {
  const unsigned axis = i.aux;
  Value* value = nullptr;
  int64_t stride = 0;
  switch (i.op) {
    case Opcode::thread_id:
      value = group_.thread[axis];
      stride = axis == 0;
      break;
    case Opcode::block_id:
      value = group_.block[axis];
      break;
    case Opcode::block_size:
      value = kernel_.block[axis];
      break;
    case Opcode::grid_size:
      value = kernel_.grid[axis];
      break;
    default:  // global_id
      stride = axis == 0;
      value = axis == 0 ? group_.global_x
                        : b.CreateAdd(b.CreateMul(group_.block[axis], kernel_.block[axis]),
                                      group_.thread[axis]);
  }
  // Blocks that run as one row have no thread_id.x and block_id.x; the program does not read them.
  if (!value) value = kernel_.i64(0);
  const bool fits = group_.fits_31_bits && value == group_.global_x;
  return {b.CreateTrunc(value, ops_.register_type(i.type), "", fits, fits),
          lanes_ == 1 ? 0 : stride, false};
}

void LaneEmitter::instruction(uint32_t index) {
  const Instruction& i = kernel_.program.body[index];
  ops_.active = mask_;
  switch (isa::info(i.op).form) {
    case Form::immediate:
      if (kernel_.constants[i.dst.index]) return;  // read() knows it
      return assign(i.dst, {ops_.bits(i.type, i.immediate)}, index);
    case Form::parameter:
      return assign(i.dst, {kernel_.parameters[i.symbol]}, index);
    case Form::length:
      return assign(i.dst, {kernel_.lengths[i.symbol]}, index);
    case Form::id:
      return assign(i.dst, id(i), index);
    case Form::move:
      return assign(i.dst, read(i.a), index);
    case Form::load:
      return assign(i.dst, load(i), index);
    case Form::store:
      give_up_ = nullptr;
      return store(i);
    case Form::atomic:
    case Form::atomic_cas:
      give_up_ = nullptr;
      return assign(i.dst, atomic(i), index);
    case Form::fence:
      b.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
      return;
    default:
      break;
  }
  const isa::Operands operands = isa::operands_of(i);
  bool all_uniform = true;
  for (const isa::Operand& o : operands) all_uniform &= shape(o.reg).is_uniform();
  const bool as_vector = shape(i.dst).is_varying() && !all_uniform;
  llvm::SmallVector<Value*, 3> values;
  for (const isa::Operand& o : operands)
    values.push_back(as_vector ? read_vector(o.reg) : read_scalar(o.reg));
  Value* const value = evaluate(i, values);
  assign(i.dst, {value, as_vector ? 0 : shape(i.dst).stride, as_vector}, index);
  if (give_up_ && in_guard_chain_ && i.op != Opcode::convert) note_guard(i);
}

// Remembers, for a condition on where a thread is, when all lanes or none fulfil it: that takes
// one or two scalar comparisons instead of a mask.
void LaneEmitter::note_guard(const Instruction& i) {
  if (mask_ || !shape(i.dst).is_varying()) return;
  const auto guard_of = [&](isa::Register r) -> Guard {
    if (const auto found = guards_.find(r.index); found != guards_.end()) return found->second;
    if (!shape(r).is_uniform()) return {};
    Value* const value = read_scalar(r);
    return {value, b.CreateNot(value)};
  };
  if (i.type == DType::boolean && (i.op == Opcode::bit_and || i.op == Opcode::bit_or)) {
    const Guard x = guard_of(i.a), y = guard_of(i.b);
    if (!x.all || !y.all) return;
    guards_[i.dst.index] = i.op == Opcode::bit_and
                               ? Guard{b.CreateAnd(x.all, y.all), b.CreateOr(x.none, y.none)}
                               : Guard{b.CreateOr(x.all, y.all), b.CreateAnd(x.none, y.none)};
    return;
  }
  if (i.type == DType::boolean && i.op == Opcode::bit_not) {
    if (const Guard x = guard_of(i.a); x.all) guards_[i.dst.index] = {x.none, x.all};
    return;
  }
  const bool is_order =
      i.op == Opcode::lt || i.op == Opcode::le || i.op == Opcode::gt || i.op == Opcode::ge;
  if (!is_order || !is_integer(i.type)) return;
  const bool left = shape(i.b).is_uniform();
  const isa::Register moving = left ? i.a : i.b;
  if (!(left ? shape(i.a) : shape(i.b)).is_linear() || !(left || shape(i.a).is_uniform())) return;
  const LaneShape& s = shape(moving);
  if (s.stride <= 0) return;
  Value* const first = read_scalar(moving);
  Value* const distance =
      llvm::ConstantInt::get(first->getType(), s.stride * static_cast<int64_t>(lanes_ - 1));
  Value* last = b.CreateAdd(first, distance);
  Value* in_order = nullptr;
  if (!s.exact)
    in_order =
        is_signed_integer(i.type) ? b.CreateICmpSLE(first, last) : b.CreateICmpULE(first, last);
  const auto holds = [&](Value* at) {
    return left ? ops_.compare(i.op, i.type, at, read_scalar(i.b))
                : ops_.compare(i.op, i.type, read_scalar(i.a), at);
  };
  // Whether the condition, once true, stays true with growing lanes.
  const bool rises = left == (i.op == Opcode::gt || i.op == Opcode::ge);
  Guard guard{holds(rises ? first : last), b.CreateNot(holds(rises ? last : first))};
  if (in_order) {
    guard.all = b.CreateAnd(guard.all, in_order);
    guard.none = b.CreateAnd(guard.none, in_order);
  }
  guards_[i.dst.index] = guard;
}

// ---- a segment

void LaneEmitter::segment(const BlockStep& segment, const ThreadGroup& group, Value* mask,
                          llvm::BasicBlock* give_up) {
  group_ = group;
  mask_ = mask;
  give_up_ = give_up;
  in_guard_chain_ = give_up != nullptr;
  guards_.clear();
  loops_.clear();
  resolved_.assign(kernel_.tree.regions.size(), false);
  end_ = kernel_.block_named("done");
  alive_ = nullptr;

  llvm::Type* const mask_type = LaneOps::with_lanes(b.getInt1Ty(), lanes_);
  const std::vector<Statement>& list = kernel_.tree.regions[segment.region].statements;
  bool returns_alone = false;
  for_each_instruction(kernel_.tree, list, segment.first, segment.last, [&](uint32_t i) {
    returns_alone |= kernel_.program.body[i].op == Opcode::return_ &&
                     (jumps_by_mask(i) || kernel_.plan.keeps_alive);
  });
  if (returns_alone) {
    alive_ = kernel_.slot(mask_type, "alive");
    b.CreateStore(mask_ ? mask_ : llvm::Constant::getAllOnesValue(mask_type), alive_);
  }
  load_kept(segment);
  statements(list, segment.first, segment.last);
  kernel_.go_to(end_);
  mask_ = mask;
  store_kept(segment);
}

namespace {

struct Kept {
  std::vector<uint32_t> read, written;  // registers
};

Kept kept_in(const Kernel& kernel, const BlockStep& segment) {
  std::vector<uint8_t> use(kernel.program.registers.size(), 0);
  for_each_instruction(kernel.tree, kernel.tree.regions[segment.region].statements, segment.first,
                       segment.last, [&](uint32_t index) {
                         const Instruction& i = kernel.program.body[index];
                         for (const isa::Operand& o : isa::operands_of(i)) use[o.reg.index] |= 1;
                         if (isa::uses(i, isa::kFieldDst)) use[i.dst.index] |= 2;
                       });
  Kept kept;
  for (uint32_t r = 0; r < use.size(); ++r) {
    if (use[r] == 0 || kernel.plan.storage[r] == Storage::local) continue;
    kept.read.push_back(r);
    if (use[r] & 2) kept.written.push_back(r);
  }
  return kept;
}

}  // namespace

void LaneEmitter::load_kept(const BlockStep& segment) {
  for (uint32_t r : kept_in(kernel_, segment).read) {
    const isa::Register reg{r};
    llvm::AllocaInst* const to = slot(reg);
    if (kernel_.plan.storage[r] == Storage::block) {
      llvm::AllocaInst* const from = kernel_.block_slots[r];
      b.CreateStore(b.CreateLoad(from->getAllocatedType(), from), to);
      continue;
    }
    const DType type = kernel_.program.registers[r];
    const unsigned bytes = static_cast<unsigned>(size_of(type));
    Value* const address =
        kernel_.thread_memory(kernel_.plan.thread_offset[r], bytes, group_.number);
    llvm::Type* const element = ops_.memory_type(type);
    Value* value;
    if (!shape(reg).is_varying() || lanes_ == 1) {
      value = b.CreateAlignedLoad(element, address, llvm::Align(bytes));
    } else if (mask_) {
      llvm::Type* const wide = LaneOps::with_lanes(element, lanes_);
      value = b.CreateMaskedLoad(wide, address, llvm::Align(bytes), mask_,
                                 llvm::Constant::getNullValue(wide));
    } else {
      value =
          b.CreateAlignedLoad(LaneOps::with_lanes(element, lanes_), address, llvm::Align(bytes));
    }
    b.CreateStore(ops_.from_memory(type, value), to);
  }
}

void LaneEmitter::store_kept(const BlockStep& segment) {
  const Kept kept = kept_in(kernel_, segment);
  for (uint32_t r : kept.written) {
    if (kernel_.plan.storage[r] != Storage::thread) continue;
    const DType type = kernel_.program.registers[r];
    const unsigned bytes = static_cast<unsigned>(size_of(type));
    Value* const address =
        kernel_.thread_memory(kernel_.plan.thread_offset[r], bytes, group_.number);
    Value* const value = ops_.to_memory(type, read_vector({r}));
    if (mask_ && lanes_ > 1)
      b.CreateMaskedStore(value, address, llvm::Align(bytes), mask_);
    else
      b.CreateAlignedStore(value, address, llvm::Align(bytes));
  }
  if (alive_ && kernel_.plan.keeps_alive) {
    Value* const alive = b.CreateLoad(alive_->getAllocatedType(), alive_);
    Value* const address = kernel_.thread_memory(kernel_.plan.alive_offset, 1, group_.number);
    Value* const bytes = ops_.to_memory(DType::boolean, alive);
    if (mask_ && lanes_ > 1)
      b.CreateMaskedStore(bytes, address, llvm::Align(1), mask_);
    else
      b.CreateAlignedStore(bytes, address, llvm::Align(1));
  }
  // A group whose lanes have all returned did not get as far as the others.
  llvm::BasicBlock* after = nullptr;
  if (alive_ && !kept.written.empty()) {
    llvm::BasicBlock* const some = kernel_.block_named("alive");
    after = kernel_.block_named("kept");
    branch_if_any(b.CreateLoad(alive_->getAllocatedType(), alive_), some, after);
    b.SetInsertPoint(some);
  }
  for (uint32_t r : kept.written)
    if (kernel_.plan.storage[r] == Storage::block)
      b.CreateStore(read_scalar({r}), kernel_.next_block_slots[r]);
  if (after) kernel_.go_to(after);
}

}  // namespace hologram::codegen
