#include "graph/evaluate.h"

#include "backends/cpu/kernels/kernel.h"
#include "backends/cpu/kernels/pointwise.h"
#include "graph/operator.h"
#include "graph/pointwise.h"
#include "support/aligned.h"

namespace hologram::graph {
namespace {

class HeapMemory : public kernels::KernelMemory {
 public:
  Result<Tensor> output(size_t, DType dtype, const Dims& dims) override {
    return Tensor::allocate(dtype, dims);
  }
  Result<std::byte*> scratch(size_t bytes) override {
    HOLOGRAM_TRY(AlignedBytes block, AlignedBytes::allocate(std::max<size_t>(bytes, 1)));
    blocks_.push_back(std::move(block));
    return blocks_.back().data();
  }

 private:
  std::vector<AlignedBytes> blocks_;
};

Result<std::vector<kernels::Value>> evaluate_pointwise(const Graph& graph, const Node& node,
                                                       std::span<const kernels::Value> values) {
  std::vector<ValueId> ids;
  std::vector<Tensor> inputs;
  Dims dims;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    ids.push_back(node.inputs[i]);
    inputs.push_back(values[i].tensor);
    HOLOGRAM_TRY(dims, kernels::broadcast_dims(dims, values[i].tensor.dims));
  }
  HOLOGRAM_TRY(isa::Program program,
               pointwise_program(graph, std::span(&node, 1), ids, node.outputs));
  HOLOGRAM_TRY(kernels::Pointwise pointwise, kernels::Pointwise::prepare(program));
  std::vector<Tensor> outputs;
  for (ValueId id : node.outputs) {
    HOLOGRAM_TRY(Tensor out, Tensor::allocate(graph.value(id).type.dtype, dims));
    outputs.push_back(std::move(out));
  }
  HOLOGRAM_CHECK(pointwise.run(inputs, outputs, dims, ThreadPool::shared()));
  return std::vector<kernels::Value>(outputs.begin(), outputs.end());
}

}  // namespace

Result<std::vector<kernels::Value>> evaluate_node(const Graph& graph, const Node& node,
                                                  std::span<const kernels::Value> inputs) {
  HOLOGRAM_TRY(const Operator* entry, operator_of(node));
  HOLOGRAM_TRY(const Way way, way_of(graph, node, *entry));
  if (way == Way::pointwise) return evaluate_pointwise(graph, node, inputs);
  if (way != Way::kernel) return fail(ErrorCode::internal, "{} cannot be evaluated alone", node.op);
  const kernels::Kernel* kernel = kernels::find_kernel(entry->kernel);
  if (!kernel) return fail(ErrorCode::internal, "no kernel '{}'", entry->kernel);
  std::vector<kernels::Value> outputs(node.outputs.size());
  std::vector<DType> types;
  for (ValueId id : node.outputs)
    types.push_back(id == kNoValue ? DType::f32 : graph.value(id).type.innermost_dtype());
  std::vector<const kernels::Value*> operands;
  for (const kernels::Value& input : inputs) operands.push_back(&input);
  HeapMemory memory;
  kernels::KernelContext context(operands, outputs, types, node.attributes, memory,
                                 ThreadPool::shared());
  HOLOGRAM_CHECK(kernels::run_kernel(*kernel, context));
  return outputs;
}

}  // namespace hologram::graph
