#include "backends/cpu/kernels/pointwise.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "backends/cpu/kernels/pointwise_operand.h"

namespace hologram::kernels {

using isa::Form;
using isa::Instruction;
using isa::Opcode;
using isa::Register;

Result<Dims> broadcast_dims(const Dims& a, const Dims& b) {
  const size_t rank = std::max(a.rank(), b.rank());
  Dims dims = Dims::filled(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i + a.rank() < rank ? 1 : a[i + a.rank() - rank];
    const int64_t y = i + b.rank() < rank ? 1 : b[i + b.rank() - rank];
    if (x != y && x != 1 && y != 1)
      return fail(ErrorCode::shape_mismatch, "shapes {} and {} do not broadcast", a.to_string(),
                  b.to_string());
    dims[i] = x == 1 ? y : x;
  }
  return dims;
}

namespace {

// 0, 1, 2, ...: kernels that can trap walk the list of lanes even when all take part.
constexpr auto kEveryLane = [] {
  std::array<uint32_t, Pointwise::kBlock> lanes{};
  for (uint32_t i = 0; i < lanes.size(); ++i) lanes[i] = i;
  return lanes;
}();

}  // namespace

Result<Pointwise> Pointwise::prepare(const isa::Program& program) {
  Pointwise result;
  result.steps_.reserve(program.body.size());
  result.types_.reserve(program.parameters.size());
  for (const isa::Parameter& p : program.parameters) {
    if (!p.is_array)
      return fail(ErrorCode::unsupported, "pointwise program with a scalar '{}'", p.name);
    if (p.access == isa::Access::read) {
      if (result.output_count() > 0)
        return fail(ErrorCode::unsupported, "pointwise program with an input after an output");
      ++result.input_count_;
    }
    result.types_.push_back(p.type);
  }
  // The last use of each register, so that slots can be given to others.
  const size_t registers = program.registers.size();
  std::array<uint32_t, 3 * 64> few;
  std::vector<uint32_t> many(3 * registers <= few.size() ? 0 : 3 * registers);
  const auto scratch = many.empty() ? std::span(few).first(3 * registers) : std::span(many);
  const auto last_use = scratch.first(registers);
  const auto note_use = [&](Register r, uint32_t at) {
    if (r.valid()) last_use[r.index] = at;
  };
  for (uint32_t at = 0; at < program.body.size(); ++at) {
    note_use(program.body[at].a, at);
    note_use(program.body[at].b, at);
    note_use(program.body[at].c, at);
  }
  const auto slot_of = scratch.subspan(registers, registers);
  std::ranges::fill(slot_of, Register::kNone);
  // Slots that nothing needs any more, the newest last; no more than there are registers.
  const auto free_slots = scratch.subspan(2 * registers);
  size_t free_count = 0;
  for (uint32_t at = 0; at < program.body.size(); ++at) {
    const Instruction& in = program.body[at];
    const Form form = isa::info(in.op).form;
    if (form == Form::id || form == Form::length) continue;  // the element's own index
    Step step{in, nullptr, 0, 0, 0, 0, false};
    const bool memory = form == Form::load || form == Form::store;
    if (!memory && form != Form::immediate && form != Form::bitcast) {
      step.kernel = form == Form::convert ? isa::convert_kernel(in.type, in.from)
                                          : isa::arithmetic_kernel(in);
      if (!step.kernel) step.kernel = isa::math_kernel(in);
      if (!step.kernel)
        return fail(ErrorCode::unsupported, "instruction {} in a pointwise program",
                    isa::info(in.op).name);
    }
    // The verifier lets programs load what they store, and compute with their position.
    if (memory && in.op != Opcode::load && in.op != Opcode::store)
      return fail(ErrorCode::unsupported, "instruction {} in a pointwise program",
                  isa::info(in.op).name);
    if (in.op == Opcode::load && in.symbol >= result.input_count_)
      return fail(ErrorCode::unsupported, "pointwise program that loads an output");
    auto slot = [&](Register r) { return r.valid() ? slot_of[r.index] : Register::kNone; };
    step.a = memory ? Register::kNone : slot(in.a);  // the address is the element's index
    step.b = slot(in.b);
    step.c = slot(in.c);
    if ((step.a == Register::kNone && in.a.valid() && !memory) ||
        (step.b == Register::kNone && in.b.valid()) || (step.c == Register::kNone && in.c.valid()))
      return fail(ErrorCode::unsupported, "pointwise program that computes with its position");
    if (in.dst.valid()) {
      if (slot_of[in.dst.index] == Register::kNone)
        slot_of[in.dst.index] = free_count > 0 ? free_slots[--free_count] : result.slots_++;
      step.dst = slot_of[in.dst.index];
    }
    // Its slot, if nothing reads it after this, is another's.
    const auto let_go = [&](Register r, uint32_t slot) {
      if (slot == Register::kNone || last_use[r.index] != at) return;
      for (uint32_t other : free_slots.first(free_count))
        if (other == slot) return;
      free_slots[free_count++] = slot;
    };
    let_go(in.a, step.a);
    let_go(in.b, step.b);
    let_go(in.c, step.c);
    result.steps_.push_back(step);
  }
  // What is loaded is read where it lies, also after an output was stored over it in place: an
  // output that is an input unchanged needs its own copy.
  for (const Step& store : result.steps_) {
    if (store.instruction.op != Opcode::store) continue;
    for (Step& load : result.steps_)
      if (load.instruction.op == Opcode::load && store.instruction.b == load.instruction.dst)
        load.copied = true;
  }
  if (result.slots_ > kMaxSlots)
    return fail(ErrorCode::unsupported, "pointwise program needs {} registers at once; at most {}",
                result.slots_, kMaxSlots);
  return result;
}

Status Pointwise::run_range(std::span<const Operand> inputs, std::span<const Tensor> outputs,
                            int64_t begin, int64_t end) const {
  alignas(64) std::byte memory[kMaxSlots][kBlock * 8];
  std::array<std::byte*, kMaxSlots> at{};
  for (int64_t position = begin; position < end; position += kBlock) {
    const int64_t count = std::min(kBlock, end - position);
    const isa::Lanes lanes{kEveryLane.data(), static_cast<uint32_t>(count), true};
    auto pointer = [&](uint32_t slot) -> std::byte* {
      return slot == Register::kNone ? nullptr : at[slot];
    };
    for (const Step& step : steps_) {
      const Instruction& in = step.instruction;
      if (in.op == Opcode::load) {
        const Operand& input = inputs[in.symbol];
        at[step.dst] = input.block(position, count, memory[step.dst]);
        if (step.copied && at[step.dst] != memory[step.dst]) {
          std::memcpy(memory[step.dst], at[step.dst], count * input.size);
          at[step.dst] = memory[step.dst];
        }
      } else if (in.op == Opcode::store) {
        const Tensor& out = outputs[in.symbol - inputs.size()];
        const size_t size = size_of(out.dtype);
        std::memcpy(out.data + position * size, pointer(step.b), count * size);
      } else {
        std::byte* const dst = memory[step.dst];
        const size_t size = size_of(in.type);
        if (in.op == Opcode::imm) {
          for (int64_t i = 0; i < count; ++i) std::memcpy(dst + i * size, &in.immediate, size);
        } else if (in.op == Opcode::bitcast) {
          std::memcpy(dst, pointer(step.a), count * size);
        } else if (step.kernel({dst, pointer(step.a), pointer(step.b), pointer(step.c)}, lanes) !=
                   isa::kNoLane) {
          return fail(ErrorCode::trap,
                      "{}: division by zero, or a shift by the type's width or more",
                      isa::info(in.op).name);
        }
        at[step.dst] = memory[step.dst];
      }
    }
  }
  return {};
}

Status Pointwise::run(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                      const Dims& dims, ThreadPool& threads) const {
  if (inputs.size() > kMaxInputs)
    return fail(ErrorCode::unsupported, "pointwise program with more than {} inputs", kMaxInputs);
  if (dims.count() == 0) return {};
  if (!native_.empty()) {
    std::optional<Status> status = run_native(inputs, outputs, dims, threads);
    if (status) return *std::move(status);
  }
  std::array<Operand, kMaxInputs> operands;
  for (size_t k = 0; k < inputs.size(); ++k) operands[k].set(inputs[k], dims);
  std::mutex mutex;
  Status status;
  threads.parallel_for(dims.count(), 16 * kBlock, [&](size_t begin, size_t end) {
    Status part = run_range({operands.data(), inputs.size()}, outputs, begin, end);
    if (part) return;
    std::lock_guard lock(mutex);
    if (status) status = std::move(part);
  });
  return status;
}

}  // namespace hologram::kernels
