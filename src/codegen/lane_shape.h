// LaneShapes: how the value of each register differs between the lanes of a vector.
//
// Lanes are threads with consecutive x and the same y and z. A value that is the same in all of
// them (uniform) or a base plus a constant times the lane (linear) is kept as one scalar, the value
// of lane 0: that makes loop bounds and addresses scalar arithmetic and turns most accesses into
// plain vector loads and stores. Only lanes that run together count: a register assigned and used
// only inside a divergent region may well be uniform there.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/control_tree.h"
#include "isa/program.h"

namespace hologram::codegen {

struct LaneShape {
  enum class Kind : uint8_t { none, linear, varying };
  Kind kind = Kind::none;
  bool exact = false;  // linear: no lane wraps around, so the value may be widened
  int64_t stride = 0;  // linear: 0 is uniform

  static LaneShape uniform() { return {Kind::linear, true, 0}; }
  static LaneShape varying() { return {Kind::varying, false, 0}; }

  // A register that is never assigned has no value to differ.
  bool is_uniform() const { return kind != Kind::varying && stride == 0; }
  bool is_linear() const { return kind != Kind::varying; }
  bool is_varying() const { return kind == Kind::varying; }
  bool operator==(const LaneShape&) const = default;
};

struct LaneShapes {
  std::vector<LaneShape> registers;
  // Regions that some lanes sit out while others, which they join again later, run them.
  std::vector<bool> divergent;
  // Of each instruction that assigns: lanes that do not run it still need their old value.
  std::vector<bool> keeps_old_lanes;

  // Does a lane that runs `from` possibly run without others that are live in `to`, which is
  // around it?
  bool diverges(const ControlTree& tree, uint32_t from, uint32_t to) const;
};

// Of each register that is only ever one immediate, the instruction that gives it.
std::vector<const isa::Instruction*> find_constants(const isa::Program& program);
// Its value, if it is an integer small enough to be a stride.
std::optional<int64_t> small_integer(const isa::Instruction* constant);

LaneShapes analyse_lanes(const isa::Program& program, const ControlTree& tree);

// The shapes when there is one lane: everything is uniform, nothing diverges.
LaneShapes single_lane(const isa::Program& program, const ControlTree& tree);

}  // namespace hologram::codegen
