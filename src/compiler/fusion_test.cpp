// What the passes for products, convolutions and attention make, and that it computes what the
// model says: each network runs optimised and as it stands, and the results are compared.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "compiler/compile.h"
#include "graph/passes/dead_code.h"
#include "graph/passes/fold_batch_norm.h"
#include "graph/passes/fold_patterns.h"
#include "graph/passes/fold_rotary.h"
#include "graph/passes/fuse_attention.h"
#include "graph/passes/fuse_epilogue.h"
#include "graph/passes/fuse_epilogue_integer.h"
#include "graph/passes/join_projections.h"
#include "graph/passes/layout.h"
#include "graph/verify.h"
#include "runtime/session/session.h"
#include "support/aligned.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::ValueType;
using kernels::Dims;
using kernels::Tensor;
using kernels::Value;
using ::testing::ElementsAre;
using Ints = std::vector<int64_t>;

// Writes networks with constants drawn from a fixed sequence.
struct Network {
  Graph g;
  uint64_t state = 1;

  float draw() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<float>(state >> 40) / 8388608.0f - 1.0f;
  }
  ValueId input(Shape shape, DType dtype = DType::f32) {
    return g.add_input("x" + std::to_string(g.inputs.size()),
                       ValueType::tensor(dtype, std::move(shape)));
  }
  ValueId random(const Dims& dims, double scale = 1, double shift = 0) {
    Tensor t = *Tensor::allocate(DType::f32, dims);
    for (int64_t i = 0; i < t.count(); ++i)
      t.as<float>()[i] = static_cast<float>(scale * draw() + shift);
    return g.add_constant(t, "c" + std::to_string(state));
  }
  ValueId conv(ValueId x, const Dims& weights, Ints pads = {}, Ints strides = {}, int group = 1) {
    const double depth = static_cast<double>(weights.product(1, weights.rank()));
    auto node = g.op("Conv");
    node.input(x).input(random(weights, 1 / std::sqrt(depth))).input(random({weights[0]}));
    if (!pads.empty()) node.attribute("pads", pads);
    if (!strides.empty()) node.attribute("strides", strides);
    if (group != 1) node.attribute("group", group);
    return node;
  }
  ValueId batch_norm(ValueId x, int64_t channels) {
    return g.op("BatchNormalization")
        .input(x)
        .input(random({channels}, 0.5, 1))
        .input(random({channels}))
        .input(random({channels}))
        .input(random({channels}, 0.4, 1));
  }
};

using Write = std::function<ValueId(Network&)>;

Graph network(const Write& write) {
  Network n;
  n.g.outputs = {write(n)};
  n.g.output_names = {"y"};
  EXPECT_TRUE(n.g.status().has_value()) << n.g.status().error().to_string();
  return std::move(n.g);
}

std::vector<Value> inputs_of(const runtime::Session& session, int64_t symbol) {
  Network n;
  std::vector<Value> values;
  for (const auto& port : session.inputs()) {
    Dims dims;
    for (const Dim& dim : *port.shape) dims.push_back(dim.is_symbol() ? symbol : dim.value());
    Tensor t = *Tensor::allocate(port.dtype, dims);
    for (int64_t i = 0; i < t.count(); ++i) {
      if (port.dtype == DType::f32)
        t.as<float>()[i] = n.draw();
      else
        t.as<uint8_t>()[i] = static_cast<uint8_t>(n.draw() * 127 + 127);
    }
    values.emplace_back(std::move(t));
  }
  return values;
}

std::vector<float> run(const Write& write, bool optimise, int64_t symbol) {
  auto archive = compile(network(write), {.optimise = optimise});
  EXPECT_TRUE(archive.has_value()) << archive.error().to_string();
  if (!archive) return {};
  auto owner = std::make_shared<AlignedBytes>(*AlignedBytes::allocate(archive->size()));
  std::ranges::copy(*archive, owner->data());
  auto session = runtime::Session::open(*archive::Archive::open(owner->bytes(), owner));
  EXPECT_TRUE(session.has_value()) << session.error().to_string();
  auto y = session->run(inputs_of(*session, symbol));
  EXPECT_TRUE(y.has_value()) << y.error().to_string();
  if (!y) return {};
  const Tensor& t = (*y)[0].tensor;
  return {t.as<float>(), t.as<float>() + t.count()};
}

// The optimised network gives what the plain one gives.
void expect_same(const Write& write, double tolerance = 2e-6, int64_t symbol = 5) {
  const std::vector<float> plain = run(write, false, symbol), fused = run(write, true, symbol);
  ASSERT_EQ(plain.size(), fused.size());
  ASSERT_FALSE(plain.empty());
  double range = 0, worst = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    range = std::max(range, std::abs(double{plain[i]}));
    worst = std::max(worst, std::abs(double{plain[i]} - fused[i]));
  }
  EXPECT_LE(worst, tolerance * range);
  EXPECT_GT(range, 0);
}

// The operators that are left after the passes, those of the domain "hologram" marked by h.
std::vector<std::string> optimised(const Write& write, bool layout = false) {
  Graph g = network(write);
  graph::fold_patterns(g);
  graph::remove_dead_code(g);
  EXPECT_TRUE(graph::fold_rotary(g).has_value());
  EXPECT_TRUE(graph::fuse_attention(g).has_value());
  graph::remove_dead_code(g);
  EXPECT_TRUE(graph::fold_batch_norm(g).has_value());
  EXPECT_TRUE(graph::fuse_epilogue_integer(g).has_value());
  EXPECT_TRUE(graph::fuse_epilogue(g).has_value());
  graph::FusionReport report;
  EXPECT_TRUE(graph::join_projections(g, report).has_value());
  if (layout) {
    EXPECT_TRUE(graph::assign_layout(g).has_value());
  }
  graph::remove_dead_code(g);
  const Status verified = graph::verify(g);
  EXPECT_TRUE(verified.has_value()) << verified.error().to_string();
  std::vector<std::string> ops;
  for (const graph::Node& node : g.nodes)
    ops.push_back((node.domain == "hologram" ? "h." : "") + node.op);
  return ops;
}

TEST(Fusion, ConvolutionTakesNormActivationAndResidual) {
  const Write write = [](Network& n) -> ValueId {
    const ValueId x = n.input(Shape({2, 20, 9, 11}));
    const ValueId a = n.batch_norm(n.conv(x, {20, 20, 3, 3}, {1, 1, 1, 1}), 20);
    return n.g.op("Relu").input(n.g.op("Add").input(a).input(x));
  };
  EXPECT_THAT(optimised(write), ElementsAre("h.Conv"));
  expect_same(write);
  // What rounding took from the bias is part of it.
  Graph g = network(write);
  ASSERT_TRUE(graph::fold_batch_norm(g).has_value());
  ASSERT_TRUE(graph::fuse_epilogue(g).has_value());
  EXPECT_EQ(g.value(g.nodes[0].inputs[2]).constant->dims, Dims({2, 20}));
}

TEST(Fusion, FoldsArithmeticByConstantsIntoWeights) {
  const Write write = [](Network& n) -> ValueId {
    const ValueId x = n.input(Shape({1, 6, 7, 5}));
    const ValueId y = n.conv(x, {6, 1, 3, 3}, {1, 1, 1, 1}, {}, 6);
    const ValueId scaled = n.g.op("Mul").input(n.random({1, 6, 1, 1})).input(y);
    return n.g.op("Sub").input(scaled).input(n.random({6, 1, 1}));
  };
  EXPECT_THAT(optimised(write), ElementsAre("h.Conv"));
  expect_same(write);
}

TEST(Fusion, LeavesWhatIsReadTwice) {
  const Write write = [](Network& n) -> ValueId {
    const ValueId y = n.conv(n.input(Shape({1, 8, 6, 6})), {8, 8, 1, 1});
    return n.g.op("Mul").input(n.g.op("Relu").input(y)).input(n.g.op("Abs").input(y));
  };
  EXPECT_THAT(optimised(write), ElementsAre("h.Conv", "Relu", "Abs", "Mul"));
  expect_same(write);
}

TEST(Fusion, EveryActivationOfAnEpilogue) {
  for (const char* op : {"Relu", "LeakyRelu", "Elu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish",
                         "Softplus", "Exp", "Gelu", "Swish"}) {
    const Write write = [op](Network& n) -> ValueId {
      return n.g.op(op).input(n.conv(n.input(Shape({1, 16, 5, 6})), {24, 16, 1, 1}));
    };
    EXPECT_THAT(optimised(write), ElementsAre("h.Conv")) << op;
    expect_same(write);
  }
}

TEST(Fusion, NumbersAfterAnActivation) {
  const Write write = [](Network& n) -> ValueId {
    const ValueId y =
        n.g.op("HardSwish").input(n.conv(n.input(Shape({1, 16, 5, 6})), {20, 16, 1, 1}));
    const ValueId scaled = n.g.op("Mul").input(n.g.constant(1.7f)).input(y);
    const ValueId moved = n.g.op("Add").input(scaled).input(n.g.constant(-0.3f));
    return n.g.op("Max").input(moved).input(n.g.constant(-0.35f));
  };
  EXPECT_THAT(optimised(write), ElementsAre("h.Conv"));
  expect_same(write);
}

TEST(Fusion, ActivationsSpelledOut) {
  const auto product = [](Network& n) -> ValueId {
    return n.g.op("MatMul").input(n.input(Shape({3, 7, 24}))).input(n.random({24, 40}, 0.3));
  };
  const Write erf = [=](Network& n) -> ValueId {
    const ValueId x = product(n);
    const ValueId gate =
        n.g.op("Add")
            .input(n.g.constant(1.0f))
            .input(n.g.op("Erf").input(n.g.op("Div").input(x).input(n.g.constant(1.41421356f))));
    return n.g.op("Mul").input(n.g.op("Mul").input(x).input(n.g.constant(0.5f))).input(gate);
  };
  const Write tanh = [=](Network& n) -> ValueId {
    const ValueId x = product(n);
    const ValueId cube = n.g.op("Pow").input(x).input(n.g.constant(3.0f));
    const ValueId sum =
        n.g.op("Add").input(x).input(n.g.op("Mul").input(cube).input(n.g.constant(0.044715f)));
    const ValueId t =
        n.g.op("Tanh").input(n.g.op("Mul").input(sum).input(n.g.constant(0.7978846f)));
    const ValueId gate = n.g.op("Add").input(t).input(n.g.constant(1.0f));
    return n.g.op("Mul").input(n.g.op("Mul").input(x).input(n.g.constant(0.5f))).input(gate);
  };
  const Write swish = [=](Network& n) -> ValueId {
    const ValueId x = product(n);
    return n.g.op("Mul").input(x).input(
        n.g.op("Sigmoid").input(n.g.op("Mul").input(x).input(n.g.constant(1.702f))));
  };
  // The slope is the model's, not quite a sixth.
  const Write hard = [=](Network& n) -> ValueId {
    const ValueId x = product(n);
    return n.g.op("Mul").input(x).input(
        n.g.op("HardSigmoid").input(x).attribute("alpha", 0.16f).attribute("beta", 0.5f));
  };
  const Write clipped = [=](Network& n) -> ValueId {
    const ValueId x = product(n);
    const ValueId sum = n.g.op("Add").input(x).input(n.g.constant(3.0f));
    const ValueId gate =
        n.g.op("Clip").input(sum).input(n.g.constant(0.0f)).input(n.g.constant(6.0f));
    return n.g.op("Div").input(n.g.op("Mul").input(x).input(gate)).input(n.g.constant(6.0f));
  };
  for (const Write& write : {erf, tanh, swish, hard, clipped}) {
    EXPECT_THAT(optimised(write), ElementsAre("h.MatMul"));
    expect_same(write, 5e-7);
  }
}

// A number near the one of the pattern is another number.
TEST(Fusion, NumbersOfAModelAreNotRoundedToThoseOfAPattern) {
  const Write write = [](Network& n) -> ValueId {
    const ValueId x =
        n.g.op("MatMul").input(n.input(Shape({3, 7, 24}))).input(n.random({24, 40}, 0.3));
    const ValueId gate = n.g.op("Sigmoid").input(x);
    return n.g.op("Mul").input(n.g.op("Mul").input(x).input(gate)).input(n.g.constant(1.00005f));
  };
  expect_same(write, 5e-7);
}

TEST(Fusion, ReshapesAroundAProductDisappear) {
  const Write write = [](Network& n) -> ValueId {
    const ValueId x = n.input(Shape({2, 3, 20}));
    const ValueId rows = n.g.op("Reshape").input(x).input(n.g.constant(Ints{6, 20}));
    const ValueId y = n.g.op("Gemm")
                          .input(rows)
                          .input(n.random({20, 20}))
                          .input(n.random({20}))
                          .attribute("transB", 1);
    return n.g.op("Add")
        .input(n.g.op("Reshape").input(y).input(n.g.constant(Ints{2, 3, 20})))
        .input(x);
  };
  EXPECT_THAT(optimised(write), ElementsAre("h.MatMul"));
  expect_same(write);
}

TEST(Fusion, NormsSpelledOut) {
  const auto norm = [](bool centred) {
    return [=](Network& n) -> ValueId {
      ValueId x = n.input(Shape({4, 6, 48}));
      const ValueId axes = n.g.constant(Ints{-1});
      if (centred) x = n.g.op("Sub").input(x).input(n.g.op("ReduceMean").input(x).input(axes));
      const ValueId square = n.g.op("Pow").input(x).input(n.g.constant(2.0f));
      const ValueId mean = n.g.op("ReduceMean").input(square).input(axes);
      const ValueId root =
          n.g.op("Sqrt").input(n.g.op("Add").input(mean).input(n.g.constant(1e-5f)));
      const ValueId y =
          n.g.op("Mul").input(n.g.op("Div").input(x).input(root)).input(n.random({48}));
      if (!centred) return y;
      return n.g.op("Add").input(y).input(n.random({48}));
    };
  };
  EXPECT_THAT(optimised(norm(false)), ElementsAre("RMSNormalization"));
  EXPECT_THAT(optimised(norm(true)), ElementsAre("LayerNormalization"));
  expect_same(norm(false));
  expect_same(norm(true));
}

TEST(Fusion, AnActivationAlone) {
  for (const char* op : {"Relu", "Sigmoid", "Gelu"}) {
    const Write write = [op](Network& n) -> ValueId {
      const ValueId x = n.input(Shape({3, 7, 11}));
      return n.g.op(op).input(n.g.op("Transpose").input(x).attribute("perm", Ints{2, 0, 1}));
    };
    expect_same(write);
  }
}

TEST(Fusion, ImagesStayInBlocks) {
  const Write write = [](Network& n) -> ValueId {
    const ValueId x = n.input(Shape({1, 3, 32, 30}));
    const ValueId a = n.g.op("Relu").input(n.conv(x, {32, 3, 3, 3}, {1, 1, 1, 1}, {2, 2}));
    const ValueId pool = n.g.op("MaxPool")
                             .input(a)
                             .attribute("kernel_shape", Ints{3, 3})
                             .attribute("strides", Ints{2, 2})
                             .attribute("pads", Ints{1, 1, 1, 1});
    const ValueId b = n.conv(pool, {16, 32, 3, 3}, {1, 1, 1, 1});
    const ValueId joined = n.g.op("Concat").input(pool).input(b).attribute("axis", 1);
    const ValueId c = n.g.op("Relu").input(n.batch_norm(joined, 48));
    const ValueId mean =
        n.g.op("ReduceMean").input(c).input(n.g.constant(Ints{2, 3})).attribute("keepdims", 1);
    const ValueId gate = n.g.op("Sigmoid").input(n.conv(mean, {48, 48, 1, 1}));
    const ValueId d = n.conv(n.g.op("Mul").input(gate).input(c), {20, 48, 1, 1});
    return n.g.op("GlobalAveragePool").input(d);
  };
  EXPECT_THAT(optimised(write, true),
              ElementsAre("h.Conv", "h.Pool", "h.Conv", "h.Scale", "h.GlobalAveragePool", "h.Conv",
                          "h.Scale", "h.Conv", "h.GlobalAveragePool", "h.FromBlocked"));
  expect_same(write, 5e-6);
}

TEST(Fusion, ImagesGrowInBlocks) {
  struct Case {
    int64_t channels, rows, columns;
    std::vector<const char*> made;  // of the transposed convolution
  };
  // Whole blocks, a part of one, and too few for one.
  for (const Case& c :
       {Case{32, 2, 2, {"h.Conv", "h.Spread"}}, Case{24, 2, 3, {"h.Conv", "h.Spread"}},
        Case{2, 3, 3, {"h.Conv", "DepthToSpace"}}}) {
    const Write write = [&](Network& n) -> ValueId {
      const ValueId x = n.input(Shape({2, 3, 7, 9}));
      const ValueId a = n.g.op("Relu").input(n.conv(x, {20, 3, 3, 3}, {1, 1, 1, 1}));
      const ValueId grown = n.g.op("ConvTranspose")
                                .input(a)
                                .input(n.random({20, c.channels, c.rows, c.columns}))
                                .input(n.random({c.channels}))
                                .attribute("strides", Ints{c.rows, c.columns});
      return n.g.op("Relu").input(grown);
    };
    std::vector<std::string> steps = {"h.Conv"};
    steps.insert(steps.end(), c.made.begin(), c.made.end());
    if (c.channels > 2) steps.push_back("h.FromBlocked");
    EXPECT_EQ(optimised(write, true), steps);
    expect_same(write, 5e-6);
  }
  for (const char* nearest : {"floor", "round_prefer_floor", "round_prefer_ceil"}) {
    const Write write = [&](Network& n) -> ValueId {
      const ValueId x = n.input(Shape({2, 3, 5, 6}));
      const ValueId a = n.conv(x, {24, 3, 3, 3}, {1, 1, 1, 1});
      const bool floor = std::string_view(nearest) == "floor";
      const ValueId grown =
          n.g.op("Resize")
              .input(a)
              .input(graph::kNoValue)
              .input(n.g.add_constant(*Tensor::from<float>({4}, std::vector<float>{1, 1, 3, 2})))
              .attribute("coordinate_transformation_mode", floor ? "asymmetric" : "half_pixel")
              .attribute("nearest_mode", nearest);
      return n.conv(grown, {16, 24, 1, 1});
    };
    EXPECT_THAT(optimised(write, true), ElementsAre("h.Conv", "h.Spread", "h.Conv"));
    expect_same(write, 5e-6);
  }
}

// What pyramids of features do: x + x * gate, and a smaller image that has grown on top of it.
TEST(Fusion, GatesAndGrownImagesAreAddedWhereTheyAreMade) {
  // Sizes that are known, and those of which it is not known that they are the same.
  for (int way = 0; way < 4; ++way) {
    const bool turned = way % 2 == 1, open = way >= 2;
    const Write write = [&](Network& n) -> ValueId {
      const auto add = [&](ValueId a, ValueId b) -> ValueId {
        return n.g.op("Add").input(turned ? b : a).input(turned ? a : b);
      };
      const ValueId x =
          n.input(open ? Shape(std::vector<Dim>{2, 3, Dim(std::string("h")), Dim(std::string("w"))})
                       : Shape({2, 3, 8, 12}));
      const ValueId large = n.conv(x, {24, 3, 3, 3}, {1, 1, 1, 1});
      const ValueId small = n.g.op("MaxPool")
                                .input(n.conv(large, {24, 24, 1, 1}))
                                .attribute("kernel_shape", Ints{2, 2})
                                .attribute("strides", Ints{2, 2});
      const ValueId mean = n.g.op("GlobalAveragePool").input(large);
      const ValueId gate = n.g.op("HardSigmoid").input(n.conv(mean, {24, 24, 1, 1}));
      const ValueId gated = add(large, n.g.op("Mul").input(large).input(gate));
      const ValueId grown =
          n.g.op("Resize")
              .input(small)
              .input(graph::kNoValue)
              .input(n.g.add_constant(*Tensor::from<float>({4}, std::vector<float>{1, 1, 2, 2})))
              .attribute("coordinate_transformation_mode", "asymmetric")
              .attribute("nearest_mode", "floor");
      return n.conv(add(gated, grown), {16, 24, 3, 3}, {1, 1, 1, 1});
    };
    EXPECT_THAT(optimised(write, true),
                ElementsAre("h.Conv", "h.Conv", "h.Pool", "h.GlobalAveragePool", "h.Conv",
                            "h.Scale", "h.Spread", "h.Conv"));
    expect_same(write, 5e-6, 12);
  }
}

// An image of one pixel is added to all pixels, and all pixels of a grown one to an image.
TEST(Fusion, GrownImagesAreBroadcast) {
  for (bool one : {false, true}) {
    const Write write = [&](Network& n) -> ValueId {
      const ValueId x = n.input(Shape({2, 3, 6, 4}));
      const ValueId a = n.conv(x, {24, 3, 3, 3}, {1, 1, 1, 1});
      const ValueId pixel = n.conv(n.g.op("GlobalAveragePool").input(a), {24, 24, 1, 1});
      const ValueId grown =
          n.g.op("Resize")
              .input(one ? pixel : a)
              .input(graph::kNoValue)
              .input(n.g.add_constant(*Tensor::from<float>(
                  {4}, one ? std::vector<float>{1, 1, 6, 1} : std::vector<float>{1, 1, 2, 3})))
              .attribute("coordinate_transformation_mode", "asymmetric")
              .attribute("nearest_mode", "floor");
      return n.conv(n.g.op("Add").input(one ? a : pixel).input(grown), {16, 24, 1, 1});
    };
    EXPECT_THAT(optimised(write, true), ::testing::Contains("h.Spread"));
    EXPECT_THAT(optimised(write, true), ::testing::Not(::testing::Contains("Add")));
    expect_same(write, 5e-6);
  }
}

// Steps that are smaller than the kernel, margins, groups: pixels meet.
TEST(Fusion, TransposedConvolutionsWhosePixelsMeet) {
  for (int way = 0; way < 4; ++way) {
    const Write write = [&](Network& n) -> ValueId {
      const ValueId x = n.input(Shape({1, 3, 7, 9}));
      const ValueId a = n.conv(x, {32, 3, 3, 3}, {1, 1, 1, 1});
      auto node = n.g.op("ConvTranspose");
      node.input(a).input(n.random({32, way == 2 ? 8 : 16, 2, 2}));
      node.attribute("strides", way == 0 ? Ints{1, 1} : Ints{2, 2});
      if (way == 1) node.attribute("pads", Ints{1, 0, 0, 1});
      if (way == 2) node.attribute("group", 2);
      if (way == 3) node.attribute("output_padding", Ints{1, 1});
      return node;
    };
    EXPECT_THAT(optimised(write, true), ::testing::Contains("ConvTranspose"));
    expect_same(write, 5e-6);
  }
}

TEST(Fusion, OpenPictureSizes) {
  const Write write = [](Network& n) -> ValueId {
    const ValueId x =
        n.input(Shape(std::vector<Dim>{1, 3, Dim(std::string("h")), Dim(std::string("w"))}));
    const ValueId a = n.g.op("Relu").input(n.conv(x, {20, 3, 3, 3}, {1, 1, 1, 1}));
    const ValueId b = n.conv(a, {20, 20, 3, 3}, {1, 1, 1, 1});
    return n.g.op("Add").input(a).input(b);
  };
  expect_same(write, 5e-6, 13);
}

// softmax(q k^T / 4 + mask) v of projections [1, rows, 3 * 32] cut into two heads of 16.
ValueId attention(Network& n, Dim rows, bool masked) {
  const ValueId x = n.input(Shape(std::vector<Dim>{1, rows, 24}));
  const auto heads = [&](Ints perm) -> ValueId {
    const ValueId p = n.g.op("MatMul").input(x).input(n.random({24, 32}, 0.4));
    const ValueId cut = n.g.op("Reshape").input(p).input(n.g.constant(Ints{1, -1, 2, 16}));
    return n.g.op("Transpose").input(cut).attribute("perm", perm);
  };
  const ValueId q = heads({0, 2, 1, 3}), k = heads({0, 2, 3, 1}), v = heads({0, 2, 1, 3});
  ValueId scores =
      n.g.op("Mul").input(n.g.op("MatMul").input(q).input(k)).input(n.g.constant(0.25f));
  if (masked)
    scores = n.g.op("Add").input(scores).input(n.input(Shape(std::vector<Dim>{1, 1, 1, rows})));
  const ValueId y =
      n.g.op("MatMul").input(n.g.op("Softmax").input(scores).attribute("axis", -1)).input(v);
  const ValueId turned = n.g.op("Transpose").input(y).attribute("perm", Ints{0, 2, 1, 3});
  return n.g.op("Reshape").input(turned).input(n.g.constant(Ints{1, -1, 32}));
}

TEST(Fusion, AttentionReadsProjectionsInPlace) {
  for (const bool masked : {false, true})
    for (const Dim& rows : {Dim(9), Dim(std::string("rows"))}) {
      const Write write = [=](Network& n) { return attention(n, rows, masked); };
      EXPECT_THAT(optimised(write), ElementsAre("h.MatMul", "h.Attention"));
      expect_same(write);
    }
}

// Products of the same rows are one: of those with a bias and without, of transposed matrices, of
// fewer and shorter key heads, of values of another depth, in a batch. Queries of other rows, and
// what another operator reads, stay apart.
TEST(Fusion, ProjectionsOfTheSameRowsAreOneProduct) {
  enum Kind { plain, biased, transposed, batched, open_rows, cross, read_twice };
  for (const Kind kind : {plain, biased, transposed, batched, open_rows, cross, read_twice}) {
    SCOPED_TRACE(kind);
    const int64_t batch = kind == batched ? 3 : 1;
    const Dim rows = kind == open_rows ? Dim(std::string("rows")) : Dim(7);
    const Write write = [=](Network& n) -> ValueId {
      const ValueId x = n.input(Shape(std::vector<Dim>{batch, rows, 24}));
      const ValueId other = kind == cross ? n.input(Shape({1, 7, 24})) : x;
      const auto project = [&](ValueId from, int64_t columns, bool bias) -> ValueId {
        if (kind == transposed) {
          const ValueId flat = n.g.op("Reshape").input(from).input(n.g.constant(Ints{7, 24}));
          const ValueId p = n.g.op("Gemm")
                                .input(flat)
                                .input(n.random({columns, 24}, 0.4))
                                .input(n.random({columns}))
                                .attribute("transB", int64_t{1});
          return n.g.op("Reshape").input(p).input(n.g.constant(Ints{1, 7, columns}));
        }
        const ValueId p = n.g.op("MatMul").input(from).input(n.random({24, columns}, 0.4));
        return bias ? n.g.op("Add").input(p).input(n.random({columns})) : p;
      };
      const auto heads = [&](ValueId p, int64_t depth, Ints perm) -> ValueId {
        const ValueId cut =
            n.g.op("Reshape").input(p).input(n.g.constant(Ints{batch, -1, 2, depth}));
        return n.g.op("Transpose").input(cut).attribute("perm", perm);
      };
      const ValueId q = project(other, 32, kind == biased), k = project(x, 32, false),
                    v = project(x, 20, kind == biased);
      const ValueId scores =
          n.g.op("MatMul").input(heads(q, 16, {0, 2, 1, 3})).input(heads(k, 16, {0, 2, 3, 1}));
      const ValueId y = n.g.op("MatMul")
                            .input(n.g.op("Softmax").input(scores).attribute("axis", -1))
                            .input(heads(v, 10, {0, 2, 1, 3}));
      if (kind != read_twice) return y;
      // Sums of queries and keys beside the result.
      const auto sum = [&](ValueId p) -> ValueId {
        return n.g.op("ReduceSum").input(n.g.op("Sin").input(p)).attribute("keepdims", int64_t{0});
      };
      return n.g.op("Add").input(n.g.op("Add").input(y).input(sum(q))).input(sum(k));
    };
    const auto ops = optimised(write);
    EXPECT_EQ(std::ranges::count(ops, "h.MatMul"), kind == cross ? 2 : kind == read_twice ? 3 : 1);
    EXPECT_EQ(std::ranges::count(ops, "h.Attention"), 1);
    expect_same(write);
  }
}

// Queries and keys that were computed as [batch, heads, rows, depth], the rows known while running.
TEST(Fusion, AttentionReadsHeadsOfUnknownDistance) {
  for (const int64_t batch : {1, 2})
    for (const int64_t rows : {1, 7}) {
      const Write write = [=](Network& n) -> ValueId {
        const Shape shape(std::vector<Dim>{batch, 3, Dim(std::string("rows")), 8});
        const auto half = n.g.constant(0.5f);
        const ValueId q = n.g.op("Mul").input(n.g.op("Sin").input(n.input(shape))).input(half);
        const ValueId k = n.g.op("Transpose")
                              .input(n.g.op("Cos").input(n.input(shape)))
                              .attribute("perm", Ints{0, 1, 3, 2});
        const ValueId scores = n.g.op("MatMul").input(q).input(n.g.op("Mul").input(k).input(half));
        const ValueId p = n.g.op("Softmax").input(scores).attribute("axis", -1);
        const ValueId y = n.g.op("MatMul").input(p).input(n.input(shape));
        return n.g.op("Transpose").input(y).attribute("perm", Ints{0, 2, 1, 3});
      };
      EXPECT_THAT(optimised(write), ElementsAre("Sin", "Cos", "h.Attention"));
      expect_same(write, 2e-6, rows);
    }
}

TEST(Fusion, HeadsThatShareKeysAndTurn) {
  const Write write = [](Network& n) -> ValueId {
    const ValueId x = n.input(Shape({1, 6, 24}));
    const ValueId cos = n.random({1, 1, 6, 8}), sin = n.random({1, 1, 6, 8});
    const auto heads = [&](int64_t count) -> ValueId {
      const ValueId p = n.g.op("MatMul").input(x).input(n.random({24, count * 8}, 0.4));
      const ValueId cut = n.g.op("Reshape").input(p).input(n.g.constant(Ints{1, 6, count, 8}));
      return n.g.op("Transpose").input(cut).attribute("perm", Ints{0, 2, 1, 3});
    };
    const auto turned = [&](ValueId h) -> ValueId {
      const auto part = [&](int64_t from, int64_t to) -> ValueId {
        return n.g.op("Slice")
            .input(h)
            .input(n.g.constant(Ints{from}))
            .input(n.g.constant(Ints{to}))
            .input(n.g.constant(Ints{3}));
      };
      const ValueId other = n.g.op("Concat")
                                .input(n.g.op("Neg").input(part(4, 8)))
                                .input(part(0, 4))
                                .attribute("axis", -1);
      return n.g.op("Add")
          .input(n.g.op("Mul").input(h).input(cos))
          .input(n.g.op("Mul").input(other).input(sin));
    };
    const auto repeated = [&](ValueId h) -> ValueId {
      const ValueId wide = n.g.op("Unsqueeze").input(h).input(n.g.constant(Ints{2}));
      const ValueId many = n.g.op("Expand").input(wide).input(n.g.constant(Ints{1, 2, 3, 6, 8}));
      return n.g.op("Reshape").input(many).input(n.g.constant(Ints{1, 6, 6, 8}));
    };
    const ValueId q = turned(heads(6)), k = repeated(turned(heads(2))), v = repeated(heads(2));
    const ValueId kt = n.g.op("Transpose").input(k).attribute("perm", Ints{0, 1, 3, 2});
    const ValueId p =
        n.g.op("Softmax").input(n.g.op("MatMul").input(q).input(kt)).attribute("axis", -1);
    return n.g.op("MatMul").input(p).input(v);
  };
  EXPECT_THAT(optimised(write), ElementsAre("h.MatMul", "h.Rotary", "h.MatMul", "h.Rotary",
                                            "h.MatMul", "h.Attention"));
  expect_same(write);
}

TEST(Fusion, IntegerProductsAreScaledInTheirEpilogue) {
  const Write write = [](Network& n) -> ValueId {
    const ValueId x = n.input(Shape({1, 5, 30}), DType::u8);
    Tensor w = *Tensor::allocate(DType::i8, {30, 34});
    for (int64_t i = 0; i < w.count(); ++i) w.as<int8_t>()[i] = static_cast<int8_t>(n.draw() * 127);
    const ValueId sums = n.g.op("MatMulInteger")
                             .input(x)
                             .input(n.g.add_constant(w))
                             .input(n.g.constant(uint8_t{121}))
                             .input(n.g.constant(int8_t{-3}));
    const ValueId wide =
        n.g.op("Cast").input(sums).attribute("to", static_cast<int64_t>(DType::f32));
    const ValueId scaled = n.g.op("Mul").input(wide).input(n.g.constant(1e-4f));
    return n.g.op("Relu").input(n.g.op("Add").input(scaled).input(n.random({34})));
  };
  EXPECT_THAT(optimised(write), ElementsAre("h.MatMulInteger"));
  expect_same(write, 0);
}

// A layer of `op` over 6 steps of 3 samples, all of its outputs in a row.
Write recurrent(const char* op, const char* direction, bool batch_first, bool all_inputs) {
  return [=](Network& n) -> ValueId {
    const bool lstm = std::string_view(op) == "LSTM";
    const int64_t gates = lstm ? 4 : 3, hidden = 20, directions = direction[0] == 'b' ? 2 : 1;
    const Dims state = batch_first ? Dims{3, directions, hidden} : Dims{directions, 3, hidden};
    auto node = n.g.op(op);
    node.input(n.input(batch_first ? Shape({3, 6, 9}) : Shape({6, 3, 9})))
        .input(n.random({directions, gates * hidden, 9}, 0.5))
        .input(n.random({directions, gates * hidden, hidden}, 0.5))
        .attribute("direction", direction)
        .attribute("hidden_size", hidden)
        .outputs(lstm ? 3 : 2);
    if (batch_first) node.attribute("layout", 1);
    if (all_inputs) {
      Tensor lengths = *Tensor::allocate(DType::i32, {3});
      std::ranges::copy(std::vector{6, 2, 4}, lengths.as<int32_t>());
      node.input(n.random({directions, 2 * gates * hidden}))
          .input(n.g.add_constant(lengths))
          .input(n.random(state));
      if (lstm) node.input(n.random(state)).input(n.random({directions, 3 * hidden}));
      if (!lstm) node.attribute("linear_before_reset", 1);
    }
    std::vector<ValueId> flat;
    for (size_t i = 0; i < (lstm ? 3 : 2); ++i)
      flat.push_back(n.g.op("Reshape").input(node.output(i)).input(n.g.constant(Ints{-1})));
    return n.g.op("Concat").inputs(flat).attribute("axis", 0);
  };
}

TEST(Fusion, RecurrentLayersWithPackedWeights) {
  for (const char* op : {"LSTM", "GRU"})
    for (const char* direction : {"forward", "reverse", "bidirectional"})
      for (bool batch_first : {false, true})
        for (bool all_inputs : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << op << ' ' << direction << ' ' << batch_first << ' ' << all_inputs);
          expect_same(recurrent(op, direction, batch_first, all_inputs), 3e-6);
        }
}

TEST(Fusion, ConvolutionOfWhatHasNoKnownRank) {
  const Write write = [](Network& n) -> ValueId {
    const ValueId x = n.input(Shape(std::vector<Dim>{Dim(std::string("n")), 2, 9, 1}));
    const ValueId some = n.g.op("Squeeze").input(x);  // the symbol may be 1
    const ValueId first = n.g.op("Relu").input(n.conv(some, {20, 2, 3}));
    return n.g.op("Relu").input(n.conv(first, {6, 20, 3}, {1, 1}, {2}));
  };
  EXPECT_THAT(optimised(write, true), ElementsAre("Squeeze", "h.Conv", "h.Conv"));
  expect_same(write);
}

}  // namespace
}  // namespace hologram::compiler
