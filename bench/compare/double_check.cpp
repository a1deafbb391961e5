#include "bench/compare/double_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "compiler/in_double.h"
#include "graph/infer.h"
#include "onnx/model.h"
#include "support/aligned.h"

namespace hologram::compare {
namespace {

using kernels::Tensor;
using kernels::Value;

// Every f64 that a node makes passes through f32.
Status round_results(graph::Graph& graph) {
  std::vector<graph::Node> nodes;
  for (graph::Node& node : graph.nodes) {
    HOLOGRAM_CHECK(graph::infer_node(graph, node));
    std::vector<graph::Node> casts;
    for (graph::ValueId& id : node.outputs) {
      if (id == graph::kNoValue) continue;
      const graph::ValueType type = graph.value(id).type;
      if (!type.is_tensor() || type.dtype != DType::f64) continue;
      graph::ValueType narrow = type;
      narrow.dtype = DType::f32;
      const std::string name = graph.value(id).name;
      const graph::ValueId exact = graph.add_value(name + "/exact", type);
      const graph::ValueId rounded = graph.add_value(name + "/rounded", narrow);
      const auto add_cast = [&](graph::ValueId from, graph::ValueId to, DType dtype) {
        graph::Node cast;
        cast.op = "Cast";
        cast.name = graph.value(to).name;
        cast.inputs = {from};
        cast.outputs = {to};
        cast.attributes.set("to", static_cast<int64_t>(dtype));
        casts.push_back(std::move(cast));
      };
      add_cast(exact, rounded, DType::f32);
      add_cast(rounded, id, DType::f64);
      id = exact;
    }
    nodes.push_back(std::move(node));
    std::ranges::move(casts, std::back_inserter(nodes));
  }
  graph.nodes = std::move(nodes);
  return {};
}

double element(const Tensor& tensor, int64_t index) {
  return tensor.dtype == DType::f64 ? tensor.as<double>()[index]
                                    : static_cast<double>(tensor.as<float>()[index]);
}

}  // namespace

Result<std::vector<Value>> to_outputs(const std::vector<peers::PeerTensor>& tensors) {
  std::vector<Value> values;
  for (const peers::PeerTensor& tensor : tensors) {
    HOLOGRAM_TRY(Tensor copy, Tensor::allocate(tensor.type, kernels::Dims(tensor.shape)));
    std::memcpy(copy.data, tensor.data.data(), tensor.data.size());
    values.emplace_back(std::move(copy));
  }
  return values;
}

Result<std::vector<Value>> run_in_double(const std::filesystem::path& model,
                                         const std::vector<peers::PeerTensor>& inputs,
                                         bool rounded) {
  HOLOGRAM_TRY(graph::Graph graph, onnx::read_model(model));
  HOLOGRAM_CHECK(compiler::widen_to_f64(graph));
  if (rounded) HOLOGRAM_CHECK(round_results(graph));
  HOLOGRAM_TRY(const auto bytes, compiler::compile(std::move(graph), {.optimise = false}));
  HOLOGRAM_TRY(AlignedBytes block, AlignedBytes::allocate(bytes.size()));
  std::memcpy(block.data(), bytes.data(), bytes.size());
  auto owner = std::make_shared<AlignedBytes>(std::move(block));
  HOLOGRAM_TRY(auto archive, archive::Archive::open(std::span(owner->data(), bytes.size()), owner));
  HOLOGRAM_TRY(const runtime::Session session, runtime::Session::open(std::move(archive)));
  HOLOGRAM_TRY(std::vector<Value> values, to_outputs(inputs));
  std::vector<Value> ordered;
  for (const auto& port : session.inputs()) {
    const auto found = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const auto& t) { return t.name == port.name; });
    if (found == inputs.end()) return fail(ErrorCode::not_found, "no input '{}'", port.name);
    Value& value = values[static_cast<size_t>(found - inputs.begin())];
    HOLOGRAM_TRY(value.tensor, compiler::widened(value.tensor));
    ordered.push_back(value);
  }
  return session.run(ordered);
}

Result<peers::OutputError> difference_from_double(std::span<const Value> exact,
                                                  std::span<const Value> results) {
  peers::OutputError worst;
  for (size_t o = 0; o < exact.size(); ++o) {
    const Tensor &e = exact[o].tensor, &r = results[o].tensor;
    if (e.count() != r.count())
      return fail(ErrorCode::shape_mismatch, "{} elements and {}", e.count(), r.count());
    if (r.dtype != DType::f32 && r.dtype != DType::f64) continue;
    double low = INFINITY, high = -INFINITY, most = 0, squares = 0;
    for (int64_t i = 0; i < e.count(); ++i) {
      const double d = element(r, i) - element(e, i);
      low = std::min(low, element(e, i));
      high = std::max(high, element(e, i));
      most = std::max(most, std::isfinite(d) ? std::fabs(d) : INFINITY);
      squares += d * d;
    }
    const double range = high > low ? high - low : 1;
    worst.max = std::max(worst.max, most / range);
    worst.rms =
        std::max(worst.rms,
                 std::sqrt(squares / std::max<double>(1, static_cast<double>(e.count()))) / range);
  }
  return worst;
}

}  // namespace hologram::compare
