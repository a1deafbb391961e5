#include <gmock/gmock.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <random>

#include "graph/testing/evaluate.h"

namespace hologram::graph::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Number = std::complex<long double>;

std::vector<double> random_values(int64_t count) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> values(count);
  for (double& v : values) v = static_cast<float>(uniform(random));
  return values;
}

template <typename T>
Tensor typed(const Dims& dims, const std::vector<double>& values) {
  return tensor<T>(dims, std::vector<T>(values.begin(), values.end()));
}

// The definition.
std::vector<Number> transform(const std::vector<Number>& x, bool inverse) {
  const auto n = static_cast<int64_t>(x.size());
  std::vector<Number> y(x.size());
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t i = 0; i < n; ++i) {
      const long double turn = static_cast<long double>(k * i % n) / static_cast<long double>(n);
      y[k] += x[i] * std::polar(1.0L, (inverse ? 2 : -2) * std::numbers::pi_v<long double> * turn);
    }
    if (inverse) y[k] /= static_cast<long double>(n);
  }
  return y;
}

Attributes flags(bool inverse, bool onesided) {
  Attributes a;
  a.set("inverse", int64_t{inverse});
  a.set("onesided", int64_t{onesided});
  return a;
}

template <typename T>
void check_length(int64_t n, double tolerance) {
  const auto values = random_values(2 * n);
  std::vector<Number> x;
  for (int64_t i = 0; i < n; ++i) x.emplace_back(values[2 * i], values[2 * i + 1]);
  for (bool inverse : {false, true}) {
    const auto want = transform(x, inverse);
    const Tensor y = evaluate({"DFT", {typed<T>({1, n, 2}, values)}, flags(inverse, false)});
    for (int64_t k = 0; k < n; ++k) {
      ASSERT_NEAR(y.as<T>()[2 * k], static_cast<double>(want[k].real()), tolerance) << n;
      ASSERT_NEAR(y.as<T>()[2 * k + 1], static_cast<double>(want[k].imag()), tolerance) << n;
    }
  }
}

TEST(Dft, EveryLength) {
  for (int64_t n = 1; n <= 70; ++n) {
    check_length<double>(n, 1e-12);
    check_length<float>(n, 1e-5);
  }
  for (int64_t n : {128, 360, 400, 509, 1024}) check_length<double>(n, 1e-11);
}

TEST(Dft, OneSideAndBack) {
  for (int64_t n : {1, 2, 5, 8, 9, 14}) {
    const auto values = random_values(n);
    const Tensor x = typed<double>({n, 1}, values);
    const Tensor half = evaluate({"DFT", {x}, flags(false, true)});
    ASSERT_EQ(half.dims, (Dims{n / 2 + 1, 2}));
    const Tensor back =
        evaluate({"DFT", {half, scalar<int32_t>(static_cast<int32_t>(n))}, flags(true, true)});
    ASSERT_EQ(back.dims, (Dims{n, 1}));
    for (int64_t i = 0; i < n; ++i) EXPECT_NEAR(back.as<double>()[i], values[i], 1e-13) << n;
  }
}

TEST(Dft, LengthsCutAndPad) {
  const Tensor x = tensor<double>({3, 1}, {1, 2, 4});
  EXPECT_THAT(elements<double>(evaluate({"DFT", {x, scalar<int64_t>(1)}})), ElementsAre(1, 0));
  const auto padded = elements<double>(evaluate({"DFT", {x, scalar<int64_t>(4)}}));
  EXPECT_THAT(padded, ElementsAre(7, 0, -3, -2, 3, 0, -3, 2));
}

TEST(Dft, ImpossibleRequestsAreRefused) {
  const Tensor real = tensor<float>({4, 1}, {1, 2, 3, 4});
  const Tensor complex = tensor<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(refusal({"DFT", {complex}, flags(false, true)}), HasSubstr("real input"));
  EXPECT_THAT(refusal({"DFT", {real}, flags(true, true)}), HasSubstr("complex input"));
  EXPECT_THAT(refusal({"DFT", {real, scalar<int64_t>(0)}}), HasSubstr("length 0"));
  EXPECT_THAT(refusal({"DFT", {real, scalar<int64_t>(-3)}}), HasSubstr("length -3"));
  EXPECT_THAT(refusal({"DFT", {real, absent(), scalar<int64_t>(1)}}), HasSubstr("axis 1"));
  EXPECT_THAT(refusal({"DFT", {real, absent(), scalar<int64_t>(7)}}), HasSubstr("axis 7"));
  EXPECT_THAT(refusal({"DFT", {tensor<float>({2, 3}, std::vector<float>(6))}}),
              HasSubstr("1 or 2 elements"));
}

TEST(Stft, FramesAreTransformsOfWindowedPieces) {
  const int64_t samples = 23, length = 6, step = 4;
  const auto values = random_values(samples), window = random_values(length);
  const Tensor y = evaluate({"STFT",
                             {typed<double>({1, samples, 1}, values), scalar<int64_t>(step),
                              typed<double>({length}, window)}});
  ASSERT_EQ(y.dims, (Dims{1, 5, 4, 2}));
  for (int64_t frame = 0; frame < 5; ++frame) {
    std::vector<Number> piece;
    for (int64_t i = 0; i < length; ++i) piece.emplace_back(values[frame * step + i] * window[i]);
    const auto want = transform(piece, false);
    for (int64_t k = 0; k < 4; ++k) {
      EXPECT_NEAR(y.as<double>()[(frame * 4 + k) * 2], static_cast<double>(want[k].real()), 1e-13);
      EXPECT_NEAR(y.as<double>()[(frame * 4 + k) * 2 + 1], static_cast<double>(want[k].imag()),
                  1e-13);
    }
  }
  const Tensor x = typed<float>({1, samples, 1}, values);
  EXPECT_THAT(refusal({"STFT", {x, scalar<int64_t>(0)}}), HasSubstr("every 0 samples"));
  EXPECT_THAT(refusal({"STFT", {x, scalar<int64_t>(1), absent(), scalar<int64_t>(50)}}),
              HasSubstr("frames of 50"));
  EXPECT_THAT(refusal({"STFT", {x, scalar<int64_t>(1), vector<float>({1, 1}), scalar<int64_t>(3)}}),
              HasSubstr("window [2]"));
}

TEST(Window, EveryResultType) {
  auto window = [](const std::string& op, DType type, bool periodic, int32_t size) {
    Attributes a;
    a.set("output_datatype", int64_t{static_cast<int>(type)});
    a.set("periodic", int64_t{periodic});
    return Call{op, {scalar<int32_t>(size)}, a};
  };
  EXPECT_THAT(elements<int16_t>(evaluate(window("HannWindow", DType::i16, false, 3))),
              ElementsAre(0, 1, 0));
  EXPECT_THAT(elements<Half>(evaluate(window("HannWindow", DType::f16, true, 2))),
              ElementsAre(Half(0), Half(1)));
  for (std::string op : {"HannWindow", "HammingWindow", "BlackmanWindow"}) {
    EXPECT_THAT(elements<double>(evaluate(window(op, DType::f64, false, 1))), ElementsAre(1));
    EXPECT_EQ(evaluate(window(op, DType::f32, true, 0)).count(), 0);
    EXPECT_THAT(refusal(window(op, DType::f32, true, -1)), HasSubstr("-1"));
    EXPECT_THAT(refusal(window(op, DType::string, true, 3)), HasSubstr("type string"));
  }
}

TEST(MelWeightMatrix, ImpossibleBandsAreRefused) {
  auto bands = [](int64_t count, int64_t length, int64_t rate, float low, float high) {
    return Call{"MelWeightMatrix",
                {scalar(count), scalar(length), scalar(rate), scalar(low), scalar(high)}};
  };
  EXPECT_EQ(evaluate(bands(8, 16, 8192, 0, 4096)).dims, (Dims{9, 8}));
  EXPECT_EQ(evaluate(bands(0, 16, 8192, 0, 4096)).dims, (Dims{9, 0}));
  EXPECT_THAT(refusal(bands(-1, 16, 8192, 0, 4096)), HasSubstr("negative"));
  EXPECT_THAT(refusal(bands(8, 16, 0, 0, 4096)), HasSubstr("at 0 Hz"));
  EXPECT_THAT(refusal(bands(8, 16, 8192, 5000, 4096)), HasSubstr("from 5000 to 4096"));
  EXPECT_THAT(refusal(bands(8, 16, 8192, 0, 1e6f)), HasSubstr("beyond half"));
}

}  // namespace
}  // namespace hologram::graph::testing
