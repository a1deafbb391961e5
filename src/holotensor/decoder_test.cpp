// Decoder and FaultTolerantDecoder: any order, duplicates, strangers, damage.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "holotensor/encoder.h"
#include "holotensor/fault_tolerant_decoder.h"
#include "holotensor/test_tensors.h"

namespace hologram::holotensor {
namespace {

EncodedTensor encoded_any(uint64_t seed = 1) {
  return *Encoder({.distribution = Distribution::any, .fragments = 6})
              .encode(test::gaussian(DType::bf16, {200, 300}, 0.02, seed).view());
}

SharedBytes borrow(const std::vector<std::byte>& bytes) { return SharedBytes::borrowed(bytes); }

TEST(Decoder, OrderAndDuplicatesDoNotMatter) {
  const auto tensor = test::gaussian(DType::bf16, {200, 300});
  for (const auto distribution : {Distribution::ordered, Distribution::any}) {
    const auto encoded =
        *Encoder({.distribution = distribution, .fragments = 6}).encode(tensor.view());
    std::vector<unsigned> order(encoded.fragments.size());
    for (unsigned i = 0; i < order.size(); ++i) order[i] = i;
    std::mt19937 random(4);
    for (int round = 0; round < 10; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      auto decoder = *Decoder::create(encoded.info);
      for (const unsigned i : order) {
        EXPECT_EQ(decoder.add_fragment(borrow(encoded.fragments[i])), Added::accepted);
        EXPECT_EQ(decoder.add_fragment(borrow(encoded.fragments[i])), Added::duplicate);
      }
      EXPECT_EQ(decoder.received(), order.size());
      EXPECT_EQ(*decoder.reconstruct(), tensor.bytes);
    }
  }
}

TEST(Decoder, OrderedQualityIsThatOfTheUnbrokenPrefix) {
  const auto encoded =
      *Encoder({.fragments = 6}).encode(test::gaussian(DType::bf16, {200, 300}).view());
  auto decoder = *Decoder::create(encoded.info);
  ASSERT_TRUE(decoder.add_fragment(borrow(encoded.fragments[1])));
  EXPECT_FALSE(decoder.can_reconstruct());
  EXPECT_EQ(decoder.reconstruct().error().code(), ErrorCode::not_found);
  ASSERT_TRUE(decoder.add_fragment(borrow(encoded.fragments[3])));
  ASSERT_TRUE(decoder.add_fragment(borrow(encoded.fragments[0])));
  EXPECT_EQ(decoder.quality(), encoded.info.curve[2]);
  auto prefix = *Decoder::create(encoded.info);
  ASSERT_TRUE(prefix.add_fragment(borrow(encoded.fragments[0])));
  ASSERT_TRUE(prefix.add_fragment(borrow(encoded.fragments[1])));
  EXPECT_EQ(*decoder.reconstruct(), *prefix.reconstruct());
}

TEST(Decoder, RefusesStrangersAndWrongOutputs) {
  const auto encoded = encoded_any(1), other = encoded_any(2);
  auto decoder = *Decoder::create(encoded.info);
  const auto stranger = decoder.add_fragment(borrow(other.fragments[0]));
  ASSERT_FALSE(stranger);
  EXPECT_EQ(stranger.error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(decoder.received(), 0);
  for (const auto& fragment : encoded.fragments)
    ASSERT_TRUE(decoder.add_fragment(borrow(fragment)));
  EXPECT_EQ(decoder.reconstruct(DType::i32).error().code(), ErrorCode::unsupported);
  std::vector<std::byte> small(10);
  EXPECT_EQ(decoder.reconstruct(DType::f32, small).error().code(), ErrorCode::shape_mismatch);
}

TEST(Decoder, EveryOutputTypeIsTheExactTensorRounded) {
  for (const DType type : test::refinable_types()) {
    const auto tensor = test::gaussian(type, {77, 33});
    const auto encoded = *Encoder().encode(tensor.view());
    auto decoder = *Decoder::create(encoded.info);
    for (const auto& fragment : encoded.fragments)
      ASSERT_TRUE(decoder.add_fragment(borrow(fragment)));
    const auto values = tensor.values();
    for (const DType out : {DType::f32, DType::f16, DType::bf16}) {
      std::vector<std::byte> expected(bytes_for(out, values.size()));
      ASSERT_TRUE(from_f32(values, out, expected));
      EXPECT_EQ(*decoder.reconstruct(out), expected) << name_of(type) << " to " << name_of(out);
    }
  }
}

TEST(Decoder, AnExactReconstructionIsCheckedAgainstItsSource) {
  auto encoded = *Encoder().encode(test::gaussian(DType::bf16, {3000}).view());
  TensorInfo info = encoded.info;
  info.content_hash ^= 1;
  info.id = identity_of(info);
  ASSERT_EQ(info.scheme, SchemeId::refine);
  const Fragment fragment = *parse_fragment(borrow(encoded.fragments[0]));
  const auto payload = *payload_of(fragment, 1 << 20);
  const auto forged = make_fragment(info, 0, {payload.view.begin(), payload.view.end()});
  auto decoder = *Decoder::create(info);
  ASSERT_TRUE(decoder.add_fragment(borrow(forged)));
  EXPECT_EQ(decoder.reconstruct().error().code(), ErrorCode::corrupt);
}

TEST(FaultTolerantDecoder, DamageOnlyLowersTheQuality) {
  const auto tensor = test::gaussian(DType::bf16, {200, 300});
  const auto encoded = encoded_any();
  const auto stranger = encoded_any(2);
  auto decoder = *FaultTolerantDecoder::create(encoded.info);
  auto damaged = encoded.fragments[2];
  damaged[damaged.size() / 2] ^= std::byte{1};
  EXPECT_EQ(decoder.add(0, borrow(encoded.fragments[0])), Validation::valid);
  EXPECT_EQ(decoder.add(0, borrow(encoded.fragments[0])), Validation::duplicate);
  EXPECT_EQ(decoder.add(1, borrow(stranger.fragments[1])), Validation::corrupted);
  EXPECT_EQ(decoder.add(2, borrow(damaged)), Validation::corrupted);
  EXPECT_EQ(decoder.add(3, borrow(encoded.fragments[4])), Validation::corrupted) << "wrong place";
  EXPECT_EQ(decoder.add_missing(5), Validation::missing);
  EXPECT_FALSE(decoder.add(6, borrow(encoded.fragments[0])));
  EXPECT_FALSE(decoder.add_missing(6));
  EXPECT_EQ(decoder.add(3, borrow(encoded.fragments[3])), Validation::valid);
  EXPECT_EQ(decoder.add(4, borrow(encoded.fragments[4])), Validation::valid);
  const std::vector<Validation> expected{Validation::valid,     Validation::corrupted,
                                         Validation::corrupted, Validation::valid,
                                         Validation::valid,     Validation::missing};
  EXPECT_EQ(decoder.report(), expected);
  EXPECT_EQ(decoder.statistics().valid, 3u);
  EXPECT_EQ(decoder.statistics().corrupted, 3u);
  EXPECT_EQ(decoder.statistics().duplicate, 1u);
  EXPECT_EQ(decoder.statistics().missing, 1u);
  EXPECT_EQ(decoder.quality(), encoded.info.curve[3]);
  auto clean = *Decoder::create(encoded.info);
  for (const unsigned i : {1u, 2u, 5u})
    ASSERT_TRUE(clean.add_fragment(borrow(encoded.fragments[i])));
  EXPECT_EQ(*decoder.reconstruct(DType::bf16), *clean.reconstruct());
}

TEST(FaultTolerantDecoder, RetriesWhatFailsAndStopsAtTheTarget) {
  const auto encoded = encoded_any();
  auto decoder = *FaultTolerantDecoder::create(encoded.info, {.retries = 2});
  std::vector<int> calls(6);
  const auto fetch = [&](uint16_t index) -> Result<SharedBytes> {
    ++calls[index];
    if (index == 0 && calls[0] < 3) return fail(ErrorCode::timeout, "slow");
    if (index == 1) return fail(ErrorCode::io_error, "gone");
    if (index == 2 && calls[2] < 2) {
      auto damaged = encoded.fragments[2];
      damaged[40] ^= std::byte{4};
      return SharedBytes::owned(std::move(damaged));
    }
    return borrow(encoded.fragments[index]);
  };
  ASSERT_TRUE(decoder.fetch_all(fetch, QualityTarget::snr_db(20)));
  EXPECT_EQ(calls, (std::vector<int>{3, 3, 2, 1, 1, 0})) << "4 good ones give 22 dB";
  EXPECT_EQ(decoder.statistics().retries, 5u);
  EXPECT_EQ(decoder.statistics().recovered, 2u);
  EXPECT_TRUE(decoder.reconstruct(DType::f32));
}

TEST(FaultTolerantDecoder, RefusesLessThanTheMinimum) {
  const auto encoded = encoded_any();
  auto decoder =
      *FaultTolerantDecoder::create(encoded.info, {.minimum = QualityTarget::snr_db(30)});
  for (unsigned i = 0; i < 4; ++i) ASSERT_TRUE(decoder.add(i, borrow(encoded.fragments[i])));
  EXPECT_EQ(decoder.reconstruct(DType::f32).error().code(), ErrorCode::corrupt);
  ASSERT_TRUE(decoder.add(4, borrow(encoded.fragments[4])));
  ASSERT_TRUE(decoder.add(5, borrow(encoded.fragments[5])));
  EXPECT_TRUE(decoder.reconstruct(DType::f32));
}

TEST(Packed, IsAllOrNothing) {
  const auto tensor = test::random_bits(DType::i32, {100});
  const auto encoded = *Encoder({.scheme = SchemeId::packed}).encode(tensor.view());
  ASSERT_EQ(encoded.fragments.size(), 1u);
  auto decoder = *Decoder::create(encoded.info);
  EXPECT_FALSE(decoder.can_reconstruct());
  ASSERT_TRUE(decoder.add_fragment(borrow(encoded.fragments[0])));
  EXPECT_EQ(*decoder.reconstruct(), tensor.bytes);
  EXPECT_TRUE(decoder.reconstruct(DType::f32));
}

TEST(Packed, TurnsTablesAndTakesTheirSigns) {
  // A windowed Fourier matrix: it repeats along its other axis, up to the sign.
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    std::vector<float> values;
    for (int k = 0; k < 65; ++k)
      for (int n = 0; n < 128; ++n)
        values.push_back(static_cast<float>(std::sin(M_PI * (n + 0.5) / 128) *
                                            std::cos(2 * M_PI * ((k * n) % 128) / 128)));
    const auto tensor = test::from_values(type, {65, 1, 128}, values);
    const auto encoded = *Encoder({.scheme = SchemeId::packed}).encode(tensor.view());
    auto decoder = *Decoder::create(encoded.info);
    ASSERT_TRUE(decoder.add_fragment(SharedBytes::borrowed(encoded.fragments[0])));
    EXPECT_EQ(*decoder.reconstruct(), tensor.bytes);
    EXPECT_LT(encoded.fragments[0].size(), tensor.bytes.size() / 2);
  }
}

TEST(Encoder, OptionsThatExcludeEachOtherAreRefused) {
  const auto tensor = test::gaussian(DType::f32, {10});
  EXPECT_FALSE(Encoder({.fragments = 0}).encode(tensor.view()));
  EXPECT_FALSE(Encoder({.fragments = 5000}).encode(tensor.view()));
  EXPECT_FALSE(Encoder({.target_bits = -1}).encode(tensor.view()));
  EXPECT_FALSE(
      Encoder({.target_bits = 4, .target = QualityTarget::snr_db(10)}).encode(tensor.view()));
}

TEST(Values, IntegersSaturateAndNanIsZero) {
  std::vector<std::byte> out(4);
  ASSERT_TRUE(from_f32(std::vector<float>{300, -300, NAN, 2.5f}, DType::i8, out));
  EXPECT_EQ(static_cast<int8_t>(out[0]), 127);
  EXPECT_EQ(static_cast<int8_t>(out[1]), -128);
  EXPECT_EQ(static_cast<int8_t>(out[2]), 0);
  EXPECT_EQ(static_cast<int8_t>(out[3]), 2);
  EXPECT_FALSE(from_f32(std::vector<float>{1}, DType::complex64, out));
  EXPECT_FALSE(from_f32(std::vector<float>{1, 2}, DType::f32, out));
}

}  // namespace
}  // namespace hologram::holotensor
