#include "backends/cpu/dense/gemm.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "backends/cpu/dense/testing.h"

namespace hologram::backends::dense {
namespace {

struct Case {
  size_t m, n, k;
  bool a_transposed = false, b_transposed = false, packed = true;
};

double activate(const Epilogue& e, double x) {
  switch (e.activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::clip:
      return std::min(std::max(x, double(e.first)), double(e.second));
    case Activation::leaky_relu:
      return x < 0 ? x * e.first : x;
    case Activation::elu:
      return x < 0 ? e.first * std::expm1(x) : x;
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::tanh:
    case Activation::tanh_ratio:
      return std::tanh(x);
    case Activation::silu:
      return x / (1 + std::exp(-x * e.first));
    case Activation::silu_ratio:
      return x / (1 + std::exp(-x));
    case Activation::gelu_erf:
    case Activation::gelu_close:
      return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::gelu_near: {  // as it is defined; how near that is, Math.NearGelu says
      const double t = std::clamp(x, -4.0, 4.0),
                   c[] = {0.397870064,   -0.0645541847,  0.00876360107, -0.000812170852,
                          4.77623362e-5, -1.58875616e-6, 2.25869368e-8};
      double p = 0;
      for (int i = 6; i >= 0; --i) p = p * t * t + c[i];
      return x * (0.5 + t * p);
    }
    case Activation::gelu_tanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::hard_sigmoid:
      return std::min(std::max(e.first * x + e.second, 0.0), 1.0);
    case Activation::hard_swish:
      return x * std::min(std::max(e.first * x + 0.5, 0.0), 1.0);
    case Activation::softplus:
      return std::log1p(std::exp(x));
    case Activation::exp:
      return std::exp(x);
  }
  return NAN;
}

struct Problem {
  Case shape;
  std::vector<float> a, b, c;
  AlignedBytes packed, scratch;
  Gemm g;

  explicit Problem(const Case& s) : shape(s) {
    // Row strides larger than the rows, so that a wrong stride shows.
    const size_t lda = (s.a_transposed ? s.m : s.k) + 3, ldb = (s.b_transposed ? s.k : s.n) + 5;
    a = random_values((s.a_transposed ? s.k : s.m) * lda, 1);
    b = random_values((s.b_transposed ? s.n : s.k) * ldb, 2);
    g = {.m = s.m, .n = s.n, .k = s.k, .a = a.data(), .lda = lda, .a_transposed = s.a_transposed};
    g.ldc = s.n + 2;
    c.assign(s.m * g.ldc, -77.0f);
    g.c = c.data();
    if (s.packed) {
      packed = poisoned_scratch(packed_b_bytes(s.k, s.n));
      pack_b(s.k, s.n, b.data(), ldb, s.b_transposed, packed.as<float>().data(),
             ThreadPool::shared());
      g.packed_b = packed.as<float>().data();
    } else {
      g.b = b.data();
    }
    g.ldb = ldb;
    g.b_transposed = s.b_transposed;
  }
  void run(ThreadPool& pool) {
    scratch = poisoned_scratch(gemm_scratch_bytes(g));
    gemm(g, scratch.data(), pool);
  }
  double product(size_t i, size_t j) const {
    double sum = 0;
    for (size_t k = 0; k < shape.k; ++k)
      sum += double(a[shape.a_transposed ? k * g.lda + i : i * g.lda + k]) *
             double(b[shape.b_transposed ? j * g.ldb + k : k * g.ldb + j]);
    return sum;
  }
  // A chain of k fused operations on values below 1: sums grow as sqrt(k), and so does their number
  // of independent roundings.
  double tolerance() const { return 1e-6 + 4e-8 * double(shape.k); }

  void expect_right() {
    const Epilogue& e = g.epilogue;
    // One of halves that cancel where x is far below 0, one not meant to be nearer than 1.2e-6.
    const double near =
        e.activation == Activation::gelu_near || e.activation == Activation::gelu_close ? 4 : 1;
    for (size_t i = 0; i < shape.m; ++i) {
      for (size_t j = 0; j < shape.n; ++j) {
        double v = e.alpha * product(i, j);
        if (e.bias) v += e.bias[e.bias_axis == BiasAxis::column ? j : i];
        const double r =
            e.residual ? double(e.residual_scale) * e.residual[i * e.residual_stride + j] : 0;
        if (!e.residual_last) v += r;
        v = activate(e, v);
        if (e.residual_last) v += r;
        ASSERT_NEAR(c[i * g.ldc + j], v, near * tolerance() * std::max(1.0, std::abs(v)))
            << shape.m << "x" << shape.n << "x" << shape.k << " at " << i << "," << j;
      }
      ASSERT_EQ(c[i * g.ldc + shape.n], -77.0f) << "wrote beyond row " << i;
    }
  }
};

TEST(Gemm, EverySmallSizeAndTail) {
  for_each_level([] {
    const size_t sizes[] = {0, 1, 2, 3, 7, 13, 15, 16, 17, 29, 33, 48, 65};
    for (size_t m : sizes)
      for (size_t n : sizes)
        for (size_t k : {0, 1, 5, 16, 31, 64}) {
          Problem p({m, n, k});
          p.run(ThreadPool::shared());
          p.expect_right();
          if (::testing::Test::HasFatalFailure()) return;
        }
  });
}

TEST(Gemm, TransposedAndUnpackedOperands) {
  for_each_level([] {
    for (size_t m : {1, 3, 5, 14, 31})
      for (size_t n : {1, 17, 32, 70})
        for (size_t k : {1, 18, 40})
          for (int kind = 0; kind < 8; ++kind) {
            Problem p({m, n, k, (kind & 1) != 0, (kind & 2) != 0, (kind & 4) != 0});
            p.run(ThreadPool::shared());
            p.expect_right();
            if (::testing::Test::HasFatalFailure()) return;
          }
  });
}

TEST(Gemm, LargeShapes) {
  for (const Case& s : {Case{128, 768, 768}, Case{200, 100, 1000}, Case{3, 1000, 2048}}) {
    Problem p(s);
    p.run(ThreadPool::shared());
    p.expect_right();
  }
}

// So many long rows that a block of them holds a part of each.
TEST(Gemm, LongRowsAreSummedInPassesToTheSameBits) {
  for_each_level([] {
    for (const Case& s : {Case{230, 150, 1300}, Case{45, 97, 7001}, Case{230, 70, 1300, true},
                          Case{230, 64, 1300, false, true, false}}) {
      const std::vector<float> residual = random_values(s.m * (s.n + 2), 7);
      const auto with_epilogue = [&](const Case& shape) {
        Problem p(shape);
        p.g.epilogue.residual = residual.data();
        p.g.epilogue.residual_stride = s.n + 2;
        p.g.epilogue.activation = Activation::relu;
        p.run(ThreadPool::shared());
        p.expect_right();
        return p.c;
      };
      const std::vector<float> all = with_epilogue(s);
      if (::testing::Test::HasFatalFailure()) return;
      if (s.a_transposed) continue;
      // A few of the rows alone are one pass.
      Case few = s;
      few.m = 9;
      const std::vector<float> some = with_epilogue(few);
      EXPECT_EQ(some, std::vector<float>(all.begin(), all.begin() + ptrdiff_t(some.size())));
    }
  });
}

TEST(Gemm, EveryEpilogue) {
  for_each_level([] {
    for (size_t n : {5, 16, 32, 61}) {
      const size_t m = 17, k = 24;
      const std::vector<float> column = random_values(n, 5), row = random_values(m, 6),
                               residual = random_values(m * (n + 1), 7);
      for (int activation = 0; activation <= static_cast<int>(Activation::silu_ratio);
           ++activation) {
        for (int kind = 0; kind < 24; ++kind) {
          Problem p({m, n, k});
          Epilogue& e = p.g.epilogue;
          e.activation = static_cast<Activation>(activation);
          e.first = e.activation == Activation::clip ? -0.75f : 0.25f;
          e.second = e.activation == Activation::hard_swish ? 0.0f : 0.5f;
          if (kind & 1) e.alpha = 0.5f;
          if (kind & 2) {
            e.residual = residual.data();
            e.residual_stride = n + 1;
            if (kind & 1) e.residual_scale = -1.5f;
            e.residual_last = (kind & 4) != 0;
          }
          if (kind >= 8) {
            e.bias_axis = kind >= 16 ? BiasAxis::row : BiasAxis::column;
            e.bias = kind >= 16 ? row.data() : column.data();
          }
          p.run(ThreadPool::shared());
          p.expect_right();
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST(Gemm, ResidualMayBeTheOutput) {
  Problem p({20, 40, 16});
  std::vector<float> before = random_values(p.c.size(), 9);
  for (size_t i = 0; i < p.shape.m; ++i)
    std::memcpy(&p.c[i * p.g.ldc], &before[i * p.g.ldc], p.shape.n * sizeof(float));
  p.g.epilogue.residual = p.g.c;
  p.run(ThreadPool::shared());
  for (size_t i = 0; i < p.shape.m; ++i)
    for (size_t j = 0; j < p.shape.n; ++j)
      ASSERT_NEAR(p.c[i * p.g.ldc + j], p.product(i, j) + before[i * p.g.ldc + j], 1e-5);
}

TEST(Gemm, ProgramSeesEveryValueOnce) {
  Problem p({30, 50, 8});
  std::vector<int> seen(p.c.size());
  p.g.epilogue.program = [](void* context, float* values, size_t count, size_t offset) {
    for (size_t i = 0; i < count; ++i) {
      values[i] = static_cast<float>(offset + i);
      ++(*static_cast<std::vector<int>*>(context))[offset + i];
    }
  };
  p.g.epilogue.program_context = &seen;
  p.run(ThreadPool::shared());
  for (size_t i = 0; i < 30; ++i)
    for (size_t j = 0; j < 50; ++j) {
      ASSERT_EQ(seen[i * p.g.ldc + j], 1);
      ASSERT_EQ(p.c[i * p.g.ldc + j], static_cast<float>(i * p.g.ldc + j));
    }
}

// The contract of determinism: threads, batch, packing and neighbours do not touch a result's bits.
TEST(Gemm, BitsDependOnlyOnTheirRowAndColumn) {
  for_each_level([] {
    const size_t m = 37, n = 75, k = 301;
    ThreadPool one(1), three(3);
    for (bool gelu : {false, true}) {
      Problem whole({m, n, k});
      if (gelu) whole.g.epilogue.activation = Activation::gelu_erf;
      whole.run(one);
      Problem threaded({m, n, k});
      threaded.g.epilogue = whole.g.epilogue;
      threaded.run(three);
      EXPECT_EQ(0, std::memcmp(whole.c.data(), threaded.c.data(), whole.c.size() * 4));
      Problem unpacked({m, n, k, false, false, false});
      unpacked.g.epilogue = whole.g.epilogue;
      unpacked.run(three);
      EXPECT_EQ(0, std::memcmp(whole.c.data(), unpacked.c.data(), whole.c.size() * 4));
      for (size_t rows : {1, 2, 5, 9, 20}) {
        Problem part({m, n, k, false, false, rows % 2 == 0});
        part.g.epilogue = whole.g.epilogue;
        part.g.m = rows;
        part.g.a += 7 * part.g.lda;
        part.run(one);
        const auto bits_of = [&](const std::vector<float>& c, size_t row) {
          return std::as_bytes(std::span(c).subspan(row * whole.g.ldc, n));
        };
        for (size_t r = 0; r < rows; ++r)
          EXPECT_TRUE(std::ranges::equal(bits_of(whole.c, 7 + r), bits_of(part.c, r)));
      }
    }
  });
}

// One tile reads a matrix beyond the caches, whose last panel is narrower and last rows are few.
TEST(Gemm, FewRowsByALargeMatrixHaveTheSameBits) {
  for_each_level([] {
    ThreadPool one(1);
    for (const Case& s : {Case{16, 1003, 270}, Case{16, 2100, 1001}}) {
      Problem whole(s);
      whole.run(one);
      whole.expect_right();
      if (::testing::Test::HasFatalFailure()) return;
      for (size_t rows : {1, 2, 3, 6, 7, 9, 14}) {
        Case few = s;
        few.m = rows;
        Problem part(few);
        part.run(ThreadPool::shared());
        EXPECT_EQ(part.c,
                  std::vector<float>(whole.c.begin(), whole.c.begin() + ptrdiff_t(part.c.size())));
      }
    }
  });
}

TEST(GemmBatch, BroadcastsAndMatchesSingleProducts) {
  const size_t m = 9, n = 20, k = 33, outer = 3, inner = 5;
  const std::vector<float> a = random_values(outer * m * k, 1), b = random_values(inner * n * k, 2);
  std::vector<float> c(outer * inner * m * n), single(c.size());
  const size_t dims[] = {outer, inner}, a_strides[] = {m * k, 0}, b_strides[] = {0, n * k},
               c_strides[] = {inner * m * n, m * n};
  GemmBatch batch{.item = {.m = m,
                           .n = n,
                           .k = k,
                           .a = a.data(),
                           .lda = k,
                           .b = b.data(),
                           .ldb = k,
                           .b_transposed = true,
                           .c = c.data(),
                           .ldc = n},
                  .dims = dims,
                  .a_strides = a_strides,
                  .b_strides = b_strides,
                  .c_strides = c_strides};
  AlignedBytes scratch = poisoned_scratch(gemm_batch_scratch_bytes(batch));
  gemm_batch(batch, scratch.data(), ThreadPool::shared());
  for (size_t i = 0; i < outer; ++i)
    for (size_t j = 0; j < inner; ++j) {
      Gemm g = batch.item;
      g.a = a.data() + i * m * k;
      g.b = b.data() + j * n * k;
      g.c = single.data() + (i * inner + j) * m * n;
      gemm(g, scratch.data(), ThreadPool::shared());
    }
  EXPECT_EQ(c, single);
}

TEST(GemmBatch, EmptyBatchAndLargeItems) {
  const size_t none[] = {0}, two[] = {2}, strides[] = {512 * 256}, zero[] = {0};
  const std::vector<float> a = random_values(2 * 512 * 256, 3), b = random_values(256 * 512, 4);
  std::vector<float> c(2 * 512 * 512);
  const size_t c_strides[] = {512 * 512};
  GemmBatch batch{.item = {.m = 512,
                           .n = 512,
                           .k = 256,
                           .a = a.data(),
                           .lda = 256,
                           .b = b.data(),
                           .ldb = 512,
                           .c = c.data(),
                           .ldc = 512},
                  .dims = none,
                  .a_strides = strides,
                  .b_strides = zero,
                  .c_strides = c_strides};
  gemm_batch(batch, nullptr, ThreadPool::shared());
  batch.dims = two;
  AlignedBytes scratch = poisoned_scratch(gemm_batch_scratch_bytes(batch));
  gemm_batch(batch, scratch.data(), ThreadPool::shared());
  double sum = 0;
  for (size_t k = 0; k < 256; ++k) sum += double(a[(512 + 100) * 256 + k]) * b[k * 512 + 300];
  EXPECT_NEAR(c[(512 + 100) * 512 + 300], sum, 1e-4);
}

}  // namespace
}  // namespace hologram::backends::dense
