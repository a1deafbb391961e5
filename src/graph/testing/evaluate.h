// For tests of operators: one node on constants, through inference, composition and kernels.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/passes/quantised_weights.h"
#include "graph/passes/resolve.h"

namespace hologram::graph::testing {

template <typename T>
Tensor tensor(const Dims& dims, std::vector<T> elements) {
  return *Tensor::from<T>(dims, elements);
}
// A vector.
template <typename T>
Tensor vector(std::vector<T> elements) {
  return tensor<T>({static_cast<int64_t>(elements.size())}, elements);
}
template <typename T>
Tensor scalar(T element) {
  return tensor<T>({}, {element});
}
inline Tensor strings(const Dims& dims, std::vector<std::string> elements) {
  return *Tensor::from_strings(dims, std::move(elements));
}
inline Tensor bools(const Dims& dims, std::initializer_list<bool> elements) {
  Tensor result = *Tensor::allocate(DType::boolean, dims);
  std::copy(elements.begin(), elements.end(), result.as<bool>());
  return result;
}
// Elements of any type from their bytes; packed where the type is.
inline Tensor bits(DType type, const Dims& dims, std::vector<uint8_t> bytes) {
  Tensor result = *Tensor::allocate(type, dims);
  EXPECT_EQ(result.bytes(), bytes.size());
  std::copy(bytes.begin(), bytes.end(), result.as<uint8_t>());
  return result;
}

template <typename T>
std::vector<T> elements(const Tensor& tensor) {
  return std::vector<T>(tensor.as<T>(), tensor.as<T>() + tensor.count());
}
// All bytes of a tensor of fixed-size elements.
inline std::vector<uint8_t> bytes(const Tensor& tensor) {
  return {tensor.as<uint8_t>(), tensor.as<uint8_t>() + tensor.bytes()};
}

struct Call {
  std::string op;
  std::vector<Tensor> inputs;  // one without data is left out
  Attributes attributes = {};
  size_t outputs = 1;
  std::string domain = "";
};

inline Tensor absent() { return {}; }

// The outputs of one node. The shape that inference gives while the inputs are not constants must
// agree with what the kernel makes: a difference is a test failure.
inline Result<std::vector<Tensor>> evaluate_all(const Call& call) {
  Graph graph, typed;
  NodeBuilder node(graph, call.op, call.domain), other(typed, call.op, call.domain);
  for (const Tensor& input : call.inputs) {
    node.input(input.data ? graph.add_constant(input) : kNoValue);
    std::vector<Dim> dims(input.dims.begin(), input.dims.end());
    other.input(input.data
                    ? typed.add_input("x", ValueType::tensor(input.dtype, Shape(std::move(dims))))
                    : kNoValue);
  }
  node.attributes(call.attributes).outputs(call.outputs);
  other.attributes(call.attributes).outputs(call.outputs);
  std::vector<std::optional<Shape>> inferred, expected;
  for (size_t i = 0; i < call.outputs; ++i) {
    graph.outputs.push_back(node.output(i));
    graph.output_names.push_back(std::to_string(i));
    inferred.push_back(graph.value(node.output(i)).type.shape);
    expected.push_back(typed.value(other.output(i)).type.shape);
  }
  HOLOGRAM_CHECK(graph.status());
  HOLOGRAM_CHECK(typed.status());
  HOLOGRAM_CHECK(resolve(graph));
  // Dequantised constants are left for products to read; here nothing else wants them.
  HOLOGRAM_TRY(const bool folded, fold_dequantised(graph));
  if (folded) HOLOGRAM_CHECK(resolve(graph));
  std::vector<Tensor> results;
  for (size_t i = 0; i < call.outputs; ++i) {
    const auto& constant = graph.value(graph.outputs[i]).constant;
    if (!constant) return fail(ErrorCode::internal, "{} was not evaluated", call.op);
    for (const auto& shape : {inferred[i], expected[i]}) {
      if (!shape) continue;
      EXPECT_EQ(shape->rank(), constant->dims.rank()) << call.op;
      for (size_t axis = 0; axis < std::min(shape->rank(), constant->dims.rank()); ++axis)
        if (!(*shape)[axis].is_symbol()) {
          EXPECT_EQ((*shape)[axis].value(), constant->dims[axis]) << call.op << ", axis " << axis;
        }
    }
    results.push_back(*constant);
  }
  return results;
}

// The only output; a failure gives an empty tensor and fails the test.
inline Tensor evaluate(const Call& call) {
  auto results = evaluate_all(call);
  if (results) return results->at(0);
  ADD_FAILURE() << results.error().to_string();
  return {};
}

// The message of a refusal; "" where there was none.
inline std::string refusal(const Call& call) {
  auto results = evaluate_all(call);
  return results ? "" : results.error().to_string();
}

}  // namespace hologram::graph::testing
