// spectral, projection and lowrank through the public encoder and decoder.
#include "holotensor/classical/classical.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "holotensor/classical/integer_stream.h"
#include "holotensor/classical/matrix.h"
#include "holotensor/classical/rank_one_sum.h"
#include "holotensor/classical/seeded_random.h"
#include "holotensor/decoder.h"
#include "holotensor/encoder.h"
#include "holotensor/values.h"

namespace hologram::holotensor {
namespace {

struct TestTensor {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
  TensorView view() const { return {"w", dtype, shape, bytes}; }
};

TestTensor tensor_of(DType dtype, std::vector<int64_t> shape, std::span<const float> values) {
  TestTensor tensor{dtype, std::move(shape),
                    std::vector<std::byte>(bytes_for(dtype, values.size()))};
  EXPECT_TRUE(from_f32(values, dtype, tensor.bytes));
  return tensor;
}

size_t count_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), size_t{1}, std::multiplies<>());
}

TestTensor gaussian(DType dtype, std::vector<int64_t> shape, double scale = 1) {
  SeededRandom random(count_of(shape) + 1);
  std::vector<float> values(count_of(shape));
  for (float& value : values) value = static_cast<float>(scale * random.normal());
  return tensor_of(dtype, std::move(shape), values);
}

// A smooth surface with a little noise: what a DCT is for. Its rank is 2 and the noise.
TestTensor smooth(DType dtype, size_t rows, size_t columns) {
  SeededRandom random(5);
  std::vector<float> values(rows * columns);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      const double x = static_cast<double>(i) / rows, y = static_cast<double>(j) / columns;
      values[i * columns + j] = static_cast<float>(std::cos(3 * x) * std::exp(y) + 2 * x * y * y +
                                                   0.001 * random.normal());
    }
  }
  return tensor_of(dtype, {int64_t(rows), int64_t(columns)}, values);
}

std::vector<float> as_f32(const TestTensor& tensor) {
  std::vector<float> values(count_of(tensor.shape));
  EXPECT_TRUE(to_f32(tensor.dtype, tensor.bytes, values));
  return values;
}

EncodedTensor encode(const TestTensor& tensor, EncoderOptions options) {
  auto encoded = Encoder(options).encode(tensor.view());
  if (!encoded) {
    ADD_FAILURE() << encoded.error().to_string();
    std::abort();
  }
  return *std::move(encoded);
}

Decoder decoder_with(const EncodedTensor& encoded, std::span<const size_t> fragments) {
  auto decoder = Decoder::create(encoded.info);
  EXPECT_TRUE(decoder) << decoder.error().to_string();
  for (const size_t f : fragments) {
    const auto added = decoder->add_fragment(SharedBytes::borrowed(encoded.fragments[f]));
    EXPECT_TRUE(added) << added.error().to_string();
  }
  return *std::move(decoder);
}

Quality measured(const TestTensor& tensor, const Decoder& decoder) {
  const auto bytes = decoder.reconstruct(DType::f32);
  EXPECT_TRUE(bytes) << bytes.error().to_string();
  ErrorSum sum;
  const auto source = as_f32(tensor);
  sum.add(source, {reinterpret_cast<const float*>(bytes->data()), source.size()});
  return sum.quality(false);
}

std::vector<size_t> all_of(const EncodedTensor& encoded) {
  std::vector<size_t> all(encoded.fragments.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

double bits_a_weight(const EncodedTensor& encoded) {
  return 8.0 * (encoded.info.stored_bytes() + encoded.info.parameters.size()) /
         encoded.info.elements();
}

class Classical : public testing::TestWithParam<SchemeId> {};
INSTANTIATE_TEST_SUITE_P(Schemes, Classical,
                         testing::Values(SchemeId::spectral, SchemeId::projection,
                                         SchemeId::lowrank),
                         [](const auto& param) { return std::string(name_of(param.param)); });

TEST_P(Classical, GivesEveryBitOfEveryTypeRankAndSize) {
  const std::vector<std::vector<int64_t>> shapes = {
      {},        {1},          {7},       {1000}, {0, 5}, {33, 77}, {1, 600}, {64, 16, 3, 3},
      {3, 5, 7}, {2, 1, 4096}, {520, 300}};
  for (const auto& shape : shapes) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i8, DType::f8e4m3fn,
                              DType::f8e5m2, DType::f64, DType::u8, DType::i64}) {
      const auto tensor = gaussian(dtype, shape, is_integer(dtype) ? 30 : 0.02);
      const auto encoded = encode(tensor, {.scheme = GetParam(), .fragments = 4, .seed = 3});
      ASSERT_EQ(encoded.info.scheme, GetParam());
      ASSERT_TRUE(encoded.info.curve.back().exact);
      const auto decoder = decoder_with(encoded, all_of(encoded));
      const auto bytes = decoder.reconstruct();
      ASSERT_TRUE(bytes) << bytes.error().to_string() << name_of(dtype) << tensor.shape.size();
      ASSERT_EQ(*bytes, tensor.bytes) << name_of(dtype);
    }
  }
}

TEST_P(Classical, KeepsStrangeValuesExactly) {
  auto tensor = gaussian(DType::f32, {40, 50});
  auto* values = reinterpret_cast<float*>(tensor.bytes.data());
  values[3] = NAN, values[500] = INFINITY, values[700] = -INFINITY, values[9] = -0.0f;
  values[10] = 1e-45f, values[11] = 3e38f, values[1999] = -3.4e38f;
  const auto encoded = encode(tensor, {.scheme = GetParam()});
  const auto decoder = decoder_with(encoded, all_of(encoded));
  EXPECT_EQ(decoder.reconstruct().value(), tensor.bytes);
  const auto lossy = Encoder({.scheme = GetParam(), .target_bits = 8}).encode(tensor.view());
  ASSERT_FALSE(lossy);
  EXPECT_EQ(lossy.error().code(), ErrorCode::invalid_argument);
}

TEST_P(Classical, TheCurveIsTheWorstOfAllSubsets) {
  const auto tensor = gaussian(DType::f32, {64, 96}, 0.02);
  const auto encoded = encode(tensor, {.scheme = GetParam(), .fragments = 5, .target_bits = 6});
  const size_t n = encoded.fragments.size();
  ASSERT_EQ(n, 5u);
  ASSERT_EQ(encoded.info.curve.size(), n + 1);
  EXPECT_DOUBLE_EQ(encoded.info.curve[0].nmse, 1);
  for (unsigned set = 1; set < 1u << n; ++set) {
    std::vector<size_t> chosen;
    for (size_t f = 0; f < n; ++f) {
      if (set >> f & 1) chosen.push_back(f);
    }
    const auto decoder = decoder_with(encoded, chosen);
    const Quality promised = decoder.quality(), got = measured(tensor, decoder);
    EXPECT_EQ(promised, encoded.info.curve[chosen.size()]);
    // Projections of white noise differ by chance; the others are worst cases by construction.
    const double slack = GetParam() == SchemeId::projection ? 1.05 : 1.0001;
    EXPECT_LE(got.nmse, promised.nmse * slack) << "subset " << set;
  }
  for (size_t k = 0; k < n; ++k) {
    EXPECT_LT(encoded.info.curve[k + 1].nmse, encoded.info.curve[k].nmse);
  }
  EXPECT_NEAR(measured(tensor, decoder_with(encoded, all_of(encoded))).nmse,
              encoded.info.curve.back().nmse, 2e-7 * encoded.info.curve.back().nmse + 1e-12);
}

TEST_P(Classical, DoesNotDependOnOrderOrThreads) {
  const auto tensor = gaussian(DType::bf16, {70, 90});
  ThreadPool one(1), three(3);
  const auto a = encode(tensor, {.scheme = GetParam(), .pool = &one});
  const auto b = encode(tensor, {.scheme = GetParam(), .pool = &three});
  EXPECT_EQ(a.fragments, b.fragments);
  EXPECT_EQ(a.info.curve, b.info.curve);
  const std::vector<size_t> forwards = {0, 2, 5}, backwards = {5, 0, 2};
  EXPECT_EQ(decoder_with(a, forwards).reconstruct(DType::f32).value(),
            decoder_with(a, backwards).reconstruct(DType::f32).value());
}

TEST_P(Classical, KeepsToATargetSize) {
  for (const double target : {3.0, 8.0}) {
    const auto tensor = smooth(DType::f32, 256, 256);
    const auto encoded = encode(tensor, {.scheme = GetParam(), .target_bits = target});
    EXPECT_LE(bits_a_weight(encoded), target);
    EXPECT_FALSE(encoded.info.curve.back().exact);
    EXPECT_LT(encoded.info.curve.back().nmse, 1.0);
  }
  const auto tiny = Encoder({.scheme = GetParam(), .target_bits = 0.01})
                        .encode(gaussian(DType::f32, {64, 64}).view());
  ASSERT_FALSE(tiny);
  EXPECT_EQ(tiny.error().code(), ErrorCode::unsupported);
}

TEST_P(Classical, ReachesATargetError) {
  const auto tensor = smooth(DType::f32, 200, 300);
  const auto encoded = encode(tensor, {.scheme = GetParam(), .target = QualityTarget::snr_db(50)});
  const auto decoder = decoder_with(encoded, all_of(encoded));
  EXPECT_GE(measured(tensor, decoder).snr_db(), 50);
  EXPECT_LE(measured(tensor, decoder).snr_db(), 56) << "and not much more than asked for";
}

// Every byte of every payload flipped: an error or a tensor, never a crash; and with the fragment's
// checksum in place, always an error.
TEST_P(Classical, SurvivesDamagedPayloads) {
  const auto tensor = gaussian(DType::f16, {24, 50});
  const auto encoded = encode(tensor, {.scheme = GetParam(), .fragments = 2});
  const auto payload_of_fragment = [&](size_t f) {
    const auto fragment = parse_fragment(SharedBytes::borrowed(encoded.fragments[f]));
    const SharedBytes payload = payload_of(*fragment, 1 << 20).value();
    return std::vector<std::byte>(payload.view.begin(), payload.view.end());
  };
  const auto first = payload_of_fragment(0), second = payload_of_fragment(1);
  size_t refused = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      auto damaged = first;
      damaged[i] ^= std::byte(flip);
      auto decoder = make_scheme_decoder(encoded.info);
      ASSERT_TRUE(decoder);
      if (!(*decoder)->add(0, SharedBytes::borrowed(damaged))) {
        ++refused;
        EXPECT_EQ((*decoder)->usable(), 0) << "a refused payload changes nothing";
        EXPECT_TRUE((*decoder)->add(0, SharedBytes::borrowed(first)));
        continue;
      }
      EXPECT_TRUE((*decoder)->add(1, SharedBytes::borrowed(second)));
      std::vector<std::byte> out(tensor.bytes.size());
      if (!(*decoder)->reconstruct(DType::f16, out, ThreadPool::shared())) ++refused;
    }
  }
  EXPECT_GT(refused, 0u);
  for (size_t size = 0; size < first.size(); ++size) {
    auto decoder = make_scheme_decoder(encoded.info);
    const auto cut = std::span(first).first(size);
    if (!(*decoder)->add(0, SharedBytes::borrowed(cut))) continue;
    EXPECT_TRUE((*decoder)->add(1, SharedBytes::borrowed(second)));
    std::vector<std::byte> out(tensor.bytes.size());
    EXPECT_FALSE((*decoder)->reconstruct(DType::f16, out, ThreadPool::shared())) << size;
  }
}

TEST_P(Classical, SurvivesDamagedParameters) {
  const auto tensor = gaussian(DType::f32, {40, 60});
  const auto encoded = encode(tensor, {.scheme = GetParam(), .fragments = 3});
  for (size_t i = 0; i < encoded.info.parameters.size(); ++i) {
    for (const int flip : {0x01, 0x10, 0x80, 0xFF}) {
      TensorInfo info = encoded.info;
      info.parameters[i] ^= std::byte(flip);
      auto decoder = make_scheme_decoder(info);
      if (!decoder) continue;
      for (size_t f = 0; f < 3; ++f) {
        const auto fragment = parse_fragment(SharedBytes::borrowed(encoded.fragments[f]));
        (void)(*decoder)->add(uint16_t(f), *payload_of(*fragment, 1 << 20));
      }
      std::vector<std::byte> out(tensor.bytes.size());
      if ((*decoder)->usable() > 0) {
        (void)(*decoder)->reconstruct(DType::f32, out, ThreadPool::shared());
      }
    }
  }
}

TEST(Spectral, ASmoothTensorIsGoodFromOneFragment) {
  const auto tensor = smooth(DType::f32, 256, 384);
  const auto encoded = encode(tensor, {.scheme = SchemeId::spectral, .target_bits = 6});
  for (size_t f = 0; f < encoded.fragments.size(); ++f) {
    const size_t one[] = {f};
    EXPECT_GT(measured(tensor, decoder_with(encoded, one)).snr_db(), 40) << "fragment " << f;
  }
  const auto white =
      encode(gaussian(DType::f32, {256, 384}), {.scheme = SchemeId::spectral, .target_bits = 6});
  EXPECT_NEAR(white.info.curve[4].nmse, 0.5, 0.03) << "and white noise is what it is";
}

TEST(Spectral, IsWithinHalfABitOfTheBoundOnWhiteNoise) {
  for (const double bits : {3.0, 5.0, 8.0}) {
    const auto encoded = encode(gaussian(DType::f32, {512, 512}),
                                {.scheme = SchemeId::spectral, .target_bits = bits});
    EXPECT_GE(encoded.info.curve.back().snr_db(), 6.02 * (bits - 0.5)) << bits;
  }
}

TEST(Lowrank, APlantedRankNeedsFewBits) {
  SeededRandom random(1);
  const size_t n = 600;
  std::vector<float> left(n * 8), right(8 * n), values(n * n);
  for (float& value : left) value = static_cast<float>(random.normal());
  for (float& value : right) value = static_cast<float>(random.normal());
  rank_one_sum(left, right, n, n, values, ThreadPool::shared());
  const auto tensor = tensor_of(DType::f32, {int64_t(n), int64_t(n)}, values);
  const auto encoded = encode(tensor, {.scheme = SchemeId::lowrank, .target_bits = 0.5});
  EXPECT_GT(encoded.info.curve.back().snr_db(), 50);
  EXPECT_LE(bits_a_weight(encoded), 0.5);
}

TEST(Lowrank, AnExactFileOfWhiteNoiseIsNotLargerThanItsSource) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto tensor = gaussian(dtype, {512, 512}, 0.02);
    for (const SchemeId scheme : {SchemeId::lowrank, SchemeId::spectral, SchemeId::projection}) {
      const auto encoded = encode(tensor, {.scheme = scheme});
      EXPECT_LT(encoded.info.stored_bytes(), tensor.bytes.size()) << name_of(scheme);
    }
  }
}

TEST(Projection, RedundantProjectionsAreSolvedFromEnoughFragments) {
  const auto tensor = gaussian(DType::f32, {100, 200});
  const auto encoded = encode(tensor, {.scheme = SchemeId::projection,
                                       .distribution = Distribution::any,
                                       .fragments = 8,
                                       .target = QualityTarget::snr_db(60),
                                       .min_fragments = 4});
  const auto& curve = encoded.info.curve;
  EXPECT_NEAR(curve[2].nmse, 0.5, 0.05) << "half of the equations";
  EXPECT_GT(curve[5].snr_db(), 35) << "five quarters of the equations";
  EXPECT_GT(curve[6].snr_db(), 45);
  for (const auto& quality : curve) EXPECT_LE(quality.nmse, 1.0001) << "never worse than zeros";
}

TEST(IntegerStream, RoundTripsAndIsNearTheEntropy) {
  SeededRandom random(9);
  for (const double deviation : {0.0, 0.3, 3.0, 60.0, 5000.0, 1e8}) {
    std::vector<int32_t> values(200000);
    for (int32_t& value : values)
      value = static_cast<int32_t>(std::round(deviation * random.normal()));
    std::vector<std::byte> bytes;
    encode_integers(values, bytes, ThreadPool::shared());
    std::vector<int32_t> back(values.size());
    ByteReader in(bytes);
    ASSERT_TRUE(decode_integers(in, back, ThreadPool::shared()));
    EXPECT_TRUE(in.done());
    EXPECT_EQ(back, values);
    if (deviation >= 3) {
      const double entropy = std::log2(deviation) + 2.047;
      EXPECT_LT(8.0 * bytes.size() / values.size(), entropy + 0.1) << deviation;
    }
  }
  const std::vector<int32_t> extremes = {INT32_MIN, INT32_MAX, 0, -1, 127, 128, -128, -129};
  std::vector<std::byte> bytes;
  encode_integers(extremes, bytes, ThreadPool::shared());
  std::vector<int32_t> back(extremes.size());
  ByteReader in(bytes);
  ASSERT_TRUE(decode_integers(in, back, ThreadPool::shared()));
  EXPECT_EQ(back, extremes);
}

TEST(Matrix, FlattensNearSquare) {
  EXPECT_EQ(flatten(std::vector<int64_t>{512, 256, 3, 3}), (MatrixShape{512, 2304}));
  EXPECT_EQ(flatten(std::vector<int64_t>{}), (MatrixShape{1, 1}));
  EXPECT_EQ(flatten(std::vector<int64_t>{9}), (MatrixShape{1, 9}));
  EXPECT_EQ(flatten(std::vector<int64_t>{2, 3, 4, 5}), (MatrixShape{6, 20}));
  EXPECT_EQ(flatten(std::vector<int64_t>{3, 0}), (MatrixShape{0, 0}));
}

}  // namespace
}  // namespace hologram::holotensor
