#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "holotensor/decoder.h"
#include "holotensor/encoder.h"
#include "holotensor/test_tensors.h"

namespace hologram::holotensor {
namespace {

using test::TestTensor;

EncodedTensor encode(const TestTensor& tensor, EncoderOptions options = {}) {
  auto encoded = Encoder(std::move(options)).encode(tensor.view());
  if (!encoded) ADD_FAILURE() << encoded.error().to_string();
  return encoded ? *std::move(encoded) : EncodedTensor{};
}

Decoder decoder_with(const EncodedTensor& encoded, std::span<const unsigned> fragments) {
  auto decoder = Decoder::create(encoded.info);
  EXPECT_TRUE(decoder) << decoder.error().to_string();
  for (const unsigned i : fragments) {
    const auto added = decoder->add_fragment(SharedBytes::borrowed(encoded.fragments[i]));
    EXPECT_TRUE(added) << added.error().to_string();
  }
  return *std::move(decoder);
}

Decoder decoder_with_first(const EncodedTensor& encoded, unsigned count) {
  std::vector<unsigned> first(count);
  for (unsigned i = 0; i < count; ++i) first[i] = i;
  return decoder_with(encoded, first);
}

// `any` never gives way to packed: this is the refine scheme whatever the tensor.
const EncoderOptions kSurelyRefine{
    .distribution = Distribution::any, .fragments = 2, .min_fragments = 1};

void expect_exact(const TestTensor& tensor, EncoderOptions options = {}) {
  const EncodedTensor encoded = encode(tensor, std::move(options));
  const Decoder decoder = decoder_with_first(encoded, encoded.info.fragment_count);
  EXPECT_TRUE(decoder.quality().exact);
  const auto back = decoder.reconstruct();
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(*back, tensor.bytes) << name_of(tensor.dtype);
}

// Every point of the curve is what the decoder really gives.
void expect_honest(const TestTensor& tensor, EncoderOptions options = {}) {
  const EncodedTensor encoded = encode(tensor, std::move(options));
  const auto source = tensor.values();
  for (unsigned k = 1; k <= encoded.info.fragment_count; ++k) {
    const Decoder decoder = decoder_with_first(encoded, k);
    if (!decoder.can_reconstruct()) continue;
    const auto back = decoder.reconstruct(DType::f32);
    ASSERT_TRUE(back) << back.error().to_string();
    const auto given = test::as_floats(*back);
    const double measured = static_cast<double>(test::nmse(source, given));
    EXPECT_NEAR(decoder.quality().nmse, measured, 1e-6 * measured + 1e-20)
        << name_of(tensor.dtype) << " with " << k;
    double largest = 0;
    for (size_t i = 0; i < source.size(); ++i)
      if (std::isfinite(source[i]))
        largest = std::max(largest, std::abs(static_cast<double>(source[i]) - given[i]));
    EXPECT_NEAR(decoder.quality().max_error, largest, 1e-5 * largest) << k;
  }
}

TEST(Refine, GivesBackTheExactBitsOfOrdinaryWeights) {
  for (const DType type : test::refinable_types())
    for (const auto& shape : std::vector<std::vector<int64_t>>{
             {}, {1}, {3}, {63}, {64}, {65}, {255}, {257}, {100, 7}, {2, 3, 5, 7, 11}, {300, 1000}})
      expect_exact(test::gaussian(type, shape));
}

TEST(Refine, GivesBackAnyBitPattern) {
  for (const DType type : test::refinable_types())
    for (const int64_t size : {1, 64, 300, 5000, 300000}) {
      expect_exact(test::random_bits(type, {size}));
      expect_exact(test::random_bits(type, {size}), kSurelyRefine);
    }
}

TEST(Refine, GivesBackTensorsMadeToBeAwkward) {
  for (const DType type : test::refinable_types()) {
    for (const int64_t size : {7, 1000, 200000}) {
      std::vector<float> values(static_cast<size_t>(size));
      const auto with = [&](auto&& value_of) {
        for (size_t i = 0; i < values.size(); ++i) values[i] = value_of(i);
        expect_exact(test::from_values(type, {size}, values), kSurelyRefine);
      };
      with([](size_t) { return 0.0f; });
      with([](size_t) { return -0.0f; });
      with([](size_t) { return 1.5f; });
      with([](size_t i) { return i % 10 == 0 ? -0.25f * static_cast<float>(i % 77) : 0.0f; });
      with([](size_t i) { return std::ldexp(1.0f, static_cast<int>(i % 250) - 125); });
      with([](size_t i) { return i / 256 % 2 ? 1e30f : -1e-30f; });
      with([](size_t i) { return i % 3 ? 1e-44f : -3e-42f; });
      with([](size_t i) { return i % 50 ? 0.01f : 1e9f; });
      with([](size_t i) { return 1.0f + 1e-3f * static_cast<float>(i % 13); });
      with([](size_t i) { return i % 2 ? INFINITY : -INFINITY; });
      with([](size_t i) { return i % 5 ? NAN : 0.5f; });
      with([](size_t i) { return i == 3 ? 3e38f : 1e-3f; });
    }
  }
}

TEST(Refine, EmptyTensorsAndOtherTypesAreExactToo) {
  for (const DType type : {DType::f32, DType::bf16, DType::i64, DType::boolean, DType::f64}) {
    expect_exact(TestTensor{.dtype = type, .shape = {0}});
    expect_exact(TestTensor{.dtype = type, .shape = {4, 0, 3}});
    expect_exact(test::random_bits(type, {5, 11}));
  }
  expect_exact(TestTensor{.dtype = DType::u4, .shape = {5}, .bytes = std::vector<std::byte>(3)});
}

TEST(Refine, NegativeShapesAndWrongSizesAreRefused) {
  TestTensor tensor = test::gaussian(DType::f32, {4, 4});
  tensor.shape = {4, 5};
  EXPECT_EQ(Encoder().encode(tensor.view()).error().code(), ErrorCode::shape_mismatch);
  tensor.shape = {-4, -4};
  EXPECT_EQ(Encoder().encode(tensor.view()).error().code(), ErrorCode::invalid_argument);
  tensor.shape = {INT64_MAX, INT64_MAX};
  EXPECT_FALSE(Encoder().encode(tensor.view()));
  tensor.shape = std::vector<int64_t>(300, 1);
  EXPECT_FALSE(Encoder().encode(tensor.view()));
}

TEST(Refine, TheCurveIsWhatTheDecoderGives) {
  for (const DType type : test::refinable_types()) {
    expect_honest(test::gaussian(type, {500, 700}), {.fragments = 23});
    expect_honest(test::gaussian(type, {500, 700}),
                  {.distribution = Distribution::any, .fragments = 6});
  }
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    std::vector<float> values(400000);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = i % 7 ? std::sin(static_cast<float>(i)) * (i % 1000 ? 0.1f : 40.0f) : 0.0f;
    values[77] = NAN;
    values[78] = -INFINITY;
    expect_honest(test::from_values(type, {400000}, values), {.fragments = 16});
    // Rows of very different scales.
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = std::cos(static_cast<float>(i)) * std::ldexp(1.0f, -static_cast<int>(i / 20000));
    expect_honest(test::from_values(type, {20, 20000}, values), {.fragments = 16});
  }
}

TEST(Refine, LosslessBf16TakesAtMostTenPointNineBits) {
  for (const double deviation : {0.02, 0.0257, 0.031, 1.0}) {
    const auto encoded = encode(test::gaussian(DType::bf16, {1024, 1024}, deviation));
    EXPECT_LE(static_cast<double>(encoded.info.stored_bytes()) * 8 / (1 << 20), 10.9);
    EXPECT_TRUE(encoded.info.curve.back().exact);
  }
}

TEST(Refine, CutAnywhereItStaysWithinHalfABitOfTheBound) {
  // The scale's place inside its octave matters: planes are powers of two.
  for (const double deviation : {0.02, 0.0238, 0.0283, 0.0312, 0.0336}) {
    const auto encoded =
        encode(test::gaussian(DType::bf16, {2048, 2048}, deviation), {.fragments = 100});
    double bits = 0;
    for (unsigned k = 1; k <= encoded.info.fragment_count; ++k) {
      bits += static_cast<double>(encoded.fragments[k - 1].size()) * 8 / (1 << 22);
      if (bits < 2 || bits > 8) continue;
      EXPECT_LT(bits + 0.5 * std::log2(encoded.info.curve[k].nmse), 0.5)
          << bits << " bits at deviation " << deviation;
    }
    EXPECT_GT(bits, 8);
  }
}

TEST(Refine, AnySubsetOfEightGivesWhatItPromises) {
  const TestTensor tensor = test::gaussian(DType::bf16, {512, 1024});
  const auto encoded =
      encode(tensor, {.distribution = Distribution::any, .fragments = 8, .target_bits = 15.5});
  EXPECT_LE(static_cast<double>(encoded.info.stored_bytes()) * 8 / (512 * 1024), 15.5);
  const auto source = tensor.values();
  const double promised[] = {16, 22, 28, 34, 40};
  std::vector<std::vector<std::byte>> answers(9);
  unsigned tested = 0;
  for (unsigned subset = 0; subset < 256; ++subset) {
    const unsigned k = static_cast<unsigned>(std::popcount(subset));
    std::vector<unsigned> fragments;
    for (unsigned i = 0; i < 8; ++i)
      if (subset >> i & 1) fragments.push_back(i);
    const Decoder decoder = decoder_with(encoded, fragments);
    EXPECT_EQ(decoder.can_reconstruct(), k >= 3);
    if (k < 3 || k > 7) continue;
    const auto back = decoder.reconstruct(DType::f32);
    ASSERT_TRUE(back) << back.error().to_string();
    // Which fragments came does not matter, only how many.
    if (answers[k].empty()) {
      const double snr =
          -10 * std::log10(static_cast<double>(test::nmse(source, test::as_floats(*back))));
      EXPECT_GE(snr, promised[k - 3]) << k;
      EXPECT_NEAR(snr, decoder.quality().snr_db(), 1e-4);
      answers[k] = *back;
    }
    EXPECT_EQ(*back, answers[k]) << subset;
    ++tested;
  }
  EXPECT_EQ(tested, 218u);
}

TEST(Refine, AnyWithoutATargetEndsInTheExactBits) {
  for (const DType type : test::refinable_types())
    expect_exact(test::gaussian(type, {300, 400}),
                 {.distribution = Distribution::any, .fragments = 5, .min_fragments = 2});
  const EncoderOptions wrong{.distribution = Distribution::any, .fragments = 4, .min_fragments = 5};
  EXPECT_FALSE(Encoder(wrong).encode(test::gaussian(DType::f32, {8}).view()));
}

TEST(Refine, TargetsAreKept) {
  const TestTensor tensor = test::gaussian(DType::f32, {1024, 512});
  for (const double bits : {2.0, 4.0, 8.0}) {
    const auto encoded = encode(tensor, {.target_bits = bits});
    const double used = static_cast<double>(encoded.info.stored_bytes()) * 8 / (1024 * 512);
    EXPECT_LE(used, bits);
    EXPECT_GT(used, bits - 0.6);
    EXPECT_FALSE(encoded.info.curve.back().exact);
  }
  for (const double decibels : {10.0, 30.0, 50.0}) {
    const auto encoded = encode(tensor, {.target = QualityTarget::snr_db(decibels)});
    EXPECT_GE(encoded.info.curve.back().snr_db(), decibels);
    EXPECT_LT(encoded.info.curve.back().snr_db(), decibels + 6);
  }
}

TEST(Refine, ThreadsChangeNothing) {
  ThreadPool one(1), three(3);
  for (const auto distribution : {Distribution::ordered, Distribution::any}) {
    const TestTensor tensor = test::gaussian(DType::bf16, {1000, 999});
    const auto a = encode(tensor, {.distribution = distribution, .pool = &one});
    const auto b = encode(tensor, {.distribution = distribution, .pool = &three});
    EXPECT_EQ(a.fragments, b.fragments);
    EXPECT_EQ(a.info.curve, b.info.curve);
    for (const unsigned k : {4u, unsigned{a.info.fragment_count}}) {
      std::vector<std::byte> answers[2];
      for (ThreadPool* pool : {&one, &three}) {
        auto decoder = Decoder::create(a.info, pool);
        ASSERT_TRUE(decoder);
        for (unsigned i = 0; i < k; ++i)
          ASSERT_TRUE(decoder->add_fragment(SharedBytes::borrowed(a.fragments[i])));
        answers[pool == &three] = *decoder->reconstruct();
      }
      EXPECT_EQ(answers[0], answers[1]);
    }
  }
}

TEST(Refine, NeverLargerThanPlainCompressionOnRepeatedValues) {
  std::vector<float> values(1 << 18);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 16) * 0.125f;
  const auto encoded = encode(test::from_values(DType::f32, {1 << 18}, values));
  EXPECT_EQ(encoded.info.scheme, SchemeId::packed);
  EXPECT_LT(encoded.info.stored_bytes(), 4096u);
}

}  // namespace
}  // namespace hologram::holotensor
