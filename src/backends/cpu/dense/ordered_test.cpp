// The orders of ONNX Runtime: against plain loops that say them, and against values it computed.
#include "backends/cpu/dense/ordered.h"

#include <algorithm>

#include "backends/cpu/dense/activate.h"
#include "backends/cpu/dense/attention.h"
#include "backends/cpu/dense/conv.h"
#include "backends/cpu/dense/gemm.h"
#include "backends/cpu/dense/normalize.h"
#include "backends/cpu/dense/testing.h"

namespace hologram::backends::dense {
namespace {

float multiply_add(float a, float b, float c) { return is_fused() ? std::fma(a, b, c) : a * b + c; }

// Sum of a[i] * b(i), in parts.
template <typename B>
float in_parts(size_t terms, size_t part, const float* a, const B& b) {
  float total = 0;
  for (size_t begin = 0; begin < terms; begin += part) {
    float sum = 0;
    for (size_t i = begin; i < std::min(terms, begin + part); ++i)
      sum = multiply_add(a[i], b(i), sum);
    total = begin == 0 ? sum : total + sum;
  }
  return total;
}

std::vector<float> product(size_t m, size_t n, size_t k, const float* a, const float* b) {
  std::vector<float> c(m * n);
  const Gemm g{.m = m,
               .n = n,
               .k = k,
               .a = a,
               .lda = k,
               .b = b,
               .ldb = n,
               .c = c.data(),
               .ldc = n,
               .ordered = true};
  AlignedBytes scratch = poisoned_scratch(gemm_scratch_bytes(g));
  gemm(g, scratch.data(), ThreadPool::shared());
  return c;
}

TEST(Ordered, Parts) {
  EXPECT_EQ(ordered_part(81, 2016), 128u);
  EXPECT_EQ(ordered_part(64, 2016), 256u);
  EXPECT_EQ(ordered_part(40, 1728), 256u);
  EXPECT_EQ(ordered_part(10, 1728), 1024u);
  EXPECT_EQ(ordered_part(300, 200), 128u);
}

TEST(Ordered, Products) {
  for_each_level([] {
    for (size_t m : {1, 2, 17})
      for (size_t n : {1, 7, 36, 100})
        for (size_t k : {1, 2, 3, 4, 7, 36, 300, 700}) {
          const auto a = random_values(m * k, 1), b = random_values(k * n, 2);
          const auto c = product(m, n, k, a.data(), b.data());
          for (size_t i = 0; i < m; ++i)
            for (size_t j = 0; j < n; ++j) {
              const auto at = [&](size_t x) { return b[x * n + j]; };
              float right = 0;
              if (m == 1) {
                size_t x = 0;
                for (; x + 4 <= k; x += 4)
                  right = (((a[x] * at(x) + a[x + 1] * at(x + 1)) + a[x + 2] * at(x + 2)) +
                           a[x + 3] * at(x + 3)) +
                          right;
                if (k % 4 >= 2) {
                  right = (a[x] * at(x) + a[x + 1] * at(x + 1)) + right;
                  x += 2;
                }
                if (k % 2) right = a[x] * at(x) + right;
              } else {
                right = in_parts(k, ordered_part(n, k), &a[i * k], at);
              }
              ASSERT_EQ(c[i * n + j], right) << m << " x " << n << " x " << k;
            }
        }
  });
}

TEST(Ordered, Convolutions) {
  for_each_level([] {
    for (size_t taps : {1, 3, 7, 20})
      for (size_t stride : {1, 3})
        for (int kind = 0; kind < 4; ++kind) {
          ConvShape s{.batch = 2, .in_channels = 40, .in_width = 90, .out_channels = 35};
          s.kernel_width = taps;
          s.stride_width = stride;
          s.pad_left = kind & 1 ? 2 : 0;
          s.dilation_width = kind & 2 ? 2 : 1;
          s.out_width = conv_output_size(90, 2 * s.pad_left, taps, stride, s.dilation_width);
          s.algorithm = ConvAlgorithm::ordered;
          ASSERT_TRUE(conv_supported(s, Layout::nchw, Layout::nchw));
          const size_t terms = s.in_channels * taps;
          const auto x = random_values(2 * 40 * 90, 1), w = random_values(35 * terms, 2),
                     bias = random_values(35, 3);
          AlignedBytes packed = poisoned_scratch(packed_conv_weight_bytes(s, Layout::nchw));
          auto* weights = reinterpret_cast<float*>(packed.data());
          pack_conv_weights(s, Layout::nchw, w.data(), weights);
          std::vector<float> y(2 * 35 * s.out_width);
          Conv c{.shape = s, .input = x.data(), .packed_weights = weights, .output = y.data()};
          c.epilogue.bias = bias.data();
          AlignedBytes scratch = poisoned_scratch(conv_scratch_bytes(c));
          conv(c, scratch.data(), ThreadPool::shared());
          for (size_t n = 0; n < 2; ++n)
            for (size_t o = 0; o < 35; ++o)
              for (size_t i = 0; i < s.out_width; ++i) {
                const auto at = [&](size_t term) {
                  const size_t place = i * stride + term % taps * s.dilation_width;
                  if (place < s.pad_left || place - s.pad_left >= 90) return 0.0f;
                  return x[(n * 40 + term / taps) * 90 + place - s.pad_left];
                };
                const float sum =
                    in_parts(terms, ordered_part(s.out_width, terms), &w[o * terms], at);
                ASSERT_EQ(y[(n * 35 + o) * s.out_width + i], sum + bias[o]) << taps << " taps";
              }
        }
  });
}

// The fused operator has the bits of the operators it is made of.
TEST(Ordered, Attention) {
  for_each_level([] {
    for (size_t queries : {2, 41, 150})
      for (size_t keys : {1, 7, 41, 300, 600}) {
        const size_t depth = 36;
        const auto q = random_values(queries * depth, 1, -3, 3),
                   k = random_values(keys * depth, 2, -3, 3), v = random_values(keys * depth, 3);
        std::vector<float> turned(keys * depth), out(queries * depth);
        for (size_t i = 0; i < keys; ++i)
          for (size_t j = 0; j < depth; ++j) turned[j * keys + i] = k[i * depth + j];
        auto scores = product(queries, keys, depth, q.data(), turned.data());
        for (float& score : scores) score *= 1.0f / 6;
        softmax(queries, keys, 1, scores.data(), scores.data(), ThreadPool::shared());
        const auto right = product(queries, depth, keys, scores.data(), v.data());
        Attention a{.queries = queries, .keys = keys, .depth = depth, .value_depth = depth};
        a.q = q.data();
        a.k = k.data();
        a.v = v.data();
        a.out = out.data();
        a.q_strides.row = a.k_strides.row = a.v_strides.row = a.out_strides.row = depth;
        a.scale = 1.0f / 6;
        a.ordered = true;
        AlignedBytes scratch = poisoned_scratch(attention_scratch_bytes(a));
        attention(a, scratch.data(), ThreadPool::shared());
        if (is_fused()) {
          ASSERT_EQ(out, right) << queries << " queries, " << keys << " keys";
        } else {  // short rows of Softmax have eight chains, a vector four lanes
          for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], right[i], 1e-6);
        }
      }
  });
}

TEST(Ordered, Normalisations) {
  for_each_level([] {
    for (size_t n : {8, 12, 15, 288, 295}) {
      const auto x = random_values(n, 1, -1, 4), scale = random_values(n, 2);
      const auto squares = [&](float mean) {
        float s[8] = {};
        for (size_t i = 0; i < n / 8 * 8; ++i)
          s[i % 8] = multiply_add(x[i] - mean, x[i] - mean, s[i % 8]);
        for (size_t i = 0; i < 4; ++i) s[i] += s[i + 4];
        float sum = (s[0] + s[2]) + (s[1] + s[3]);
        for (size_t i = n / 8 * 8; i < n; ++i) {
          const float v = x[i] - mean;
          sum = i < n / 4 * 4 ? sum + v * v : std::fma(v, v, sum);
        }
        return sum;
      };
      for (SumOrder order : {SumOrder::eight, SumOrder::sequence, SumOrder::fours}) {
        std::vector<float> y(n);
        float s[8] = {}, sum = 0;
        if (order == SumOrder::eight) {
          for (size_t i = 0; i < n / 8 * 8; ++i) s[i % 8] += x[i];
          for (size_t i = 0; i < 4; ++i) s[i] += s[i + 4];
          for (size_t i = n / 8 * 8; i < n / 4 * 4; ++i) s[i % 4] += x[i];
          sum = (s[0] + s[2]) + (s[1] + s[3]);
          for (size_t i = n / 4 * 4; i < n; ++i) sum += x[i];
        } else if (order == SumOrder::sequence) {
          for (float value : x) sum += value;
        } else {
          size_t i = 0;
          for (; i + 4 <= n; i += 4) sum = (((x[i] + x[i + 1]) + x[i + 2]) + x[i + 3]) + sum;
          if (n % 4 >= 2) sum = (x[i] + x[i + 1]) + sum;
          if (n % 2) sum = x[n - 1] + sum;
        }
        const float mean = sum / float(n);
        row_norm({.rows = 1,
                  .n = n,
                  .x = x.data(),
                  .scale = scale.data(),
                  .order = order,
                  .y = y.data()},
                 ThreadPool::shared());
        const float inverse = 1.0f / std::sqrt(squares(mean) / float(n) + 1e-5f);
        for (size_t i = 0; i < n; ++i)
          ASSERT_EQ(y[i], (x[i] - mean) * inverse * scale[i]) << n << " order " << int(order);
      }
    }
    // Of a channel: about the same as in the other order.
    const auto x = random_values(2 * 3 * 1003, 1, -2, 5), scale = random_values(3, 2),
               bias = random_values(3, 3);
    std::vector<float> a(x.size()), b(x.size());
    GroupNorm norm{.batch = 2, .channels = 3, .pixels = 1003, .groups = 3};
    norm.x = x.data();
    norm.scale = scale.data();
    norm.bias = bias.data();
    norm.y = a.data();
    group_norm(norm, ThreadPool::shared());
    norm.order = SumOrder::eight;
    norm.y = b.data();
    group_norm(norm, ThreadPool::shared());
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-6);
  });
}

// What ONNX Runtime 1.30 computes of these on a CPU with AVX-512.
constexpr float kX[] = {0x1.d47c08p+1f,  0x1.d8ff3ep+1f,  0x1.78a418p-3f,  -0x1.490254p+1f,
                        -0x1.5694cap+2f, -0x1.664a72p+0f, -0x1.192b9ap+0f, -0x1.5d3a88p+2f,
                        -0x1.5a8dd8p+2f, 0x1.7f5e04p+2f,  0x1.333334p-2f,  -0x1.47ae14p-7f,
                        0x1.4p+1f,       -0x1.4p+0f,      0x1.ep+2f,       -0x1.3p+3f};
constexpr size_t kCount = std::size(kX);
constexpr float kExp[] = {0x1.36e6d4p+5f, 0x1.420ecap+5f, 0x1.33aff6p+0f,  0x1.395e90p-4f,
                          0x1.364b86p-8f, 0x1.f93efep-3f, 0x1.556ebep-2f,  0x1.17aee4p-8f,
                          0x1.239e68p-8f, 0x1.8f75b8p+8f, 0x1.599058p+0f,  0x1.fae7d0p-1f,
                          0x1.85d6fep+3f, 0x1.256184p-2f, 0x1.c402b6p+10f, 0x1.39f38ap-14f};
constexpr float kGelu[] = {0x1.d46ce8p+1f,   0x1.d8f1f2p+1f,  0x1.af9912p-4f,  -0x1.abcf8cp-7f,
                           -0x1.5694cap-23f, -0x1.cf50f4p-4f, -0x1.31fc46p-3f, -0x1.5d3a88p-23f,
                           -0x1.5a8dd8p-23f, 0x1.7f5e04p+2f,  0x1.7ba512p-3f,  -0x1.4510c6p-8f,
                           0x1.3e0350p+1f,   -0x1.0e76a2p-3f, 0x1.ep+2f,       0.0f};
constexpr float kTanh[] = {0x1.ff528ep-1f,  0x1.ff5e5ap-1f,  0x1.747390p-3f,  -0x1.fa0a8cp-1f,
                           -0x1.fffa22p-1f, -0x1.c540bap-1f, -0x1.998be4p-1f, -0x1.fffb3ap-1f,
                           -0x1.fffaccp-1f, 0x1.fffe58p-1f,  0x1.2a4ddap-2f,  -0x1.47ab46p-7f,
                           0x1.f92584p-1f,  -0x1.b2523cp-1f, 0x1.ffffecp-1f,  -1.0f};
constexpr float kSilu[] = {0x1.c8bb66p+1f,  0x1.cd884ep+1f,  0x1.9b2d58p-4f,  -0x1.761e04p-3f,
                           -0x1.9d480cp-6f, -0x1.1b998ap-2f, -0x1.193b4ep-2f, -0x1.7bea22p-6f,
                           -0x1.8905b8p-6f, 0x1.7e68f2p+2f,  0x1.60f000p-3f,  -0x1.460aa8p-8f,
                           0x1.27b9b2p+1f,  -0x1.1d0e62p-2f, 0x1.dfbc14p+2f,  -0x1.74ba00p-11f};
constexpr float kSin[] = {-0x1.fb6ba8p-2f, -0x1.0d3a44p-1f, 0x1.768580p-3f,  -0x1.14d008p-1f,
                          0x1.9a89a8p-1f,  -0x1.f8835ap-1f, -0x1.c7e860p-1f, 0x1.789ae0p-1f,
                          0x1.86c46cp-1f,  -0x1.27d400p-2f, 0x1.2e9cdap-2f,  -0x1.47acaep-7f,
                          0x1.326af2p-1f,  -0x1.e5e150p-1f, 0x1.e04188p-1f,  0x1.33d1a8p-4f};
constexpr float kCos[] = {-0x1.bcb818p-1f, -0x1.b38012p-1f, 0x1.f75db4p-1f, -0x1.aeb80ap-1f,
                          0x1.31f21ap-1f,  0x1.5cf41cp-3f,  0x1.d20376p-2f, 0x1.5adc78p-1f,
                          0x1.4ad31cp-1f,  0x1.ea2b36p-1f,  0x1.e921dep-1f, 0x1.fff972p-1f,
                          -0x1.9a2f7ep-1f, 0x1.42e3dep-2f,  0x1.62f460p-2f, -0x1.fe8d5ap-1f};
constexpr float kSoftmax[] = {0x1.1470cep-6f,  0x1.1e5c34p-6f,  0x1.119524p-11f, 0x1.16a28cp-15f,
                              0x1.13e6c0p-19f, 0x1.c13e58p-14f, 0x1.2f965cp-13f, 0x1.f15d6cp-20f,
                              0x1.034b8ep-19f, 0x1.632ecep-3f,  0x1.3342c8p-11f, 0x1.c2b808p-12f,
                              0x1.5aa10cp-8f,  0x1.04dca6p-13f, 0x1.91e8a4p-1f,  0x1.1726fap-25f};
constexpr float kShort[] = {0x1.d413f2p-1f, -0x1.97cad6p+0f, -0x1.8faea8p-2f, 0x1.6c2cccp+1f,
                            0x1.316a9ap+1f, 0x1.085e94p+1f,  -0x1.4a886ap-1f};
constexpr float kShortSoftmax[] = {0x1.005aa4p-4f, 0x1.4e490ap-8f, 0x1.163218p-6f, 0x1.b9efeap-2f,
                                   0x1.1740a2p-2f, 0x1.95484cp-3f, 0x1.af0bc0p-7f};

void expect_bits(const float* got, const float* right, size_t count, const char* what) {
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(got[i], right[i]) << what << " of " << i;
}

TEST(Ordered, FunctionsHaveTheBitsOfTheReference) {
  for_each_level([] {
    float y[kCount];
    const auto activation = [&](Activation a, const float* right, const char* what) {
      activate(a, 0, 0, kX, y, kCount, ThreadPool::shared());
      expect_bits(y, right, kCount, what);
    };
    const auto function = [&](Function f, const float* right, const char* what) {
      apply(f, kX, y, kCount);
      expect_bits(y, right, kCount, what);
    };
    function(Function::sin, kSin, "sin");
    function(Function::cos, kCos, "cos");
    if (!is_fused()) return;
    function(Function::exp, kExp, "exp");
    activation(Activation::gelu_erf, kGelu, "gelu");
    activation(Activation::tanh_ratio, kTanh, "tanh");
    activation(Activation::silu_ratio, kSilu, "silu");
    if ((level_in_use() & HWY_AVX3) == 0) return;  // a chain a lane
    softmax(1, kCount, 1, kX, y, ThreadPool::shared());
    expect_bits(y, kSoftmax, kCount, "softmax");
    softmax(1, std::size(kShort), 1, kShort, y, ThreadPool::shared());
    expect_bits(y, kShortSoftmax, std::size(kShort), "softmax of seven");
  });
}

TEST(Ordered, ErrorsOfFunctions) {
  for_each_level([] {
    std::vector<float> x, y;
    for (float value = -40.0f; value < 40.0f; value += 0.00371f) x.push_back(value);
    y.resize(x.size());
    const auto largest = [&](double (*truth)(double)) {
      double error = 0;
      for (size_t i = 0; i < x.size(); ++i)
        error =
            std::max(error, std::abs(y[i] - truth(x[i])) / std::max(1.0, double(std::abs(x[i]))));
      return error;
    };
    activate(Activation::tanh_ratio, 0, 0, x.data(), y.data(), x.size(), ThreadPool::shared());
    EXPECT_LE(largest([](double v) { return std::tanh(v); }), 4e-7);
    activate(Activation::silu_ratio, 0, 0, x.data(), y.data(), x.size(), ThreadPool::shared());
    EXPECT_LE(largest([](double v) { return v / (1 + std::exp(-v)); }), 2e-7);
    apply(Function::sin, x.data(), y.data(), x.size());
    EXPECT_LE(largest([](double v) { return std::sin(v); }), 2e-7);
    apply(Function::cos, x.data(), y.data(), x.size());
    EXPECT_LE(largest([](double v) { return std::cos(v); }), 2e-7);
  });
}

}  // namespace
}  // namespace hologram::backends::dense
