#include "compiler/in_double.h"

#include <cstring>
#include <set>

#include "onnx/model.h"

namespace hologram::compiler {

using kernels::Tensor;

Result<Tensor> widened(const Tensor& tensor) {
  if (tensor.dtype != DType::f32) return tensor;
  HOLOGRAM_TRY(Tensor wide, Tensor::allocate(DType::f64, tensor.dims));
  for (int64_t i = 0; i < tensor.count(); ++i) {
    float value;
    std::memcpy(&value, tensor.data + i * 4, 4);  // constants of a model may lie unaligned
    wide.as<double>()[i] = static_cast<double>(value);
  }
  return wide;
}

Status widen_to_f64(graph::Graph& graph) {
  std::set<graph::ValueId> narrow;
  for (const graph::Node& node : graph.nodes)
    if (node.op == "Resize") narrow.insert({node.input(1), node.input(2)});
  for (graph::ValueId id = 0; id < graph.value_count(); ++id) {
    if (narrow.contains(id)) continue;
    graph::ValueInfo& info = graph.value(id);
    if (info.type.is_tensor() && info.type.dtype == DType::f32) info.type.dtype = DType::f64;
    if (info.constant) {
      HOLOGRAM_TRY(info.constant, widened(*info.constant));
    }
  }
  for (graph::Node& node : graph.nodes) {
    if (node.op == "Cast" && node.attributes.integer("to") == static_cast<int64_t>(DType::f32))
      node.attributes.set("to", static_cast<int64_t>(DType::f64));
    std::vector<graph::Attribute> wide;
    for (const graph::Attribute& attribute : node.attributes)
      if (attribute.kind == graph::Attribute::Kind::tensor &&
          attribute.tensor.dtype == DType::f32) {
        wide.push_back(attribute);
        HOLOGRAM_TRY(wide.back().tensor, widened(attribute.tensor));
      }
    for (graph::Attribute& attribute : wide) node.attributes.put(std::move(attribute));
    for (graph::Subgraph& sub : node.subgraphs) HOLOGRAM_CHECK(widen_to_f64(*sub.graph));
  }
  return {};
}

Result<std::vector<std::byte>> compile_in_double(
    const std::filesystem::path& model, const std::map<std::string, Shape, std::less<>>& shapes) {
  HOLOGRAM_TRY(graph::Graph graph, onnx::read_model(model));
  HOLOGRAM_CHECK(widen_to_f64(graph));
  return compile(std::move(graph), {.shapes = shapes, .optimise = false});
}

}  // namespace hologram::compiler
