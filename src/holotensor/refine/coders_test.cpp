// The coders below the refine scheme: Bernoulli streams, plane kernels, erasure codes.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "holotensor/refine/bernoulli.h"
#include "holotensor/refine/bit_kernels.h"
#include "holotensor/refine/reed_solomon.h"

namespace hologram::holotensor::refine {
namespace {

std::vector<std::byte> biased_bytes(size_t size, double p, uint64_t seed, uint64_t* ones) {
  std::mt19937_64 random(seed);
  std::bernoulli_distribution bit(p);
  std::vector<std::byte> bytes(size);
  *ones = 0;
  for (auto& byte : bytes)
    for (unsigned i = 0; i < 8; ++i)
      if (bit(random)) {
        byte |= static_cast<std::byte>(1 << i);
        ++*ones;
      }
  return bytes;
}

TEST(Bernoulli, ComesNearTheEntropy) {
  for (const double p : {0.002, 0.02, 0.1, 0.25, 0.4, 0.62, 0.85, 0.99}) {
    uint64_t ones;
    const auto bytes = biased_bytes(1 << 14, p, 3, &ones);
    const LevelChoice choice = choose_level(ones, bytes.size() * 8);
    ASSERT_TRUE(is_coded(choice.level)) << p;
    std::vector<uint16_t> scratch;
    std::vector<std::byte> section;
    encode_section(std::vector<CodedStream>{{bytes, choice.level}}, scratch, section);
    const double entropy = -p * std::log2(p) - (1 - p) * std::log2(1 - p);
    EXPECT_LT(static_cast<double>(section.size() - 32) / static_cast<double>(bytes.size()),
              entropy + 0.025)
        << p;
  }
}

TEST(Bernoulli, StreamsOfOneSectionComeBackInOrder) {
  std::vector<std::vector<std::byte>> streams;
  std::vector<CodedStream> coded;
  for (unsigned level = 0; level < kLevels; ++level) {
    uint64_t ones;
    streams.push_back(
        biased_bytes(8 * (level % 5), 1 / (1 + std::exp(-0.2 * (level - 31.0))), level, &ones));
  }
  for (unsigned level = 0; level < kLevels; ++level)
    coded.push_back({streams[level], static_cast<uint8_t>(level)});
  std::vector<uint16_t> scratch;
  std::vector<std::byte> section;
  encode_section(coded, scratch, section);
  SectionDecoder decoder(section);
  for (unsigned level = 0; level < kLevels; ++level) {
    std::vector<std::byte> back(streams[level].size());
    decoder.decode(static_cast<uint8_t>(level), back);
    EXPECT_EQ(back, streams[level]) << level;
  }
  EXPECT_TRUE(decoder.finished());
}

TEST(Bernoulli, DamageIsNoticed) {
  uint64_t ones;
  const auto bytes = biased_bytes(512, 0.2, 9, &ones);
  std::vector<uint16_t> scratch;
  std::vector<std::byte> section;
  encode_section(std::vector<CodedStream>{{bytes, 24}}, scratch, section);
  std::vector<std::byte> out(bytes.size());
  for (size_t cut = 0; cut < section.size(); ++cut) {
    SectionDecoder decoder{std::span(section).first(cut)};
    decoder.decode(24, out);
    EXPECT_FALSE(decoder.finished()) << cut;
  }
  SectionDecoder longer(section);
  std::vector<std::byte> more(bytes.size() + 64);
  longer.decode(24, more);
  EXPECT_FALSE(longer.finished());
}

TEST(Bernoulli, LevelsNeedNoCoderWhereThereIsNothingToSave) {
  EXPECT_EQ(choose_level(0, 100).level, kAllZeros);
  EXPECT_EQ(choose_level(100, 100).level, kAllOnes);
  EXPECT_EQ(choose_level(50, 100).level, kRaw);
}

// Splits and merges a random plane under random masks.
void round_trip(const BitKernels& writer, const BitKernels& reader, bool flat, bool masked) {
  constexpr size_t kWords = 37;
  std::mt19937_64 random(flat * 2 + masked);
  std::vector<uint64_t> plane(kWords), live(kWords), above1(kWords), above2(kWords), above3(kWords),
      done(kWords);
  for (size_t w = 0; w < kWords; ++w) {
    live[w] = random() | random();
    above1[w] = live[w] & (random() | random());
    above2[w] = above1[w] & random();
    above3[w] = above2[w] & random();
    done[w] = above3[w] & random();
    const uint64_t active = (masked ? live[w] : ~uint64_t{0}) & ~(masked ? done[w] : 0);
    plane[w] = random() & active;
  }
  const PlaneMasks masks =
      masked ? PlaneMasks{live.data(), above1.data(), above2.data(), above3.data(), done.data()}
             : PlaneMasks{};
  std::vector<uint64_t> streams[kContexts];
  BitSink sinks[kContexts];
  for (unsigned k = 0; k < kContexts; ++k) {
    streams[k].assign(kWords + 4, 0);
    sinks[k].out = streams[k].data();
  }
  writer.split(plane.data(), masks, 0, 20, flat, sinks);
  writer.split(plane.data(), masks, 20, kWords, flat, sinks);
  uint64_t ones = 0, expected = 0;
  for (unsigned k = 0; k < kContexts; ++k) {
    sinks[k].finish();
    ones += sinks[k].ones;
  }
  for (const uint64_t word : plane) expected += static_cast<uint64_t>(__builtin_popcountll(word));
  EXPECT_EQ(ones, expected);
  BitTap taps[kContexts];
  for (unsigned k = 0; k < kContexts; ++k)
    taps[k].bytes = reinterpret_cast<const std::byte*>(streams[k].data());
  std::vector<uint64_t> back(kWords);
  reader.merge(back.data(), masks, 0, 5, flat, taps);
  reader.merge(back.data(), masks, 5, kWords, flat, taps);
  EXPECT_EQ(back, plane);
  for (unsigned k = 0; k < kContexts; ++k) EXPECT_EQ(taps[k].position, sinks[k].bits);
}

TEST(BitKernels, SplitAndMergeUndoEachOtherAcrossLevels) {
  for (const bool flat : {false, true})
    for (const bool masked : {false, true}) {
      round_trip(bit_kernels(), kPortableBitKernels, flat, masked);
      round_trip(kPortableBitKernels, bit_kernels(), flat, masked);
    }
}

std::vector<std::vector<std::byte>> encode_shards(std::vector<std::byte> data, unsigned k,
                                                  unsigned n) {
  const size_t size = shard_size(data.size(), k);
  data.resize(size * k);
  std::vector<std::vector<std::byte>> shards(n, std::vector<std::byte>(size));
  for (unsigned i = 0; i < n; ++i) encode_shard(data, k, n, i, shards[i]);
  return shards;
}

TEST(ReedSolomon, EverySubsetGivesTheDataBack) {
  std::mt19937_64 random(5);
  for (const auto& [k, n] : {std::pair{1u, 4u}, {3u, 8u}, {7u, 8u}, {8u, 8u}, {2u, 3u}}) {
    for (const size_t size : {0ul, 1ul, 7ul, 1000ul}) {
      std::vector<std::byte> data(size);
      for (auto& byte : data) byte = static_cast<std::byte>(random());
      const auto shards = encode_shards(data, k, n);
      for (unsigned subset = 0; subset < 1u << n; ++subset) {
        std::vector<Shard> have;
        for (unsigned i = 0; i < n; ++i)
          if (subset >> i & 1) have.push_back({i, shards[i]});
        const auto back = decode_shards(have, k, n, size);
        if (have.size() < k) {
          EXPECT_FALSE(back);
        } else {
          ASSERT_TRUE(back) << back.error().to_string();
          EXPECT_EQ(*back, data) << k << " of " << n << ", subset " << subset;
        }
      }
    }
  }
}

TEST(ReedSolomon, WrongShardsAreRefused) {
  const std::vector<std::byte> data(100, std::byte{7});
  const auto shards = encode_shards(data, 2, 4);
  const std::vector<std::byte> shorter(shards[1].begin(), shards[1].end() - 1);
  EXPECT_FALSE(decode_shards(std::vector<Shard>{{0, shards[0]}, {1, shorter}}, 2, 4, 100));
  EXPECT_FALSE(decode_shards(std::vector<Shard>{{0, shards[0]}, {4, shards[1]}}, 2, 4, 100));
  EXPECT_FALSE(decode_shards(std::vector<Shard>{{0, shards[0]}, {0, shards[0]}}, 2, 4, 100));
}

}  // namespace
}  // namespace hologram::holotensor::refine
