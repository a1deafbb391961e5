#include <gmock/gmock.h>

#include <cmath>

#include "graph/testing/evaluate.h"

namespace hologram::graph::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Attributes sampling(const std::string& mode, const std::string& padding, bool align) {
  Attributes a;
  a.set("mode", mode);
  a.set("padding_mode", padding);
  a.set("align_corners", int64_t{align});
  return a;
}

// A line of four elements, 10 20 30 40, read at places given in elements.
std::vector<float> read(const std::string& mode, const std::string& padding, bool align,
                        const std::vector<double>& places) {
  std::vector<double> grid;
  for (double x : places) grid.push_back(align ? 2 * x / 3 - 1 : (2 * x + 1) / 4 - 1);
  const auto count = static_cast<int64_t>(places.size());
  return elements<float>(
      evaluate({"GridSample",
                {tensor<float>({1, 1, 4}, {10, 20, 30, 40}), tensor<double>({1, count, 1}, grid)},
                sampling(mode, padding, align)}));
}

TEST(GridSample, OneAxisInEveryMode) {
  EXPECT_THAT(read("linear", "zeros", true, {0, 1.5, -0.5, 3.5, 9}), ElementsAre(10, 25, 5, 20, 0));
  EXPECT_THAT(read("linear", "border", true, {-2, 3.5}), ElementsAre(10, 40));
  EXPECT_THAT(read("linear", "reflection", true, {-1, 4, 7}), ElementsAre(20, 30, 20));
  EXPECT_THAT(read("linear", "reflection", false, {-1, 4, -2}), ElementsAre(10, 40, 20));
  EXPECT_THAT(read("nearest", "zeros", false, {0.5, 1.5, 2.5, 3.75}), ElementsAre(10, 30, 30, 0));
  EXPECT_THAT(read("cubic", "border", true, {1, 2}), ElementsAre(20, 30));
}

TEST(GridSample, PlacesThatAreNoNumbers) {
  const double nan = std::nan(""), far = 1e300;
  EXPECT_THAT(read("linear", "zeros", false, {nan, far, -far, INFINITY}), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(read("nearest", "border", false, {far, -far}), ElementsAre(40, 10));
  for (float v : read("cubic", "reflection", true, {nan, 1e15, -INFINITY}))
    EXPECT_TRUE(v >= 10 && v <= 40) << v;
}

TEST(GridSample, ElementsOfEveryKind) {
  const Tensor grid = tensor<Half>({1, 2, 1}, {Half(0), Half(3)});  // the middle, and outside
  auto at = [&](Tensor x, const std::string& mode) {
    return evaluate({"GridSample", {std::move(x), grid}, sampling(mode, "zeros", true)});
  };
  EXPECT_THAT(elements<int8_t>(at(tensor<int8_t>({1, 1, 2}, {-10, -5}), "linear")),
              ElementsAre(-7, 0));
  EXPECT_THAT(elements<bool>(at(bools({1, 1, 2}, {true, false}), "linear")),
              ElementsAre(true, false));
  EXPECT_THAT(elements<uint64_t>(at(tensor<uint64_t>({1, 1, 3}, {1, 2, 3}), "nearest")),
              ElementsAre(2, 0));
  const Tensor texts = at(strings({1, 1, 3}, {"a", "b", "c"}), "nearest");
  EXPECT_THAT(std::vector<std::string>(texts.strings().begin(), texts.strings().end()),
              ElementsAre("b", ""));
  EXPECT_THAT(refusal({"GridSample",
                       {strings({1, 1, 3}, {"a", "b", "c"}), grid},
                       sampling("linear", "zeros", true)}),
              HasSubstr("nearest"));
}

TEST(GridSample, ImpossibleRequestsAreRefused) {
  const Tensor x = tensor<float>({1, 1, 2}, {1, 2}), grid = tensor<float>({1, 1, 1}, {0});
  EXPECT_THAT(refusal({"GridSample", {x, grid}, sampling("quick", "zeros", true)}),
              HasSubstr("linear, nearest, cubic"));
  EXPECT_THAT(refusal({"GridSample", {x, grid}, sampling("linear", "sand", true)}),
              HasSubstr("reflection"));
  EXPECT_THAT(refusal({"GridSample", {x, tensor<float>({1, 1, 2}, {0, 0})}}), HasSubstr("grid"));
  EXPECT_THAT(refusal({"GridSample", {x, tensor<float>({2, 1, 1}, {0, 0})}}), HasSubstr("grid"));
  EXPECT_THAT(refusal({"GridSample", {tensor<float>({1, 1, 0}, {}), grid}}),
              HasSubstr("without elements"));
}

TEST(AffineGrid, TheIdentityGivesPlaces) {
  Attributes a;
  a.set("align_corners", int64_t{1});
  const Tensor theta = tensor<double>({1, 2, 3}, {1, 0, 0, 0, 1, 0});
  EXPECT_THAT(elements<double>(evaluate({"AffineGrid", {theta, vector<int64_t>({1, 1, 2, 3})}, a})),
              ElementsAre(-1, -1, 0, -1, 1, -1, -1, 1, 0, 1, 1, 1));
  EXPECT_THAT(refusal({"AffineGrid", {theta, vector<int64_t>({2, 1, 2, 3})}, a}),
              HasSubstr("theta"));
  EXPECT_THAT(refusal({"AffineGrid", {theta, vector<int64_t>({1, 2})}, a}), HasSubstr("size"));
  EXPECT_THAT(refusal({"AffineGrid", {theta, vector<int64_t>({1, 1, -2, 3})}, a}), HasSubstr("-2"));
}

TEST(NonMaxSuppression, ChoosesByScoreThenByIndex) {
  const Tensor boxes = tensor<float>({1, 4, 4}, {0, 0, 1, 1, 0, 0, 1, 1, 5, 5, 6, 6, 0, 0, 0, 0});
  auto select = [&](std::vector<float> scores, int64_t limit, float least) {
    return elements<int64_t>(evaluate({"NonMaxSuppression",
                                       {boxes, tensor<float>({1, 1, 4}, scores),
                                        scalar<int64_t>(limit), scalar(0.5f), scalar(least)}}));
  };
  EXPECT_THAT(select({1, 1, 2, 0}, 9, 0), ElementsAre(0, 0, 2, 0, 0, 0, 0, 0, 3));
  EXPECT_THAT(select({1, 1, 2, 0}, 1, 0), ElementsAre(0, 0, 2));
  // A score at the threshold stays, one below and one that is no number go.
  EXPECT_THAT(select({1, 0.5f, std::nanf(""), 0.5f}, 9, 1), ElementsAre(0, 0, 0));
  EXPECT_THAT(select({1, 1, 1, 1}, 0, 0), IsEmpty());
  EXPECT_THAT(select({1, 1, 1, 1}, -5, 0), IsEmpty());
  const Tensor scores = tensor<float>({1, 1, 4}, {1, 2, 3, 4});
  EXPECT_THAT(elements<int64_t>(evaluate({"NonMaxSuppression", {boxes, scores}})), IsEmpty());
  EXPECT_THAT(refusal({"NonMaxSuppression", {boxes, tensor<float>({1, 1, 3}, {1, 2, 3})}}),
              HasSubstr("scores"));
  EXPECT_THAT(refusal({"NonMaxSuppression", {boxes, scores, scalar<int64_t>(1), scalar(1.5f)}}),
              HasSubstr("iou_threshold"));
}

TEST(RoiAlign, AveragesAnEvenImage) {
  Attributes a;
  a.set("output_height", int64_t{2});
  a.set("output_width", int64_t{3});
  const Tensor x = tensor<double>({1, 2, 4, 4}, std::vector<double>(32, 5.0));
  const Tensor inside = tensor<double>({1, 4}, {1, 1, 3, 3}), image = vector<int64_t>({0});
  for (double v : elements<double>(evaluate({"RoiAlign", {x, inside, image}, a})))
    EXPECT_DOUBLE_EQ(v, 5);
  // A huge region is sampled without walking over everything outside.
  const Tensor huge = tensor<double>({1, 4}, {-9e5, -9e5, 9e5, 9e5});
  EXPECT_EQ(evaluate({"RoiAlign", {x, huge, image}, a}).dims, (Dims{1, 2, 2, 3}));
  EXPECT_THAT(refusal({"RoiAlign", {x, inside, vector<int64_t>({1})}, a}),
              HasSubstr("image 1 of 1"));
  EXPECT_THAT(refusal({"RoiAlign", {x, tensor<double>({1, 4}, {0, 0, std::nan(""), 1}), image}, a}),
              HasSubstr("coordinate"));
  a.set("mode", std::string("median"));
  EXPECT_THAT(refusal({"RoiAlign", {x, inside, image}, a}), HasSubstr("avg, max"));
}

TEST(ImageDecoder, ReadsPixelsStoredAsTheyAre) {
  const std::vector<uint8_t> ppm = {'P', '6', ' ', '#',  'x', '\n', '2', ' ', '1', '\n',
                                    '2', '5', '5', '\n', 1,   2,    3,   4,   5,   6};
  EXPECT_THAT(elements<uint8_t>(evaluate({"ImageDecoder", {vector<uint8_t>(ppm)}})),
              ElementsAre(1, 2, 3, 4, 5, 6));
  Attributes a;
  a.set("pixel_format", std::string("BGR"));
  EXPECT_THAT(elements<uint8_t>(evaluate({"ImageDecoder", {vector<uint8_t>(ppm)}, a})),
              ElementsAre(3, 2, 1, 6, 5, 4));
  // Whatever is cut off, there is an empty image and no crash.
  for (size_t length = 2; length < ppm.size(); ++length) {
    const std::vector<uint8_t> part(ppm.begin(), ppm.begin() + static_cast<ptrdiff_t>(length));
    EXPECT_EQ(evaluate({"ImageDecoder", {vector<uint8_t>(part)}}).count(), 0) << length;
  }
  EXPECT_THAT(refusal({"ImageDecoder", {vector<uint8_t>({0x89, 'P', 'N', 'G'})}}),
              HasSubstr("supported: BMP"));
  a.set("pixel_format", std::string("CMYK"));
  EXPECT_THAT(refusal({"ImageDecoder", {vector<uint8_t>(ppm)}, a}), HasSubstr("Grayscale"));
}

}  // namespace
}  // namespace hologram::graph::testing
