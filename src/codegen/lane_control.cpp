// Control flow of the lane emitter.
#include "codegen/lane_emitter.h"
#include "codegen/vector_width.h"
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
  if (&i == assumed_) {
    resolved_[s.body] = true;
    return region(s.body);
  }
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

// The bounds and the counter of a `for` while it is written.
struct LaneEmitter::Counting {
  const Instruction& i;
  bool is_signed = false;
  bool uniform = false;  // one comparison decides for all lanes
  Lanes begin, step;
  std::optional<int64_t> constant_step;
  Value* end = nullptr;      // a scalar if uniform, or a vector
  Value* upwards = nullptr;  // likewise
  llvm::AllocaInst* counter = nullptr;
};

// Whether `value` is before the end, in the direction of the step.
Value* LaneEmitter::before_end(const Counting& c, Value* value) {
  if (!c.is_signed) return b.CreateICmpULT(value, c.end);
  return b.CreateSelect(c.upwards, b.CreateICmpSLT(value, c.end), b.CreateICmpSGT(value, c.end));
}

LaneEmitter::Lanes LaneEmitter::current(const Counting& c) {
  return {b.CreateLoad(c.counter->getAllocatedType(), c.counter), c.begin.stride,
          c.begin.is_vector};
}

void LaneEmitter::for_statement(const Statement& s) {
  const Instruction& i = kernel_.program.body[s.instruction];
  const bool chain = in_guard_chain_;
  in_guard_chain_ = false;
  Value* const mask_before = mask_;
  const bool scalar_counter = shape(i.a).is_linear() && shape(i.c).is_uniform();
  Counting c{.i = i, .is_signed = is_signed_integer(i.type)};
  c.uniform = shape(i.a).is_uniform() && shape(i.b).is_uniform() && shape(i.c).is_uniform();
  const auto shown = [&](Lanes lanes) { return c.uniform ? lanes.value : vector(lanes); };
  c.begin = scalar_counter ? read(i.a) : Lanes{read_vector(i.a), 0, true};
  c.step = scalar_counter ? read(i.c) : Lanes{read_vector(i.c), 0, true};
  c.constant_step = small_integer(kernel_.constants[i.c.index]);
  c.end = shown(read(i.b));
  Value* const steps = shown(c.step);
  Value* const zero = llvm::Constant::getNullValue(steps->getType());
  ops_.active = mask_;
  Value* const no_step = b.CreateICmpEQ(steps, zero);
  ops_.trap_if(no_step, isa::kTrapZeroStep);
  c.upwards = c.is_signed ? b.CreateICmpSGT(steps, zero) : b.CreateNot(no_step);
  c.counter = kernel_.slot(c.begin.value->getType(), "counter");
  b.CreateStore(c.begin.value, c.counter);
  const bool dense = is_dense(s);
  if (dense) dense_turns(s, c);
  loops_.push_back(open_loop(s));
  BasicBlock* const turn = kernel_.block_named("for");
  if (dense) {
    // Mostly nothing is left, which the first lane alone can tell.
    BasicBlock* const left = kernel_.block_named("dense.left");
    Value* const first = current(c).value;
    Value* const end = read_scalar(i.b);
    b.CreateCondBr(c.is_signed ? b.CreateICmpSLT(first, end) : b.CreateICmpULT(first, end), left,
                   loops_.back().end);
    b.SetInsertPoint(left);
  }
  Value* const runs = b.CreateAnd(before_end(c, shown(current(c))), b.CreateNot(no_step));
  const auto continue_with = [&](Value* wanted) {
    const Loop& loop = loops_.back();
    if (!loop.live) {
      b.CreateCondBr(wanted, turn, loop.end);
      return;
    }
    Value* live = b.CreateLoad(loop.live->getAllocatedType(), loop.live);
    if (c.uniform) {
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
  assign(i.dst, current(c), s.instruction);
  region(s.body);
  kernel_.go_to(loops_.back().next);
  // A counter that would leave its type has passed every end.
  const Lanes now = current(c);
  const Lanes next{b.CreateAdd(now.value, c.step.value), now.stride, now.is_vector};
  b.CreateStore(next.value, c.counter);
  Value* const from = shown(now);
  Value* const to = shown(next);
  Value* wanted = before_end(c, to);
  if (c.constant_step != 1 && c.constant_step != -1) {  // one step reaches the end at most
    Value* const wrapped = c.is_signed ? b.CreateSelect(c.upwards, b.CreateICmpSLT(to, from),
                                                        b.CreateICmpSGT(to, from))
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

// Whether lanes that start side by side climb to one end: they all take part but in the last turns.
// That is how a block strides through an array. Writing the body twice must be worth it.
bool LaneEmitter::is_dense(const Statement& s) const {
  const Instruction& i = kernel_.program.body[s.instruction];
  const LaneShape& begin = shape(i.a);
  const bool climbs =
      begin.is_linear() && begin.exact && begin.stride > 0 && shape(i.b).is_uniform() &&
      shape(i.c).is_uniform() &&
      (is_unsigned_integer(i.type) || small_integer(kernel_.constants[i.c.index]).value_or(-1) > 0);
  if (!climbs || mask_ || has_math(kernel_)) return false;
  bool jumps = false;
  const std::vector<Statement>& body = kernel_.tree.regions[s.body].statements;
  for_each_instruction(kernel_.tree, body, 0, static_cast<uint32_t>(body.size()), [&](uint32_t j) {
    const Opcode op = kernel_.program.body[j].op;
    jumps |=
        op == Opcode::return_ || (isa::info(op).form == Form::jump &&
                                  kernel_.tree.regions[kernel_.tree.region_of[j]].loop == s.body);
  });
  return !jumps;
}

// The turns in which all lanes take part; the counter is left where the others begin.
void LaneEmitter::dense_turns(const Statement& s, const Counting& c) {
  BasicBlock* const head = kernel_.block_named("dense");
  BasicBlock* const turn = kernel_.block_named("dense.turn");
  BasicBlock* const end = kernel_.block_named("dense.end");
  const auto wide = [&](Value* value) {
    return c.is_signed ? b.CreateSExt(value, b.getInt64Ty()) : b.CreateZExt(value, b.getInt64Ty());
  };
  const uint64_t distance = static_cast<uint64_t>(c.begin.stride) * (lanes_ - 1);
  Value* const limit = wide(read_scalar(c.i.b));
  Value* const step = wide(c.step.value);
  kernel_.go_to(head);
  // In 64 bits nothing wraps that did not start there: 64-bit counters are checked instead.
  Value* const now = wide(current(c).value);
  Value* const last = b.CreateAdd(now, kernel_.i64(distance));
  const auto less = [&](Value* x, Value* y) {
    return c.is_signed ? b.CreateICmpSLT(x, y) : b.CreateICmpULT(x, y);
  };
  Value* all = b.CreateAnd(less(last, limit), less(now, last));
  // The next counter must not wrap either, and a step of zero would never end.
  all = b.CreateAnd(all, less(last, b.CreateAdd(last, step)));
  if (bits_of(c.i.type) < 64) {
    const uint64_t most = (uint64_t{1} << (bits_of(c.i.type) - c.is_signed)) - 1;
    all = b.CreateAnd(all, less(b.CreateAdd(last, step), kernel_.i64(most)));
  }
  b.CreateCondBr(all, turn, end);
  b.SetInsertPoint(turn);
  resolved_[s.body] = true;
  assign(c.i.dst, current(c), s.instruction);
  region(s.body);
  resolved_[s.body] = false;
  const Lanes counter = current(c);
  b.CreateStore(b.CreateAdd(counter.value, c.step.value), c.counter);
  b.CreateBr(head);
  b.SetInsertPoint(end);
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
