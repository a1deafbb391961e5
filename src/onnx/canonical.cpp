#include "onnx/canonical.h"

namespace hologram::onnx {

void CanonicalContext::set_input(size_t index, graph::ValueId value) {
  if (node.inputs.size() <= index) node.inputs.resize(index + 1, graph::kNoValue);
  node.inputs[index] = value;
}

void CanonicalContext::integers_to_input(std::string_view name, size_t index) {
  const graph::Attribute* a = attributes().find(name);
  if (!a) return;
  if (a->kind == graph::Attribute::Kind::integer)
    set_input(index, graph.constant(a->integer));
  else
    set_input(index, graph.constant(a->integers));
  node.attributes.erase(name);
}

void CanonicalContext::number_to_input(std::string_view name, size_t index) {
  const graph::Attribute* a = attributes().find(name);
  if (!a) return;
  set_input(index, graph.constant(static_cast<float>(a->number)));
  node.attributes.erase(name);
}

Status canonicalise(graph::Graph& graph, graph::Node& node) {
  const std::string op = node.op, domain = node.domain;
  CanonicalContext context{graph, node};
  // Before 6 a list of inputs that could be overwritten, which nothing needs.
  if (domain.empty() && node.opset < 6) node.attributes.erase("consumed_inputs");
  for (auto family :
       {activation_rewrites(), arithmetic_rewrites(), machine_learning_rewrites(),
        movement_rewrites(), network_rewrites(), normalisation_rewrites(), quantisation_rewrites(),
        reduction_rewrites(), resize_rewrites(), sequence_rewrites()})
    for (const Rewrite& rewrite : family)
      if (rewrite.op == op && rewrite.domain == domain && node.opset < rewrite.before)
        HOLOGRAM_CHECK(rewrite.apply(context));
  return {};
}

}  // namespace hologram::onnx
