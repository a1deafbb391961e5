// Files of the older codec, written here by a few lines of their own.
#include "holotensor/htns.h"

#include <gtest/gtest.h>
#include <lz4frame.h>
#include <zstd.h>

#include <cmath>
#include <numbers>
#include <random>

#include "holotensor/byte_io.h"
#include "support/hash.h"

namespace hologram::holotensor {
namespace {

constexpr unsigned kFragments = 4;

struct OldFile {
  HtnsEncoding encoding = HtnsEncoding::spectral;
  uint8_t compression = 0;  // here: 1 zstd, 2 lz4
  uint16_t flags = kHtnsHeaderChecksum | kHtnsFragmentChecksums | kHtnsInterleaved;
  std::vector<uint64_t> shape;
  std::vector<std::vector<float>> payloads;

  std::vector<std::byte> write() const {
    std::vector<std::byte> bytes;
    bytes.reserve(1024);
    ByteWriter out(bytes);
    uint64_t elements = 1;
    for (const uint64_t dim : shape) elements *= dim;
    out.bytes("HTNS");
    out.put(uint32_t{1});
    out.put(static_cast<uint8_t>(encoding));
    out.put(compression);
    out.put(flags);
    out.put(static_cast<uint16_t>(payloads.size()));
    out.put(uint16_t{1});
    out.put(elements * 4);
    out.put(uint64_t{42});
    out.put(uint8_t{0});
    out.put(static_cast<uint8_t>(shape.size()));
    for (unsigned i = 0; i < 4; ++i) out.put(i < shape.size() ? shape[i] : uint64_t{0});
    for (unsigned i = 0; i < 4; ++i) out.put(0.25f * static_cast<float>(i + 1));
    out.bytes(std::vector<std::byte>(6));
    out.put(hash64(bytes));
    EXPECT_EQ(bytes.size(), 96u);
    std::vector<std::vector<std::byte>> stored;
    for (const auto& payload : payloads) {
      const auto raw = std::as_bytes(std::span(payload));
      std::vector<std::byte> packed(raw.begin(), raw.end());
      if (compression == 1) {
        packed.resize(ZSTD_compressBound(raw.size()));
        packed.resize(ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), 3));
      } else if (compression == 2) {
        packed.resize(LZ4F_compressFrameBound(raw.size(), nullptr));
        packed.resize(
            LZ4F_compressFrame(packed.data(), packed.size(), raw.data(), raw.size(), nullptr));
      }
      stored.push_back(packed);
    }
    uint32_t offset = static_cast<uint32_t>(96 + 24 * payloads.size());
    for (unsigned i = 0; i < payloads.size(); ++i) {
      out.put(static_cast<uint16_t>(i));
      out.put(uint16_t{0});
      out.put(offset);
      out.put(static_cast<uint32_t>(stored[i].size()));
      out.put(static_cast<uint32_t>(payloads[i].size() * 4));
      out.put(hash64(stored[i]));
      offset += static_cast<uint32_t>(stored[i].size());
    }
    for (const auto& payload : stored) out.bytes(payload);
    return bytes;
  }
};

std::vector<float> gaussian_values(size_t count) {
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// By the definition, in extended precision.
std::vector<float> dct(const std::vector<float>& x) {
  const size_t n = x.size();
  std::vector<float> out(n);
  for (size_t k = 0; k < n; ++k) {
    long double sum = 0;
    for (size_t i = 0; i < n; ++i)
      sum += x[i] * std::cos(std::numbers::pi_v<long double> * (2 * i + 1) * k / (2.0L * n));
    out[k] = static_cast<float>(sum * std::sqrt((k == 0 ? 1.0L : 2.0L) / n));
  }
  return out;
}

OldFile spectral_file(const std::vector<float>& values, std::vector<uint64_t> shape) {
  OldFile file{.shape = std::move(shape)};
  const auto coefficients = dct(values);
  file.payloads.resize(kFragments);
  for (size_t i = 0; i < coefficients.size(); ++i)
    file.payloads[i % kFragments].push_back(coefficients[i]);
  return file;
}

void expect_near(const std::vector<float>& given, const std::vector<float>& expected) {
  ASSERT_EQ(given.size(), expected.size());
  for (size_t i = 0; i < given.size(); ++i) EXPECT_NEAR(given[i], expected[i], 2e-5) << i;
}

TEST(Htns, SpectralFilesComeBack) {
  for (const auto& shape : std::vector<std::vector<uint64_t>>{{1}, {7}, {16, 9}, {2, 3, 4, 5}}) {
    size_t count = 1;
    for (const uint64_t dim : shape) count *= dim;
    const auto values = gaussian_values(count);
    for (const uint8_t compression : {0, 1, 2}) {
      OldFile file = spectral_file(values, shape);
      file.compression = compression;
      const auto tensor = decode_htns(file.write());
      ASSERT_TRUE(tensor) << tensor.error().to_string();
      EXPECT_EQ(tensor->shape, std::vector<int64_t>(shape.begin(), shape.end()));
      EXPECT_EQ(tensor->fragments_used, kFragments);
      expect_near(tensor->values, values);
    }
  }
}

TEST(Htns, AMissingQuarterCostsAQuarterOfTheEnergy) {
  const auto values = gaussian_values(1024);
  auto bytes = spectral_file(values, {32, 32}).write();
  bytes.back() ^= std::byte{1};  // the last fragment
  const auto tensor = decode_htns(bytes);
  ASSERT_TRUE(tensor) << tensor.error().to_string();
  EXPECT_EQ(tensor->fragments_damaged, 1u);
  double error = 0, energy = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    error += std::pow(values[i] - tensor->values[i], 2);
    energy += std::pow(values[i], 2);
  }
  EXPECT_NEAR(error / energy, 0.25, 0.06);
}

TEST(Htns, LowRankFilesComeBack) {
  const auto left = gaussian_values(12), right = gaussian_values(10);
  OldFile file{.encoding = HtnsEncoding::lowrank, .shape = {6, 5}};
  file.payloads.resize(kFragments);
  std::vector<float> expected(30);
  for (unsigned c = 0; c < 2; ++c) {
    auto& payload = file.payloads[c];
    payload.push_back(2.0f + static_cast<float>(c));
    payload.insert(payload.end(), left.begin() + 6 * c, left.begin() + 6 * (c + 1));
    payload.insert(payload.end(), right.begin() + 5 * c, right.begin() + 5 * (c + 1));
    for (unsigned i = 0; i < 30; ++i)
      expected[i] += payload[0] * left[6 * c + i / 5] * right[5 * c + i % 5];
  }
  const auto tensor = decode_htns(file.write());
  ASSERT_TRUE(tensor) << tensor.error().to_string();
  expect_near(tensor->values, expected);
  file.payloads[0].pop_back();
  EXPECT_EQ(decode_htns(file.write()).error().code(), ErrorCode::corrupt);
}

TEST(Htns, ProjectionsNeedTheirMatrix) {
  const auto row_of = [](uint64_t seed, uint64_t row, std::span<float> coefficients) {
    std::mt19937_64 random(seed + 1000 * row);
    std::normal_distribution<float> normal;
    for (float& coefficient : coefficients) coefficient = normal(random);
  };
  const auto values = gaussian_values(20);
  OldFile file{.encoding = HtnsEncoding::projection, .shape = {20}};
  file.payloads.resize(kFragments);
  std::vector<float> row(20);
  for (unsigned p = 0; p < 40; ++p) {
    row_of(42, p, row);
    float product = 0;
    for (unsigned i = 0; i < 20; ++i) product += row[i] * values[i];
    file.payloads[p % kFragments].push_back(product);
  }
  const auto refused = decode_htns(file.write());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::unsupported);
  const auto tensor = decode_htns(file.write(), row_of);
  ASSERT_TRUE(tensor) << tensor.error().to_string();
  expect_near(tensor->values, values);
}

TEST(Htns, WhatIsNotRecordedIsRefused) {
  OldFile file = spectral_file(gaussian_values(16), {16});
  file.flags |= kHtnsQuantized;
  EXPECT_EQ(decode_htns(file.write()).error().code(), ErrorCode::unsupported);
  file.flags = kHtnsHeaderChecksum | kHtnsEssentialFirst;
  EXPECT_EQ(decode_htns(file.write()).error().code(), ErrorCode::unsupported);
  file.flags = kHtnsHeaderChecksum;
  file.compression = 9;  // neither frame: the payload is plain
  EXPECT_EQ(decode_htns(file.write()).error().code(), ErrorCode::unsupported);
}

TEST(Htns, EveryByteFlippedAndEveryLength) {
  const auto values = gaussian_values(24);
  const auto clean = spectral_file(values, {4, 6}).write();
  const auto good = decode_htns(clean)->values;
  for (size_t i = 0; i < clean.size(); ++i) {
    for (const std::byte mask : {std::byte{0xff}, std::byte{1}}) {
      auto bytes = clean;
      bytes[i] ^= mask;
      const auto tensor = decode_htns(bytes);
      if (tensor && tensor->fragments_damaged == 0) {
        EXPECT_EQ(tensor->values, good) << i;
      }
    }
    const auto cut = decode_htns(std::span(clean).first(i));
    if (cut) {
      EXPECT_GT(cut->fragments_damaged, 0u);
    }
  }
}

}  // namespace
}  // namespace hologram::holotensor
