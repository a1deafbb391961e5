#include <gmock/gmock.h>

#include <random>

#include "graph/testing/evaluate.h"

namespace hologram::graph::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using List = std::vector<int64_t>;

std::vector<double> random_values(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> values(count);
  // Numbers that every type holds exactly.
  for (double& v : values) v = std::round(uniform(random) * 64) / 64;
  return values;
}

template <typename T>
Tensor typed(const Dims& dims, const std::vector<double>& values) {
  std::vector<T> elements;
  for (double v : values) elements.push_back(static_cast<T>(static_cast<float>(v)));
  return tensor<T>(dims, elements);
}

struct Case {
  Dims x, w;
  int64_t groups = 1;
  List strides, dilations, pads;
  bool bias = true;

  size_t rank() const { return x.rank() - 2; }
  int64_t entry(const List& list, size_t i, int64_t missing) const {
    return list.empty() ? missing : list[i];
  }
  Attributes attributes() const {
    Attributes a;
    a.set("group", groups);
    if (!strides.empty()) a.set("strides", strides);
    if (!dilations.empty()) a.set("dilations", dilations);
    if (!pads.empty()) a.set("pads", pads);
    return a;
  }
};

Dims unflatten(int64_t index, std::span<const int64_t> dims) {
  Dims at = Dims::filled(dims.size(), 0);
  for (size_t axis = dims.size(); axis-- > 0; index /= dims[axis]) at[axis] = index % dims[axis];
  return at;
}
int64_t flatten(const Dims& at, std::span<const int64_t> dims) {
  int64_t index = 0;
  for (size_t axis = 0; axis < dims.size(); ++axis) index = index * dims[axis] + at[axis];
  return index;
}
std::span<const int64_t> spatial(const Dims& d) { return {d.begin() + 2, d.rank() - 2}; }

// Every product of the definition, added where it belongs. `forward`: y gathers from x (Conv), else
// x scatters to y (ConvTranspose).
std::vector<long double> oracle(const Case& c, bool forward, const Dims& y,
                                const std::vector<double>& x, const std::vector<double>& w,
                                const std::vector<double>& bias) {
  const Dims &small = forward ? y : c.x, &big = forward ? c.x : y;
  const int64_t in_group = c.x[1] / c.groups, out_group = y[1] / c.groups;
  const int64_t taps = c.w.product(2, c.w.rank());
  const int64_t x_pixels = c.x.product(2, c.x.rank()), y_pixels = y.product(2, y.rank());
  std::vector<long double> result(y.count(), 0.0L);
  if (c.bias)
    for (int64_t i = 0; i < y.count(); ++i) result[i] = bias[i / y_pixels % y[1]];
  for (int64_t place = 0; place < small.product(2, small.rank()); ++place)
    for (int64_t tap = 0; tap < taps; ++tap) {
      const Dims o = unflatten(place, spatial(small)), k = unflatten(tap, spatial(c.w));
      Dims at = o;
      bool inside = true;
      for (size_t axis = 0; axis < c.rank(); ++axis) {
        at[axis] = o[axis] * c.entry(c.strides, axis, 1) + k[axis] * c.entry(c.dilations, axis, 1) -
                   c.entry(c.pads, axis, 0);
        inside &= at[axis] >= 0 && at[axis] < big[axis + 2];
      }
      if (!inside) continue;
      const int64_t there = flatten(at, spatial(big));
      const int64_t xp = forward ? there : place, yp = forward ? place : there;
      for (int64_t n = 0; n < y[0]; ++n)
        for (int64_t m = 0; m < y[1]; ++m)
          for (int64_t i = 0; i < in_group; ++i) {
            const int64_t g = m / out_group, channel = g * in_group + i;
            const int64_t weight = forward ? (m * in_group + i) * taps + tap
                                           : (channel * out_group + m % out_group) * taps + tap;
            result[(n * y[1] + m) * y_pixels + yp] +=
                static_cast<long double>(x[(n * c.x[1] + channel) * x_pixels + xp]) * w[weight];
          }
    }
  return result;
}

template <typename T>
void check(const std::string& op, const Case& c, double tolerance) {
  const bool forward = op == "Conv";
  const int64_t filters = forward ? c.w[0] : c.w[1] * c.groups;
  const auto x = random_values(c.x.count(), 1), w = random_values(c.w.count(), 2);
  const auto bias = random_values(filters, 3);
  std::vector<Tensor> inputs = {typed<T>(c.x, x), typed<T>(c.w, w)};
  if (c.bias) inputs.push_back(typed<T>({filters}, bias));
  const Tensor y = evaluate({op, inputs, c.attributes()});
  ASSERT_TRUE(y.data);
  const auto want = oracle(c, forward, y.dims, x, w, bias);
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(static_cast<double>(static_cast<float>(y.as<T>()[i])), static_cast<double>(want[i]),
                tolerance)
        << op << " " << c.x.to_string() << " element " << i;
}

void check_all(const std::string& op, const Case& c) {
  check<float>(op, c, 1e-5);
  check<double>(op, c, 1e-6);  // compared as f32
  check<Half>(op, c, 0.01);
  check<BFloat16>(op, c, 0.1);
}

TEST(Convolution, AnyRankGroupsAndType) {
  check_all("Conv", {.x = {2, 3, 9}, .w = {4, 3, 3}, .strides = {2}, .pads = {1, 2}});
  check_all("Conv", {.x = {2, 4, 7, 8},
                     .w = {6, 2, 3, 2},
                     .groups = 2,
                     .strides = {2, 1},
                     .dilations = {1, 2},
                     .pads = {1, 0, 2, 1}});
  check_all("Conv", {.x = {1, 5, 6, 6}, .w = {5, 1, 3, 3}, .groups = 5, .pads = {1, 1, 1, 1}});
  check_all("Conv", {.x = {1, 2, 5, 5}, .w = {6, 1, 2, 2}, .groups = 2, .bias = false});
  check_all("Conv", {.x = {1, 2, 4, 5, 6},
                     .w = {3, 2, 2, 3, 2},
                     .strides = {1, 2, 1},
                     .pads = {1, 0, 0, 0, 1, 1}});
  check_all("Conv", {.x = {1, 2, 3, 4, 3, 4}, .w = {2, 1, 2, 2, 2, 2}, .groups = 2});
  check_all("Conv", {.x = {1, 1, 3, 3}, .w = {1, 1, 1, 1}, .pads = {2, 2, 2, 2}});
}

TEST(Convolution, TransposedOfAnyRankGroupsAndType) {
  check_all("ConvTranspose", {.x = {2, 3, 5}, .w = {3, 4, 3}, .strides = {2}, .pads = {1, 0}});
  // So far apart that no table of the places within a stride should be made.
  check_all("ConvTranspose", {.x = {1, 2, 1}, .w = {2, 1, 3}, .strides = {int64_t{1} << 30}});
  check_all("ConvTranspose", {.x = {1, 2, 2, 2}, .w = {2, 1, 2, 2}, .strides = {40, 50}});
  check_all("ConvTranspose", {.x = {2, 4, 3, 4},
                              .w = {4, 3, 3, 2},
                              .groups = 2,
                              .strides = {2, 3},
                              .dilations = {2, 1},
                              .pads = {1, 0, 2, 1}});
  check_all("ConvTranspose",
            {.x = {1, 4, 4, 4}, .w = {4, 1, 2, 2}, .groups = 4, .strides = {2, 2}, .bias = false});
  check_all("ConvTranspose", {.x = {1, 2, 3, 2, 3},
                              .w = {2, 2, 2, 3, 2},
                              .strides = {1, 2, 2},
                              .pads = {0, 1, 0, 0, 0, 1}});
}

TEST(Convolution, AutomaticPads) {
  for (std::string mode : {"SAME_UPPER", "SAME_LOWER"}) {
    Attributes a, explicit_pads;
    a.set("auto_pad", mode);
    explicit_pads.set("pads", mode == "SAME_UPPER" ? List{0, 1} : List{1, 0});
    const Tensor x = typed<float>({1, 2, 6}, random_values(12, 1));
    const Tensor w = typed<float>({3, 2, 2}, random_values(12, 2));
    EXPECT_EQ(elements<float>(evaluate({"Conv", {x, w}, a})),
              elements<float>(evaluate({"Conv", {x, w}, explicit_pads})));
    // A transposed one gets the size of the input times the stride.
    const Tensor t = typed<float>({2, 3, 3}, random_values(18, 2));
    a.set("strides", List{2});
    explicit_pads.set("strides", List{2});
    EXPECT_EQ(elements<float>(evaluate({"ConvTranspose", {x, t}, a})),
              elements<float>(evaluate({"ConvTranspose", {x, t}, explicit_pads})));
  }
}

TEST(Convolution, AskedForAnOutputShape) {
  Attributes a;
  a.set("strides", List{2});
  a.set("output_shape", List{4});
  // The full result is 7 long: the odd pad of three is taken off the beginning.
  const Tensor x = tensor<float>({1, 1, 3}, {1, 10, 100});
  const Tensor w = tensor<float>({1, 1, 3}, {1, 2, 3});
  EXPECT_THAT(elements<float>(evaluate({"ConvTranspose", {x, w}, a})),
              ElementsAre(3 + 10, 20, 30 + 100, 200) /* 1 2 | 13 20 130 200 | 300 */);
  // Larger than the full result: zeros at the end.
  a.set("output_shape", List{9});
  EXPECT_THAT(elements<float>(evaluate({"ConvTranspose", {x, w}, a})),
              ElementsAre(1, 2, 13, 20, 130, 200, 300, 0, 0));
}

TEST(Convolution, ImpossibleInputsAreRefused) {
  const Tensor x = typed<float>({1, 4, 5, 5}, random_values(100, 1));
  const Tensor w = typed<float>({2, 4, 3, 3}, random_values(72, 2));
  auto with = [&](const std::string& op, const std::string& name, auto value) {
    Attributes a;
    a.set(name, std::move(value));
    return refusal({op, {x, w}, a});
  };
  EXPECT_THAT(with("Conv", "group", int64_t{0}), HasSubstr("in 0 groups"));
  EXPECT_THAT(with("Conv", "group", int64_t{3}), HasSubstr("in 3 groups"));
  EXPECT_THAT(with("Conv", "kernel_shape", List{2, 2}), HasSubstr("kernel_shape"));
  EXPECT_THAT(with("Conv", "kernel_shape", List{3}), HasSubstr("kernel_shape"));
  EXPECT_THAT(with("Conv", "strides", List{0, 0}), HasSubstr("must be positive"));
  EXPECT_THAT(with("Conv", "pads", List{1}), HasSubstr("do not fit"));
  EXPECT_THAT(with("Conv", "dilations", List{9, 9}), HasSubstr("elements"));
  EXPECT_THAT(with("ConvTranspose", "group", int64_t{1}), HasSubstr("weights [2, 4, 3, 3]"));
  EXPECT_THAT(refusal({"Conv", {x, typed<float>({2, 4, 3}, random_values(24, 1))}}),
              HasSubstr("weights"));
  EXPECT_THAT(refusal({"Conv", {x, w, vector<float>({1})}}), HasSubstr("bias [1]"));
  Attributes a;
  a.set("pads", List{9, 9, 9, 9});
  const Tensor t = typed<float>({4, 1, 3, 3}, random_values(36, 2));
  EXPECT_THAT(refusal({"ConvTranspose", {x, t}, a}), HasSubstr("elements"));
  a = {};
  a.set("output_padding", List{-1, 0});
  EXPECT_THAT(refusal({"ConvTranspose", {x, t}, a}), HasSubstr("output_padding"));
}

TEST(Convolution, WithoutImagesOrFilters) {
  EXPECT_EQ(
      evaluate({"Conv",
                {tensor<float>({0, 2, 4}, {}), tensor<float>({3, 2, 2}, std::vector<float>(12))}})
          .dims,
      (Dims{0, 3, 3}));
  // A sum over no channels is the bias.
  EXPECT_THAT(elements<float>(evaluate({"Conv",
                                        {tensor<float>({1, 0, 3}, {}), tensor<float>({2, 0, 2}, {}),
                                         vector<float>({7, 7})}})),
              Each(7));
}

TEST(Convolution, FoldsColumnsOfEveryType) {
  // Two overlapping blocks of two by two in an image of two by three.
  const Dims dims = {1, 4, 2};
  auto call = [&](Tensor in) {
    return Call{"Col2Im", {std::move(in), vector<int64_t>({2, 3}), vector<int64_t>({2, 2})}};
  };
  EXPECT_THAT(elements<int16_t>(evaluate(call(tensor<int16_t>(dims, {1, 2, 3, 4, 5, 6, 7, 8})))),
              ElementsAre(1, 2 + 3, 4, 5, 6 + 7, 8));
  EXPECT_THAT(
      elements<uint8_t>(evaluate(call(tensor<uint8_t>(dims, {1, 200, 100, 4, 5, 6, 7, 8})))),
      ElementsAre(1, 44, 4, 5, 13, 8));
  EXPECT_THAT(elements<bool>(evaluate(call(bools(dims, {0, 1, 1, 0, 0, 0, 0, 1})))),
              ElementsAre(false, true, false, false, false, true));
  Tensor complex = *Tensor::allocate(DType::complex64, dims);
  for (int i = 0; i < 16; ++i) complex.as<float>()[i] = static_cast<float>(i);
  const Tensor folded = evaluate(call(complex));
  EXPECT_EQ(folded.as<float>()[2], 2 + 4);
  EXPECT_EQ(folded.as<float>()[3], 3 + 5);
  EXPECT_THAT(refusal(call(strings(dims, std::vector<std::string>(8)))), HasSubstr("string"));
  EXPECT_THAT(refusal(call(tensor<float>({1, 3, 2}, {1, 2, 3, 4, 5, 6}))), HasSubstr("Col2Im"));
  EXPECT_THAT(refusal(call(tensor<float>({1, 4, 3}, std::vector<float>(12)))),
              HasSubstr("expected"));
}

TEST(Convolution, DeformationsOfZeroChangeNothing) {
  const Tensor x = typed<float>({2, 4, 5, 6}, random_values(240, 1));
  const Tensor w = typed<float>({6, 2, 3, 2}, random_values(72, 2));
  Attributes a;
  a.set("group", int64_t{2});
  a.set("strides", List{2, 1});
  a.set("pads", List{1, 0, 1, 1});
  const Tensor plain = evaluate({"Conv", {x, w}, a});
  const Dims offsets = {2, 2 * 6 * 2, plain.dims[2], plain.dims[3]};
  a.set("offset_group", int64_t{2});
  const Tensor none = tensor<float>(offsets, std::vector<float>(offsets.count(), 0.0f));
  const Tensor same = evaluate({"DeformConv", {x, w, none}, a});
  ASSERT_EQ(same.dims, plain.dims);
  for (int64_t i = 0; i < plain.count(); ++i)
    EXPECT_NEAR(same.as<float>()[i], plain.as<float>()[i], 1e-5);
  EXPECT_THAT(refusal({"DeformConv", {x, w, vector<float>({1})}, a}), HasSubstr("offset [1]"));
}

TEST(Convolution, DeformsOverThreeAxes) {
  // One tap, moved by half an element along each axis in turn.
  std::vector<double> cube(27);
  for (size_t i = 0; i < cube.size(); ++i) cube[i] = static_cast<double>(i * i);
  const Tensor x = typed<double>({1, 1, 3, 3, 3}, cube), w = tensor<double>({1, 1, 1, 1, 1}, {1});
  for (int axis = 0; axis < 3; ++axis) {
    std::vector<double> offset(3 * 27, 0.0);
    std::fill_n(offset.begin() + axis * 27, 27, 0.5);
    const Tensor y = evaluate({"DeformConv", {x, w, typed<double>({1, 3, 3, 3, 3}, offset)}});
    const int step = axis == 0 ? 9 : axis == 1 ? 3 : 1;
    for (int i = 0; i < 27; ++i) {
      const bool last = i / step % 3 == 2;
      EXPECT_DOUBLE_EQ(y.as<double>()[i], (cube[i] + (last ? 0 : cube[i + step])) / 2);
    }
  }
}

TEST(Convolution, CausalStateCarriesOn) {
  // A sequence in two calls gives what it gives in one.
  const auto values = random_values(2 * 3 * 7, 1);
  auto part = [&](int64_t from, int64_t to) {
    std::vector<double> some;
    for (int64_t line = 0; line < 6; ++line)
      some.insert(some.end(), values.begin() + line * 7 + from, values.begin() + line * 7 + to);
    return typed<BFloat16>({2, 3, to - from}, some);
  };
  const Tensor w = typed<BFloat16>({3, 1, 4}, random_values(12, 2));
  Attributes a;
  a.set("activation", std::string("silu"));
  auto whole = evaluate_all({"CausalConvWithState", {part(0, 7), w}, a, 2});
  auto first = evaluate_all({"CausalConvWithState", {part(0, 2), w}, a, 2});
  ASSERT_TRUE(whole.has_value() && first.has_value());
  auto second =
      evaluate_all({"CausalConvWithState", {part(2, 7), w, absent(), first->at(1)}, a, 2});
  ASSERT_TRUE(second.has_value()) << second.error().to_string();
  EXPECT_EQ(bytes(whole->at(1)), bytes(second->at(1)));
  for (int64_t line = 0; line < 6; ++line)
    for (int64_t t = 0; t < 7; ++t) {
      const Tensor& y = t < 2 ? first->at(0) : second->at(0);
      EXPECT_EQ(whole->at(0).as<uint16_t>()[line * 7 + t],
                y.as<uint16_t>()[t < 2 ? line * 2 + t : line * 5 + t - 2]);
    }
  a.set("activation", std::string("relu"));
  EXPECT_THAT(refusal({"CausalConvWithState", {part(0, 2), w}, a, 2}), HasSubstr("silu"));
}

}  // namespace
}  // namespace hologram::graph::testing
