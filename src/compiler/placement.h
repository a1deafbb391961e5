// Placement: where every value of a plan lives while it runs.
//
// A view (Reshape, Squeeze, ...) is the memory of what it looks at. Values whose size follows from
// the inputs' shapes get planned memory: offsets where all sizes are numbers, else blocks that the
// session places once the shapes are known. A pointwise step may write its result over an input
// that nothing reads afterwards, and operands of a Concat are made inside its result. The rest,
// whose size depends on data, asks for memory while running.
#pragma once

#include "archive/archive.h"
#include "compiler/expressions.h"
#include "graph/graph.h"

namespace hologram::compiler {

struct PlacementOptions {
  bool in_place = true;
};

// Sets the storage of the values that steps of `plan` make, what each step releases, and the plan's
// arena or blocks. Steps, and the storage of inputs, constants and captures, are there already.
void place_values(const graph::Graph& graph, archive::PlanT& plan, Expressions& expressions,
                  const PlacementOptions& options = {});

}  // namespace hologram::compiler
