// BlockPlan: a program as what a block does together and what its threads do alone.
//
// Barriers and group reductions cut the body into segments. Within a segment threads do not wait
// for each other, so all threads run it, some after others, before the next segment begins. The
// control flow around a barrier is the same for the whole block and becomes scalar control flow
// around the segments. A program without barriers is one segment.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/control_tree.h"
#include "isa/program.h"
#include "isa/uniformity.h"

namespace hologram::codegen {

struct BlockStep {
  enum class Kind : uint8_t { segment, group, if_, for_, loop, jump };
  Kind kind = Kind::segment;
  uint32_t instruction = 0;  // all but segment
  // segment: statements [first, last) of `region`
  uint32_t region = 0;
  uint32_t first = 0;
  uint32_t last = 0;
  uint32_t segment = 0;              // its number
  std::vector<BlockStep> body;       // if, for, loop
  std::vector<BlockStep> otherwise;  // if
};

// How a register is kept between the segments of a block.
enum class Storage : uint8_t {
  local,   // used by one segment only: in machine registers
  block,   // the same in all threads: one scalar
  thread,  // in the scratch memory of the block, one element a thread
};

struct BlockPlan {
  std::vector<BlockStep> steps;
  uint32_t segments = 0;
  std::vector<Storage> storage;         // of each register
  std::vector<uint32_t> thread_offset;  // Storage::thread: bytes before it, of one thread
  uint32_t thread_bytes = 0;            // of all of them, of one thread
  // Some threads may return in one segment while others run a later one.
  bool keeps_alive = false;
  uint32_t alive_offset = 0;
  // Elements of group reductions, behind everything else.
  uint32_t reduction_offset = 0;
};

BlockPlan plan_block(const isa::Program& program, const ControlTree& tree,
                     const isa::Uniformity& uniformity);

// Every statement of a segment, with those nested in it: calls visit(instruction index).
template <typename Visit>
void for_each_instruction(const ControlTree& tree, const std::vector<Statement>& statements,
                          uint32_t first, uint32_t last, Visit&& visit) {
  for (uint32_t i = first; i < last; ++i) {
    const Statement& s = statements[i];
    visit(s.instruction);
    for (uint32_t inner : {s.body, s.otherwise, s.rest})
      if (inner != kNoRegion) {
        const std::vector<Statement>& nested = tree.regions[inner].statements;
        for_each_instruction(tree, nested, 0, static_cast<uint32_t>(nested.size()), visit);
      }
  }
}

}  // namespace hologram::codegen
