#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "graph/testing/evaluate.h"

namespace hologram::graph::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Attributes mode(const std::string& name, const std::string& coordinates = "half_pixel") {
  Attributes a;
  a.set("mode", name);
  a.set("coordinate_transformation_mode", coordinates);
  return a;
}

Call to_size(const Tensor& x, std::vector<int64_t> size, Attributes a) {
  return {"Resize", {x, absent(), absent(), vector<int64_t>(std::move(size))}, std::move(a)};
}

Tensor ramp(const Dims& dims) {
  std::vector<float> values(dims.count());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * i % 23) - 5;
  return tensor<float>(dims, values);
}

// The definition, all axes at once and in long double: weights of every pair of positions.
long double weight(const std::string& kind, long double distance) {
  const long double x = std::fabs(distance), a = -0.75L;
  if (kind == "linear") return std::max(0.0L, 1 - x);
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

TEST(Resize, SumsOverAllAxesAtOnce) {
  const Dims in = {2, 5, 4, 3}, out = {3, 7, 3, 5};
  const Tensor x = ramp(in);
  for (std::string kind : {"linear", "cubic"})
    for (bool antialias : {false, true})
      for (bool exclude : {false, true}) {
        Attributes a = mode(kind);
        a.set("antialias", int64_t{antialias});
        a.set("exclude_outside", int64_t{exclude});
        const Tensor y = evaluate(to_size(x, {3, 7, 3, 5}, a));
        ASSERT_EQ(y.dims, out);
        for (int64_t i = 0; i < out.count(); ++i) {
          std::vector<std::vector<long double>> weights(4);
          for (int64_t axis = 4, rest = i; axis-- > 0; rest /= out[axis]) {
            const long double scale = static_cast<long double>(out[axis]) / in[axis];
            const long double at = (rest % out[axis] + 0.5L) / scale - 0.5L;
            const long double wide = antialias ? std::max(1.0L, 1 / scale) : 1;
            weights[axis].assign(in[axis], 0);
            long double sum = 0;
            for (int64_t k = -20; k < 30; ++k) {
              const bool outside = k < 0 || k >= in[axis];
              if (outside && exclude) continue;
              const long double w = weight(kind, (static_cast<long double>(k) - at) / wide);
              weights[axis][std::clamp<int64_t>(k, 0, in[axis] - 1)] += w;
              sum += w;
            }
            for (long double& w : weights[axis]) w /= sum;
          }
          long double want = 0;
          for (int64_t k = 0; k < in.count(); ++k) {
            long double w = 1;
            for (int64_t axis = 4, rest = k; axis-- > 0; rest /= in[axis])
              w *= weights[axis][rest % in[axis]];
            want += w * x.as<float>()[k];
          }
          ASSERT_NEAR(y.as<float>()[i], static_cast<double>(want), 2e-5) << kind << antialias << i;
        }
      }
}

TEST(Resize, NearestMovesElementsOfEveryType) {
  const std::vector<size_t> from = {0, 0, 0, 1, 1, 1};
  auto call = [](Tensor x) { return to_size(x, {6}, mode("nearest")); };
  const Tensor texts = evaluate(call(strings({2}, {"left, and long enough to be allocated", "r"})));
  for (size_t i = 0; i < 6; ++i)
    EXPECT_EQ(texts.strings()[i], from[i] == 0 ? "left, and long enough to be allocated" : "r");
  EXPECT_THAT(elements<int64_t>(evaluate(call(vector<int64_t>({-1, 1})))),
              ElementsAre(-1, -1, -1, 1, 1, 1));
  EXPECT_THAT(elements<Half>(evaluate(call(vector<Half>({Half(0.5f), Half(2)})))),
              ElementsAre(Half(0.5f), Half(0.5f), Half(0.5f), Half(2), Half(2), Half(2)));
  Tensor complex = *Tensor::allocate(DType::complex128, {2});
  for (int i = 0; i < 4; ++i) complex.as<double>()[i] = i;
  const Tensor moved = evaluate(call(complex));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(moved.as<double>()[2 * i + 1], i < 3 ? 1 : 3);
  EXPECT_THAT(elements<bool>(evaluate(call(bools({2}, {true, false})))),
              ElementsAre(true, true, true, false, false, false));
}

TEST(Resize, WeighsElementsOfEveryNumber) {
  const Attributes linear = mode("linear", "align_corners");
  EXPECT_THAT(elements<uint8_t>(evaluate(to_size(vector<uint8_t>({0, 255}), {4}, linear))),
              ElementsAre(0, 85, 170, 255));
  EXPECT_THAT(elements<int64_t>(evaluate(to_size(vector<int64_t>({-7, 8}), {4}, linear))),
              ElementsAre(-7, -2, 3, 8));
  EXPECT_THAT(elements<bool>(evaluate(to_size(bools({2}, {false, true}), {3}, linear))),
              ElementsAre(false, true, true));
  EXPECT_THAT(elements<BFloat16>(
                  evaluate(to_size(vector<BFloat16>({BFloat16(1), BFloat16(2)}), {3}, linear))),
              ElementsAre(BFloat16(1), BFloat16(1.5f), BFloat16(2)));
  Tensor complex = *Tensor::allocate(DType::complex64, {2});
  for (int i = 0; i < 4; ++i) complex.as<float>()[i] = static_cast<float>(i);
  const Tensor between = evaluate(to_size(complex, {3}, linear));
  EXPECT_EQ(between.as<float>()[2], 1);
  EXPECT_EQ(between.as<float>()[3], 2);
  // An even picture stays even, and overshoot stops at the limits of the type.
  EXPECT_THAT(elements<uint8_t>(
                  evaluate(to_size(vector<uint8_t>({3, 3, 3, 3, 3, 3, 3}), {5}, mode("cubic")))),
              Each(3));
  const auto cubic =
      elements<uint8_t>(evaluate(to_size(vector<uint8_t>({0, 0, 255, 255}), {16}, mode("cubic"))));
  EXPECT_EQ(cubic[4], 0);
  EXPECT_EQ(cubic[11], 255);
  EXPECT_THAT(refusal(to_size(strings({2}, {"a", "b"}), {4}, mode("linear"))),
              HasSubstr("nearest"));
}

TEST(Resize, CoordinatesOfEveryMode) {
  const Tensor x = vector<float>({0, 1, 2, 3});
  auto line = [&](const std::string& coordinates, std::vector<float> scale) {
    return elements<float>(evaluate(
        {"Resize", {x, absent(), vector<float>(std::move(scale))}, mode("linear", coordinates)}));
  };
  EXPECT_THAT(line("half_pixel", {2}), ElementsAre(0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3));
  EXPECT_THAT(line("asymmetric", {2}), ElementsAre(0, 0.5, 1, 1.5, 2, 2.5, 3, 3));
  EXPECT_THAT(line("pytorch_half_pixel", {0.25}), ElementsAre(0));
  EXPECT_THAT(line("half_pixel", {0.25}), ElementsAre(1.5));
  EXPECT_THAT(line("tf_half_pixel_for_nn", {0.5}), ElementsAre(1, 3));
  EXPECT_THAT(line("align_corners", {0.5}), ElementsAre(0, 3));
}

TEST(Resize, CropsAndExtrapolates) {
  for (std::string kind : {"nearest", "linear"}) {
    Attributes a = mode(kind, "tf_crop_and_resize");
    a.set("extrapolation_value", 9.0);
    const Tensor roi = vector<double>({-1, 2});
    EXPECT_THAT(elements<int16_t>(evaluate(
                    {"Resize", {vector<int16_t>({4, 5}), roi, absent(), vector<int64_t>({4})}, a})),
                ElementsAre(9, 4, 5, 9));
  }
  EXPECT_THAT(refusal(to_size(vector<float>({1}), {2}, mode("linear", "tf_crop_and_resize"))),
              HasSubstr("roi"));
}

TEST(Resize, KeepsTheAspectRatio) {
  Attributes a = mode("linear");
  a.set("axes", std::vector<int64_t>{-1, 1});
  a.set("keep_aspect_ratio_policy", std::string("not_larger"));
  EXPECT_EQ(evaluate(to_size(ramp({1, 4, 6}), {9, 4}, a)).dims, (Dims{1, 4, 6}));
  a.set("keep_aspect_ratio_policy", std::string("not_smaller"));
  EXPECT_EQ(evaluate(to_size(ramp({1, 4, 6}), {9, 4}, a)).dims, (Dims{1, 6, 9}));
  a.set("keep_aspect_ratio_policy", std::string("roughly"));
  EXPECT_THAT(refusal(to_size(ramp({1, 4, 6}), {9, 4}, a)), HasSubstr("not_smaller"));
}

TEST(Resize, ImpossibleRequestsAreRefused) {
  const Tensor x = ramp({2, 3});
  EXPECT_THAT(refusal(to_size(x, {4}, mode("linear"))), HasSubstr("sizes has 1 entries"));
  EXPECT_THAT(refusal(to_size(x, {4, -1}, mode("linear"))), HasSubstr("size -1"));
  EXPECT_THAT(refusal(to_size(x, {4, 4}, mode("quintic"))), HasSubstr("nearest, linear, cubic"));
  EXPECT_THAT(refusal(to_size(x, {4, 4}, mode("linear", "polar"))), HasSubstr("half_pixel"));
  EXPECT_THAT(refusal({"Resize", {x}, mode("linear")}), HasSubstr("exactly one of"));
  EXPECT_THAT(refusal({"Resize",
                       {x, absent(), vector<float>({1, 1}), vector<int64_t>({2, 3})},
                       mode("linear")}),
              HasSubstr("exactly one of"));
  for (float scale : {0.0f, -1.0f, std::nanf(""), 1e30f})
    EXPECT_THAT(refusal({"Resize", {x, absent(), vector<float>({1, scale})}, mode("linear")}),
                HasSubstr("scale"));
  Attributes a = mode("linear");
  a.set("axes", std::vector<int64_t>{1, -1});
  EXPECT_THAT(refusal(to_size(x, {4, 4}, a)), HasSubstr("twice"));
  a.set("axes", std::vector<int64_t>{2});
  EXPECT_THAT(refusal(to_size(x, {4}, a)), HasSubstr("axis 2"));
  EXPECT_THAT(refusal(to_size(tensor<float>({0, 2}, {}), {3, 2}, mode("linear"))),
              HasSubstr("size 3 for an axis of 0"));
  EXPECT_EQ(evaluate(to_size(x, {0, 5}, mode("cubic"))).dims, (Dims{0, 5}));
}

}  // namespace
}  // namespace hologram::graph::testing
