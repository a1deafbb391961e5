#include <fmt/format.h>

#include "graph/graph.h"

namespace hologram::graph {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string text_of(const Attribute& a) {
  switch (a.kind) {
    case Attribute::Kind::integer:
      return fmt::format("{}", a.integer);
    case Attribute::Kind::number:
      return fmt::format("{}", a.number);
    case Attribute::Kind::text:
      return quoted(a.text);
    case Attribute::Kind::integers:
      return fmt::format("[{}]", fmt::join(a.integers, ", "));
    case Attribute::Kind::numbers:
      return fmt::format("[{}]", fmt::join(a.numbers, ", "));
    case Attribute::Kind::texts:
      return fmt::format("[{}]", fmt::join(a.texts, ", "));
    case Attribute::Kind::tensor:
      return fmt::format("{}{}", name_of(a.tensor.dtype), a.tensor.dims.to_string());
  }
  return "";
}

void print(const Graph& graph, std::string& text, std::string indent) {
  auto value = [&](ValueId id) { return id == kNoValue ? std::string("_") : graph.value(id).name; };
  text += indent + "graph " + quoted(graph.name) + " (";
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    text += fmt::format("{}{}: {}", i ? ", " : "", value(graph.inputs[i]),
                        graph.value(graph.inputs[i]).type.to_string());
  text += ") {\n";
  for (const Graph::Capture& c : graph.captures)
    text += fmt::format("{}  capture {}\n", indent, value(c.inner));
  for (const Node& node : graph.nodes) {
    text += indent + "  ";
    for (size_t i = 0; i < node.outputs.size(); ++i)
      text +=
          (i ? ", " : "") + value(node.outputs[i]) +
          (node.outputs[i] == kNoValue ? "" : ": " + graph.value(node.outputs[i]).type.to_string());
    text += " = " + (node.domain.empty() ? node.op : node.domain + "." + node.op) + "(";
    for (size_t i = 0; i < node.inputs.size(); ++i) text += (i ? ", " : "") + value(node.inputs[i]);
    text += ")";
    for (const Attribute& a : node.attributes) text += " " + a.name + "=" + text_of(a);
    text += "\n";
    for (const Subgraph& s : node.subgraphs) print(*s.graph, text, indent + "    ");
  }
  text += indent + "  return";
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    text += (i ? ", " : " ") + value(graph.outputs[i]);
  text += "\n" + indent + "}\n";
}

}  // namespace

std::string Graph::to_text() const {
  std::string text;
  print(*this, text, "");
  return text;
}

std::string Graph::to_dot() const {
  std::string text = "digraph " + quoted(name) + " {\n  node [shape=box];\n";
  for (ValueId id : inputs)
    text += fmt::format("  v{} [label={}, shape=ellipse];\n", id, quoted(value(id).name));
  for (size_t n = 0; n < nodes.size(); ++n) {
    text += fmt::format("  n{} [label={}];\n", n, quoted(nodes[n].op));
    for (ValueId id : nodes[n].inputs)
      if (id != kNoValue && !value(id).constant) text += fmt::format("  v{} -> n{};\n", id, n);
    for (ValueId id : nodes[n].outputs)
      if (id != kNoValue)
        text += fmt::format("  v{0} [label={1}, shape=plaintext];\n  n{2} -> v{0};\n", id,
                            quoted(value(id).name + "\n" + value(id).type.to_string()), n);
  }
  for (ValueId id : outputs) text += fmt::format("  v{} [shape=ellipse];\n", id);
  return text + "}\n";
}

}  // namespace hologram::graph
