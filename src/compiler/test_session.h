// Helpers for tests that compile small graphs and run them.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/compile.h"
#include "runtime/session/session.h"
#include "support/aligned.h"

namespace hologram::compiler {

template <typename T>
kernels::Tensor tensor(const kernels::Dims& dims, const std::vector<T>& elements) {
  return *kernels::Tensor::from<T>(dims, std::span<const T>(elements));
}

// Elements that differ, between -1 and 1.
inline kernels::Tensor varied(const kernels::Dims& dims, uint32_t seed = 1) {
  std::vector<float> elements;
  for (int64_t i = 0; i < dims.count(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    elements.push_back(static_cast<float>(seed >> 8) / static_cast<float>(1 << 23) - 1.0f);
  }
  return tensor<float>(dims, elements);
}

inline graph::ValueId add_input(graph::Graph& g, std::string name, std::vector<Dim> dims,
                                DType dtype = DType::f32) {
  return g.add_input(std::move(name), graph::ValueType::tensor(dtype, Shape(std::move(dims))));
}
inline Dim symbol(const char* name) { return Dim(std::string(name)); }

inline Result<runtime::Session> open_bytes(const std::vector<std::byte>& bytes) {
  auto owner = std::make_shared<AlignedBytes>(*AlignedBytes::allocate(bytes.size()));
  std::ranges::copy(bytes, owner->data());
  HOLOGRAM_TRY(archive::Archive archive, archive::Archive::open(owner->bytes(), owner));
  return runtime::Session::open(std::move(archive));
}

// The compiled graph; `optimise` false keeps every node a step of its own.
inline runtime::Session session_of(graph::Graph g, std::vector<graph::ValueId> outputs,
                                   bool optimise = true) {
  EXPECT_TRUE(g.status().has_value()) << g.status().error().to_string();
  g.outputs = std::move(outputs);
  for (size_t i = 0; i < g.outputs.size(); ++i) g.output_names.push_back("y" + std::to_string(i));
  auto bytes = compile(std::move(g), {.optimise = optimise});
  EXPECT_TRUE(bytes.has_value()) << bytes.error().to_string();
  auto session = open_bytes(*bytes);
  EXPECT_TRUE(session.has_value()) << session.error().to_string();
  return *std::move(session);
}

// How many groups whose operators begin with `operators` the compiler made, and the first output.
inline std::pair<size_t, std::vector<float>> fused_and_run(graph::Graph g, CompileOptions options,
                                                           std::string_view operators,
                                                           const kernels::Value& x) {
  CompileReport report;
  options.report = &report;
  auto bytes = compile(std::move(g), options);
  EXPECT_TRUE(bytes.has_value()) << bytes.error().to_string();
  size_t groups = 0;
  for (const auto& group : report.fusion.fused)
    groups += group.operators.starts_with(operators) ? 1 : 0;
  auto session = open_bytes(*bytes);
  auto y = session->run(std::span(&x, 1));
  EXPECT_TRUE(y.has_value()) << y.error().to_string();
  const kernels::Tensor& t = (*y)[0].tensor;
  return {groups, {t.as<float>(), t.as<float>() + t.count()}};
}

inline double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(double{a[i]} - b[i]));
  return worst;
}

inline bool same_bits(const kernels::Tensor& a, const kernels::Tensor& b) {
  return a.dtype == b.dtype && a.dims == b.dims && std::memcmp(a.data, b.data, a.bytes()) == 0;
}

}  // namespace hologram::compiler
