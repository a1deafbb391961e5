#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>

#include "graph/dim.h"
#include "graph/testing/evaluate.h"

namespace hologram::graph::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using List = std::vector<int64_t>;

std::vector<double> random_values(int64_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-2, 2);
  std::vector<double> values(count);
  for (double& v : values) v = static_cast<float>(uniform(random));
  return values;
}

template <typename T>
Tensor typed(const Dims& dims, const std::vector<double>& values) {
  std::vector<T> elements;
  for (double v : values) elements.push_back(static_cast<T>(static_cast<float>(v)));
  return tensor<T>(dims, elements);
}

struct Case {
  Dims x;
  List kernel, strides, dilations, pads;
  bool ceil = false, include_pad = false;
  std::string auto_pad = "NOTSET";

  Attributes attributes() const {
    Attributes a;
    a.set("kernel_shape", kernel);
    if (!strides.empty()) a.set("strides", strides);
    if (!dilations.empty()) a.set("dilations", dilations);
    if (!pads.empty()) a.set("pads", pads);
    if (ceil) a.set("ceil_mode", int64_t{1});
    if (auto_pad != "NOTSET") a.set("auto_pad", auto_pad);
    return a;
  }
};

const Case kCases[] = {
    {.x = {2, 3, 11}, .kernel = {3}, .strides = {2}, .pads = {1, 1}},
    {.x = {1, 2, 9}, .kernel = {2}, .strides = {4}, .dilations = {3}, .ceil = true},
    {.x = {2, 3, 7, 8}, .kernel = {3, 2}, .strides = {2, 3}, .pads = {1, 0, 1, 1}},
    {.x = {1, 1, 6, 5}, .kernel = {3, 3}, .strides = {2, 2}, .pads = {1, 1, 1, 1}, .ceil = true},
    {.x = {1, 2, 8, 9}, .kernel = {2, 3}, .dilations = {2, 2}, .pads = {1, 1, 2, 2}},
    {.x = {1, 2, 5, 6, 7}, .kernel = {2, 3, 2}, .strides = {1, 2, 2}, .pads = {0, 1, 1, 1, 1, 0}},
    {.x = {1, 1, 3, 4, 3, 4}, .kernel = {2, 2, 2, 2}, .strides = {1, 2, 1, 1}},
};

// The result of every window: f(values inside, cells inside the padded input).
template <typename F>
std::vector<double> oracle(const Case& c, const Dims& out, const std::vector<double>& x,
                           const F& f) {
  const size_t rank = c.kernel.size();
  auto entry = [](const List& list, size_t i, int64_t missing) {
    return list.empty() ? missing : list[i];
  };
  std::vector<double> results;
  Dims in(std::span(c.x.begin() + 2, rank)), positions(std::span(out.begin() + 2, rank));
  for (int64_t plane = 0; plane < c.x[0] * c.x[1]; ++plane)
    for (int64_t position = 0; position < positions.count(); ++position) {
      std::vector<long double> inside;
      int64_t padded = 0;
      const Dims kernel{std::span<const int64_t>(c.kernel)};
      for (int64_t tap = 0; tap < kernel.count(); ++tap) {
        int64_t p = position, t = tap, offset = 0, scale = 1;
        bool is_inside = true, is_padded = true;
        for (size_t axis = rank; axis-- > 0;) {
          const int64_t at = p % positions[axis] * entry(c.strides, axis, 1) +
                             t % kernel[axis] * entry(c.dilations, axis, 1) -
                             entry(c.pads, axis, 0);
          is_inside &= at >= 0 && at < in[axis];
          is_padded &= at < in[axis] + entry(c.pads, axis + rank, 0);
          offset += at * scale;
          scale *= in[axis];
          p /= positions[axis];
          t /= kernel[axis];
        }
        if (is_inside) inside.push_back(x[plane * in.count() + offset]);
        padded += is_padded;
      }
      results.push_back(static_cast<double>(f(inside, padded)));
    }
  return results;
}

template <typename T>
void expect_near(const Tensor& out, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(static_cast<size_t>(out.count()), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(static_cast<double>(static_cast<float>(out.as<T>()[i])), want[i], tolerance) << i;
}

long double largest(const std::vector<long double>& v, int64_t) {
  return *std::ranges::max_element(v);
}

// The same numbers in every floating type, for each of which a different path runs.
template <typename Oracle>
void check_floats(const std::string& op, const Case& c, const Attributes& attributes,
                  double tolerance, const Oracle& f) {
  const auto x = random_values(c.x.count());
  auto half = x, brain = x;
  for (double& v : half) v = static_cast<float>(Half(static_cast<float>(v)));
  for (double& v : brain) v = static_cast<float>(BFloat16(static_cast<float>(v)));
  const Tensor y = evaluate({op, {typed<float>(c.x, x)}, attributes});
  expect_near<float>(y, oracle(c, y.dims, x, f), tolerance);
  expect_near<double>(evaluate({op, {typed<double>(c.x, x)}, attributes}), oracle(c, y.dims, x, f),
                      tolerance);
  expect_near<Half>(evaluate({op, {typed<Half>(c.x, half)}, attributes}),
                    oracle(c, y.dims, half, f), tolerance + 0.01);
  expect_near<BFloat16>(evaluate({op, {typed<BFloat16>(c.x, brain)}, attributes}),
                        oracle(c, y.dims, brain, f), tolerance + 0.08);
}

TEST(Pooling, MaximaOfAnyRankAndType) {
  for (const Case& c : kCases) {
    check_floats("MaxPool", c, c.attributes(), 0, largest);
    std::vector<double> small;
    for (double v : random_values(c.x.count())) small.push_back(std::round(v * 60));
    const Tensor y = evaluate({"MaxPool", {typed<int8_t>(c.x, small)}, c.attributes()});
    const auto want = oracle(c, y.dims, small, largest);
    for (size_t i = 0; i < want.size(); ++i) ASSERT_EQ(y.as<int8_t>()[i], want[i]);
  }
}

TEST(Pooling, IndicesSayWhereTheMaximumWas) {
  for (const Case& c : kCases)
    for (int64_t order : {0, 1}) {
      Attributes a = c.attributes();
      a.set("storage_order", order);
      const auto x = random_values(c.x.count());
      auto both = evaluate_all({"MaxPool", {typed<float>(c.x, x)}, a, 2});
      ASSERT_TRUE(both.has_value()) << both.error().to_string();
      const Tensor &y = both->at(0), &indices = both->at(1);
      const int64_t plane = c.x.product(2, c.x.rank());
      for (int64_t i = 0; i < y.count(); ++i) {
        int64_t at = indices.as<int64_t>()[i];
        if (order == 1) {  // back to row-major within the plane
          int64_t rest = at % plane, row_major = 0;
          Dims index = Dims::filled(c.x.rank(), 0);
          for (size_t axis = 2; axis < c.x.rank(); rest /= c.x[axis++])
            index[axis] = rest % c.x[axis];
          for (size_t axis = 2; axis < c.x.rank(); ++axis)
            row_major = row_major * c.x[axis] + index[axis];
          at = at / plane * plane + row_major;
        }
        ASSERT_EQ(static_cast<float>(x[at]), y.as<float>()[i]);
      }
    }
}

TEST(Pooling, AveragesCountWhatTheyShould) {
  for (Case c : kCases)
    for (bool include : {false, true}) {
      Attributes a = c.attributes();
      a.set("count_include_pad", int64_t{include});
      check_floats("AveragePool", c, a, 2e-6,
                   [&](const std::vector<long double>& v, int64_t padded) {
                     long double sum = 0;
                     for (long double x : v) sum += x;
                     return sum / static_cast<long double>(include ? padded : v.size());
                   });
    }
}

TEST(Pooling, NormsOfAnyPower) {
  for (const Case& c : kCases)
    for (int64_t p : {1, 2, 3}) {
      Attributes a = c.attributes();
      a.set("p", p);
      check_floats("LpPool", c, a, 4e-6, [&](const std::vector<long double>& v, int64_t) {
        long double sum = 0;
        for (long double x : v) sum += std::pow(std::fabs(x), static_cast<long double>(p));
        return std::pow(sum, 1 / static_cast<long double>(p));
      });
    }
}

TEST(Pooling, WholePlanes) {
  const Dims dims = {2, 3, 5, 7, 2};
  const auto x = random_values(dims.count());
  Attributes cubes;
  cubes.set("p", int64_t{3});
  const Tensor mean = evaluate({"GlobalAveragePool", {typed<float>(dims, x)}});
  const Tensor top = evaluate({"GlobalMaxPool", {typed<double>(dims, x)}});
  const Tensor norm = evaluate({"GlobalLpPool", {typed<float>(dims, x)}, cubes});
  EXPECT_EQ(mean.dims, (Dims{2, 3, 1, 1, 1}));
  for (int64_t plane = 0; plane < 6; ++plane) {
    long double sum = 0, best = -9, powers = 0;
    for (int64_t i = plane * 70; i < (plane + 1) * 70; ++i) {
      sum += x[i];
      best = std::max<long double>(best, x[i]);
      powers += std::pow(std::fabs(static_cast<long double>(x[i])), 3.0L);
    }
    EXPECT_NEAR(mean.as<float>()[plane], static_cast<double>(sum / 70), 1e-7);
    EXPECT_EQ(top.as<double>()[plane], static_cast<double>(best));
    EXPECT_NEAR(norm.as<float>()[plane], static_cast<double>(std::cbrt(powers)), 1e-6);
  }
}

TEST(Pooling, NotANumberIsKept) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Attributes a;
  a.set("kernel_shape", List{2});
  auto both = evaluate_all({"MaxPool", {tensor<float>({1, 1, 4}, {1, nan, 3, 2})}, a, 2});
  ASSERT_TRUE(both.has_value());
  EXPECT_TRUE(std::isnan(both->at(0).as<float>()[0]));
  EXPECT_THAT(elements<int64_t>(both->at(1)), ElementsAre(1, 1, 2));
}

TEST(Pooling, UnpoolingPutsMaximaBack) {
  Attributes a;
  a.set("kernel_shape", List{2});
  a.set("strides", List{2});
  const Tensor x = tensor<float>({1, 1, 2}, {5, 6}), i = tensor<int64_t>({1, 1, 2}, {1, 2});
  EXPECT_THAT(elements<float>(evaluate({"MaxUnpool", {x, i}, a})), ElementsAre(0, 5, 6, 0));
  EXPECT_THAT(elements<float>(evaluate({"MaxUnpool", {x, i, vector<int64_t>({1, 1, 5})}, a})),
              ElementsAre(0, 5, 6, 0, 0));
  EXPECT_THAT(refusal({"MaxUnpool", {x, tensor<int64_t>({1, 1, 2}, {1, 4})}, a}),
              HasSubstr("index 4"));
  EXPECT_THAT(refusal({"MaxUnpool", {x, i, vector<int64_t>({1, 1, 3})}, a}),
              HasSubstr("smaller than the unpooled"));
}

TEST(Pooling, RegionsRoundTheirCorners) {
  std::vector<float> image(36);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i);
  Attributes a;
  a.set("pooled_shape", List{2, 2});
  a.set("spatial_scale", 0.5);
  // Corners (0, 0) and (3, 3) after scaling; the second region lies outside the image.
  const Tensor rois = tensor<float>({2, 5}, {0, 0, 0, 6, 6, 0, 40, 40, 50, 50});
  EXPECT_THAT(
      elements<float>(evaluate({"MaxRoiPool", {tensor<float>({1, 1, 6, 6}, image), rois}, a})),
      ElementsAre(7, 9, 19, 21, 0, 0, 0, 0));
  EXPECT_THAT(refusal({"MaxRoiPool",
                       {tensor<float>({1, 1, 6, 6}, image), tensor<float>({1, 5}, {3, 0, 0, 1, 1})},
                       a}),
              HasSubstr("image 3 of 1"));
}

TEST(Pooling, SymbolsStaySymbols) {
  Graph g;
  ValueId x = g.add_input(
      "x", ValueType::tensor(DType::f32, Shape(std::vector<Dim>{1, 3, Dim(std::string("h"))})));
  ValueId y = g.op("MaxPool")
                  .input(x)
                  .attribute("kernel_shape", List{3})
                  .attribute("strides", List{2})
                  .attribute("pads", List{1, 1})
                  .attribute("ceil_mode", int64_t{1});
  const Dim size = (*g.value(y).type.shape)[2];
  for (int64_t h = 1; h < 20; ++h) {
    Attributes a;
    a.set("kernel_shape", List{3});
    a.set("strides", List{2});
    a.set("pads", List{1, 1});
    a.set("ceil_mode", int64_t{1});
    const Tensor out = evaluate({"MaxPool", {typed<float>({1, 3, h}, random_values(3 * h))}, a});
    EXPECT_EQ(graph::evaluate(size, {{"h", h}}), out.dims[2]) << h;
  }
}

TEST(Pooling, ImpossibleAttributesAreRefused) {
  const Tensor x = typed<float>({1, 1, 4, 4}, random_values(16));
  auto with = [&](const std::string& name, List list) {
    Attributes a;
    a.set("kernel_shape", List{2, 2});
    a.set(name, std::move(list));
    return refusal({"MaxPool", {x}, a});
  };
  EXPECT_THAT(with("kernel_shape", {2}), HasSubstr("kernel of 1 axes"));
  EXPECT_THAT(with("kernel_shape", {0, 2}), HasSubstr("must be positive"));
  EXPECT_THAT(with("kernel_shape", {9, 9}), HasSubstr("MaxPool"));
  EXPECT_THAT(with("strides", {0, 1}), HasSubstr("must be positive"));
  EXPECT_THAT(with("strides", {1}), HasSubstr("do not fit 2 spatial axes"));
  EXPECT_THAT(with("pads", {1, 1}), HasSubstr("do not fit"));
  EXPECT_THAT(with("pads", {0, 0, 0, -1}), HasSubstr("at least 0"));
  EXPECT_THAT(with("dilations", {1, int64_t{1} << 60}), HasSubstr("at most"));
  Attributes a;
  a.set("kernel_shape", List{2, 2});
  a.set("auto_pad", std::string("SOMETIMES"));
  EXPECT_THAT(refusal({"MaxPool", {x}, a}), HasSubstr("SAME_UPPER"));
  EXPECT_THAT(refusal({"AveragePool", {vector<float>({1, 2})}, a}), HasSubstr("spatial axes"));
  EXPECT_THAT(refusal({"GlobalMaxPool", {vector<float>({1, 2})}}), HasSubstr("spatial axes"));
  Attributes zeroth;
  zeroth.set("kernel_shape", List{2, 2});
  zeroth.set("p", int64_t{0});
  EXPECT_THAT(refusal({"LpPool", {x}, zeroth}), HasSubstr("at least 1"));
}

TEST(Pooling, NothingInNothingOut) {
  Attributes a;
  a.set("kernel_shape", List{2});
  EXPECT_EQ(evaluate({"MaxPool", {tensor<float>({0, 2, 4}, {})}, a}).dims, (Dims{0, 2, 3}));
  EXPECT_EQ(evaluate({"AveragePool", {tensor<double>({2, 0, 4}, {})}, a}).dims, (Dims{2, 0, 3}));
  EXPECT_THAT(refusal({"MaxPool", {tensor<float>({1, 1, 0}, {})}, a}), HasSubstr("MaxPool"));
}

}  // namespace
}  // namespace hologram::graph::testing
