// The documented errors of the mathematical functions, measured against long double: a million
// random inputs a function, over all exponents and over the interval where it does something, and
// every special input.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "codegen/compile.h"
#include "codegen/testing/native_program.h"
#include "isa/builder.h"

namespace hologram::codegen {
namespace {

using isa::Access;
using isa::Argument;
using isa::Opcode;
using testing::NativeProgram;

struct Function {
  Opcode op;
  long double (*reference)(long double, long double);
  double low, high;  // where it does something
};

#define REFERENCE(expression)                       \
  [](long double x, long double y) -> long double { \
    (void)y;                                        \
    return expression;                              \
  }
const Function kFunctions[] = {
    {Opcode::exp, REFERENCE(std::exp(x)), -110, 92},
    {Opcode::exp2, REFERENCE(std::exp2(x)), -152, 130},
    {Opcode::expm1, REFERENCE(std::expm1(x)), -30, 90},
    {Opcode::log, REFERENCE(std::log(x)), 0, 3},
    {Opcode::log1p, REFERENCE(std::log1p(x)), -1, 3},
    {Opcode::log2, REFERENCE(std::log2(x)), 0, 3},
    {Opcode::log10, REFERENCE(std::log10(x)), 0, 3},
    {Opcode::rsqrt, REFERENCE(1 / std::sqrt(x)), 0, 10},
    {Opcode::sin, REFERENCE(std::sin(x)), -1000, 1000},
    {Opcode::cos, REFERENCE(std::cos(x)), -1000, 1000},
    {Opcode::tan, REFERENCE(std::tan(x)), -1000, 1000},
    {Opcode::asin, REFERENCE(std::asin(x)), -1, 1},
    {Opcode::acos, REFERENCE(std::acos(x)), -1, 1},
    {Opcode::atan, REFERENCE(std::atan(x)), -10, 10},
    {Opcode::sinh, REFERENCE(std::sinh(x)), -20, 20},
    {Opcode::cosh, REFERENCE(std::cosh(x)), -20, 20},
    {Opcode::tanh, REFERENCE(std::tanh(x)), -10, 10},
    {Opcode::asinh, REFERENCE(std::asinh(x)), -10, 10},
    {Opcode::acosh, REFERENCE(std::acosh(x)), 1, 10},
    {Opcode::atanh, REFERENCE(std::atanh(x)), -1, 1},
    {Opcode::sigmoid, REFERENCE(x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x))),
     -110, 30},
    {Opcode::erf, REFERENCE(std::erf(x)), -6, 6},
    {Opcode::pow, REFERENCE(std::pow(x, y)), 0, 20},
};
#undef REFERENCE

// In units of the last place of T at the true value; 0 when both are the same special value.
template <typename T>
double error_in_ulp(T got, long double truth) {
  if (std::isnan(truth)) return std::isnan(got) ? 0 : INFINITY;
  if (std::isnan(got)) return INFINITY;
  const T rounded = static_cast<T>(truth);
  if (got == rounded) {
    // A zero must have the right sign, if it is exactly zero.
    return truth == 0 && std::signbit(got) != std::signbit(truth) ? INFINITY : 0;
  }
  if (std::isinf(truth)) return INFINITY;
  int exponent;
  std::frexp(truth, &exponent);
  constexpr int digits = std::numeric_limits<T>::digits;
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent) - digits;
  // Infinity stands for the first number that does not fit.
  const long double value =
      std::isinf(got) ? std::copysign(std::ldexp(1.0L, std::numeric_limits<T>::max_exponent),
                                      static_cast<long double>(got))
                      : static_cast<long double>(got);
  return static_cast<double>(std::fabs(value - truth) / std::ldexp(1.0L, exponent));
}

template <typename T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <typename T>
std::vector<T> special_inputs() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {0,
                           Limits::denorm_min(),
                           Limits::min(),
                           Limits::max(),
                           Limits::infinity(),
                           Limits::quiet_NaN(),
                           Limits::epsilon()};
  // Where formulas change, ranges end and results are exact.
  for (double edge : {0.125,
                      0.25,
                      0.3465735902799726,
                      0.41421356237309503,
                      0.5,
                      0.625,
                      0.70710678118654752,
                      0.921875,
                      1.0,
                      1.4142135623730951,
                      1.5707963267948966,
                      2.0,
                      2.4142135623730949,
                      3.0,
                      3.1415926535897931,
                      3.92,
                      4.0,
                      6.0,
                      9.01,
                      10.0,
                      17.33,
                      20.0,
                      22.0,
                      25.0,
                      40.0,
                      87.33654,
                      88.722839,
                      89.0,
                      89.415985,
                      103.97208,
                      104.0,
                      126.0,
                      127.0,
                      128.0,
                      149.0,
                      150.0,
                      255.0,
                      354.89135644669199,
                      708.39641853226408,
                      709.78271289338397,
                      710.47586007394386,
                      745.13321910194122,
                      1000.0,
                      1022.0,
                      1023.0,
                      1024.0,
                      1074.0,
                      1075.0,
                      65504.0,
                      1048575.0,
                      1048576.0,
                      1048577.0,
                      0x1p24,
                      0x1p28,
                      0x1p31,
                      0x1p32,
                      0x1p52,
                      0x1p53,
                      0x1p63,
                      1e15,
                      1e22,
                      1e30,
                      1e100,
                      1e300}) {
    const T centre = static_cast<T>(edge);
    if (std::isinf(centre)) continue;
    values.push_back(centre);
    T up = centre, down = centre;
    for (int i = 0; i < 3; ++i) {
      values.push_back(up = std::nextafter(up, Limits::infinity()));
      values.push_back(down = std::nextafter(down, T{0}));
    }
  }
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  return values;
}

template <typename T>
std::vector<T> inputs_of(const Function& f, size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values = special_inputs<T>();
  std::uniform_real_distribution<double> inside(f.low, f.high);
  while (values.size() < count) {
    values.push_back(std::bit_cast<T>(static_cast<Bits<T>>(random())));
    values.push_back(static_cast<T>(inside(random)));
  }
  return values;
}

isa::Program elementwise(Opcode op, DType type) {
  isa::Builder p(std::string(isa::info(op).name));
  const auto x = p.array("x", type, Access::read);
  const auto y = p.array("y", type, Access::read);
  const auto out = p.array("out", type, Access::write);
  const auto n = p.scalar("n", DType::u32);
  const auto i = p.id(Opcode::global_id);
  p.if_(p.lt(i, p.value(n)), [&] {
    const auto a = p.load(x, i);
    const auto value = op == Opcode::pow ? p.binary(op, a, p.load(y, i)) : p.unary(op, a);
    p.store(out, i, value);
  });
  return *p.finish();
}

template <typename T>
void check(DType type, double allowed) {
  constexpr size_t kCount = 1'000'003;  // not a multiple of any vector
  for (const Function& f : kFunctions) {
    std::vector<T> x = inputs_of<T>(f, kCount, 1), y;
    if (f.op == Opcode::pow) {
      // Every special value with every other one, then results that are mostly finite.
      const std::vector<T> special = special_inputs<T>();
      y.resize(x.size());
      std::mt19937_64 random(2);
      std::uniform_real_distribution<double> exponent(-40, 40);
      for (size_t i = 0; i < x.size(); ++i) {
        if (i < special.size() * special.size()) {
          x[i] = special[i / special.size()];
          y[i] = special[i % special.size()];
        } else {
          y[i] = static_cast<T>(exponent(random));
          if (i % 8 == 0) y[i] = std::trunc(y[i]);
        }
      }
    }
    const std::vector<T>& second = y.empty() ? x : y;
    std::vector<long double> truth(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      truth[i] = f.reference(x[i], second[i]);
      // powl takes an exponent of -2^63 for an odd number; pow does not.
      if (!y.empty() && (std::isinf(x[i]) || x[i] == 0))
        truth[i] = std::pow(static_cast<double>(x[i]), static_cast<double>(y[i]));
    }
    for (Level level : kLevels) {
      if (level > Target::host()->level()) continue;
      const auto code = compile(elementwise(f.op, type), Target(level));
      ASSERT_TRUE(code) << code.error().to_string();
      const auto program = NativeProgram::load(*code);
      const auto count = static_cast<uint32_t>(x.size());
      std::vector<T> out(count);
      const std::vector<Argument> arguments = {
          Argument::array<const T>(x), Argument::array<const T>(second),
          Argument::array(std::span(out)), Argument::scalar(count)};
      EXPECT_EQ(
          program->run({.grid = {(count + 255) / 256, 1, 1}, .block = {256, 1, 1}}, arguments), 0u);
      double worst = 0;
      size_t where = 0;
      for (size_t i = 0; i < out.size(); ++i)
        if (const double error = error_in_ulp(out[i], truth[i]); error > worst)
          worst = error, where = i;
      const std::string name =
          fmt::format("{}.{}.{}", isa::info(f.op).name, name_of(type), name_of(level));
      std::printf("%-28s %.3f ulp\n", name.c_str(), worst);
      EXPECT_LE(worst, allowed) << name << "(" << x[where] << ", " << second[where]
                                << ") = " << out[where] << ", expected "
                                << static_cast<double>(truth[where]);
    }
  }
}

TEST(Math, F32IsWithinTwoUlp) { check<float>(DType::f32, 2); }
TEST(Math, F64IsWithinFourUlp) { check<double>(DType::f64, 4); }

}  // namespace
}  // namespace hologram::codegen
