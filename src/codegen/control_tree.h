// ControlTree: the body of a program as a tree of regions, the way its control flow nests.
//
// A region is a list of statements. When a statement can jump out of itself (an `if` with a break,
// continue or return in it), what follows it in its region becomes a region of its own, the `rest`:
// there some threads may be missing. So within one region every thread that enters also leaves.
#pragma once

#include <cstdint>
#include <vector>

#include "isa/program.h"

namespace hologram::codegen {

inline constexpr uint32_t kNoRegion = 0xffffffff;

enum class StatementKind : uint8_t { plain, if_, for_, loop };

struct Statement {
  StatementKind kind = StatementKind::plain;
  uint32_t instruction = 0;        // index into Program::body; of the opening instruction
  uint32_t body = kNoRegion;       // if: then; for and loop: body
  uint32_t otherwise = kNoRegion;  // if: else, where there is one
  uint32_t rest = kNoRegion;       // what follows a statement that can jump out of itself
  std::vector<uint32_t> escapes;   // jump instructions inside that leave this statement
  bool synchronises = false;       // a barrier or a group reduction, or one inside
};

struct Region {
  uint32_t parent = kNoRegion;
  uint32_t loop = kNoRegion;  // the region that is the body of the innermost loop around, or itself
  uint32_t depth = 0;
  bool is_loop_body = false;
  std::vector<Statement> statements;
};

struct ControlTree {
  std::vector<Region> regions;      // 0 is the whole body; a parent comes before its children
  std::vector<uint32_t> region_of;  // of each instruction; kNoRegion for what can never run
  bool synchronises = false;        // any barrier or group reduction

  // The innermost region that holds both.
  uint32_t common(uint32_t a, uint32_t b) const;
};

// `program` must be verified.
ControlTree build_control_tree(const isa::Program& program);

}  // namespace hologram::codegen
