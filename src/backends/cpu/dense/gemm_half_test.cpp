#include "backends/cpu/dense/gemm_half.h"

#include "backends/cpu/dense/testing.h"
#include "support/dtype.h"

namespace hologram::backends::dense {
namespace {

TEST(WidenHalf, IsExact) {
  for_each_level([] {
    std::vector<uint16_t> all(65536 + 3);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
    std::vector<float> wide(all.size());
    widen_half(all.data(), wide.data(), all.size(), ThreadPool::shared());
    for (size_t i = 0; i < all.size(); ++i) {
      const float expected = f16_to_f32(all[i]);
      if (std::isnan(expected))
        ASSERT_TRUE(std::isnan(wide[i])) << i;
      else
        ASSERT_EQ(wide[i], expected) << i;
    }
  });
}

// The same bits as the f32 product of the widened matrix.
TEST(GemmHalf, IsTheProductOfTheWidenedMatrix) {
  ThreadPool three(3);
  for (size_t m : {1, 5, 40})
    for (size_t n : {1, 40, 700})
      for (size_t k : {1, 33, 3000}) {
        const std::vector<float> a = random_values(m * k, 1), bias = random_values(n, 2),
                                 residual = random_values(m * n, 3);
        std::vector<float> b = random_values(k * n, 4);
        for (float& x : b) x = f16_to_f32(f32_to_f16(x));
        std::vector<float> packed(packed_b_bytes(k, n) / sizeof(float));
        pack_b(k, n, b.data(), n, false, packed.data(), three);
        std::vector<uint16_t> half(packed.size());
        for (size_t i = 0; i < half.size(); ++i) half[i] = f32_to_f16(packed[i]);
        std::vector<float> expected(m * n), got(m * n);
        Gemm g{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .ldc = n};
        g.epilogue.bias = bias.data();
        g.epilogue.residual = residual.data();
        g.epilogue.activation = Activation::relu;
        g.c = got.data();
        AlignedBytes scratch = poisoned_scratch(gemm_half_scratch_bytes(g));
        gemm_half(g, half.data(), scratch.data(), three);
        g.c = expected.data();
        g.packed_b = packed.data();
        scratch = poisoned_scratch(gemm_scratch_bytes(g));
        gemm(g, scratch.data(), three);
        ASSERT_EQ(got, expected) << m << "x" << n << "x" << k;
      }
}

}  // namespace
}  // namespace hologram::backends::dense
