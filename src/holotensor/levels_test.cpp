// Every level of the CPU writes the same bytes and reads the same bits.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "holotensor/decoder.h"
#include "holotensor/encoder.h"
#include "holotensor/test_tensors.h"
#include "support/hash.h"

namespace hologram::holotensor {
namespace {

// What was written, and what every number of fragments gives back in the own type and as f32.
std::vector<uint64_t> hashes_of(const test::TestTensor& tensor, const EncoderOptions& options) {
  const auto encoded = Encoder(options).encode(tensor.view());
  EXPECT_TRUE(encoded.has_value()) << encoded.error().to_string();
  std::vector<uint64_t> hashes;
  auto decoder = *Decoder::create(encoded->info);
  for (const auto& fragment : encoded->fragments) {
    hashes.push_back(hash64(fragment));
    EXPECT_TRUE(decoder.add_fragment(SharedBytes::borrowed(fragment)));
    if (!decoder.can_reconstruct()) continue;
    for (const DType type : {tensor.dtype, DType::f32, DType::f16, DType::bf16}) {
      const auto bytes = decoder.reconstruct(type);
      EXPECT_TRUE(bytes.has_value()) << name_of(type) << ": " << bytes.error().to_string();
      hashes.push_back(bytes ? hash64(*bytes) : 0);
    }
  }
  for (const Quality& quality : encoded->info.curve) {
    hashes.push_back(std::bit_cast<uint64_t>(quality.nmse));
    hashes.push_back(std::bit_cast<uint64_t>(quality.max_error));
  }
  return hashes;
}

TEST(Levels, GiveTheSameBytesAndTheSameBits) {
  const std::vector<int64_t> levels = hwy::SupportedAndGeneratedTargets();
  for (const DType type : test::refinable_types()) {
    for (const auto& tensor :
         {test::gaussian(type, {90, 1000}), test::gaussian(type, {3, 777}, 1e-3),
          test::random_bits(type, {33, 1021})}) {
      for (const Distribution distribution : {Distribution::ordered, Distribution::any}) {
        const EncoderOptions options{.distribution = distribution, .fragments = 6};
        hwy::SetSupportedTargetsForTest(0);
        const auto expected = hashes_of(tensor, options);
        for (const int64_t level : levels) {
          hwy::SetSupportedTargetsForTest(level);
          EXPECT_TRUE(hashes_of(tensor, options) == expected)
              << name_of(type) << " on " << hwy::TargetName(level);
        }
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  EXPECT_GE(levels.size(), 2u) << "SSE4 and AVX2 at least, on an x86 of this century";
}

}  // namespace
}  // namespace hologram::holotensor
