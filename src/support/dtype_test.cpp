#include "support/dtype.h"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace hologram {
namespace {

constexpr DType kAll[] = {DType::boolean,    DType::i8,       DType::i16,        DType::i32,
                          DType::i64,        DType::u8,       DType::u16,        DType::u32,
                          DType::u64,        DType::f16,      DType::bf16,       DType::f32,
                          DType::f64,        DType::i4,       DType::u4,         DType::i2,
                          DType::u2,         DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2,
                          DType::f8e5m2fnuz, DType::f8e8m0,   DType::f4e2m1,     DType::complex64,
                          DType::complex128, DType::string};

TEST(DType, NamesAndCodesRoundTrip) {
  for (DType type : kAll) {
    EXPECT_EQ(dtype_from_name(name_of(type)), type);
    EXPECT_EQ(dtype_from_code(static_cast<uint8_t>(type)), type);
  }
  EXPECT_FALSE(dtype_from_name("float"));
  int known = 0;
  for (int code = 0; code < 256; ++code) known += dtype_from_code(code).has_value();
  EXPECT_EQ(known, static_cast<int>(std::size(kAll)));
}

TEST(DType, PackedSizes) {
  EXPECT_EQ(bytes_for(DType::u4, 5), 3u);
  EXPECT_EQ(bytes_for(DType::i2, 5), 2u);
  EXPECT_EQ(bytes_for(DType::f64, 5), 40u);
  EXPECT_EQ(size_of(DType::u4), 0u);
  EXPECT_EQ(size_of(DType::complex128), 16u);
}

// The processor's own conversion is the oracle, where it has one.
__attribute__((target("f16c"))) uint16_t hardware_to_f16(float value) {
  return static_cast<uint16_t>(_mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(value), 0), 0));
}
__attribute__((target("f16c"))) float hardware_from_f16(uint16_t bits) {
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}

TEST(Half, AgreesWithTheProcessor) {
  if (!__builtin_cpu_supports("f16c")) return;  // nothing to compare with
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float expected = hardware_from_f16(static_cast<uint16_t>(bits));
    ASSERT_EQ(std::bit_cast<uint32_t>(f16_to_f32(bits)), std::bit_cast<uint32_t>(expected)) << bits;
  }
  std::mt19937 random(3);
  for (int i = 0; i < 4000000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    ASSERT_EQ(f32_to_f16(value), hardware_to_f16(value)) << std::bit_cast<uint32_t>(value);
  }
  for (float value :
       {65504.0f, 65519.99f, 65520.0f, 5.9604645e-8f, 2.9802322e-8f, 2.98024e-8f, 6.1e-5f})
    EXPECT_EQ(f32_to_f16(value), hardware_to_f16(value)) << value;
}

TEST(Half, F64RoundsOnce) {
  // Just above the middle of two halves: by way of float it would fall on the middle and go down.
  const double value = 1.0 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(f64_to_f16(value), 0x3c01);
  EXPECT_EQ(f32_to_f16(static_cast<float>(value)), 0x3c00);
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const double here = f16_to_f32(bits);
    ASSERT_EQ(f64_to_f16(here), bits);
    ASSERT_EQ(f64_to_f16(-here), bits | 0x8000);
    const double middle = bits == 0x7bff ? 65520.0 : (here + f16_to_f32(bits + 1)) / 2;
    ASSERT_EQ(f64_to_f16(middle), bits + (bits & 1)) << bits;
    ASSERT_EQ(f64_to_f16(std::nextafter(middle, 1e9)), bits + 1);
    ASSERT_EQ(f64_to_f16(std::nextafter(middle, 0.0)), bits);
  }
  EXPECT_EQ(f64_to_f16(1e300), 0x7c00);
  EXPECT_TRUE(std::isnan(f16_to_f32(f64_to_f16(NAN))));
}

TEST(BFloat16, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const float here = bf16_to_f32(bits);
    ASSERT_EQ(f32_to_bf16(here), bits);
    ASSERT_EQ(f64_to_bf16(here), bits);
    const float middle = std::bit_cast<float>(bits << 16 | 0x8000);
    ASSERT_EQ(f32_to_bf16(middle), bits + (bits & 1));
    ASSERT_EQ(f32_to_bf16(std::nextafter(middle, INFINITY)), bits + 1);
    ASSERT_EQ(f32_to_bf16(std::nextafter(middle, 0.0f)), bits);
  }
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_EQ(f32_to_bf16(-INFINITY), 0xff80);
}

// Nearest representable by exhaustive search, ties to the even code.
uint8_t nearest(DType type, float value) {
  const int codes = 1 << bits_of(type);
  int best = -1;
  double best_distance = INFINITY;
  for (int code = 0; code < codes; ++code) {
    const float candidate = small_float_to_f32(type, code);
    if (!std::isfinite(candidate) || std::signbit(candidate) != std::signbit(value)) continue;
    const double distance = std::fabs(static_cast<double>(candidate) - value);
    if (distance < best_distance || (distance == best_distance && code % 2 == 0)) {
      best = code;
      best_distance = distance;
    }
  }
  return best;
}

TEST(SmallFloat, CodesRoundTripAndRoundingIsNearest) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0, 10);
  for (DType type :
       {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f4e2m1}) {
    for (int code = 0; code < 1 << bits_of(type); ++code) {
      const float value = small_float_to_f32(type, code);
      if (std::isnan(value)) continue;
      if (std::isinf(value))
        EXPECT_EQ(f32_to_small_float(type, value, false), code);
      else
        EXPECT_EQ(f32_to_small_float(type, value), code) << name_of(type) << " " << code;
    }
    for (int i = 0; i < 3000; ++i) {
      const float value = std::ldexp(normal(random), static_cast<int>(random() % 24) - 14);
      if (nearest(type, value) != f32_to_small_float(type, value)) {
        // "fnuz" has no negative zero to round to.
        ASSERT_EQ(small_float_to_f32(type, f32_to_small_float(type, value)), 0.0f)
            << name_of(type) << " " << value;
      }
    }
  }
  EXPECT_EQ(small_float_to_f32(DType::f8e4m3fn, 0x7e), 448.0f);
  EXPECT_EQ(small_float_to_f32(DType::f8e4m3fnuz, 0x7f), 240.0f);
  EXPECT_EQ(small_float_to_f32(DType::f8e5m2, 0x7b), 57344.0f);
  EXPECT_EQ(small_float_to_f32(DType::f4e2m1, 7), 6.0f);
  EXPECT_EQ(f32_to_small_float(DType::f8e4m3fn, 1000.0f), 0x7e);
  EXPECT_EQ(f32_to_small_float(DType::f8e4m3fn, 1000.0f, false), 0x7f);
  EXPECT_EQ(f32_to_small_float(DType::f8e5m2, 1e9f, false), 0x7c);
  EXPECT_EQ(f32_to_small_float(DType::f8e5m2fnuz, NAN), 0x80);
  EXPECT_EQ(small_float_to_f32(DType::f8e8m0, 127), 1.0f);
  EXPECT_EQ(f32_to_small_float(DType::f8e8m0, 4.0f), 129);
}

}  // namespace
}  // namespace hologram
