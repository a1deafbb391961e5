#include "graph/passes/reference_order.h"

#include "backends/cpu/dense/conv.h"
#include "gtest/gtest.h"

namespace hologram::graph {
namespace {

// Something of each kind, and a quantisation of the result where asked.
Graph model(bool quantised) {
  Graph g;
  const auto f32 = [&](const char* name, std::vector<Dim> dims) {
    return g.add_input(name, ValueType::tensor(DType::f32, Shape(std::move(dims))));
  };
  const ValueId x = f32("x", {1, 4, 40}), w = f32("w", {4, 4, 3}), scale = f32("scale", {4});
  const ValueId conv = g.op("Conv", "hologram")
                           .input(x)
                           .input(w)
                           .attribute("weight_shape", std::vector<int64_t>{4, 4, 3})
                           .attribute("activation", "Tanh");
  const ValueId turned =
      g.op("Transpose").input(conv).attribute("perm", std::vector<int64_t>{0, 2, 1});
  const ValueId first = g.op("LayerNormalization").input(turned).input(scale);
  const ValueId second = g.op("LayerNormalization").input(first).input(scale);
  const ValueId swish = g.op("Swish").input(second);
  const ValueId cosine = g.op("Cos").input(swish);
  const ValueId product = g.op("MatMul").input(cosine).input(g.op("Sin").input(scale));
  g.outputs = {product};
  if (quantised) g.outputs.push_back(g.op("DynamicQuantizeLinear").input(product));
  return g;
}

const Node& node(const Graph& g, size_t index) { return g.nodes[index]; }

TEST(ReferenceOrder, IsUsedWhereActivationsAreRounded) {
  Graph g = model(true);
  use_reference_order(g);
  EXPECT_EQ(node(g, 0).attributes.integer("algorithm"),
            static_cast<int64_t>(backends::dense::ConvAlgorithm::ordered));
  EXPECT_EQ(node(g, 0).attributes.text("activation"), "TanhRatio");
  EXPECT_EQ(node(g, 2).attributes.integer("sum_order"), 2);
  EXPECT_EQ(node(g, 3).attributes.integer("sum_order"), 1);
  EXPECT_EQ(node(g, 4).op, "Activation");
  EXPECT_EQ(node(g, 4).attributes.text("activation"), "SwishRatio");
  EXPECT_EQ(node(g, 5).op, "Sine");
  EXPECT_EQ(node(g, 5).attributes.integer("quarters"), 1);
  EXPECT_EQ(node(g, 6).op, "Sine");
  EXPECT_EQ(node(g, 7).attributes.integer("ordered"), 1);
}

TEST(ReferenceOrder, IsNotUsedElsewhere) {
  Graph g = model(false);
  const std::string before = g.to_text();
  use_reference_order(g);
  EXPECT_EQ(g.to_text(), before);
}

}  // namespace
}  // namespace hologram::graph
