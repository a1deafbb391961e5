#include "codegen/flat_emitter.h"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>

#include "codegen/function_emitter.h"
#include "codegen/vector_width.h"
#include "isa/fields.h"

namespace hologram::codegen {

using isa::Form;
using isa::Instruction;
using isa::Opcode;
using llvm::BasicBlock;
using llvm::Value;

namespace {

constexpr size_t kLongest = 40;  // instructions; a longer body hides what goes before it
constexpr unsigned kUnroll = 4;  // vectors a turn, one after the other as a stream is prefetched
// Outputs from this size on do not stay in any cache: storing around it saves reading them first.
constexpr uint64_t kStreamBytes = uint64_t{64} << 20;
constexpr uint64_t kMost32 = uint64_t{1} << 31;  // threads whose ids fit 32 bits, signed or not

bool is_integer_division(const Instruction& i) {
  return (i.op == Opcode::div || i.op == Opcode::rem) && is_integer(i.type);
}

std::vector<const Instruction*> single_assignments(const isa::Program& program) {
  std::vector<const Instruction*> made_by(program.registers.size(), nullptr);
  std::vector<bool> seen(program.registers.size(), false);
  for (const Instruction& i : program.body) {
    if (!isa::uses(i, isa::kFieldDst)) continue;
    made_by[i.dst.index] = seen[i.dst.index] ? nullptr : &i;
    seen[i.dst.index] = true;
  }
  return made_by;
}

// Whether every thread has the same value, which can be told before any has run.
bool is_launch_constant(const std::vector<const Instruction*>& made_by, isa::Register r) {
  const Instruction* const i = made_by[r.index];
  if (!i || !is_integer(i->type)) return false;
  switch (i->op) {
    case Opcode::imm:
    case Opcode::param:
    case Opcode::length:
    case Opcode::block_size:
    case Opcode::grid_size:
      return true;
    case Opcode::mov:
      return is_launch_constant(made_by, i->a);
    case Opcode::convert:
      return is_integer(i->from) && is_launch_constant(made_by, i->a);
    case Opcode::add:
    case Opcode::sub:
    case Opcode::mul:
      return is_launch_constant(made_by, i->a) && is_launch_constant(made_by, i->b);
    default:
      return false;
  }
}

// global_id.x, in a type that holds every id of a launch of at most kMost32 threads.
bool is_thread(const std::vector<const Instruction*>& made_by, isa::Register r) {
  const Instruction* const i = made_by[r.index];
  if (!i) return false;
  if (i->op == Opcode::global_id) return i->aux == 0;
  if (i->op == Opcode::mov) return is_thread(made_by, i->a);
  return i->op == Opcode::convert && is_integer(i->type) && bits_of(i->type) >= 32 &&
         is_integer(i->from) && is_thread(made_by, i->a);
}

// The bound of `thread < bound`; no register where the `if` asks something else.
isa::Register bound_of(const std::vector<const Instruction*>& made_by, const Instruction& if_) {
  const Instruction* const condition = made_by[if_.a.index];
  if (!condition || !is_integer(condition->type)) return {};
  if (condition->op == Opcode::lt && is_thread(made_by, condition->a) &&
      is_launch_constant(made_by, condition->b))
    return condition->b;
  if (condition->op == Opcode::gt && is_thread(made_by, condition->b) &&
      is_launch_constant(made_by, condition->a))
    return condition->a;
  return {};
}

}  // namespace

bool FlatEmitter::suits(const isa::Program& program) {
  if (program.body.size() > kLongest || !program.shared.empty()) return false;
  const auto made_by = single_assignments(program);
  const Instruction* guard = nullptr;
  bool inside = false, stores = false, acts_before = false;
  for (const Instruction& i : program.body) {
    switch (isa::info(i.op).form) {
      case Form::if_begin:
        if (guard || !bound_of(made_by, i).valid()) return false;
        guard = &i;
        inside = true;
        continue;
      case Form::end:
        if (!inside) return false;
        inside = false;
        continue;
      case Form::atomic:
      case Form::atomic_cas:
      case Form::group:
      case Form::barrier:
      case Form::fence:
      case Form::if_else:
      case Form::for_begin:
      case Form::loop_begin:
      case Form::jump:
        return false;
      case Form::id:
        if ((i.op == Opcode::thread_id || i.op == Opcode::block_id) && i.aux == 0) return false;
        break;
      case Form::store:
        stores = true;
        break;
      default:
        if (is_math(i.op)) return false;
    }
    if (guard && !inside) return false;  // something behind the `if`
    if (!guard) acts_before |= isa::info(i.op).form == Form::store || is_integer_division(i);
  }
  return stores && !(guard && acts_before);
}

bool FlatEmitter::needs_words_alone(const isa::Program& program) {
  bool bounded = false;
  for (const Instruction& i : program.body) {
    if (i.op == Opcode::length || i.op == Opcode::block_size || i.op == Opcode::grid_size ||
        is_integer_division(i))
      return false;
    bounded |= i.op == Opcode::if_begin;
  }
  return bounded && program.parameters.size() <= isa::kMaxWordsInRegisters &&
         !may_be_careful(program, analyse_lanes(program, build_control_tree(program)));
}

FlatEmitter::FlatEmitter(const isa::Program& program, const Target& target,
                         llvm::Function* function, llvm::IRBuilder<>& builder, bool words)
    : b(builder),
      kernel_(program, target, function, builder, 0, words),
      shapes_(analyse_lanes(program, kernel_.tree)),
      single_(single_lane(program, kernel_.tree)),
      made_by_(single_assignments(program)),
      lanes_(native_lanes(kernel_, shapes_)),
      vector_(kernel_, lanes_, shapes_) {
  if (!target.has_masks()) one_ = std::make_unique<LaneEmitter>(kernel_, 1, single_);
  for (const Instruction& i : program.body)
    if (i.op == Opcode::if_begin) guard_ = &i;
}

void FlatEmitter::emit(llvm::Function* general) {
  Value* const begin = b.CreateMul(kernel_.function->getArg(1), kernel_.block[0]);
  Value* const end = b.CreateMul(kernel_.function->getArg(2), kernel_.block[0]);
  Value* const others = b.CreateOr(b.CreateOr(kernel_.grid[1], kernel_.grid[2]),
                                   b.CreateOr(kernel_.block[1], kernel_.block[2]));
  Value* flat = b.CreateAnd(b.CreateICmpEQ(others, kernel_.i64(1)),
                            b.CreateICmpULE(end, kernel_.i64(kMost32)));
  if (Value* const careful = must_be_careful(kernel_, shapes_))
    flat = b.CreateAnd(flat, b.CreateNot(careful));
  BasicBlock* const row = kernel_.block_named("flat");
  BasicBlock* const other = kernel_.block_named("other");
  b.CreateCondBr(flat, row, other, llvm::MDBuilder(b.getContext()).createBranchWeights(1000, 1));

  b.SetInsertPoint(other);
  llvm::SmallVector<Value*, 4> arguments;
  for (llvm::Argument& argument : kernel_.function->args()) arguments.push_back(&argument);
  b.CreateCall(general, arguments)->setTailCallKind(llvm::CallInst::TCK_MustTail);
  b.CreateRetVoid();

  b.SetInsertPoint(row);
  rows(begin, end);
  kernel_.finish();
}

void FlatEmitter::emit() {
  rows(kernel_.i64(0), kernel_.i64(kMost32));
  kernel_.finish();
}

// Threads [begin, end) with what the `if` lets through: whole turns, then the rest.
void FlatEmitter::rows(Value* begin, Value* end) {
  if (guard_) end = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, end, guard_bound());
  Value* const count = b.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, end, begin);
  const uint64_t turn = uint64_t{lanes_} * kUnroll;
  Value* const whole = b.CreateAnd(count, kernel_.i64(~(turn - 1)));
  Value* const stop = b.CreateAdd(begin, whole);
  BasicBlock* const some = kernel_.block_named("turns");
  BasicBlock* const rest = kernel_.block_named("rest");
  BasicBlock* const done = kernel_.block_named("done");
  b.CreateCondBr(b.CreateICmpEQ(whole, kernel_.i64(0)), rest, some);
  b.SetInsertPoint(some);
  if (can_stream()) {
    BasicBlock* const large = kernel_.block_named("large");
    BasicBlock* const streamed = kernel_.block_named("streamed");
    BasicBlock* const cached = kernel_.block_named("cached");
    b.CreateCondBr(is_large(), large, cached);
    b.SetInsertPoint(large);
    b.CreateCondBr(stores_whole_lines(begin), streamed, cached);
    b.SetInsertPoint(streamed);
    vectors(begin, stop, rest, true);
    b.SetInsertPoint(cached);
  }
  vectors(begin, stop, rest, false);

  b.SetInsertPoint(rest);
  BasicBlock* const some_left = kernel_.block_named("some.left");
  b.CreateCondBr(b.CreateICmpEQ(count, whole), done, some_left);
  b.SetInsertPoint(some_left);
  tail(stop, b.CreateAdd(begin, count));
  kernel_.go_to(done);
}

// Whole turns of [begin, end), which is not empty.
void FlatEmitter::vectors(Value* begin, Value* end, BasicBlock* after, bool stream) {
  BasicBlock* const before = b.GetInsertBlock();
  BasicBlock* const turn = kernel_.block_named(stream ? "stream" : "vector");
  BasicBlock* const last = kernel_.block_named("last");
  kernel_.go_to(turn);
  llvm::PHINode* const x = b.CreatePHI(b.getInt64Ty(), 2, "x");
  x->addIncoming(begin, before);
  vector_.set_stream(stream);
  for (unsigned k = 0; k < kUnroll; ++k)
    body(vector_, k == 0 ? x : b.CreateNUWAdd(x, kernel_.i64(uint64_t{k} * lanes_)), nullptr);
  vector_.set_stream(false);
  Value* const next = b.CreateNUWAdd(x, kernel_.i64(uint64_t{kUnroll} * lanes_));
  x->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpEQ(next, end), last, turn);
  b.SetInsertPoint(last);
  // Streamed stores are seen by other threads when the launch is over, like all others.
  if (stream) b.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  b.CreateBr(after);
}

// Threads [first, last), at least one of them.
void FlatEmitter::tail(Value* first, Value* last) {
  BasicBlock* const before = b.GetInsertBlock();
  BasicBlock* const turn = kernel_.block_named("tail");
  BasicBlock* const end = kernel_.block_named("tail.end");
  kernel_.go_to(turn);
  llvm::PHINode* const x = b.CreatePHI(b.getInt64Ty(), 2, "t");
  x->addIncoming(first, before);
  Value* step = kernel_.i64(1);
  if (one_) {
    body(*one_, x, nullptr);
  } else {
    Value* const left = b.CreateSub(last, x);
    step = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, left, kernel_.i64(lanes_));
    Value* const count = kernel_.ops.splat(b.CreateTrunc(step, b.getInt32Ty()), lanes_);
    body(vector_, x, b.CreateICmpULT(kernel_.ops.lane_numbers(b.getInt32Ty(), lanes_), count));
  }
  Value* const next = b.CreateNUWAdd(x, step);
  x->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpULT(next, last), turn, end);
  b.SetInsertPoint(end);
}

void FlatEmitter::body(LaneEmitter& emitter, Value* x, Value* mask) {
  ThreadGroup group;
  for (int axis = 1; axis < 3; ++axis) group.block[axis] = group.thread[axis] = kernel_.i64(0);
  group.global_x = x;
  group.fits_31_bits = true;
  emitter.assume(guard_);
  emitter.segment(kernel_.plan.steps[0], group, mask, nullptr);
}

// The number of threads that pass the `if`, as far as they fit i64.
Value* FlatEmitter::guard_bound() {
  const isa::Register bound = bound_of(made_by_, *guard_);
  const DType type = kernel_.program.registers[bound.index];
  Value* const value = value_at(bound, nullptr);
  if (!is_signed_integer(type)) return b.CreateZExt(value, b.getInt64Ty());
  Value* const wide = b.CreateSExt(value, b.getInt64Ty());
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, wide, kernel_.i64(0));
}

// Whether the program's stores can go around the caches: whole vectors to arrays it does not read.
bool FlatEmitter::can_stream() const {
  if (kernel_.words) return false;  // few threads
  const uint64_t vector_bytes = kernel_.target.vector_bits() / 8;
  for (const Instruction& i : kernel_.program.body) {
    if (isa::info(i.op).form != Form::store) continue;
    const LaneShape& index = shapes_.registers[i.a.index];
    if (!index.is_linear() || index.stride != 1 || size_of(i.type) * lanes_ != vector_bytes)
      return false;
    for (const Instruction& j : kernel_.program.body)
      if (isa::info(j.op).form == Form::load && j.symbol == i.symbol) return false;
  }
  return true;
}

// Whether all blocks together write so much that none of it would be found in a cache later.
Value* FlatEmitter::is_large() {
  uint64_t bytes = 0;  // a thread
  for (const Instruction& i : kernel_.program.body)
    if (isa::info(i.op).form == Form::store) bytes += size_of(i.type);
  Value* const threads = b.CreateMul(kernel_.grid[0], kernel_.block[0]);
  return b.CreateICmpUGE(threads, kernel_.i64(kStreamBytes / bytes));
}

// Whether stores from thread `begin` on are aligned, and not to what is being read, which is in the
// caches anyway.
Value* FlatEmitter::stores_whole_lines(Value* begin) {
  Value* result = b.getTrue();
  for (const Instruction& i : kernel_.program.body) {
    if (isa::info(i.op).form != Form::store) continue;
    Value* const first = value_at(i.a, begin);
    if (!first) return b.getFalse();
    Value* const array = kernel_.parameters[i.symbol];
    Value* const offset = b.CreateMul(is_signed_integer(kernel_.program.registers[i.a.index])
                                          ? b.CreateSExt(first, b.getInt64Ty())
                                          : b.CreateZExt(first, b.getInt64Ty()),
                                      kernel_.i64(size_of(i.type)));
    Value* const address = b.CreateAdd(b.CreatePtrToInt(array, b.getInt64Ty()), offset);
    const uint64_t low_bits = kernel_.target.vector_bits() / 8 - 1;
    result = b.CreateAnd(
        result, b.CreateICmpEQ(b.CreateAnd(address, kernel_.i64(low_bits)), kernel_.i64(0)));
    for (const Instruction& j : kernel_.program.body)
      if (isa::info(j.op).form == Form::load)
        result = b.CreateAnd(result, b.CreateICmpNE(kernel_.parameters[j.symbol], array));
  }
  return result;
}

// The value of an integer register in thread x of a flat launch; null where it takes more than
// constants, ids, sums and products to know it.
Value* FlatEmitter::value_at(isa::Register r, Value* x) {
  const Instruction* const i = made_by_[r.index];
  if (!i || !is_integer(i->type)) return nullptr;
  llvm::Type* const type = kernel_.ops.register_type(i->type);
  LaneOps& ops = kernel_.ops;
  switch (i->op) {
    case Opcode::imm:
      return ops.bits(i->type, i->immediate);
    case Opcode::param:
      return kernel_.parameters[i->symbol];
    case Opcode::length:
      return kernel_.lengths[i->symbol];
    case Opcode::block_size:
      return b.CreateTrunc(kernel_.block[i->aux], type);
    case Opcode::grid_size:
      return b.CreateTrunc(kernel_.grid[i->aux], type);
    case Opcode::global_id:
      if (i->aux == 0) return x ? b.CreateTrunc(x, type) : nullptr;
      [[fallthrough]];
    case Opcode::thread_id:
    case Opcode::block_id:
      return llvm::ConstantInt::get(type, 0);
    case Opcode::mov:
      return value_at(i->a, x);
    case Opcode::convert: {
      if (!is_integer(i->from)) return nullptr;
      Value* const from = value_at(i->a, x);
      return from ? ops.convert(i->type, i->from, from) : nullptr;
    }
    case Opcode::add:
    case Opcode::sub:
    case Opcode::mul: {
      Value* const left = value_at(i->a, x);
      Value* const right = left ? value_at(i->b, x) : nullptr;
      return right ? ops.binary(i->op, i->type, left, right) : nullptr;
    }
    default:
      return nullptr;
  }
}

}  // namespace hologram::codegen
