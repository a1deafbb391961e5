#include "runtime/tensor.h"

#include <gtest/gtest.h>

#include <numeric>

#include "runtime/testing.h"

namespace hologram::runtime {
namespace {

using testing::executor;
using testing::value_of;

// 0, 1, 2, ... in the given shape.
Tensor counting(const Dims& dims) {
  std::vector<int32_t> values(static_cast<size_t>(*element_count(dims)));
  std::iota(values.begin(), values.end(), 0);
  return testing::make(values, dims);
}
std::vector<int32_t> elements(const Tensor& tensor) {
  return value_of(tensor.to_vector<int32_t>());
}
using Ints = std::vector<int32_t>;

TEST(Tensor, IsRowMajor) {
  const Tensor t = counting({2, 3});
  EXPECT_EQ(t.rank(), 2u);
  EXPECT_EQ(t.element_count(), 6);
  EXPECT_EQ(t.strides(), (Dims{3, 1}));
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_EQ(t.to_string(), "i32[2, 3]");
  EXPECT_EQ(elements(t), (Ints{0, 1, 2, 3, 4, 5}));
}

TEST(Tensor, TransposesAndPermutes) {
  const Tensor t = counting({2, 3});
  const Tensor turned = value_of(t.transpose());
  EXPECT_EQ(turned.dims(), (Dims{3, 2}));
  EXPECT_FALSE(turned.is_contiguous());
  EXPECT_EQ(elements(turned), (Ints{0, 3, 1, 4, 2, 5}));
  const Tensor p = value_of(counting({2, 3, 4}).permute({2, 0, 1}));
  EXPECT_EQ(p.dims(), (Dims{4, 2, 3}));
  EXPECT_EQ(elements(p)[1], 4);
  EXPECT_EQ(elements(p)[6], 1);
}

TEST(Tensor, ReshapesAsAViewWhereItCan) {
  const Tensor t = counting({2, 3, 4});
  const Tensor flat = value_of(t.reshape({-1}));
  EXPECT_EQ(flat.storage(), t.storage());
  EXPECT_EQ(flat.dims(), (Dims{24}));
  // Rows of a slice cannot be joined, but each can be divided.
  const Tensor cut = value_of(t.narrow(2, 0, 2));
  const Tensor divided = value_of(cut.reshape({6, 2, 1}));
  EXPECT_EQ(divided.storage(), t.storage());
  EXPECT_EQ(elements(divided), elements(cut));
  const Tensor joined = value_of(cut.reshape({12}));
  EXPECT_NE(joined.storage(), t.storage());
  EXPECT_EQ(elements(joined), elements(cut));
  const Tensor turned = value_of(value_of(t.permute({1, 0, 2})).reshape({3, 8}));
  EXPECT_EQ(elements(turned), elements(value_of(t.permute({1, 0, 2}))));
}

// Against the definition, for many random views: reshape keeps the row-major order of elements.
TEST(Tensor, ReshapeKeepsTheOrderOfElements) {
  std::mt19937 random(7);
  const std::vector<Dims> shapes = {{2, 3, 4, 5}, {6, 20},         {120},
                                    {1, 2, 60},   {2, 1, 3, 20},   {4, 5, 6},
                                    {3, 5, 8},    {5, 4, 3, 2, 1}, {8, 15}};
  for (int round = 0; round < 300; ++round) {
    Tensor t = counting(shapes[random() % shapes.size()]);
    for (int step = 0; step < 2; ++step) {
      const auto rank = static_cast<int64_t>(t.rank());
      const auto axis = static_cast<int64_t>(random() % t.rank());
      switch (random() % 3) {
        case 0:
          t = value_of(t.transpose(axis, static_cast<int64_t>(random()) % rank));
          break;
        case 1:
          t = value_of(t.unsqueeze(axis));
          break;
        default:
          if (t.dim(static_cast<size_t>(axis)) > 1)
            t = value_of(t.slice(axis, -1, -t.dim(static_cast<size_t>(axis)) - 1, -1));
      }
    }
    const Tensor r = value_of(t.reshape(shapes[random() % shapes.size()]));
    ASSERT_EQ(elements(r), elements(t)) << t.to_string() << " " << t.strides().to_string();
  }
}

TEST(Tensor, SlicesNarrowsAndSelects) {
  const Tensor t = counting({4, 6});
  EXPECT_EQ(elements(value_of(value_of(t.slice(1, 1, 6, 2)).select(0, 0))), (Ints{1, 3, 5}));
  EXPECT_EQ(elements(value_of(value_of(t.slice(1, -1, -7, -2)).select(0, 0))), (Ints{5, 3, 1}));
  EXPECT_EQ(elements(value_of(value_of(t.slice(1, 4, 0, -2)).select(0, 0))), (Ints{4, 2}));
  EXPECT_EQ(value_of(t.slice(0, 2, 2)).dims(), (Dims{0, 6}));
  EXPECT_EQ(value_of(t.slice(0, 3, 1)).dims(), (Dims{0, 6})) << "an end before the beginning";
  EXPECT_EQ(elements(value_of(value_of(t.narrow(0, 1, 2)).select(1, -1))), (Ints{11, 17}));
  EXPECT_EQ(elements(value_of(value_of(t.select(0, 2)).select(0, 3))), (Ints{15}));
  EXPECT_EQ(value_of(value_of(t.select(0, 2)).select(0, 3)).rank(), 0u);
  EXPECT_EQ(elements(value_of(value_of(t.slice(1, 0, 6, INT64_MAX)).select(0, 1))), (Ints{6}));
  EXPECT_EQ(elements(value_of(value_of(t.slice(1, 5, -7, INT64_MIN)).select(0, 1))), (Ints{11}));
}

TEST(Tensor, Broadcasts) {
  const Tensor row = counting({3});
  const Tensor many = value_of(row.broadcast_to({2, 3}));
  EXPECT_EQ(many.strides(), (Dims{0, 1}));
  EXPECT_EQ(elements(many), (Ints{0, 1, 2, 0, 1, 2}));
  const Tensor column = value_of(row.reshape({3, 1}));
  EXPECT_EQ(elements(value_of(column.broadcast_to({3, 2}))), (Ints{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(value_of(counting({1}).broadcast_to({0})).element_count(), 0);
  EXPECT_EQ(value_of(broadcast_dims({2, 1, 3}, {4, 1})), (Dims{2, 4, 3}));
  EXPECT_EQ(value_of(broadcast_dims({}, {4, 0})), (Dims{4, 0}));
  EXPECT_EQ(value_of(broadcast_dims({1}, {0})), (Dims{0}));
}

TEST(Tensor, SqueezesAndUnsqueezes) {
  const Tensor t = counting({2, 3});
  EXPECT_EQ(value_of(t.unsqueeze(0)).dims(), (Dims{1, 2, 3}));
  EXPECT_EQ(value_of(t.unsqueeze(-1)).dims(), (Dims{2, 3, 1}));
  EXPECT_EQ(value_of(value_of(t.unsqueeze(1)).squeeze(1)).dims(), (Dims{2, 3}));
  EXPECT_TRUE(value_of(t.unsqueeze(1)).is_contiguous());
}

TEST(Tensor, ViewsSeeEachOthersWrites) {
  const Tensor t = counting({2, 2});
  const std::vector<int32_t> values = {10, 20};
  EXPECT_OK(value_of(t.select(1, 1)).copy_from(std::span<const int32_t>(values)));
  EXPECT_EQ(elements(t), (Ints{0, 10, 2, 20}));
  const auto seen = value_of(t.view<int32_t>());
  seen[0] = 7;
  EXPECT_EQ(elements(value_of(t.transpose()))[0], 7);
  const Tensor copy = value_of(t.clone());
  seen[0] = 8;
  EXPECT_EQ(elements(copy)[0], 7);
}

TEST(Tensor, CopiesOverlappingViews) {
  const Tensor t = counting({6});
  EXPECT_OK(copy_elements(value_of(t.narrow(0, 0, 5)), value_of(t.narrow(0, 1, 5))));
  EXPECT_EQ(elements(t), (Ints{0, 0, 1, 2, 3, 4}));
  const Tensor u = counting({4});
  EXPECT_OK(copy_elements(value_of(u.slice(0, -1, -5, -1)), u));
  EXPECT_EQ(elements(u), (Ints{3, 2, 1, 0}));
  const Tensor square = counting({3, 3});
  EXPECT_OK(copy_elements(value_of(square.transpose()), square));
  EXPECT_EQ(elements(square), (Ints{0, 3, 6, 1, 4, 7, 2, 5, 8}));
}

TEST(Tensor, CopiesManyDimensionsAndElementSizes) {
  // Seven dimensions that do not join: more than the kernel walks by itself.
  const Tensor t = counting({2, 3, 2, 3, 2, 3, 2});
  const Tensor turned = value_of(t.permute({6, 4, 2, 0, 5, 3, 1}));
  const Ints flat = elements(turned);
  size_t at = 0;
  for (int g = 0; g < 2; ++g)
    for (int e = 0; e < 2; ++e)
      for (int c = 0; c < 2; ++c)
        for (int a = 0; a < 2; ++a)
          for (int f = 0; f < 3; ++f)
            for (int d = 0; d < 3; ++d)
              for (int b = 0; b < 3; ++b)
                ASSERT_EQ(flat[at++], (((((a * 3 + b) * 2 + c) * 3 + d) * 2 + e) * 3 + f) * 2 + g);
  const auto transposed = [&]<typename T>(T) {
    const auto values = testing::random_values<T>(70 * 90, 3, 0, 100);
    const Tensor view = value_of(testing::make(values, {70, 90}).transpose());
    const auto got = value_of(view.to_vector<T>());
    for (size_t i = 0; i < 90; ++i)
      for (size_t j = 0; j < 70; ++j) ASSERT_TRUE(got[i * 70 + j] == values[j * 90 + i]);
  };
  transposed(int8_t{});
  transposed(Half{});
  transposed(float{});
  transposed(double{});
}

TEST(Tensor, EmptyTensorsWork) {
  const Tensor t = counting({0, 3});
  EXPECT_EQ(t.element_count(), 0);
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_TRUE(elements(t).empty());
  EXPECT_EQ(value_of(t.transpose()).dims(), (Dims{3, 0}));
  EXPECT_EQ(value_of(t.reshape({3, 0, 2})).element_count(), 0);
  EXPECT_TRUE(value_of(t.clone()).has_storage());
}

TEST(Tensor, RefusesWhatCannotBe) {
  const Tensor t = counting({2, 3});
  EXPECT_REFUSED(out_of_range, "there is no axis 2 in i32[2, 3]", t.transpose(0, 2));
  EXPECT_REFUSED(invalid_argument, "axis 0 appears twice", t.permute({0, 0}));
  EXPECT_REFUSED(invalid_argument, "a permutation of 1 axes", t.permute({0}));
  EXPECT_REFUSED(shape_mismatch, "cannot reshape i32[2, 3] of 6 elements to [4]", t.reshape({4}));
  EXPECT_REFUSED(invalid_argument, "only one dimension may be -1", t.reshape({-1, -1}));
  EXPECT_REFUSED(shape_mismatch, "cannot reshape", t.reshape({-1, 0}));
  EXPECT_REFUSED(invalid_argument, "step of 0", t.slice(0, 0, 1, 0));
  EXPECT_REFUSED(out_of_range, "slice 0:3:1 of axis 0", t.slice(0, 0, 3));
  EXPECT_REFUSED(out_of_range, "of axis 1 of i32[2, 3]", t.narrow(1, 2, 2));
  EXPECT_REFUSED(out_of_range, "index 2 along axis 0", t.select(0, 2));
  EXPECT_REFUSED(shape_mismatch, "cannot be squeezed", t.squeeze(0));
  EXPECT_REFUSED(shape_mismatch, "does not broadcast to [3, 3]", t.broadcast_to({3, 3}));
  EXPECT_REFUSED(type_mismatch, "i32[2, 3] read or written as f32", t.view<float>());
  EXPECT_REFUSED(invalid_argument, "call contiguous() first",
                 value_of(t.transpose()).view<int32_t>());
  EXPECT_REFUSED(out_of_range, "reaches outside its storage",
                 Tensor::over(t.storage(), DType::i32, {7}));
  EXPECT_REFUSED(out_of_range, "reaches outside its storage",
                 Tensor::over(t.storage(), DType::i32, {2}, {-1}, 0));
  EXPECT_REFUSED(out_of_range, "reaches outside its storage",
                 Tensor::over(t.storage(), DType::i32, {3}, {INT64_MAX}, 0));
  EXPECT_REFUSED(unsupported, "no whole number of bytes",
                 Tensor::over(t.storage(), DType::i4, {2}));
  EXPECT_REFUSED(invalid_argument, "2 dimensions but 1 strides",
                 Tensor::over(t.storage(), DType::i32, {1, 2}, Dims{1}));
  EXPECT_REFUSED(invalid_argument, "must not be negative", executor().empty(DType::f32, {2, -1}));
  EXPECT_REFUSED(unsupported, "at most 16 dimensions",
                 Tensor::over(t.storage(), DType::i32, Dims(17, 1), Dims(17, 1)));
  EXPECT_REFUSED(shape_mismatch, "has 24 bytes; 4 were given",
                 t.copy_from(std::span<const int32_t>(std::vector<int32_t>{1})));
  EXPECT_REFUSED(invalid_argument, "without storage", Tensor().clone());
}

}  // namespace
}  // namespace hologram::runtime
