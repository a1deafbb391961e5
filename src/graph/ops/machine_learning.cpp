#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {

void add_machine_learning(OperatorTable&) {}

}  // namespace hologram::graph::ops
