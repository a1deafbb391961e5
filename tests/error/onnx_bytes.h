// Writes ONNX models byte by byte, right and wrong ones.
#pragma once

#include <initializer_list>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

namespace hologram::testing {

using Names = std::vector<std::string>;

enum OnnxType { kFloat = 1, kInt32 = 6, kInt64 = 7, kString = 8, kBool = 9 };

inline std::string attribute(const std::string& name, int64_t value) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_string(1, name);
  w.add_int64(3, value);
  w.add_int32(20, 2);
  return bytes;
}
inline std::string attribute(const std::string& name, const std::vector<int64_t>& values) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_string(1, name);
  w.add_packed_int64(8, values.begin(), values.end());
  w.add_int32(20, 7);
  return bytes;
}
// A graph as an attribute.
inline std::string graph_attribute(const std::string& name, const std::string& graph) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_string(1, name);
  w.add_message(6, graph);
  w.add_int32(20, 5);
  return bytes;
}

struct NodeText {
  std::string op;
  Names inputs, outputs;
  Names attributes = {};  // of attribute()
  std::string domain = "", name = "";
};

inline std::string node(const NodeText& n) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  for (const auto& input : n.inputs) w.add_string(1, input);
  for (const auto& output : n.outputs) w.add_string(2, output);
  if (!n.name.empty()) w.add_string(3, n.name);
  w.add_string(4, n.op);
  for (const auto& a : n.attributes) w.add_message(5, a);
  if (!n.domain.empty()) w.add_string(7, n.domain);
  return bytes;
}

// A named tensor type; no shape where `dims` is {-99}.
inline std::string value(const std::string& name, int type, const std::vector<int64_t>& dims) {
  std::string shape, tensor, kind, bytes;
  protozero::pbf_writer s(shape);
  for (const int64_t d : dims) {
    std::string dim;
    protozero::pbf_writer(dim).add_int64(1, d);
    s.add_message(1, dim);
  }
  protozero::pbf_writer t(tensor);
  t.add_int32(1, type);
  if (dims != std::vector<int64_t>{-99}) t.add_message(2, shape);
  protozero::pbf_writer(kind).add_message(1, tensor);
  protozero::pbf_writer v(bytes);
  v.add_string(1, name);
  v.add_message(2, kind);
  return bytes;
}

// A named sequence of elements of a type as value() writes it; of none where that is empty.
inline std::string sequence_value(const std::string& name, const std::string& element) {
  std::string sequence, kind, bytes;
  protozero::pbf_writer(sequence).add_message(1, element);
  protozero::pbf_writer(kind).add_message(4, sequence);
  protozero::pbf_writer v(bytes);
  v.add_string(1, name);
  v.add_message(2, kind);
  return bytes;
}

inline std::string weights(const std::string& name, int type, const std::vector<int64_t>& dims,
                           const std::string& raw) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_packed_int64(1, dims.begin(), dims.end());
  w.add_int32(2, type);
  w.add_string(8, name);
  w.add_bytes(9, raw);
  return bytes;
}

inline std::string external(const std::string& name, const std::vector<int64_t>& dims,
                            std::initializer_list<std::pair<const char*, std::string>> where) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_packed_int64(1, dims.begin(), dims.end());
  w.add_int32(2, kFloat);
  w.add_string(8, name);
  for (const auto& [key, text] : where) {
    std::string entry;
    protozero::pbf_writer e(entry);
    e.add_string(1, key);
    e.add_string(2, text);
    w.add_message(13, entry);
  }
  w.add_int32(14, 1);
  return bytes;
}

struct GraphText {
  Names nodes;         // of node()
  Names inputs;        // of value()
  Names outputs;       // of value()
  Names initializers;  // of weights() or external()
};

inline std::string graph_text(const GraphText& g) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  for (const auto& n : g.nodes) w.add_message(1, n);
  w.add_string(2, "test");
  for (const auto& t : g.initializers) w.add_message(5, t);
  for (const auto& v : g.inputs) w.add_message(11, v);
  for (const auto& v : g.outputs) w.add_message(12, v);
  return bytes;
}

inline std::string opset(const std::string& domain, int64_t version) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_string(1, domain);
  w.add_int64(2, version);
  return bytes;
}

inline std::string model(const std::string& graph, Names opsets = {opset("", 17)},
                         Names functions = {}) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_int64(1, 8);
  w.add_message(7, graph);
  for (const auto& o : opsets) w.add_message(8, o);
  for (const auto& f : functions) w.add_message(25, f);
  return bytes;
}

// A function of one input x and one output y.
inline std::string function(const std::string& name, const Names& nodes) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_string(1, name);
  w.add_string(4, "x");
  w.add_string(5, "y");
  for (const auto& n : nodes) w.add_message(7, n);
  w.add_message(9, opset("", 17));
  w.add_message(9, opset("local", 1));
  w.add_string(10, "local");
  return bytes;
}

// One node on x (and b), floats [2, 3], giving y.
inline std::string one_node(const NodeText& n, Names opsets = {opset("", 17)}) {
  return model(graph_text({{node(n)},
                           {value("x", kFloat, {2, 3}), value("b", kFloat, {2, 3})},
                           {value("y", kFloat, {-99})},
                           {}}),
               std::move(opsets));
}

}  // namespace hologram::testing
