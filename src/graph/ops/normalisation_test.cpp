#include <gmock/gmock.h>

#include <cmath>

#include "graph/testing/evaluate.h"

namespace hologram::graph {
namespace {

using testing::Call;
using ::testing::HasSubstr;
using testing::refusal;
using testing::tensor;

// Mean and deviation were once written as floats into whatever the attribute named.
TEST(Normalisation, RefusesAStashTypeThatIsNoFloat) {
  Call call{
      .op = "LayerNormalization",
      .inputs = {tensor<float>({4, 3}, std::vector<float>(12, 1)), tensor<float>({3}, {1, 2, 3})},
      .outputs = 3};
  EXPECT_EQ(refusal(call), "");
  for (DType type : {DType::i8, DType::i64, DType::boolean}) {
    call.attributes.set("stash_type", static_cast<int64_t>(type));
    EXPECT_THAT(refusal(call), HasSubstr("stash_type")) << name_of(type);
  }
  call.attributes.set("stash_type", static_cast<int64_t>(DType::f64));
  EXPECT_EQ(refusal(call), "");
}

// The f32 kernel beside long double, on values far from their mean's own size.
TEST(Normalisation, OfGroupsIsExactFarFromZero) {
  constexpr int64_t kBatch = 2, kChannels = 6, kPixels = 1237;
  std::vector<float> x(kBatch * kChannels * kPixels), scale(kChannels), bias(kChannels);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = 100.0f + static_cast<float>(i * 2654435761u % 1000) / 500.0f;
  for (size_t k = 0; k < kChannels; ++k) {
    scale[k] = 0.5f + static_cast<float>(k);
    bias[k] = static_cast<float>(k) - 2.0f;
  }
  const std::vector<Tensor> inputs{tensor<float>({kBatch, kChannels, kPixels}, x),
                                   tensor<float>({kChannels}, scale),
                                   tensor<float>({kChannels}, bias)};
  for (const int64_t groups : {kChannels, int64_t{2}}) {
    Call call{.op = groups == kChannels ? "InstanceNormalization" : "GroupNormalization",
              .inputs = inputs};
    if (groups != kChannels) call.attributes.set("num_groups", groups);
    const std::vector<float> y = testing::elements<float>(testing::evaluate(call));
    const int64_t n = kChannels / groups * kPixels;
    for (int64_t group = 0; group < kBatch * groups; ++group) {
      long double sum = 0, squares = 0;
      for (int64_t i = group * n; i < (group + 1) * n; ++i) sum += x[static_cast<size_t>(i)];
      const long double mean = sum / n;
      for (int64_t i = group * n; i < (group + 1) * n; ++i)
        squares += (x[static_cast<size_t>(i)] - mean) * (x[static_cast<size_t>(i)] - mean);
      const long double inverse = 1 / std::sqrt(squares / n + 1e-5L);
      for (int64_t i = group * n; i < (group + 1) * n; ++i) {
        const auto at = static_cast<size_t>(i), k = static_cast<size_t>(i / kPixels % kChannels);
        const long double expected = (x[at] - mean) * inverse * scale[k] + bias[k];
        ASSERT_NEAR(y[at], static_cast<double>(expected), 5e-6) << call.op << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace hologram::graph
