#include "compiler/weight_codes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "backends/cpu/kernels/alignment.h"
#include "graph/passes/value_uses.h"
#include "support/thread_pool.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::Node;

constexpr int64_t kGroup = 32;

// (row, column) of the weights of a product.
class Matrix {
 public:
  Matrix(const Node& node, const graph::Tensor& weights)
      : k(node.attributes.integer("k")),
        n(node.attributes.integer("n")),
        transposed_(node.attributes.integer("transposed") != 0),
        values_(weights.as<float>()) {}
  int64_t place(int64_t row, int64_t column) const {
    return transposed_ ? column * k + row : row * n + column;
  }
  float operator()(int64_t row, int64_t column) const { return values_[place(row, column)]; }

  const int64_t k, n;

 private:
  const bool transposed_;
  const float* values_;
};

// Codes of one group of a column and the scale with the least squared error among a few: the value
// of the largest size may be as far as -8, or saturate a little so that the others round better.
float quantise_group(std::span<const float> values, std::span<uint8_t> codes) {
  float largest = 0;
  for (const float v : values)
    if (std::abs(v) > std::abs(largest)) largest = v;
  std::ranges::fill(codes, uint8_t{8});
  if (largest == 0) return 0;
  float best = 0;
  double least = HUGE_VAL;
  for (const float reach : {8.0f, 7.7f, 7.4f, 7.0f, 6.6f, 6.2f}) {
    const float scale = -largest / reach;
    double product = 0, square = 0, size = 0;
    uint8_t trial[kGroup];
    for (size_t i = 0; i < values.size(); ++i) {
      const float code = std::clamp(std::nearbyint(values[i] / scale), -8.0f, 7.0f);
      trial[i] = static_cast<uint8_t>(static_cast<int>(code) + 8);
      product += static_cast<double>(values[i]) * code;
      square += static_cast<double>(code) * code;
      size += static_cast<double>(values[i]) * values[i];
    }
    if (square == 0) continue;
    const double error = size - product * product / square;  // with the best scale for these codes
    if (error >= least) continue;
    least = error;
    best = static_cast<float>(product / square);
    std::copy_n(trial, values.size(), codes.begin());
  }
  return best;
}

Status use_int4(Graph& graph, Node& node, const graph::Tensor& weights) {
  const Matrix w(node, weights);
  const int64_t groups = (w.k + kGroup - 1) / kGroup;
  HOLOGRAM_TRY(graph::Tensor codes, graph::Tensor::allocate(DType::u8, weights.dims));
  HOLOGRAM_TRY(graph::Tensor scales, graph::Tensor::allocate(DType::f32, {w.n, groups}));
  ThreadPool::shared().parallel_for(static_cast<size_t>(w.n), 16, [&](size_t begin, size_t end) {
    for (auto j = static_cast<int64_t>(begin); j < static_cast<int64_t>(end); ++j)
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t first = g * kGroup, count = std::min(kGroup, w.k - first);
        float values[kGroup];
        uint8_t own[kGroup];
        for (int64_t i = 0; i < count; ++i) values[i] = w(first + i, j);
        const auto size = static_cast<size_t>(count);
        scales.as<float>()[j * groups + g] =
            quantise_group(std::span(values, size), std::span(own, size));
        for (int64_t i = 0; i < count; ++i) codes.as<uint8_t>()[w.place(first + i, j)] = own[i];
      }
  });
  const std::string name = graph.value(node.inputs[1]).name;
  node.inputs.resize(5, graph::kNoValue);
  node.inputs[1] = graph.add_constant(std::move(codes), name);
  node.inputs[4] = graph.add_constant(std::move(scales), name + "_scales");
  node.attributes.set("bits", int64_t{4});
  node.attributes.set("group", kGroup);
  return {};
}

Status use_int8(Graph& graph, Node& node, const graph::Tensor& weights) {
  const Matrix w(node, weights);
  HOLOGRAM_TRY(graph::Tensor codes, graph::Tensor::allocate(DType::u8, weights.dims));
  HOLOGRAM_TRY(graph::Tensor scales, graph::Tensor::allocate(DType::f32, {w.n}));
  for (int64_t j = 0; j < w.n; ++j) {
    float largest = 0;
    for (int64_t i = 0; i < w.k; ++i) largest = std::max(largest, std::abs(w(i, j)));
    const float scale = largest == 0 ? 1.0f : largest / 127.0f;
    scales.as<float>()[j] = scale;
    for (int64_t i = 0; i < w.k; ++i)
      codes.as<uint8_t>()[w.place(i, j)] =
          static_cast<uint8_t>(static_cast<int8_t>(std::nearbyint(w(i, j) / scale)));
  }
  const std::string name = graph.value(node.inputs[1]).name;
  node.inputs.resize(5, graph::kNoValue);
  node.inputs[1] = graph.add_constant(std::move(codes), name);
  node.inputs[4] = graph.add_constant(std::move(scales), name + "_scales");
  node.attributes.set("bits", int64_t{8});
  node.attributes.set("dynamic", int64_t{1});
  return {};
}

// Of bytes that may lie anywhere.
bool all_finite(const graph::Tensor& weights) {
  for (int64_t i = 0; i < weights.count(); ++i) {
    float value;
    std::memcpy(&value, weights.data + static_cast<size_t>(i) * sizeof(float), sizeof(float));
    if (!std::isfinite(value)) return false;
  }
  return true;
}

// The weights of a product or a convolution, or null.
const graph::Tensor* weights_of(const Graph& graph, const Node& node) {
  if (node.domain != "hologram" || (node.op != "MatMul" && node.op != "Conv")) return nullptr;
  const graph::Tensor* stored = constant_of(graph, node.inputs[1]);
  return stored && stored->dtype == DType::f32 && node.attributes.integer("bits") == 0 ? stored
                                                                                       : nullptr;
}

}  // namespace

bool has_finite_weights(const Graph& graph, const Node& node) {
  const graph::Tensor* weights = weights_of(graph, node);
  return weights && all_finite(*weights);
}

Status use_byte_weights(Graph& graph, Node& node) {
  HOLOGRAM_TRY(const graph::Tensor weights, kernels::aligned(*weights_of(graph, node)));
  return use_int8(graph, node, weights);
}

Result<PrecisionChoice> use_weight_codes(Graph& graph, Precision precision) {
  PrecisionChoice choice;
  for (Node& node : graph.nodes) {
    for (graph::Subgraph& sub : node.subgraphs) {
      HOLOGRAM_TRY(const PrecisionChoice inner, use_weight_codes(*sub.graph, precision));
      choice.narrow += inner.narrow;
      choice.wide += inner.wide;
    }
    if (node.domain != "hologram" || (node.op != "MatMul" && node.op != "Conv")) continue;
    if (node.attributes.integer("bits") != 0) {
      ++choice.narrow;
      continue;
    }
    const graph::Tensor* stored = weights_of(graph, node);
    if (node.op != "MatMul" || !stored) {
      ++choice.wide;
      continue;
    }
    HOLOGRAM_TRY(const graph::Tensor weights, kernels::aligned(*stored));
    if (!all_finite(weights)) {
      ++choice.wide;
      continue;
    }
    HOLOGRAM_CHECK(precision == Precision::int4 ? use_int4(graph, node, weights)
                                                : use_int8(graph, node, weights));
    ++choice.narrow;
  }
  return choice;
}

}  // namespace hologram::compiler
