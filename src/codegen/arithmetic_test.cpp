// Arithmetic at its edges, on every level: what the machine lacks is made of what it has.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "codegen/testing/comparison.h"
#include "isa/builder.h"

namespace hologram::codegen {
namespace {

using isa::Access;
using isa::Argument;
using isa::Builder;
using isa::Opcode;
using isa::Register;
using testing::bytes_of;
using testing::Comparison;
using testing::NativeProgram;

// Patterns that are special, or close to each other, more often than chance would have them.
template <typename T>
std::vector<T> patterns(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t,
                                  std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  constexpr T kSpecial[] = {T(0),
                            std::numeric_limits<T>::infinity(),
                            std::numeric_limits<T>::max(),
                            std::numeric_limits<T>::min(),
                            std::numeric_limits<T>::denorm_min(),
                            T(1),
                            std::numeric_limits<T>::quiet_NaN()};
  std::vector<T> values(count);
  for (T& value : values) {
    const uint64_t kind = random() % 8;
    if (kind == 0)
      value = kSpecial[random() % std::size(kSpecial)];
    else if (kind < 5)
      value = std::bit_cast<T>(static_cast<Bits>(random()));
    else  // near one, and short: sums and products that are ties
      value = std::ldexp(T(random() % 4096) / 4096 + 1, static_cast<int>(random() % 9) - 4);
    if (random() % 2) value = -value;
  }
  return values;
}

template <typename T>
isa::Program ternary_kernel(Opcode op, DType type) {
  Builder p("ternary");
  const auto a = p.array("a", type, Access::read), b = p.array("b", type, Access::read),
             c = p.array("c", type, Access::read), out = p.array("out", type, Access::write);
  const Register i = p.id(Opcode::global_id);
  const Register x = p.load(a, i), y = p.load(b, i), z = p.load(c, i);
  p.store(out, i, op == Opcode::fma ? p.ternary(op, x, y, z) : p.binary(op, x, y));
  return *p.finish();
}

template <typename T>
void expect_exact(Opcode op, DType type, T (*reference)(T, T, T)) {
  constexpr uint32_t kCount = 200'000;
  const std::vector<T> a = patterns<T>(kCount, 1), b = patterns<T>(kCount, 2);
  std::vector<T> c = patterns<T>(kCount, 3);
  // An addend that nearly cancels the product is where a second rounding would show.
  for (uint32_t i = 0; i < kCount; i += 3) c[i] = std::nextafter(-(a[i] * b[i]), T(i % 2 ? 1 : -1));
  for (const Target& target : testing::runnable_targets()) {
    const auto native = NativeProgram::load(*compile(ternary_kernel<T>(op, type), target));
    std::vector<T> out(kCount);
    const std::vector<Argument> arguments = {
        Argument::array(std::span(a)), Argument::array(std::span(b)), Argument::array(std::span(c)),
        Argument::array(std::span(out))};
    native->run({.grid = {kCount / 100, 1, 1}, .block = {100, 1, 1}}, arguments);
    for (uint32_t i = 0; i < kCount; ++i) {
      const T truth = reference(a[i], b[i], c[i]);
      const bool same = std::isnan(truth)
                            ? std::isnan(out[i])
                            : out[i] == truth && std::signbit(out[i]) == std::signbit(truth);
      ASSERT_TRUE(same) << isa::info(op).name << "." << name_of(type) << " on "
                        << target.level_name() << std::hexfloat << ": (" << a[i] << ", " << b[i]
                        << ", " << c[i] << ") = " << out[i] << ", expected " << truth;
    }
  }
}

TEST(Arithmetic, FmaRoundsOnce) {
  expect_exact<float>(Opcode::fma, DType::f32,
                      [](float a, float b, float c) { return std::fma(a, b, c); });
  expect_exact<double>(Opcode::fma, DType::f64,
                       [](double a, double b, double c) { return std::fma(a, b, c); });
}

TEST(Arithmetic, RemainderOfFloatsIsExact) {
  expect_exact<float>(Opcode::rem, DType::f32,
                      [](float a, float b, float) { return std::fmod(a, b); });
  expect_exact<double>(Opcode::rem, DType::f64,
                       [](double a, double b, double) { return std::fmod(a, b); });
}

TEST(Arithmetic, MinimumAndMaximum) {
  constexpr auto least = []<typename T>(T a, T b, T) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
  };
  expect_exact<float>(Opcode::min, DType::f32, least);
  expect_exact<double>(Opcode::min, DType::f64, least);
  constexpr auto most = []<typename T>(T a, T b, T) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
  };
  expect_exact<float>(Opcode::max, DType::f32, most);
  expect_exact<double>(Opcode::max, DType::f64, most);
}

// max(x, 0) and the like have shorter code.
TEST(Arithmetic, ExtremesWithConstants) {
  for (double constant : {0.0, -0.0, 1.5, std::numeric_limits<double>::infinity(),
                          std::numeric_limits<double>::quiet_NaN()})
    for (Opcode op : {Opcode::min, Opcode::max}) {
      Builder p("clip");
      const auto a = p.array("a", DType::f32, Access::read);
      const auto c = p.array("c", DType::f32, Access::write);
      const Register i = p.id(Opcode::global_id);
      // What is not a number has no bits to compare.
      const Register r = p.binary(op, p.load(a, i), p.floating(DType::f32, constant));
      const Register number = p.compare(Opcode::eq, r, r);
      p.store(c, i, p.select(number, r, p.floating(DType::f32, 12345)));
      Comparison(*p.finish())
          .expect_same({.grid = {10, 1, 1}, .block = {100, 1, 1}},
                       {bytes_of(patterns<float>(1000, 4)), bytes_of(std::vector<float>(1000))},
                       {{}, {}});
    }
}

template <typename From>
void expect_conversions(DType from, const std::vector<From>& values) {
  for (DType to :
       {DType::boolean, DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u16,
        DType::u32, DType::u64, DType::f16, DType::bf16, DType::f32, DType::f64}) {
    Builder p("convert");
    const auto a = p.array("a", from, Access::read);
    const auto c = p.array("c", to, Access::write);
    const Register i = p.id(Opcode::global_id);
    Register r = p.convert(p.load(a, i), to);
    if (is_float(to)) {
      const Register number = p.compare(Opcode::eq, r, r);
      r = p.select(number, r, p.floating(to, 1));
    }
    p.store(c, i, r);
    const auto count = static_cast<uint32_t>(values.size());
    Comparison(*p.finish())
        .expect_same({.grid = {count / 64, 1, 1}, .block = {64, 1, 1}},
                     {bytes_of(values), std::vector<std::byte>(count * size_of(to))}, {{}, {}});
  }
}

TEST(Conversions, OfEverySixteenBitFloat) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  expect_conversions(DType::f16, all);
  expect_conversions(DType::bf16, all);
}

TEST(Conversions, OfFloats) {
  auto singles = patterns<float>(64'000, 5);
  auto doubles = patterns<double>(64'000, 6);
  // Where integers and 16-bit floats end, and half way between 16-bit floats.
  std::mt19937_64 random(7);
  for (size_t i = 0; i < 20'000; ++i) {
    const double half_way = std::ldexp(static_cast<double>(2 * (random() % 4096) + 1),
                                       static_cast<int>(random() % 40) - 36);
    singles[i] = static_cast<float>(half_way);
    doubles[i] = std::nextafter(half_way, random() % 3 == 0 ? 1e300
                                          : random() % 2    ? -1e300
                                                            : half_way);
    if (i % 16 == 0) {
      const double edge =
          std::ldexp(1.0, static_cast<int>(random() % 65)) * (random() % 2 ? 1 : -1);
      singles[i + 1] = static_cast<float>(edge);
      doubles[i + 1] = edge + static_cast<double>(random() % 3) - 1;
    }
  }
  expect_conversions(DType::f32, singles);
  expect_conversions(DType::f64, doubles);
}

TEST(Conversions, OfIntegers) {
  std::mt19937_64 random(8);
  std::vector<uint64_t> values(6400);
  for (uint64_t& value : values) value = random() >> (random() % 64);
  expect_conversions(DType::u64, values);
  expect_conversions(DType::i64, values);
  std::vector<uint32_t> words(6400);
  for (uint32_t& value : words) value = static_cast<uint32_t>(random() >> (random() % 40));
  expect_conversions(DType::u32, words);
  expect_conversions(DType::i32, words);
}

// ---- traps: nothing may raise a signal

template <typename T>
void expect_division_traps(DType type) {
  Builder p("divide");
  const auto a = p.array("a", type, Access::read), b = p.array("b", type, Access::read);
  const auto q = p.array("q", type, Access::write), r = p.array("r", type, Access::write);
  const Register i = p.id(Opcode::global_id);
  const Register x = p.load(a, i), y = p.load(b, i);
  p.store(q, i, p.div(x, y));
  p.store(r, i, p.rem(x, y));
  const isa::Program program = *p.finish();
  std::mt19937_64 random(9);
  std::vector<T> x_values(512), y_values(512), quotients(512), remainders(512);
  for (size_t k = 0; k < 512; ++k) {
    x_values[k] = static_cast<T>(k % 5 == 0 ? std::numeric_limits<T>::min() : random());
    y_values[k] = static_cast<T>(k % 3 == 0 ? T(-1) : random() >> (random() % 64));
    if (y_values[k] == 0) y_values[k] = 3;
  }
  for (const Target& target : testing::runnable_targets()) {
    const auto native = NativeProgram::load(*compile(program, target));
    for (bool with_zero : {false, true}) {
      y_values[100] = with_zero ? 0 : 7;
      const std::vector<Argument> arguments = {
          Argument::array(std::span(x_values)), Argument::array(std::span(y_values)),
          Argument::array(std::span(quotients)), Argument::array(std::span(remainders))};
      EXPECT_EQ(native->run({.grid = {4, 1, 1}, .block = {128, 1, 1}}, arguments),
                with_zero ? isa::kTrapDivisionByZero : isa::kTrapNone);
      for (size_t k = 0; k < 512; ++k) {
        const T y = y_values[k];
        const bool minus_one = std::is_signed_v<T> && y == T(-1);
        const T quotient = y == 0      ? T(0)
                           : minus_one ? static_cast<T>(0 - static_cast<uint64_t>(x_values[k]))
                                       : static_cast<T>(x_values[k] / y);
        const T remainder = y == 0 || minus_one ? T(0) : static_cast<T>(x_values[k] % y);
        ASSERT_EQ(quotients[k], quotient) << name_of(type) << " " << target.level_name();
        ASSERT_EQ(remainders[k], remainder) << name_of(type) << " " << target.level_name();
      }
    }
  }
}

TEST(Traps, DivisionGivesZeroAndSaysSo) {
  expect_division_traps<int8_t>(DType::i8);
  expect_division_traps<int16_t>(DType::i16);
  expect_division_traps<int32_t>(DType::i32);
  expect_division_traps<int64_t>(DType::i64);
  expect_division_traps<uint8_t>(DType::u8);
  expect_division_traps<uint16_t>(DType::u16);
  expect_division_traps<uint32_t>(DType::u32);
  expect_division_traps<uint64_t>(DType::u64);
}

// Lanes that are not there divide by nothing.
TEST(Traps, OnlyActiveLanesTrap) {
  Builder p("masked_divide");
  const auto a = p.array("a", DType::i32, Access::read_write);
  const Register i = p.id(Opcode::global_id);
  const Register x = p.load(a, i);
  p.if_(p.compare(Opcode::ne, x, p.integer(DType::i32, 0)),
        [&] { p.store(a, i, p.div(p.integer(DType::i32, 100), x)); });
  std::vector<int32_t> values(90);
  for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<int32_t>(k % 4);
  Comparison(*p.finish())
      .expect_same({.grid = {1, 1, 1}, .block = {90, 1, 1}}, {bytes_of(values)}, {{}});
}

TEST(Traps, ZeroStepsAndLongShifts) {
  Builder p("steps");
  const auto a = p.array("a", DType::u32, Access::read_write);
  const auto step = p.scalar("step", DType::u32);
  const Register i = p.id(Opcode::global_id);
  const Register value = p.variable(DType::u32);
  p.assign(value, p.shift(Opcode::shl, p.load(a, i), p.value(step)));
  p.for_(p.integer(DType::u32, 0), p.integer(DType::u32, 3), p.value(step),
         [&](Register) { p.assign(value, p.add(value, p.integer(DType::u32, 1))); });
  p.store(a, i, value);
  const isa::Program program = *p.finish();
  for (const Target& target : testing::runnable_targets()) {
    const auto native = NativeProgram::load(*compile(program, target));
    for (uint32_t amount : {0u, 2u, 33u}) {
      std::vector<uint32_t> values(70, 5);
      EXPECT_EQ(native->run({.block = {70, 1, 1}},
                            std::vector<Argument>{Argument::array(std::span(values)),
                                                  Argument::scalar(amount)}),
                amount == 0 ? isa::kTrapZeroStep : isa::kTrapNone);
      // A shift takes the amount modulo the bits.
      const uint32_t turns = amount == 0 ? 0 : (3 + amount - 1) / amount;
      for (uint32_t v : values) ASSERT_EQ(v, (5u << (amount % 32)) + turns);
    }
  }
}

}  // namespace
}  // namespace hologram::codegen
