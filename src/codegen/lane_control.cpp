// Control flow of the lane emitter.
#include "codegen/lane_emitter.h"
#include "isa/fields.h"

namespace hologram::codegen {

using isa::Form;
using isa::Instruction;
using isa::Opcode;
using llvm::BasicBlock;
using llvm::Value;

// ---- divergence as it is at this point: guards may have resolved some of it

bool LaneEmitter::diverges(uint32_t from, uint32_t to) const {
  for (uint32_t r = from; r != to; r = kernel_.tree.regions[r].parent)
    if (shapes_.divergent[r] && !resolved_[r]) return true;
  return false;
}

// Whether a jump takes lanes out of the mask instead of being a branch: not all lanes of what it
// leaves need be there.
bool LaneEmitter::jumps_by_mask(uint32_t index) const {
  const uint32_t region = kernel_.tree.region_of[index];
  const bool returns = kernel_.program.body[index].op == Opcode::return_;
  return diverges(region, returns ? 0 : kernel_.tree.regions[region].loop);
}

void LaneEmitter::branch_if_any(Value* mask, BasicBlock* some, BasicBlock* none) {
  b.CreateCondBr(ops_.any(mask), some, none);
}

// ---- statements

void LaneEmitter::region(uint32_t region) {
  const std::vector<Statement>& list = kernel_.tree.regions[region].statements;
  statements(list, 0, static_cast<uint32_t>(list.size()));
}

void LaneEmitter::statements(const std::vector<Statement>& list, uint32_t first, uint32_t last) {
  for (uint32_t i = first; i < last; ++i) {
    Value* const mask_before = mask_;
    statement(list[i]);
    if (list[i].rest != kNoRegion) rest(list[i], mask_before);
  }
}

void LaneEmitter::statement(const Statement& s) {
  switch (s.kind) {
    case StatementKind::if_:
      return if_statement(s);
    case StatementKind::for_:
      return for_statement(s);
    case StatementKind::loop:
      return loop_statement(s);
    case StatementKind::plain:
      if (isa::info(kernel_.program.body[s.instruction].op).form == Form::jump)
        return jump(s.instruction);
      return instruction(s.instruction);
  }
}

// What follows a statement that lanes may have left for good: those that did not.
void LaneEmitter::rest(const Statement& s, Value* mask_before) {
  bool by_mask = false;
  for (uint32_t jump : s.escapes) by_mask |= jumps_by_mask(jump);
  if (!by_mask) return region(s.rest);
  const auto load = [&](llvm::AllocaInst* slot) {
    return b.CreateLoad(slot->getAllocatedType(), slot);
  };
  Value* mask = mask_before;
  const auto keep = [&](Value* lanes) { mask = mask ? b.CreateAnd(mask, lanes) : lanes; };
  if (!loops_.empty() && loops_.back().live)
    keep(load(loops_.back().live));
  else if (alive_)
    keep(load(alive_));
  if (!loops_.empty() && loops_.back().skipped) keep(b.CreateNot(load(loops_.back().skipped)));

  BasicBlock* const some = kernel_.block_named("rest");
  BasicBlock* const none = kernel_.block_named("rest.end");
  branch_if_any(mask, some, none);
  b.SetInsertPoint(some);
  mask_ = mask;
  region(s.rest);
  kernel_.go_to(none);
  mask_ = mask_before;
}

// ---- if

// A few cheap instructions cost less under an empty mask than a branch around them. What needs an
// active lane (a scalar access) or takes long is not among them.
bool LaneEmitter::is_flat(uint32_t region) const {
  const std::vector<Statement>& list = kernel_.tree.regions[region].statements;
  if (list.size() > 6) return false;
  for (const Statement& s : list) {
    const Instruction& i = kernel_.program.body[s.instruction];
    if (s.kind != StatementKind::plain) return false;
    switch (isa::info(i.op).form) {
      case Form::immediate:
      case Form::move:
      case Form::compare:
      case Form::select:
      case Form::parameter:
      case Form::length:
      case Form::id:
        continue;
      case Form::binary:
        if (i.op == Opcode::div || i.op == Opcode::rem || i.op == Opcode::pow) return false;
        continue;
      case Form::unary:
        if (i.op == Opcode::neg || i.op == Opcode::abs || i.op == Opcode::bit_not) continue;
        return false;
      case Form::ternary:
        if (i.op == Opcode::fma && !kernel_.target.has_fma()) return false;
        continue;
      case Form::load:
      case Form::store:
        if (shape(i.a).is_uniform() || !kernel_.target.has_masks()) return false;
        continue;
      default:
        return false;
    }
  }
  return true;
}

void LaneEmitter::if_statement(const Statement& s) {
  const Instruction& i = kernel_.program.body[s.instruction];
  const bool has_else = s.otherwise != kNoRegion;
  if (shape(i.a).is_uniform()) {
    const bool chain = in_guard_chain_;
    in_guard_chain_ = false;  // what one side computes does not dominate what follows
    BasicBlock* const then = kernel_.block_named("then");
    BasicBlock* const otherwise = has_else ? kernel_.block_named("else") : nullptr;
    BasicBlock* const end = kernel_.block_named("if.end");
    Value* const mask = mask_;
    b.CreateCondBr(read_scalar(i.a), then, has_else ? otherwise : end);
    b.SetInsertPoint(then);
    region(s.body);
    b.CreateBr(end);
    if (has_else) {
      mask_ = mask;
      b.SetInsertPoint(otherwise);
      region(s.otherwise);
      b.CreateBr(end);
    }
    b.SetInsertPoint(end);
    mask_ = mask;
    in_guard_chain_ = chain;
    return;
  }
  if (guarded_if(s)) return;

  const bool chain = in_guard_chain_;
  in_guard_chain_ = false;
  Value* const before = mask_;
  Value* const condition = read_vector(i.a);
  const auto side = [&](uint32_t body, Value* lanes, const char* name) {
    mask_ = before ? b.CreateAnd(before, lanes) : lanes;
    if (is_flat(body)) return region(body);
    BasicBlock* const some = kernel_.block_named(name);
    BasicBlock* const end = kernel_.block_named("masked.end");
    branch_if_any(mask_, some, end);
    b.SetInsertPoint(some);
    region(body);
    kernel_.go_to(end);
  };
  side(s.body, condition, "masked.then");
  if (has_else) side(s.otherwise, b.CreateNot(condition), "masked.else");
  mask_ = before;
  in_guard_chain_ = chain;
}

// An `if` on where threads are: nearly always all lanes agree, so only that is written, and lanes
// that do not agree are given up to the emitter of masked code.
bool LaneEmitter::guarded_if(const Statement& s) {
  const Instruction& i = kernel_.program.body[s.instruction];
  const auto found = guards_.find(i.a.index);
  if (!give_up_ || !in_guard_chain_ || mask_ || found == guards_.end()) return false;
  const Guard guard = found->second;
  BasicBlock* const then = kernel_.block_named("all");
  BasicBlock* const not_all = kernel_.block_named("not.all");
  BasicBlock* const end = kernel_.block_named("guard.end");
  const bool has_else = s.otherwise != kNoRegion;
  BasicBlock* const otherwise = has_else ? kernel_.block_named("none") : end;
  b.CreateCondBr(guard.all, then, not_all);
  b.SetInsertPoint(not_all);
  b.CreateCondBr(guard.none, otherwise, give_up_);
  resolved_[s.body] = true;
  BasicBlock* const give_up = give_up_;
  b.SetInsertPoint(then);
  region(s.body);
  b.CreateBr(end);
  BasicBlock* const give_up_after_then = give_up_;
  if (has_else) {
    give_up_ = give_up;
    resolved_[s.otherwise] = true;
    b.SetInsertPoint(otherwise);
    region(s.otherwise);
    b.CreateBr(end);
  }
  if (!give_up_after_then) give_up_ = nullptr;
  guards_.clear();  // what was noted inside does not dominate what follows
  b.SetInsertPoint(end);
  return true;
}

// ---- loops

LaneEmitter::Loop LaneEmitter::open_loop(const Statement& s) {
  Loop loop{.body = s.body,
            .next = kernel_.block_named("loop.next"),
            .end = kernel_.block_named("loop.end")};
  llvm::Type* const type = LaneOps::with_lanes(b.getInt1Ty(), lanes_);
  bool leaves_alone = shapes_.divergent[s.body];
  for (uint32_t jump : s.escapes) leaves_alone |= jumps_by_mask(jump);  // returns
  if (leaves_alone) {
    loop.live = kernel_.slot(type, "live");
    b.CreateStore(full_mask(), loop.live);
  }
  bool continues_alone = false;
  const std::vector<Statement>& body = kernel_.tree.regions[s.body].statements;
  for_each_instruction(kernel_.tree, body, 0, static_cast<uint32_t>(body.size()), [&](uint32_t j) {
    const uint32_t region = kernel_.tree.region_of[j];
    continues_alone |= kernel_.program.body[j].op == Opcode::continue_ &&
                       kernel_.tree.regions[region].loop == s.body && diverges(region, s.body);
  });
  if (continues_alone) loop.skipped = kernel_.slot(type, "skipped");
  return loop;
}

// At the start of a turn: who takes part.
void LaneEmitter::start_turn(Loop& loop, Value* mask_before) {
  mask_ = loop.live ? b.CreateLoad(loop.live->getAllocatedType(), loop.live) : mask_before;
  if (loop.skipped)
    b.CreateStore(llvm::Constant::getNullValue(loop.skipped->getAllocatedType()), loop.skipped);
}

void LaneEmitter::loop_statement(const Statement& s) {
  const bool chain = in_guard_chain_;
  in_guard_chain_ = false;
  Value* const mask_before = mask_;
  loops_.push_back(open_loop(s));
  BasicBlock* const turn = kernel_.block_named("loop");
  kernel_.go_to(turn);
  start_turn(loops_.back(), mask_before);
  region(s.body);
  const Loop loop = loops_.back();
  loops_.pop_back();
  kernel_.go_to(loop.next);
  if (loop.live)
    branch_if_any(b.CreateLoad(loop.live->getAllocatedType(), loop.live), turn, loop.end);
  else
    b.CreateBr(turn);
  b.SetInsertPoint(loop.end);
  mask_ = mask_before;
  in_guard_chain_ = chain;
}

void LaneEmitter::for_statement(const Statement& s) {
  const Instruction& i = kernel_.program.body[s.instruction];
  const bool chain = in_guard_chain_;
  in_guard_chain_ = false;
  Value* const mask_before = mask_;
  const bool is_signed = is_signed_integer(i.type);
  // With uniform bounds one comparison decides for all lanes.
  const bool uniform =
      shape(i.a).is_uniform() && shape(i.b).is_uniform() && shape(i.c).is_uniform();
  const bool scalar_counter = shape(i.a).is_linear() && shape(i.c).is_uniform();
  const auto shown = [&](Lanes lanes) { return uniform ? lanes.value : vector(lanes); };

  const Lanes begin = scalar_counter ? read(i.a) : Lanes{read_vector(i.a), 0, true};
  const std::optional<int64_t> constant = small_integer(kernel_.constants[i.c.index]);
  const Lanes step = scalar_counter ? read(i.c) : Lanes{read_vector(i.c), 0, true};
  Value* const end_value = shown(read(i.b));
  Value* const steps = shown(step);
  Value* const zero = llvm::Constant::getNullValue(steps->getType());
  ops_.active = mask_;
  Value* const no_step = b.CreateICmpEQ(steps, zero);
  ops_.trap_if(no_step, isa::kTrapZeroStep);
  Value* const upwards = is_signed ? b.CreateICmpSGT(steps, zero) : b.CreateNot(no_step);
  const auto before = [&](Value* value) {
    if (!is_signed) return b.CreateICmpULT(value, end_value);
    return b.CreateSelect(upwards, b.CreateICmpSLT(value, end_value),
                          b.CreateICmpSGT(value, end_value));
  };
  Value* const runs = b.CreateAnd(before(shown(begin)), b.CreateNot(no_step));

  loops_.push_back(open_loop(s));
  llvm::AllocaInst* const counter = kernel_.slot(begin.value->getType(), "counter");
  b.CreateStore(begin.value, counter);
  BasicBlock* const turn = kernel_.block_named("for");
  const auto continue_with = [&](Value* wanted) {
    const Loop& loop = loops_.back();
    if (!loop.live) {
      b.CreateCondBr(wanted, turn, loop.end);
      return;
    }
    Value* live = b.CreateLoad(loop.live->getAllocatedType(), loop.live);
    if (uniform) {
      b.CreateCondBr(b.CreateAnd(wanted, ops_.any(live)), turn, loop.end);
      return;
    }
    live = b.CreateAnd(live, wanted);
    b.CreateStore(live, loop.live);
    branch_if_any(live, turn, loop.end);
  };
  continue_with(runs);

  b.SetInsertPoint(turn);
  start_turn(loops_.back(), mask_before);
  const auto current = [&] {
    return Lanes{b.CreateLoad(counter->getAllocatedType(), counter), begin.stride, begin.is_vector};
  };
  assign(i.dst, current(), s.instruction);
  region(s.body);
  kernel_.go_to(loops_.back().next);
  // A counter that would leave its type has passed every end.
  const Lanes now = current();
  const Lanes next{b.CreateAdd(now.value, step.value), begin.stride, begin.is_vector};
  Value* const from = shown(now);
  Value* const to = shown(next);
  b.CreateStore(next.value, counter);
  Value* wanted = before(to);
  if (constant != 1 && constant != -1) {  // one step from before the end reaches it at most
    Value* const wrapped =
        is_signed ? b.CreateSelect(upwards, b.CreateICmpSLT(to, from), b.CreateICmpSGT(to, from))
                  : b.CreateICmpULT(to, from);
    wanted = b.CreateAnd(wanted, b.CreateNot(wrapped));
  }
  continue_with(wanted);
  const Loop loop = loops_.back();
  loops_.pop_back();
  b.SetInsertPoint(loop.end);
  mask_ = mask_before;
  in_guard_chain_ = chain;
}

// ---- jumps

void LaneEmitter::leave(llvm::AllocaInst* lanes) {
  if (!lanes) return;
  Value* const old = b.CreateLoad(lanes->getAllocatedType(), lanes);
  b.CreateStore(b.CreateAnd(old, b.CreateNot(full_mask())), lanes);
}

void LaneEmitter::jump(uint32_t index) {
  const Opcode op = kernel_.program.body[index].op;
  const bool by_mask = jumps_by_mask(index);
  if (op == Opcode::return_) {
    // Lanes that have returned are gone from every loop, and from the segments to come.
    leave(alive_);
    for (const Loop& loop : loops_) leave(loop.live);
    if (by_mask) return;
    b.CreateBr(end_);
  } else {
    const Loop& loop = loops_.back();
    if (by_mask && op == Opcode::break_) return leave(loop.live);
    if (by_mask) {
      Value* const old = b.CreateLoad(loop.skipped->getAllocatedType(), loop.skipped);
      b.CreateStore(b.CreateOr(old, full_mask()), loop.skipped);
      return;
    }
    b.CreateBr(op == Opcode::break_ ? loop.end : loop.next);
  }
  b.SetInsertPoint(kernel_.block_named("never"));
}

}  // namespace hologram::codegen
