#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "graph/testing/evaluate.h"

namespace hologram::graph::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr DType kSmallFloatTypes[] = {DType::f8e4m3fn,   DType::f8e4m3fnuz, DType::f8e5m2,
                                      DType::f8e5m2fnuz, DType::f8e8m0,     DType::f4e2m1};
constexpr DType kCastTypes[] = {
    DType::boolean,    DType::i8,     DType::i16,      DType::i32,        DType::i64,
    DType::u8,         DType::u16,    DType::u32,      DType::u64,        DType::f16,
    DType::bf16,       DType::f32,    DType::f64,      DType::i4,         DType::u4,
    DType::i2,         DType::u2,     DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2,
    DType::f8e5m2fnuz, DType::f8e8m0, DType::f4e2m1,   DType::string};

Call cast_call(const Tensor& in, DType to, bool saturate = true, const char* round = nullptr) {
  Call call{"Cast", {in}};
  call.attributes.set("to", static_cast<int64_t>(to));
  if (!saturate) call.attributes.set("saturate", int64_t{0});
  if (round) call.attributes.set("round_mode", std::string(round));
  return call;
}
Tensor cast(const Tensor& in, DType to, bool saturate = true, const char* round = nullptr) {
  return evaluate(cast_call(in, to, saturate, round));
}

TEST(Cast, GoesFromEveryTypeToEveryType) {
  // 1 is a value of every type.
  const Tensor one = vector<float>({1, 1, 1, 1, 1});
  for (DType from : kCastTypes)
    for (DType to : kCastTypes) {
      const Tensor there = cast(cast(one, from), to);
      ASSERT_EQ(there.dtype, to);
      EXPECT_EQ(elements<float>(cast(there, DType::f32)), elements<float>(one))
          << name_of(from) << " to " << name_of(to);
    }
}

TEST(Cast, EverySmallFloatComesBackFromEveryWiderType) {
  for (DType small : kSmallFloatTypes) {
    const int count = small == DType::f4e2m1 ? 16 : 256;
    std::vector<float> values;
    for (int code = 0; code < count; ++code)
      if (const float v = small_float_to_f32(small, static_cast<uint8_t>(code)); std::isfinite(v))
        values.push_back(v);
    const Tensor in = vector(values);
    for (DType wide : {DType::f32, DType::f64, DType::bf16, DType::string}) {
      const Tensor back = cast(cast(cast(in, small), wide), small);
      EXPECT_EQ(bytes(back), bytes(cast(in, small))) << name_of(small) << " by " << name_of(wide);
      EXPECT_EQ(elements<float>(cast(back, DType::f32)), values) << name_of(small);
    }
  }
}

TEST(Cast, RoundsOnceFromF64) {
  // Just above the middle of 1 and 1.125: through f32 it would be the middle, and go to even.
  const Tensor in = vector<double>({1.0625 + 0x1p-40, 1.0625, -1.0625 - 0x1p-40, 1e300});
  EXPECT_THAT(bytes(cast(in, DType::f8e4m3fn)), ElementsAre(0x39, 0x38, 0xb9, 0x7e));
}

TEST(Cast, SaturatesOrNot) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor in = vector<float>({1e6f, -1e6f, inf, -inf, -0.0f});
  EXPECT_THAT(bytes(cast(in, DType::f8e4m3fn)), ElementsAre(0x7e, 0xfe, 0x7e, 0xfe, 0x80));
  EXPECT_THAT(bytes(cast(in, DType::f8e5m2)), ElementsAre(0x7b, 0xfb, 0x7b, 0xfb, 0x80));
  EXPECT_THAT(bytes(cast(in, DType::f8e4m3fnuz)), ElementsAre(0x7f, 0xff, 0x7f, 0xff, 0x00));
  EXPECT_THAT(bytes(cast(in, DType::f8e4m3fn, false)), ElementsAre(0x7f, 0xff, 0x7f, 0xff, 0x80));
  EXPECT_THAT(bytes(cast(in, DType::f8e5m2, false)), ElementsAre(0x7c, 0xfc, 0x7c, 0xfc, 0x80));
  EXPECT_THAT(bytes(cast(in, DType::f8e5m2fnuz, false)), ElementsAre(0x80, 0x80, 0x80, 0x80, 0x00));
}

TEST(Cast, RoundsScalesAsAsked) {
  const Tensor in = vector<float>({1.0f, 1.25f, 1.5f, 1.75f, 0.0f, 3e38f});
  EXPECT_THAT(bytes(cast(in, DType::f8e8m0)), ElementsAre(127, 128, 128, 128, 0, 254));
  EXPECT_THAT(bytes(cast(in, DType::f8e8m0, true, "down")),
              ElementsAre(127, 127, 127, 127, 0, 254));
  EXPECT_THAT(bytes(cast(in, DType::f8e8m0, true, "nearest")),
              ElementsAre(127, 127, 128, 128, 0, 254));
  EXPECT_THAT(bytes(cast(in, DType::f8e8m0, false, "nearest")),
              ElementsAre(127, 127, 128, 128, 255, 255));
  EXPECT_THAT(refusal(cast_call(in, DType::f8e8m0, true, "sideways")),
              HasSubstr("supported: up, down, nearest"));
}

TEST(Cast, KeepsTheLowBitsOfIntegers) {
  const Tensor in = vector<int32_t>({200, -9, 17, 3, 0});
  EXPECT_THAT(elements<int8_t>(cast(in, DType::i8)), ElementsAre(-56, -9, 17, 3, 0));
  EXPECT_THAT(elements<int32_t>(cast(cast(in, DType::i4), DType::i32)),
              ElementsAre(-8, 7, 1, 3, 0));
  EXPECT_THAT(elements<int32_t>(cast(cast(in, DType::u4), DType::i32)), ElementsAre(8, 7, 1, 3, 0));
  EXPECT_THAT(elements<int32_t>(cast(cast(in, DType::i2), DType::i32)),
              ElementsAre(0, -1, 1, -1, 0));
  EXPECT_THAT(elements<int32_t>(cast(cast(in, DType::u2), DType::i32)), ElementsAre(0, 3, 1, 3, 0));
  EXPECT_THAT(bytes(cast(in, DType::u4)), ElementsAre(0x78, 0x31, 0x00));
}

TEST(Cast, KeepsAllOfU64) {
  const Tensor in = vector<uint64_t>({~uint64_t{0}, uint64_t{1} << 63});
  EXPECT_THAT(elements<std::string>(cast(in, DType::string)),
              ElementsAre("18446744073709551615", "9223372036854775808"));
  EXPECT_EQ(elements<uint64_t>(cast(cast(in, DType::string), DType::u64)), elements<uint64_t>(in));
  EXPECT_THAT(bytes(cast(in, DType::f8e5m2, false)), ElementsAre(0x7c, 0x7c));
}

TEST(Cast, ReadsAndWritesText) {
  const Tensor in = strings({8}, {"3.14", "-1e-5", "1E8", "+inf", "-INF", "NaN", " 7 ", "1e400"});
  const auto values = elements<float>(cast(in, DType::f32));
  EXPECT_EQ(values[0], 3.14f);
  EXPECT_EQ(values[1], -1e-5f);
  EXPECT_EQ(values[2], 1e8f);
  EXPECT_EQ(values[3], std::numeric_limits<float>::infinity());
  EXPECT_EQ(values[4], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(values[5]));
  EXPECT_EQ(values[6], 7);
  EXPECT_EQ(values[7], std::numeric_limits<float>::infinity());
  EXPECT_THAT(elements<int64_t>(
                  cast(strings({4}, {"-12", "100.5", "1e3", "9223372036854775807"}), DType::i64)),
              ElementsAre(-12, 100, 1000, std::numeric_limits<int64_t>::max()));
  EXPECT_THAT(elements<std::string>(
                  cast(vector<float>({314.25f, 1, -0.1f, std::nanf(""), INFINITY}), DType::string)),
              ElementsAre("314.25", "1.0", "-0.1", "NaN", "INF"));
  EXPECT_THAT(refusal(cast_call(strings({1}, {"Hello World!"}), DType::f32)),
              HasSubstr("'Hello World!' is not a number"));
  EXPECT_THAT(refusal(cast_call(strings({1}, {""}), DType::i32)), HasSubstr("is not an integer"));
}

TEST(Cast, RefusesComplexNumbersAndNonsense) {
  const Tensor z = bits(DType::complex64, {1}, std::vector<uint8_t>(8));
  EXPECT_THAT(refusal(cast_call(z, DType::f32)), HasSubstr("complex64 is not supported"));
  EXPECT_THAT(refusal(cast_call(scalar(1.0f), DType::complex64)), HasSubstr("supported: bool"));
  Call none{"Cast", {scalar(1.0f)}};
  EXPECT_THAT(refusal(none), HasSubstr("'to' names no element type"));
  none.attributes.set("to", int64_t{1} << 40);
  EXPECT_THAT(refusal(none), HasSubstr("'to' names no element type"));
}

TEST(Cast, TakesEmptyTensors) {
  EXPECT_EQ(cast(tensor<float>({0, 3}, {}), DType::i4).dims, Dims({0, 3}));
}

TEST(CastLike, TakesTheOtherType) {
  Call call{"CastLike", {vector<float>({1.5f, -2}), scalar<int16_t>(9)}};
  EXPECT_THAT(elements<int16_t>(evaluate(call)), ElementsAre(1, -2));
  call.inputs[1] = bits(DType::f8e4m3fn, {1}, {0});
  call.inputs[0] = vector<float>({1e6f});
  call.attributes.set("saturate", int64_t{0});
  EXPECT_THAT(bytes(evaluate(call)), ElementsAre(0x7f));
}

TEST(BitCast, KeepsBits) {
  auto bit_cast = [](const Tensor& in, DType to) {
    Call call{"BitCast", {in}};
    call.attributes.set("to", static_cast<int64_t>(to));
    return call;
  };
  EXPECT_THAT(elements<uint32_t>(evaluate(bit_cast(scalar(1.0f), DType::u32))),
              ElementsAre(0x3f800000));
  const Tensor nibbles = bits(DType::u4, {3}, {0xba, 0x0c});
  for (DType to : {DType::i4, DType::f4e2m1})
    EXPECT_EQ(bytes(evaluate(bit_cast(nibbles, to))), bytes(nibbles));
  const Tensor z = bits(DType::complex64, {1}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(bytes(evaluate(bit_cast(z, DType::f64))), bytes(z));
  EXPECT_THAT(refusal(bit_cast(scalar(1.0f), DType::i64)),
              HasSubstr("f32 has 32 bits, i64 has 64"));
  EXPECT_THAT(refusal(bit_cast(strings({1}, {"a"}), DType::i64)), HasSubstr("string"));
}

}  // namespace
}  // namespace hologram::graph::testing
