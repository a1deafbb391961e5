// onnx: ONNX models -> graph.
//
// The messages of an ONNX file as plain structs. Names and bytes are views of the file: nothing
// large is copied. Reading throws protozero::exception on malformed bytes; model.cpp catches it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hologram::onnx {

struct TensorProto {
  std::string_view name;
  std::vector<int64_t> dims;
  int32_t data_type = 0;
  std::optional<std::string_view> raw;
  std::vector<float> floats;
  std::vector<int32_t> ints;
  std::vector<int64_t> longs;
  std::vector<double> doubles;
  std::vector<uint64_t> unsigned_longs;
  std::vector<std::string_view> strings;
  bool external = false;
  std::map<std::string, std::string> external_data;  // location, offset, length
};

struct SparseTensorProto {
  TensorProto values, indices;
  std::vector<int64_t> dims;
};

struct DimProto {
  std::optional<int64_t> value;
  std::string_view symbol;
};

struct TypeProto {
  enum class Kind { none, tensor, sequence, map, optional, sparse, opaque } kind = Kind::none;
  int32_t element = 0;
  std::optional<std::vector<DimProto>> shape;
  std::vector<TypeProto> inner;  // sequences and optionals: one
};

struct ValueProto {
  std::string_view name;
  TypeProto type;
};

struct GraphProto;

struct AttributeProto {
  std::string_view name, reference;
  int32_t type = 0;
  float number = 0;
  int64_t integer = 0;
  std::string_view text;
  std::vector<TensorProto> tensors;  // one, or TENSORS
  std::vector<GraphProto> graphs;    // one, or GRAPHS
  std::vector<SparseTensorProto> sparse;
  std::vector<TypeProto> types;
  std::vector<float> numbers;
  std::vector<int64_t> integers;
  std::vector<std::string_view> texts;
};

struct NodeProto {
  std::vector<std::string_view> inputs, outputs;
  std::string_view name, op, domain, overload;
  std::vector<AttributeProto> attributes;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparse_initializers;
  std::vector<ValueProto> inputs, outputs, values;
};

using Opsets = std::map<std::string, int64_t, std::less<>>;

struct FunctionProto {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<AttributeProto> defaults;
  std::vector<NodeProto> nodes;
  Opsets opsets;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::string_view producer;
  Opsets opsets;
  GraphProto graph;
  bool has_graph = false;
  std::vector<FunctionProto> functions;
};

ModelProto read_model_proto(std::string_view bytes);
TensorProto read_tensor_proto(std::string_view bytes);
TypeProto read_type_proto(std::string_view bytes);

}  // namespace hologram::onnx
