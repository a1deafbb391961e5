// Makes one product of those that give an attention its queries, keys and values from the same
// rows: the rows are then packed (and made integers, where products are by integers) once instead
// of three times. Attention reads columns of a wider result. Runs when products have what follows
// them, and before precisions are chosen.
#pragma once

#include "graph/graph.h"
#include "graph/passes/fusion_report.h"

namespace hologram::graph {

Status join_projections(Graph& graph, FusionReport& report);

}  // namespace hologram::graph
