#include "codegen/lane_shape.h"

#include "isa/fields.h"

namespace hologram::codegen {
namespace {

using isa::Form;
using isa::Instruction;
using isa::Opcode;
using Kind = LaneShape::Kind;

// Farther apart than this is a gather whatever the stride is.
constexpr int64_t kMaxStride = 1 << 20;

LaneShape linear(int64_t stride, bool exact) {
  if (stride == 0) return LaneShape::uniform();
  if (stride > kMaxStride || stride < -kMaxStride) return LaneShape::varying();
  return {Kind::linear, exact, stride};
}

LaneShape join(LaneShape a, LaneShape b) {
  if (a.kind == Kind::none) return b;
  if (b.kind == Kind::none) return a;
  if (a.is_varying() || b.is_varying() || a.stride != b.stride) return LaneShape::varying();
  return {Kind::linear, a.exact && b.exact, a.stride};
}

class Analysis {
 public:
  Analysis(const isa::Program& program, const ControlTree& tree)
      : program_(program),
        tree_(tree),
        home_(program.registers.size(), kNoRegion),
        constants_(find_constants(program)) {
    result_.registers.resize(program.registers.size());
    result_.divergent.assign(tree.regions.size(), false);
    result_.keeps_old_lanes.assign(program.body.size(), false);
    find_homes();
  }

  LaneShapes run() {
    do {
      changed_ = false;
      for (uint32_t i = 0; i < program_.body.size(); ++i)
        if (tree_.region_of[i] != kNoRegion && isa::uses(program_.body[i], isa::kFieldDst))
          assign(i);
      for (const Region& region : tree_.regions)
        for (const Statement& s : region.statements) spread(s);
    } while (changed_);
    return std::move(result_);
  }

 private:
  // The region whose value a statement's destination gets: a counter belongs to the loop's body.
  uint32_t region_of_assignment(uint32_t i) const {
    return body_of_for_[i] != kNoRegion ? body_of_for_[i] : tree_.region_of[i];
  }

  // The home of a register is the innermost region around all its uses.
  void find_homes() {
    body_of_for_.assign(program_.body.size(), kNoRegion);
    for (const Region& region : tree_.regions)
      for (const Statement& s : region.statements)
        if (s.kind == StatementKind::for_) body_of_for_[s.instruction] = s.body;
    const auto visit = [&](isa::Register r, uint32_t region) {
      uint32_t& home = home_[r.index];
      home = home == kNoRegion ? region : tree_.common(home, region);
    };
    for (uint32_t i = 0; i < program_.body.size(); ++i) {
      if (tree_.region_of[i] == kNoRegion) continue;
      const Instruction& instruction = program_.body[i];
      for (const isa::Operand& o : isa::operands_of(instruction)) visit(o.reg, tree_.region_of[i]);
      if (isa::uses(instruction, isa::kFieldDst)) visit(instruction.dst, region_of_assignment(i));
    }
  }

  LaneShape shape(isa::Register r) const { return result_.registers[r.index]; }

  static bool can_be_linear(DType type) { return is_integer(type) && bits_of(type) >= 32; }

  LaneShape sum(LaneShape a, LaneShape b, int64_t sign) const {
    if (a.is_varying() || b.is_varying()) return LaneShape::varying();
    return linear(a.stride + sign * b.stride, false);
  }
  LaneShape product(isa::Register a, isa::Register b) const {
    if (shape(a).is_uniform() && shape(b).is_uniform()) return LaneShape::uniform();
    if (const auto factor = small_integer(constants_[b.index]); factor && shape(a).is_linear())
      return linear(shape(a).stride * *factor, false);
    if (const auto factor = small_integer(constants_[a.index]); factor && shape(b).is_linear())
      return linear(shape(b).stride * *factor, false);
    return LaneShape::varying();
  }

  LaneShape converted(const Instruction& i) const {
    const LaneShape from = shape(i.a);
    if (!can_be_linear(i.from) || !can_be_linear(i.type) || from.is_varying())
      return LaneShape::varying();
    if (bits_of(i.type) < bits_of(i.from)) return linear(from.stride, false);
    if (bits_of(i.type) == bits_of(i.from))
      return linear(from.stride, from.exact && i.type == i.from);
    if (!from.exact) return LaneShape::varying();  // a lane that wraps stays below the others
    return linear(from.stride, is_unsigned_integer(i.from) || is_signed_integer(i.type));
  }

  // A counter on its way up never wraps while its lane is active, and then no lane below it has.
  LaneShape counter_shape(const Instruction& i) const {
    const LaneShape begin = shape(i.a);
    if (begin.is_varying() || !shape(i.c).is_uniform()) return LaneShape::varying();
    const bool upwards =
        is_unsigned_integer(i.type) || small_integer(constants_[i.c.index]).value_or(-1) > 0;
    return linear(begin.stride, begin.exact && begin.stride > 0 && upwards);
  }

  LaneShape value_shape(const Instruction& i) const {
    bool all_uniform = true;
    for (const isa::Operand& o : isa::operands_of(i)) {
      if (shape(o.reg).kind == Kind::none) return {};  // not reached yet
      all_uniform &= shape(o.reg).is_uniform();
    }
    switch (isa::info(i.op).form) {
      case Form::id:
        return i.aux == 0 && (i.op == Opcode::thread_id || i.op == Opcode::global_id)
                   ? linear(1, true)
                   : LaneShape::uniform();
      case Form::group:
        return LaneShape::uniform();
      case Form::atomic:
      case Form::atomic_cas:
        return LaneShape::varying();
      case Form::for_begin:
        return counter_shape(i);
      default:
        break;
    }
    if (all_uniform) return LaneShape::uniform();
    if (i.op == Opcode::convert) return converted(i);
    if (!can_be_linear(i.type)) return LaneShape::varying();
    switch (i.op) {
      case Opcode::mov:
        return shape(i.a);
      case Opcode::add:
        return sum(shape(i.a), shape(i.b), 1);
      case Opcode::sub:
        return sum(shape(i.a), shape(i.b), -1);
      case Opcode::mul:
        return product(i.a, i.b);
      case Opcode::mad:
        return sum(product(i.a, i.b), shape(i.c), 1);
      case Opcode::select:
        return shape(i.a).is_uniform() ? join(shape(i.b), shape(i.c)) : LaneShape::varying();
      default:
        return LaneShape::varying();
    }
  }

  void assign(uint32_t index) {
    const Instruction& i = program_.body[index];
    LaneShape value = value_shape(i);
    if (value.kind == Kind::none) return;
    if (!constants_[i.dst.index] &&
        result_.diverges(tree_, region_of_assignment(index), home_[i.dst.index])) {
      value = LaneShape::varying();
      set(result_.keeps_old_lanes, index);
    }
    LaneShape& old = result_.registers[i.dst.index];
    value = join(old, value);
    if (value == old) return;
    old = value;
    changed_ = true;
  }

  void set(std::vector<bool>& flags, uint32_t index) {
    if (flags[index]) return;
    flags[index] = true;
    changed_ = true;
  }

  void spread(const Statement& s) {
    const Instruction& i = program_.body[s.instruction];
    if (s.kind == StatementKind::if_ && !shape(i.a).is_uniform()) {
      set(result_.divergent, s.body);
      if (s.otherwise != kNoRegion) set(result_.divergent, s.otherwise);
    }
    if (s.kind == StatementKind::for_ &&
        !(shape(i.a).is_uniform() && shape(i.b).is_uniform() && shape(i.c).is_uniform()))
      set(result_.divergent, s.body);
    if (s.kind == StatementKind::plain && i.op == Opcode::break_) {
      const uint32_t region = tree_.region_of[s.instruction];
      const uint32_t loop = tree_.regions[region].loop;
      if (result_.diverges(tree_, region, loop)) set(result_.divergent, loop);
    }
    if (s.rest == kNoRegion || result_.divergent[s.rest]) return;
    const uint32_t around = tree_.region_of[s.instruction];
    for (uint32_t jump : s.escapes)
      if (program_.body[jump].op == Opcode::continue_ &&
          result_.diverges(tree_, tree_.region_of[jump], around))
        set(result_.divergent, s.rest);
  }

  const isa::Program& program_;
  const ControlTree& tree_;
  LaneShapes result_;
  std::vector<uint32_t> home_;         // of each register
  std::vector<uint32_t> body_of_for_;  // of each instruction
  std::vector<const Instruction*> constants_;
  bool changed_ = false;
};

}  // namespace

std::vector<const Instruction*> find_constants(const isa::Program& program) {
  std::vector<const Instruction*> constants(program.registers.size(), nullptr);
  std::vector<uint32_t> assignments(program.registers.size(), 0);
  for (const Instruction& i : program.body) {
    if (!isa::uses(i, isa::kFieldDst)) continue;
    ++assignments[i.dst.index];
    if (i.op == Opcode::imm) constants[i.dst.index] = &i;
  }
  for (size_t r = 0; r < constants.size(); ++r)
    if (assignments[r] != 1) constants[r] = nullptr;
  return constants;
}

std::optional<int64_t> small_integer(const Instruction* constant) {
  if (!constant || !is_integer(constant->type)) return std::nullopt;
  const unsigned unused = 64 - bits_of(constant->type);
  const int64_t value = is_signed_integer(constant->type)
                            ? static_cast<int64_t>(constant->immediate << unused) >> unused
                            : static_cast<int64_t>(constant->immediate);
  if (value > kMaxStride || value < -kMaxStride) return std::nullopt;
  return value;
}

bool LaneShapes::diverges(const ControlTree& tree, uint32_t from, uint32_t to) const {
  for (uint32_t r = from; r != to; r = tree.regions[r].parent)
    if (divergent[r]) return true;
  return false;
}

LaneShapes analyse_lanes(const isa::Program& program, const ControlTree& tree) {
  return Analysis(program, tree).run();
}

LaneShapes single_lane(const isa::Program& program, const ControlTree& tree) {
  LaneShapes shapes;
  shapes.registers.assign(program.registers.size(), LaneShape::uniform());
  shapes.divergent.assign(tree.regions.size(), false);
  shapes.keeps_old_lanes.assign(program.body.size(), false);
  return shapes;
}

}  // namespace hologram::codegen
