// The meaning of every operation, against oracles that share no code with the interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "isa/class_tables.h"
#include "isa/fields.h"
#include "isa/testing/random.h"
#include "isa/testing/run_operation.h"

namespace hologram::isa {
namespace {

using testing::Bits;
using testing::Random;

Bits run_bits(Opcode op, DType in, DType out, const Bits& a, const Bits& b = {},
              const Bits& c = {}) {
  const auto result = testing::run_operation(op, in, out, a, b, c);
  EXPECT_TRUE(result) << result.error().to_string();
  return result ? *result : Bits(a.size());
}

template <typename Out, typename In>
std::vector<Out> run(Opcode op, const std::vector<In>& a, const std::vector<In>& b = {},
                     const std::vector<In>& c = {}) {
  return testing::from_bits<Out>(run_bits(op, dtype_of<In>(), dtype_of<Out>(), testing::to_bits(a),
                                          testing::to_bits(b), testing::to_bits(c)));
}

template <typename Out, typename In>
Out run1(Opcode op, In a, In b = {}, In c = {}) {
  return run<Out, In>(op, {a}, {b}, {c})[0];
}

// Every pair of 8-bit operands.
template <typename T>
void expect_all_pairs(Opcode op, int (*oracle)(int, int), bool (*defined)(int, int)) {
  std::vector<T> a, b;
  for (int x = std::numeric_limits<T>::min(); x <= std::numeric_limits<T>::max(); ++x)
    for (int y = std::numeric_limits<T>::min(); y <= std::numeric_limits<T>::max(); ++y)
      if (defined(x, y)) {
        a.push_back(static_cast<T>(x));
        b.push_back(static_cast<T>(y));
      }
  const std::vector<T> result = run<T, T>(op, a, b);
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(result[i], static_cast<T>(oracle(a[i], b[i])))
        << info(op).name << ' ' << int{a[i]} << ' ' << int{b[i]};
}

template <typename T>
class EightBits : public ::testing::Test {};
using EightBitTypes = ::testing::Types<int8_t, uint8_t>;
TYPED_TEST_SUITE(EightBits, EightBitTypes);

TYPED_TEST(EightBits, ArithmeticWrapsAndDivisionTruncates) {
  const auto always = [](int, int) { return true; };
  const auto divisible = [](int, int y) { return y != 0; };
  expect_all_pairs<TypeParam>(
      Opcode::add, [](int x, int y) { return x + y; }, always);
  expect_all_pairs<TypeParam>(
      Opcode::sub, [](int x, int y) { return x - y; }, always);
  expect_all_pairs<TypeParam>(
      Opcode::mul, [](int x, int y) { return x * y; }, always);
  expect_all_pairs<TypeParam>(
      Opcode::div, [](int x, int y) { return x / y; }, divisible);
  expect_all_pairs<TypeParam>(
      Opcode::rem, [](int x, int y) { return x % y; }, divisible);
  expect_all_pairs<TypeParam>(
      Opcode::min, [](int x, int y) { return x < y ? x : y; }, always);
  expect_all_pairs<TypeParam>(
      Opcode::max, [](int x, int y) { return x < y ? y : x; }, always);
  expect_all_pairs<TypeParam>(
      Opcode::bit_and, [](int x, int y) { return x & y; }, always);
  expect_all_pairs<TypeParam>(
      Opcode::bit_or, [](int x, int y) { return x | y; }, always);
  expect_all_pairs<TypeParam>(
      Opcode::bit_xor, [](int x, int y) { return x ^ y; }, always);
  const auto shift = [](int, int y) { return y >= 0 && y < 8; };
  expect_all_pairs<TypeParam>(
      Opcode::shl, [](int x, int y) { return x * (1 << y); }, shift);
  expect_all_pairs<TypeParam>(
      Opcode::shr,
      [](int x, int y) { return static_cast<int>(std::floor(std::ldexp(double(x), -y))); }, shift);
}

template <typename T>
void expect_edges() {
  using Limits = std::numeric_limits<T>;
  EXPECT_EQ((run1<T, T>(Opcode::div, Limits::min(), T{-1})), Limits::min());
  EXPECT_EQ((run1<T, T>(Opcode::rem, Limits::min(), T{-1})), T{0});
  EXPECT_EQ((run1<T, T>(Opcode::abs, Limits::min())), Limits::min());
  EXPECT_EQ((run1<T, T>(Opcode::neg, Limits::min())), Limits::min());
  EXPECT_EQ((run1<T, T>(Opcode::add, Limits::max(), T{1})), Limits::min());
  EXPECT_EQ((run1<T, T>(Opcode::mul, Limits::min(), T{-1})), Limits::min());
  EXPECT_EQ((run1<T, T>(Opcode::mad, Limits::max(), T{2}, T{3})), T{1});
  EXPECT_EQ((run1<T, T>(Opcode::rem, T{-7}, T{3})), T{-1});
  EXPECT_EQ((run1<T, T>(Opcode::div, T{-7}, T{3})), T{-2});
  EXPECT_EQ((run1<T, T>(Opcode::shr, T{-8}, T{1})), T{-4});
  EXPECT_EQ((run1<T, T>(Opcode::bit_not, T{0})), T{-1});
}

TEST(Numerics, SignedEdgesWrap) {
  expect_edges<int8_t>();
  expect_edges<int16_t>();
  expect_edges<int32_t>();
  expect_edges<int64_t>();
  EXPECT_EQ((run1<uint16_t, uint16_t>(Opcode::mul, 65535, 65535)), 1);
  EXPECT_EQ((run1<uint64_t, uint64_t>(Opcode::sub, 0, 1)), ~uint64_t{0});
}

template <typename T>
T nan_of() {
  return T(std::numeric_limits<float>::quiet_NaN());
}
template <typename T>
double number(T value) {
  if constexpr (std::is_same_v<T, double>)
    return value;
  else
    return static_cast<float>(value);
}

template <typename T>
class Floats : public ::testing::Test {};
using FloatTypes = ::testing::Types<Half, BFloat16, float, double>;
TYPED_TEST_SUITE(Floats, FloatTypes);

TYPED_TEST(Floats, MinimumAndMaximumSpreadNaNAndOrderZeros) {
  using T = TypeParam;
  const T plus(0.0f), minus(-0.0f), one(1.0f), nan = nan_of<T>();
  const auto minimum = [](T a, T b) { return number(run1<T, T>(Opcode::min, a, b)); };
  const auto maximum = [](T a, T b) { return number(run1<T, T>(Opcode::max, a, b)); };
  EXPECT_TRUE(std::signbit(minimum(plus, minus)) && std::signbit(minimum(minus, plus)));
  EXPECT_FALSE(std::signbit(maximum(plus, minus)) || std::signbit(maximum(minus, plus)));
  EXPECT_TRUE(std::isnan(minimum(nan, one)) && std::isnan(minimum(one, nan)));
  EXPECT_TRUE(std::isnan(maximum(nan, one)) && std::isnan(maximum(one, nan)));
  EXPECT_EQ(minimum(one, plus), 0.0);
  EXPECT_EQ(maximum(one, plus), 1.0);
}

TYPED_TEST(Floats, RoundsHalvesToEven) {
  using T = TypeParam;
  const struct {
    float x, round, floor, ceil, trunc;
  } kCases[] = {{0.5f, 0, 0, 1, 0},       {1.5f, 2, 1, 2, 1},      {2.5f, 2, 2, 3, 2},
                {-0.5f, -0.0f, -1, 0, 0}, {-1.5f, -2, -2, -1, -1}, {-2.5f, -2, -3, -2, -2},
                {0.25f, 0, 0, 1, 0},      {0.75f, 1, 0, 1, 0},     {100.0f, 100, 100, 100, 100}};
  for (const auto& c : kCases) {
    EXPECT_EQ(number(run1<T, T>(Opcode::round, T(c.x))), c.round) << c.x;
    EXPECT_EQ(number(run1<T, T>(Opcode::floor, T(c.x))), c.floor) << c.x;
    EXPECT_EQ(number(run1<T, T>(Opcode::ceil, T(c.x))), c.ceil) << c.x;
    EXPECT_EQ(number(run1<T, T>(Opcode::trunc, T(c.x))), c.trunc) << c.x;
  }
}

TYPED_TEST(Floats, ComparisonsWithNaNAreFalseButNotEqual) {
  using T = TypeParam;
  const T nan = nan_of<T>();
  for (Opcode op : {Opcode::eq, Opcode::lt, Opcode::le, Opcode::gt, Opcode::ge})
    EXPECT_FALSE((run1<bool, T>(op, nan, nan))) << info(op).name;
  EXPECT_TRUE((run1<bool, T>(Opcode::ne, nan, nan)));
  EXPECT_TRUE((run1<bool, T>(Opcode::eq, T(0.0f), T(-0.0f))));
}

TEST(Numerics, RemainderHasTheSignOfTheDividend) {
  EXPECT_EQ((run1<float, float>(Opcode::rem, 5.5f, 2.0f)), 1.5f);
  EXPECT_EQ((run1<float, float>(Opcode::rem, -5.5f, 2.0f)), -1.5f);
  EXPECT_EQ((run1<float, float>(Opcode::rem, 1e30f, 3.0f)), std::fmod(1e30f, 3.0f));
  EXPECT_TRUE(std::isnan(run1<float, float>(Opcode::rem, 1.0f, 0.0f)));
}

TEST(Numerics, MadRoundsTwiceFmaOnce) {
  const float x = 1.0f + std::ldexp(1.0f, -12);  // x * x = 1 + 2^-11 + 2^-24, the last bit is lost
  EXPECT_EQ((run1<float, float>(Opcode::mad, x, x, -1.0f)), std::ldexp(1.0f, -11));
  EXPECT_EQ((run1<float, float>(Opcode::fma, x, x, -1.0f)),
            std::ldexp(1.0f, -11) + std::ldexp(1.0f, -24));
  const Half h(1.0f + std::ldexp(1.0f, -6)), minus_one(-1.0f);
  EXPECT_EQ(float(run1<Half, Half>(Opcode::mad, h, h, minus_one)), std::ldexp(1.0f, -5));
  EXPECT_EQ(float(run1<Half, Half>(Opcode::fma, h, h, minus_one)),
            std::ldexp(1.0f, -5) + std::ldexp(1.0f, -12));
}

// 16-bit operands are exact in double, sums and products of theirs too: one rounding is IEEE's.
template <typename T>
void expect_ieee(uint16_t (*rounded)(double)) {
  Random random(3);
  std::vector<T> a(200'000), b(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    a[i].bits = static_cast<uint16_t>(random.next());
    b[i].bits = static_cast<uint16_t>(random.next());
  }
  const struct {
    Opcode op;
    double (*oracle)(double, double);
  } kCases[] = {
      {Opcode::add, [](double x, double y) { return x + y; }},
      {Opcode::sub, [](double x, double y) { return x - y; }},
      {Opcode::mul, [](double x, double y) { return x * y; }},
      {Opcode::div, [](double x, double y) { return x / y; }},
      {Opcode::sqrt, [](double x, double) { return std::sqrt(x); }},
      {Opcode::rem, [](double x, double y) { return std::fmod(x, y); }},
  };
  for (const auto& c : kCases) {
    const std::vector<T> result = run<T, T>(c.op, a, b);
    for (size_t i = 0; i < a.size(); ++i) {
      const double exact = c.oracle(float(a[i]), float(b[i]));
      if (std::isnan(exact))
        ASSERT_TRUE(std::isnan(float(result[i])));
      else
        ASSERT_EQ(result[i].bits, rounded(exact))
            << info(c.op).name << ' ' << float(a[i]) << ' ' << float(b[i]);
    }
  }
}

TEST(Numerics, SixteenBitArithmeticIsIeee) {
  expect_ieee<Half>(f64_to_f16);
  expect_ieee<BFloat16>(f64_to_bf16);
}

// ---- conversions

// long double holds every value of every type exactly.
long double exactly(DType type, uint64_t bits) {
  const unsigned unused = 64 - bits_of(type);
  switch (type) {
    case DType::f16:
      return f16_to_f32(static_cast<uint16_t>(bits));
    case DType::bf16:
      return bf16_to_f32(static_cast<uint16_t>(bits));
    case DType::f32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case DType::f64:
      return std::bit_cast<double>(bits);
    default:
      break;
  }
  if (!is_signed_integer(type)) return bits;
  return static_cast<int64_t>(bits << unused) >> unused;
}

uint64_t expected_conversion(DType to, DType from, uint64_t bits) {
  const long double x = exactly(from, bits);
  const uint64_t mask = ~uint64_t{0} >> (64 - bits_of(to));
  if (to == DType::boolean) return !(x == 0);
  if (is_float(to)) {
    // Floats round once; integers reach the 16-bit floats through f32.
    const double once = is_float(from) ? static_cast<double>(x) : static_cast<float>(x);
    if (to == DType::f16) return f64_to_f16(once);
    if (to == DType::bf16) return f64_to_bf16(once);
    if (to == DType::f32) return std::bit_cast<uint32_t>(static_cast<float>(x));
    return std::bit_cast<uint64_t>(static_cast<double>(x));
  }
  if (!is_float(from)) {
    if (is_signed_integer(from)) return static_cast<uint64_t>(static_cast<int64_t>(x)) & mask;
    return static_cast<uint64_t>(x) & mask;
  }
  if (std::isnan(x)) return 0;
  const uint64_t largest = is_signed_integer(to) ? mask >> 1 : mask;
  const long double smallest = is_signed_integer(to) ? -1.0L - largest : 0.0L;
  if (x >= static_cast<long double>(largest)) return largest;
  if (x <= smallest) return is_signed_integer(to) ? largest + 1 : 0;
  if (x < 0) return static_cast<uint64_t>(static_cast<int64_t>(x)) & mask;
  return static_cast<uint64_t>(x);
}

TEST(Numerics, ConversionsSaturateWrapAndRound) {
  Random random(9);
  for (uint8_t from_code = 0; from_code <= static_cast<uint8_t>(DType::f64); ++from_code) {
    for (uint8_t to_code = 0; to_code <= static_cast<uint8_t>(DType::f64); ++to_code) {
      const auto from = static_cast<DType>(from_code), to = static_cast<DType>(to_code);
      if (from == to) continue;
      Bits in(4000);
      for (uint64_t& bits : in) bits = random.bits(from);
      const Bits out = run_bits(Opcode::convert, from, to, in);
      for (size_t i = 0; i < in.size(); ++i) {
        const uint64_t want = expected_conversion(to, from, in[i]);
        const bool both_nan =
            is_float(to) && std::isnan(exactly(to, want)) && std::isnan(exactly(to, out[i]));
        ASSERT_TRUE(out[i] == want || both_nan)
            << name_of(from) << " to " << name_of(to) << ": " << exactly(from, in[i]) << " gave "
            << exactly(to, out[i]) << ", expected " << exactly(to, want);
      }
    }
  }
}

TEST(Numerics, ConversionsAtTheEdges) {
  EXPECT_EQ((run1<int32_t, float>(Opcode::convert, 2147483648.0f)), INT32_MAX);
  EXPECT_EQ((run1<int32_t, float>(Opcode::convert, 2147483520.0f)), 2147483520);
  EXPECT_EQ((run1<int32_t, float>(Opcode::convert, -INFINITY)), INT32_MIN);
  EXPECT_EQ((run1<uint64_t, double>(Opcode::convert, 1.9e19)), UINT64_MAX);
  EXPECT_EQ((run1<uint8_t, float>(Opcode::convert, -0.9f)), 0);
  EXPECT_EQ((run1<int8_t, float>(Opcode::convert, NAN)), 0);
  EXPECT_EQ((run1<int8_t, int32_t>(Opcode::convert, 300)), 44);
  EXPECT_EQ((run1<bool, float>(Opcode::convert, NAN)), true);
  EXPECT_EQ((run1<bool, float>(Opcode::convert, -0.0f)), false);
}

// ---- the classes: facts of the reference

TEST(ClassAlgebra, HasTheDocumentedFacts) {
  std::vector<uint8_t> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<uint8_t>(byte));
  const auto classes = run<uint8_t, uint8_t>(Opcode::class_of, bytes);
  const auto mirrors = run<uint8_t, uint8_t>(Opcode::class_mirror, bytes);
  EXPECT_EQ(classes[42], 31);
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_LT(classes[byte], 96);
    EXPECT_EQ(classes[byte], classes[byte ^ 0x80]);
    if (byte < 96) {
      EXPECT_EQ(std::abs(mirrors[byte] - byte), 3);
      EXPECT_EQ(mirrors[mirrors[byte]], byte);
    } else {
      EXPECT_EQ(mirrors[byte], atlas::kNoClass);
    }
  }
  const auto neighbours = [](uint8_t id) {
    std::vector<int> found;
    for (uint8_t k = 0; k < 9; ++k)
      if (const uint8_t n = run1<uint8_t, uint8_t>(Opcode::class_neighbour, id, k);
          n != atlas::kNoClass)
        found.push_back(n);
    return found;
  };
  EXPECT_EQ(neighbours(0), (std::vector<int>{1, 6, 12, 24, 48}));
  EXPECT_EQ(neighbours(1), (std::vector<int>{0, 2, 7, 13, 25, 49}));
  EXPECT_EQ(neighbours(96), (std::vector<int>{}));
  EXPECT_EQ(neighbours(255), (std::vector<int>{}));
  // The compact table of code generators says the same.
  for (int id = 0; id < 256; ++id)
    for (int k = 0; k < 256; ++k)
      ASSERT_EQ(kClassNeighbours[std::min(id, 96) * 8 + std::min(k, 7)],
                atlas::neighbour(static_cast<uint8_t>(id), static_cast<uint8_t>(k)));
  size_t edges = 0;
  for (uint8_t id = 0; id < 96; ++id) edges += neighbours(id).size();
  EXPECT_EQ(edges, 2 * 256u);
}

}  // namespace
}  // namespace hologram::isa
