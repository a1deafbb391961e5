#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "graph/dim.h"
#include "graph/testing/evaluate.h"

namespace hologram::graph::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

Tensor counted(const Dims& dims) {
  std::vector<int32_t> values(dims.count());
  std::iota(values.begin(), values.end(), 0);
  return tensor<int32_t>(dims, values);
}

// The same elements in every kind of type there is: sizes 1 to 16, packed, strings.
std::vector<Tensor> in_every_kind(const Dims& dims) {
  std::vector<Tensor> kinds;
  for (DType type : {DType::u8, DType::f16, DType::f32, DType::i64, DType::complex128, DType::i4,
                     DType::u2, DType::f4e2m1, DType::f8e5m2}) {
    Tensor t = *Tensor::allocate(type, dims);
    for (size_t i = 0; i < t.bytes(); ++i) t.as<uint8_t>()[i] = static_cast<uint8_t>(i * 37 + 11);
    // What no element owns is zero.
    if (const unsigned used = t.count() * bits_of(type) % 8; used != 0)
      t.as<uint8_t>()[t.bytes() - 1] &= (1 << used) - 1;
    kinds.push_back(t);
  }
  std::vector<std::string> texts;
  for (int64_t i = 0; i < dims.count(); ++i)
    texts.push_back(std::to_string(i) + " in words too long to be stored inside");
  kinds.push_back(strings(dims, texts));
  return kinds;
}

// Element `i` of a tensor of any type, as something that compares.
std::string element(const Tensor& t, int64_t i) {
  if (t.dtype == DType::string) return t.as<std::string>()[i];
  if (const size_t size = size_of(t.dtype)) return {t.as<char>() + i * size, size};
  const unsigned width = bits_of(t.dtype), per_byte = 8 / width;
  return std::to_string((t.as<uint8_t>()[i / per_byte] >> (i % per_byte * width)) &
                        ((1 << width) - 1));
}

// `op` must move the elements of every type as it moves those of i32, where -1 is a fill.
void expect_same_moves(Call call, const Dims& dims, size_t output = 0) {
  call.inputs[0] = counted(dims);
  auto moved = evaluate_all(call);
  ASSERT_TRUE(moved.has_value()) << moved.error().to_string();
  const Tensor where = moved->at(output);
  for (const Tensor& in : in_every_kind(dims)) {
    call.inputs[0] = in;
    auto outs = evaluate_all(call);
    ASSERT_TRUE(outs.has_value()) << outs.error().to_string();
    const Tensor out = outs->at(output);
    ASSERT_EQ(out.dims, where.dims);
    for (int64_t i = 0; i < out.count(); ++i)
      ASSERT_EQ(element(out, i), element(in, where.as<int32_t>()[i]))
          << call.op << " of " << name_of(in.dtype);
  }
}

Call slice_call(const Tensor& in, std::vector<int64_t> starts, std::vector<int64_t> ends,
                std::vector<int64_t> axes, std::vector<int64_t> steps) {
  return {"Slice", {in, vector(starts), vector(ends), vector(axes), vector(steps)}};
}

TEST(Slice, TakesWhatPythonWould) {
  std::mt19937 random(7);
  auto number = [&](int low, int high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 300; ++round) {
    const int64_t size = number(0, 7);
    int64_t start = number(-10, 10), end = number(-10, 10), step = number(-4, 4);
    if (step == 0) step = 1;
    if (number(0, 5) == 0) end = step > 0 ? kMax : kMin;
    // Python's rule, element by element.
    std::vector<int32_t> expected;
    auto place = [&](int64_t v, int64_t low, int64_t high) {
      if (v < 0) v += size;
      return v < low ? low : v > high ? high : v;
    };
    if (step > 0)
      for (int64_t i = place(start, 0, size); i < place(end, 0, size); i += step)
        expected.push_back(static_cast<int32_t>(i));
    else
      for (int64_t i = place(start, -1, size - 1); i > place(end, -1, size - 1); i += step)
        expected.push_back(static_cast<int32_t>(i));
    const Tensor out = evaluate(slice_call(counted({size}), {start}, {end}, {0}, {step}));
    EXPECT_EQ(elements<int32_t>(out), expected)
        << start << ":" << end << ":" << step << " of " << size;
  }
}

TEST(Slice, MovesEveryType) {
  expect_same_moves(slice_call({}, {3, -1}, {kMin, 0}, {-1, 0}, {-2, -1}), {3, 5});
  expect_same_moves(slice_call({}, {1}, {kMax}, {1}, {1}), {3, 5});
}

TEST(Slice, SurvivesExtremes) {
  EXPECT_THAT(elements<int32_t>(evaluate(slice_call(counted({5}), {kMax}, {kMin}, {0}, {kMin}))),
              ElementsAre(4));
  EXPECT_THAT(elements<int32_t>(evaluate(slice_call(counted({5}), {kMin}, {kMax}, {0}, {kMax}))),
              ElementsAre(0));
  EXPECT_EQ(evaluate({"Slice", {counted({2, 3}), vector<int32_t>({1}), vector<int32_t>({2})}}).dims,
            Dims({1, 3}));
}

TEST(Slice, Refuses) {
  EXPECT_THAT(refusal(slice_call(counted({5}), {0}, {5}, {0}, {0})), HasSubstr("step 0"));
  EXPECT_THAT(refusal(slice_call(counted({5}), {0}, {5}, {1}, {1})), HasSubstr("axis 1"));
  EXPECT_THAT(refusal(slice_call(counted({5}), {0, 0}, {5}, {0}, {1})),
              HasSubstr("2 starts, 1 ends"));
  EXPECT_THAT(refusal(slice_call(counted({5, 5}), {0, 0}, {1, 1}, {0, 0}, {1, 1})),
              HasSubstr("named twice"));
  EXPECT_THAT(refusal({"Slice", {counted({5}), scalar(0.5f), scalar(1.5f)}}),
              HasSubstr("supported: i32, i64"));
}

// The inferred size of a symbolic axis is what the kernel would take, for every size.
TEST(Slice, SizesOfSymbolicAxesAreExact) {
  for (int64_t start : {int64_t{0}, int64_t{2}, int64_t{5}, int64_t{-2}, kMin})
    for (int64_t end : {int64_t{0}, int64_t{3}, int64_t{-1}, int64_t{-4}, kMax, kMin})
      for (int64_t step : {1, 2, -1}) {
        Graph g;
        const ValueId x = g.add_input(
            "x", ValueType::tensor(DType::i32, Shape(std::vector<Dim>{Dim(std::string("n"))})));
        const ValueId y = g.op("Slice")
                              .input(x)
                              .input(g.constant(std::vector<int64_t>{start}))
                              .input(g.constant(std::vector<int64_t>{end}))
                              .input(g.constant(std::vector<int64_t>{0}))
                              .input(g.constant(std::vector<int64_t>{step}));
        ASSERT_TRUE(g.status().has_value());
        const Dim dim = (*g.value(y).type.shape)[0];
        if (is_unknown(dim)) continue;
        for (int64_t n = 0; n < 8; ++n)
          EXPECT_EQ(graph::evaluate(dim, {{"n", n}}),
                    evaluate(slice_call(counted({n}), {start}, {end}, {0}, {step})).count())
              << dim.to_string() << " for " << start << ":" << end << ":" << step << " of " << n;
      }
}

TEST(Shapes, StaySymbolicThroughSliceGatherSplitAndConcat) {
  Graph g;
  const Dim n(std::string("n"));
  const ValueId x =
      g.add_input("x", ValueType::tensor(DType::f32, Shape(std::vector<Dim>{n, 3, 4})));
  const ValueId shape = g.op("Shape").input(x);
  const ValueId first = g.op("Slice")
                            .input(shape)
                            .input(g.constant(std::vector<int64_t>{0}))
                            .input(g.constant(std::vector<int64_t>{1}));
  const ValueId last = g.op("Gather").input(shape).input(g.constant(std::vector<int64_t>{-1}));
  NodeBuilder split(g, "Split", "");
  split.input(shape).input(g.constant(std::vector<int64_t>{1, 2})).outputs(2);
  const ValueId head = split.output(0), tail = split.output(1);
  const ValueId target =
      g.op("Concat").input(first).input(last).input(head).input(tail).attribute("axis", 0);
  const ValueId y = g.op("ConstantOfShape").input(target);
  ASSERT_TRUE(g.status().has_value()) << g.status().error().to_string();
  EXPECT_EQ(g.value(y).type.to_string(), "f32[n, 4, n, 3, 4]");
  const ValueId zero = g.constant(int64_t{0}), one = g.constant(int64_t{1});
  const ValueId count = g.op("Squeeze").input(first);
  EXPECT_EQ(g.value(g.op("Range").input(zero).input(count).input(one)).type.to_string(), "i64[n]");
}

TEST(Split, MovesEveryType) {
  Call call{"Split", {{}, vector<int64_t>({1, 0, 3})}, {}, 3};
  call.attributes.set("axis", int64_t{-1});
  for (size_t output : {0, 1, 2}) expect_same_moves(call, {3, 4}, output);
}

TEST(Split, LastPartIsSmaller) {
  Call call{"Split", {counted({7})}, {}, 4};
  call.attributes.set("num_outputs", int64_t{4});
  auto parts = evaluate_all(call);
  ASSERT_TRUE(parts.has_value());
  EXPECT_THAT(elements<int32_t>((*parts)[0]), ElementsAre(0, 1));
  EXPECT_THAT(elements<int32_t>((*parts)[3]), ElementsAre(6));
}

TEST(Split, Refuses) {
  EXPECT_THAT(refusal({"Split", {counted({5}), vector<int64_t>({2, 2})}, {}, 2}),
              HasSubstr("2 parts of 4 elements together for 2 outputs of 5"));
  EXPECT_THAT(refusal({"Split", {counted({5}), vector<int64_t>({6, -1})}, {}, 2}),
              HasSubstr("a part of -1 elements"));
  EXPECT_THAT(refusal({"Split", {counted({5}), vector<int64_t>({5})}, {}, 2}),
              HasSubstr("2 outputs"));
  EXPECT_THAT(refusal({"Split", {scalar(1)}, {}, 1}), HasSubstr("axis 0 of a tensor of rank 0"));
}

Call pad_call(const Tensor& in, std::vector<int64_t> pads, const char* mode) {
  Call call{"Pad", {in, vector(pads)}};
  call.attributes.set("mode", std::string(mode));
  return call;
}

TEST(Pad, EveryModeFollowsNumPy) {
  const Tensor in = vector<int32_t>({0, 1, 2});
  // numpy.pad([0, 1, 2], (5, 4), mode)
  EXPECT_THAT(elements<int32_t>(evaluate(pad_call(in, {5, 4}, "reflect"))),
              ElementsAre(1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2));
  EXPECT_THAT(elements<int32_t>(evaluate(pad_call(in, {5, 4}, "edge"))),
              ElementsAre(0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2));
  EXPECT_THAT(elements<int32_t>(evaluate(pad_call(in, {5, 4}, "wrap"))),
              ElementsAre(1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0));
  EXPECT_THAT(elements<int32_t>(evaluate(pad_call(in, {1, 2}, "constant"))),
              ElementsAre(0, 0, 1, 2, 0, 0));
  EXPECT_THAT(elements<int32_t>(evaluate(pad_call(vector<int32_t>({9}), {2, 1}, "reflect"))),
              ElementsAre(9, 9, 9, 9));
}

TEST(Pad, NegativePadsCutOff) {
  const Tensor in = vector<int32_t>({0, 1, 2, 3});
  EXPECT_THAT(elements<int32_t>(evaluate(pad_call(in, {-1, -1}, "constant"))), ElementsAre(1, 2));
  EXPECT_THAT(elements<int32_t>(evaluate(pad_call(in, {-2, 2}, "constant"))),
              ElementsAre(2, 3, 0, 0));
  EXPECT_THAT(elements<int32_t>(evaluate(pad_call(in, {-1, 2}, "reflect"))),
              ElementsAre(1, 2, 3, 2, 1));
  EXPECT_THAT(elements<int32_t>(evaluate(pad_call(in, {1, -2}, "wrap"))), ElementsAre(1, 0, 1));
  EXPECT_EQ(evaluate(pad_call(in, {-2, -2}, "constant")).count(), 0);
}

TEST(Pad, MovesEveryType) {
  for (const char* mode : {"reflect", "edge", "wrap"})
    expect_same_moves(pad_call({}, {1, 2, 0, 1}, mode), {3, 5});
  for (const Tensor& in : in_every_kind({2, 3})) {
    const Tensor out = evaluate(pad_call(in, {0, 1, 1, 0}, "constant"));
    ASSERT_EQ(out.dims, Dims({3, 4}));
    EXPECT_EQ(element(out, 1), element(in, 0));
    EXPECT_EQ(element(out, 7), element(in, 5));
    const std::string zero = in.dtype == DType::string ? ""
                             : size_of(in.dtype) == 0  ? "0"
                                                       : std::string(size_of(in.dtype), '\0');
    for (int64_t i : {0, 4, 8, 11}) EXPECT_EQ(element(out, i), zero) << name_of(in.dtype);
  }
}

TEST(Pad, TakesAxesAndAValue) {
  Call call{"Pad",
            {counted({1, 2}), vector<int64_t>({1, 0}), scalar<int32_t>(7), vector<int32_t>({-1})}};
  EXPECT_THAT(elements<int32_t>(evaluate(call)), ElementsAre(7, 0, 1));
  // More pads than a tensor can have axes.
  Call wide{"Pad", {counted({1, 1, 1, 1, 1, 1, 1, 1, 1, 2}), vector(std::vector<int64_t>(20, 0))}};
  EXPECT_THAT(elements<int32_t>(evaluate(wide)), ElementsAre(0, 1));
}

TEST(Pad, Refuses) {
  EXPECT_THAT(refusal(pad_call(counted({3}), {1, 1}, "mirror")),
              HasSubstr("supported: constant, reflect"));
  EXPECT_THAT(refusal(pad_call(counted({3}), {1}, "edge")), HasSubstr("1 pads for 1 axes"));
  EXPECT_THAT(refusal(pad_call(counted({3}), {-2, -2}, "constant")), HasSubstr("pads -2 and -2"));
  EXPECT_THAT(refusal(pad_call(counted({0}), {1, 0}, "edge")), HasSubstr("nothing to repeat"));
  EXPECT_THAT(refusal(pad_call(counted({3}), {kMax, 1}, "constant")), HasSubstr("pads"));
}

TEST(CenterCropPad, CropsAndPadsAroundTheMiddle) {
  auto center = [](const Tensor& in, std::vector<int64_t> shape) {
    return elements<int32_t>(evaluate({"CenterCropPad", {in, vector(shape)}}));
  };
  EXPECT_THAT(center(vector<int32_t>({1, 2, 3, 4, 5}), {2}), ElementsAre(2, 3));
  EXPECT_THAT(center(vector<int32_t>({1, 2}), {5}), ElementsAre(0, 1, 2, 0, 0));
  Call call{"CenterCropPad", {{}, vector<int32_t>({2})}};
  call.attributes.set("axes", std::vector<int64_t>{-1});
  expect_same_moves(call, {3, 5});
  call.inputs = {counted({2, 2}), vector<int64_t>({-1})};
  EXPECT_THAT(refusal(call), HasSubstr("dimension -1"));
}

TEST(Repeats, MoveEveryType) {
  expect_same_moves({"Expand", {{}, vector<int64_t>({2, 3, 4})}}, {3, 1});
  expect_same_moves({"Expand", {{}, vector<int64_t>({1})}}, {3, 2});
  expect_same_moves({"Tile", {{}, vector<int64_t>({2, 3})}}, {3, 5});
  Call transposed{"Transpose", {{}}};
  transposed.attributes.set("perm", std::vector<int64_t>{2, 0, 1});
  expect_same_moves(transposed, {2, 3, 5});
  Call reversed{"ReverseSequence", {{}, vector<int64_t>({3, 0})}};
  expect_same_moves(reversed, {4, 2, 3});
  for (const char* mode : {"DCR", "CRD"}) {
    Call blocks{"DepthToSpace", {{}}};
    blocks.attributes.set("blocksize", int64_t{2});
    blocks.attributes.set("mode", std::string(mode));
    expect_same_moves(blocks, {2, 8, 1, 3});
    // SpaceToDepth is its inverse.
    const Tensor in = counted({2, 8, 1, 3});
    blocks.inputs[0] = in;
    const Tensor there = evaluate(blocks);
    blocks.op = "SpaceToDepth";
    blocks.inputs[0] = there;
    EXPECT_EQ(elements<int32_t>(evaluate(blocks)), elements<int32_t>(in));
    expect_same_moves(blocks, {1, 1, 4, 6});
  }
}

// Element by element, for every order of the axes: matrices that are turned have a way of their
// own.
TEST(Transpose, PutsEveryElementInItsPlace) {
  for (const Dims& dims : {Dims{1, 1, 257, 76}, Dims{3, 17, 1, 35}, Dims{2, 3, 5, 7}, Dims{130, 70},
                           Dims{2, 0, 3}, Dims{4, 33, 16}, Dims{5}}) {
    const Tensor in = counted(dims);
    std::vector<int64_t> perm(dims.rank());
    std::iota(perm.begin(), perm.end(), 0);
    do {
      Call call{"Transpose", {in}};
      call.attributes.set("perm", perm);
      const Tensor out = evaluate(call);
      const Dims strides = dims.strides();
      for (int64_t i = 0; i < out.count(); ++i) {
        int64_t from = 0, rest = i;
        for (size_t axis = perm.size(); axis-- > 0; rest /= out.dims[axis])
          from += rest % out.dims[axis] * strides[static_cast<size_t>(perm[axis])];
        ASSERT_EQ(out.as<int32_t>()[i], from) << dims.to_string() << " " << i;
      }
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
}

TEST(Repeats, CountAsNumPyDoes) {
  EXPECT_THAT(elements<int32_t>(evaluate({"Tile", {counted({2, 2}), vector<int64_t>({2, 2})}})),
              ElementsAre(0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3));
  EXPECT_EQ(evaluate({"Tile", {counted({2}), vector<int64_t>({0})}}).count(), 0);
  EXPECT_EQ(evaluate({"Expand", {counted({1, 3}), vector<int64_t>({0, 1})}}).dims, Dims({0, 3}));
  EXPECT_THAT(elements<int32_t>(evaluate({"Expand", {scalar(5), vector<int64_t>({2})}})),
              ElementsAre(5, 5));
}

TEST(Repeats, Refuse) {
  EXPECT_THAT(refusal({"Tile", {counted({2}), vector<int64_t>({2, 2})}}),
              HasSubstr("2 repeats for"));
  EXPECT_THAT(refusal({"Tile", {counted({2}), vector<int64_t>({-1})}}), HasSubstr("repeats"));
  EXPECT_THAT(refusal({"Expand", {counted({2}), vector<int64_t>({3})}}),
              HasSubstr("do not broadcast"));
  EXPECT_THAT(refusal({"Expand", {counted({1}), vector<int64_t>({-1})}}),
              HasSubstr("dimension -1"));
  Call blocks{"SpaceToDepth", {counted({1, 1, 3, 4})}};
  blocks.attributes.set("blocksize", int64_t{2});
  EXPECT_THAT(refusal(blocks), HasSubstr("3 x 4 does not divide"));
  blocks.attributes.set("blocksize", int64_t{0});
  EXPECT_THAT(refusal(blocks), HasSubstr("blocksize 0"));
  EXPECT_THAT(refusal({"ReverseSequence", {counted({2, 2}), vector<int64_t>({3, 1})}}),
              HasSubstr("there are 2 steps"));
  Call transposed{"Transpose", {counted({2, 3})}};
  transposed.attributes.set("perm", std::vector<int64_t>{0, 0});
  EXPECT_THAT(refusal(transposed), HasSubstr("axis 0 twice"));
}

TEST(Concat, JoinsEveryType) {
  for (const Tensor& in : in_every_kind({3, 3})) {
    Call call{"Concat", {in, in}};
    call.attributes.set("axis", int64_t{1});
    const Tensor out = evaluate(call);
    for (int64_t i = 0; i < 18; ++i) {
      const int64_t row = i / 6, column = i % 3;
      ASSERT_EQ(element(out, i), element(in, row * 3 + column)) << name_of(in.dtype);
    }
  }
}

}  // namespace
}  // namespace hologram::graph::testing
