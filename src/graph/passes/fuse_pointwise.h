// Pointwise fusion: chains and graphs of pointwise nodes become one node each.
//
// The node is hologram.Pointwise with the nodes it stands for in its body, and is lowered to one
// kernel program: what only members of the group read is never written to memory. A value that
// others read too becomes an output of the group, so nothing is computed twice.
//
// Nodes join a group when their results provably have the same shape, as numbers or as symbols
// (operands may be smaller and broadcast); when no path leaves the group and comes back; and while
// the program stays small enough to compile quickly and to keep its registers.
#pragma once

#include "graph/graph.h"
#include "graph/passes/fusion_report.h"

namespace hologram::graph {

// Also inside subgraphs. `report` gets the groups, and why other pointwise nodes stayed alone.
Status fuse_pointwise(Graph& graph, FusionReport& report);

}  // namespace hologram::graph
