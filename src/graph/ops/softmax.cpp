// Softmax and its relatives, along one axis.
#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {

void add_softmax(OperatorTable& table) {
  for (const char* name : {"Softmax", "LogSoftmax", "Hardmax"})
    table.add(name).signature("input:T -> output:T").where("T", kFloats).attributes("axis:i")
        .infer(same_shape_as_first).kernel();
}

}  // namespace hologram::graph::ops
