// Softmax and its relatives, along one axis.
#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

// The form before opset 13: the tensor is a matrix whose rows begin at `axis`.
Result<std::vector<ValueId>> coerced(ComposeContext& c) {
  const std::string op = c.node.op.substr(0, c.node.op.size() - std::string("Coerced").size());
  ValueId shape = c.op("Shape").input(c.in(0));
  ValueId matrix =
      c.op("Flatten").input(c.in(0)).attribute("axis", c.attributes().integer("axis", 1));
  ValueId result = c.op(op).input(matrix).attribute("axis", 1);
  return std::vector<ValueId>{c.op("Reshape").input(result).input(shape).output()};
}

}  // namespace

void add_softmax(OperatorTable& table) {
  for (std::string name : {"Softmax", "LogSoftmax", "Hardmax"}) {
    table.add(name)
        .signature("input:T -> output:T")
        .where("T", kFloats)
        .attributes("axis:i")
        .infer(same_shape_as_first)
        .kernel();
    table.add(name + "Coerced", "hologram")
        .signature("input:T -> output:T")
        .where("T", kFloats)
        .attributes("axis:i")
        .infer(same_shape_as_first)
        .compose(coerced);
  }
}

}  // namespace hologram::graph::ops
