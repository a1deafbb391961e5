// ConcatPlaces: values that are made where a Concat wants them, so that it has nothing to copy.
//
// Where a concatenation lies in one piece (no axis before its own is larger than one), its operands
// may be made inside its result. A result of operands that already lie one behind the other (the
// growing lists of a dense block) is that memory. At run time the kernel compares addresses and
// copies what is elsewhere; archive/check_memory.h allows no other values to lie on one another.
#pragma once

#include <cstdint>
#include <vector>

#include "archive/archive.h"
#include "graph/graph.h"
#include "support/function_ref.h"

namespace hologram::compiler {

struct ConcatPlace {
  uint32_t owner;        // the value whose memory it is
  uint64_t offset;       // bytes from that one's start, a multiple of 64
  bool grouped = false;  // shares memory with others
};

// One a value of `plan`. `root_of` says what a view looks at in the end (itself for others),
// `size_of` how many bytes a value takes, 0 where it has no planned memory of a known size of its
// own.
std::vector<ConcatPlace> place_concats(const graph::Graph& graph, const archive::PlanT& plan,
                                       FunctionRef<uint32_t(uint32_t)> root_of,
                                       FunctionRef<uint64_t(uint32_t)> size_of);

}  // namespace hologram::compiler
