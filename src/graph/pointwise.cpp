#include "graph/pointwise.h"

#include <map>

#include "graph/operator.h"

namespace hologram::graph {

Result<isa::Program> pointwise_program(const Graph& graph, std::span<const Node> nodes,
                                       std::span<const ValueId> inputs,
                                       std::span<const ValueId> outputs) {
  isa::Builder b("pointwise");
  std::vector<isa::Builder::Array> arrays, results;
  for (size_t i = 0; i < inputs.size(); ++i)
    arrays.push_back(
        b.array("in" + std::to_string(i), graph.value(inputs[i]).type.dtype, isa::Access::read));
  for (size_t i = 0; i < outputs.size(); ++i)
    results.push_back(
        b.array("out" + std::to_string(i), graph.value(outputs[i]).type.dtype, isa::Access::write));
  const isa::Register index = b.id(isa::Opcode::global_id, 0, DType::u64);
  std::map<ValueId, isa::Register> registers;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!registers.contains(inputs[i])) registers[inputs[i]] = b.load(arrays[i], index);
  for (const Node& node : nodes) {
    HOLOGRAM_TRY(const Operator* entry, operator_of(node));
    if (!entry->pointwise) return fail(ErrorCode::internal, "{} is not pointwise", node.op);
    std::vector<isa::Register> operands;
    for (ValueId id : node.inputs) {
      auto found = registers.find(id);
      if (id != kNoValue && found == registers.end())
        return fail(ErrorCode::internal, "'{}' is not at hand", graph.value(id).name);
      operands.push_back(id == kNoValue ? isa::Register{} : found->second);
    }
    const DType result = graph.value(node.outputs[0]).type.dtype;
    PointwiseContext context(b, operands, result, node.attributes);
    registers[node.outputs[0]] = entry->pointwise(context);
  }
  for (size_t i = 0; i < outputs.size(); ++i) b.store(results[i], index, registers[outputs[i]]);
  return b.finish();
}

}  // namespace hologram::graph
