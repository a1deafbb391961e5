#include <gmock/gmock.h>

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

}  // namespace
}  // namespace hologram::graph
