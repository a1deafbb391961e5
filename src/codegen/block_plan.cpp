#include "codegen/block_plan.h"

#include <algorithm>

#include "codegen/lane_shape.h"
#include "isa/fields.h"

namespace hologram::codegen {
namespace {

using isa::Form;
using Kind = BlockStep::Kind;

class Planner {
 public:
  Planner(const isa::Program& program, const ControlTree& tree, const isa::Uniformity& uniformity)
      : program_(program), tree_(tree), uniformity_(uniformity) {}

  BlockPlan plan() && {
    plan_.storage.assign(program_.registers.size(), Storage::local);
    plan_.thread_offset.assign(program_.registers.size(), 0);
    if (!tree_.synchronises) {
      plan_.steps.push_back(
          segment(0, 0, static_cast<uint32_t>(tree_.regions[0].statements.size())));
      return std::move(plan_);
    }
    plan_.steps = steps_of(0);
    place_registers();
    return std::move(plan_);
  }

 private:
  BlockStep segment(uint32_t region, uint32_t first, uint32_t last) {
    return {.kind = Kind::segment,
            .region = region,
            .first = first,
            .last = last,
            .segment = plan_.segments++};
  }

  // Whether the block takes this statement together. A jump that only some threads take has no
  // barrier after it, so it stays inside its segment.
  bool is_together(const Statement& s) const {
    if (s.synchronises) return true;
    return !s.escapes.empty() && std::ranges::all_of(s.escapes, [&](uint32_t jump) {
      return uniformity_.instructions[jump];
    });
  }

  std::vector<BlockStep> steps_of(uint32_t region) {
    std::vector<BlockStep> steps;
    if (region == kNoRegion) return steps;
    const std::vector<Statement>& statements = tree_.regions[region].statements;
    uint32_t first = 0;
    const auto flush = [&](uint32_t last) {
      if (first < last) steps.push_back(segment(region, first, last));
      first = last + 1;
    };
    for (uint32_t i = 0; i < statements.size(); ++i) {
      const Statement& s = statements[i];
      if (!is_together(s)) continue;
      flush(i);
      if (program_.body[s.instruction].op != isa::Opcode::barrier) steps.push_back(together(s));
      if (s.rest != kNoRegion) std::ranges::move(steps_of(s.rest), std::back_inserter(steps));
    }
    flush(static_cast<uint32_t>(statements.size()));
    return steps;
  }

  BlockStep together(const Statement& s) {
    BlockStep step{.instruction = s.instruction};
    switch (s.kind) {
      case StatementKind::if_:
        step.kind = Kind::if_;
        step.body = steps_of(s.body);
        step.otherwise = steps_of(s.otherwise);
        break;
      case StatementKind::for_:
      case StatementKind::loop:
        step.kind = s.kind == StatementKind::for_ ? Kind::for_ : Kind::loop;
        step.body = steps_of(s.body);
        break;
      case StatementKind::plain:
        step.kind = isa::info(program_.body[s.instruction].op).form == Form::jump ? Kind::jump
                                                                                  : Kind::group;
        break;
    }
    return step;
  }

  // Which segment uses a register: that one, several, or the block itself.
  void note(isa::Register r, uint32_t user) {
    if (user_[r.index] == kNobody) user_[r.index] = user;
    if (user_[r.index] != user) user_[r.index] = kSeveral;
  }

  void note_users(const std::vector<BlockStep>& steps) {
    for (const BlockStep& step : steps) {
      const auto visit = [&](uint32_t index, uint32_t user) {
        const isa::Instruction& i = program_.body[index];
        for (const isa::Operand& o : isa::operands_of(i)) note(o.reg, user);
        if (isa::uses(i, isa::kFieldDst)) note(i.dst, user);
        if (i.op == isa::Opcode::return_ && user != kSeveral && !uniformity_.instructions[index])
          plan_.keeps_alive = true;
      };
      if (step.kind == Kind::segment)
        for_each_instruction(tree_, tree_.regions[step.region].statements, step.first, step.last,
                             [&](uint32_t i) { visit(i, step.segment); });
      else
        visit(step.instruction, kSeveral);
      note_users(step.body);
      note_users(step.otherwise);
    }
  }

  void place_registers() {
    user_.assign(program_.registers.size(), kNobody);
    note_users(plan_.steps);
    uint32_t offset = 0;
    const std::vector<const isa::Instruction*> constants = find_constants(program_);
    for (uint32_t r = 0; r < user_.size(); ++r) {
      if (user_[r] != kSeveral || constants[r]) continue;
      if (uniformity_.registers[r]) {
        plan_.storage[r] = Storage::block;
        continue;
      }
      plan_.storage[r] = Storage::thread;
      plan_.thread_offset[r] = offset;
      offset += static_cast<uint32_t>(size_of(program_.registers[r]));
    }
    plan_.alive_offset = offset;
    if (plan_.keeps_alive) offset += 1;
    // Reductions pad to a power of two, which is less than twice the threads.
    plan_.reduction_offset = offset;
    uint32_t widest = 0;
    for (const isa::Instruction& i : program_.body)
      if (isa::info(i.op).form == Form::group)
        widest = std::max(widest, static_cast<uint32_t>(size_of(i.type)));
    plan_.thread_bytes = offset + 2 * widest;
  }

  static constexpr uint32_t kNobody = 0xffffffff;
  static constexpr uint32_t kSeveral = 0xfffffffe;

  const isa::Program& program_;
  const ControlTree& tree_;
  const isa::Uniformity& uniformity_;
  BlockPlan plan_;
  std::vector<uint32_t> user_;
};

}  // namespace

BlockPlan plan_block(const isa::Program& program, const ControlTree& tree,
                     const isa::Uniformity& uniformity) {
  return Planner(program, tree, uniformity).plan();
}

}  // namespace hologram::codegen
