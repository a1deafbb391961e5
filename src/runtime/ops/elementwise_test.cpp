// Every element-wise op on every type it takes, in every layout, against long double.
#include <gtest/gtest.h>

#include <functional>

#include "runtime/ops/op_kernels.h"
#include "runtime/ops/ops.h"
#include "runtime/testing.h"

namespace hologram::runtime::ops {
namespace {

using runtime::testing::executor;
using runtime::testing::kIsFloat;
using runtime::testing::make;
using runtime::testing::make_strided;
using runtime::testing::near;
using runtime::testing::random_values;
using runtime::testing::value_of;
using runtime::testing::wide;

template <typename F>
void for_integers(F f) {
  f(int8_t{}), f(int16_t{}), f(int32_t{}), f(int64_t{});
  f(uint8_t{}), f(uint16_t{}), f(uint32_t{}), f(uint64_t{});
}
template <typename F>
void for_signed_integers(F f) {
  f(int8_t{}), f(int16_t{}), f(int32_t{}), f(int64_t{});
}
template <typename F>
void for_floats(F f) {
  f(Half{}), f(BFloat16{}), f(float{}), f(double{});
}
template <typename F>
void for_numbers(F f) {
  for_integers(f);
  for_floats(f);
}

// Shapes of a and b, and of the result.
struct Pair {
  Dims a, b;
};
const std::vector<Pair> kPairs = {{{}, {}},
                                  {{0}, {0}},
                                  {{1}, {1}},
                                  {{7}, {7}},
                                  {{1000}, {1000}},
                                  {{9001}, {9001}},
                                  {{5}, {1}},
                                  {{1}, {5}},
                                  {{4, 100}, {100}},
                                  {{100}, {4, 100}},
                                  {{4, 100}, {4, 1}},
                                  {{4, 1}, {4, 100}},
                                  {{4, 1}, {1, 5}},
                                  {{3, 1}, {1, 70}},
                                  {{2, 3, 50}, {3, 1}},
                                  {{2, 1, 40}, {5, 1}},
                                  {{300, 3}, {300, 1}},
                                  {{2, 3, 4, 33}, {2, 1, 4, 1}},
                                  {{0, 3}, {3}},
                                  {{2, 40, 3}, {40, 1}}};

template <typename T>
using Oracle = std::function<long double(long double, long double)>;

using BinaryOp = Result<Tensor> (*)(const Executor&, const Tensor&, const Tensor&);

template <typename T>
void check_binary(BinaryOp op, const char* name, double low, double high, long double ulps,
                  const std::function<long double(long double, long double)>& oracle) {
  SCOPED_TRACE(::testing::Message() << name << " of " << name_of(dtype_of<T>()));
  for (const Pair& pair : kPairs) {
    const auto a = random_values<T>(static_cast<size_t>(*element_count(pair.a)), 11, low, high);
    const auto b = random_values<T>(static_cast<size_t>(*element_count(pair.b)), 12, low, high);
    for (int layout = 0; layout < 4; ++layout) {
      const Tensor x = make_strided(a, pair.a, layout),
                   y = make_strided(b, pair.b, layout == 0 ? 0 : 3 - layout);
      const Tensor out = value_of(op(executor(), x, y));
      const auto got = value_of(out.to_vector<T>());
      for (size_t i = 0; i < got.size(); ++i) {
        const long double want =
            oracle(wide(a[runtime::testing::broadcast_index(out.dims(), pair.a, i)]),
                   wide(b[runtime::testing::broadcast_index(out.dims(), pair.b, i)]));
        ASSERT_TRUE(near(got[i], want, ulps))
            << "element " << i << " of " << pair.a.to_string() << " and " << pair.b.to_string()
            << ", layout " << layout;
      }
    }
  }
}

// Exact in long double for all the types, then rounded once: half a unit in the last place.
constexpr long double kRounded = 0.5L;

TEST(Elementwise, AddSubMul) {
  for_numbers([]<typename T>(T) {
    const bool is_signed = kIsFloat<T> || std::is_signed_v<T>;
    const double low = is_signed ? -10 : 0;
    check_binary<T>(add, "add", low, 11, kRounded, [](auto a, auto b) { return a + b; });
    check_binary<T>(mul, "mul", low, 11, kRounded, [](auto a, auto b) { return a * b; });
    check_binary<T>(sub, "sub", is_signed ? -10 : 0, is_signed ? 11 : 1, kRounded,
                    [](auto a, auto b) { return a - b; });
  });
}

TEST(Elementwise, Div) {
  for_numbers([]<typename T>(T) {
    check_binary<T>(div, "div", 1, 100, kRounded,
                    [](auto a, auto b) { return kIsFloat<T> ? a / b : std::trunc(a / b); });
  });
}

TEST(Elementwise, MinMax) {
  for_numbers([]<typename T>(T) {
    const double low = kIsFloat<T> || std::is_signed_v<T> ? -100 : 0;
    check_binary<T>(min, "min", low, 100, 0, [](auto a, auto b) { return std::min(a, b); });
    check_binary<T>(max, "max", low, 100, 0, [](auto a, auto b) { return std::max(a, b); });
  });
}

TEST(Elementwise, Pow) {
  for_floats([]<typename T>(T) {
    check_binary<T>(pow, "pow", 0.5, 4, sizeof(T) == 2 ? 0.51L : 4,
                    [](long double a, long double b) { return std::pow(a, b); });
  });
  for_integers([]<typename T>(T) {
    check_binary<T>(pow, "pow", 0, 4, 0,
                    [](long double a, long double b) { return std::pow(a, b); });
  });
  // Negative exponents: 1 / base, rounded to zero. Products wrap.
  const Tensor base = make<int32_t>({1, -1, -1, 2, -3, 3, 7}, {7});
  const Tensor exponent = make<int32_t>({-5, -5, -4, -1, -2, 21, 0}, {7});
  EXPECT_EQ(value_of(value_of(pow(executor(), base, exponent)).to_vector<int32_t>()),
            (std::vector<int32_t>{1, -1, 1, 0, 0, static_cast<int32_t>(10460353203u), 1}));
}

TEST(Elementwise, IntegersWrap) {
  const Tensor a = make<int8_t>({127, -128, 100}, {3}), b = make<int8_t>({1, -1, 100}, {3});
  EXPECT_EQ(value_of(value_of(add(executor(), a, b)).to_vector<int8_t>()),
            (std::vector<int8_t>{-128, 127, -56}));
  EXPECT_EQ(value_of(value_of(mul(executor(), a, b)).to_vector<int8_t>()),
            (std::vector<int8_t>{127, -128, 16}));
  const Tensor u = make<uint16_t>({0, 65535}, {2}), v = make<uint16_t>({1, 2}, {2});
  EXPECT_EQ(value_of(value_of(sub(executor(), u, v)).to_vector<uint16_t>()),
            (std::vector<uint16_t>{65535, 65533}));
}

TEST(Elementwise, IntegerDivisionByZeroTraps) {
  const Tensor a = make<int32_t>({1, 2}, {2}), b = make<int32_t>({1, 0}, {2});
  EXPECT_REFUSED(trap, "zero", div(executor(), a, b));
}

TEST(Elementwise, SpecialFloats) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const Tensor a = make<float>({inf, -inf, nan, 0.f, -0.f, nan}, {6});
  const Tensor b = make<float>({-inf, 1, 1, 0.f, 1, nan}, {6});
  const auto sum = value_of(value_of(add(executor(), a, b)).to_vector<float>());
  EXPECT_TRUE(std::isnan(sum[0]));
  EXPECT_EQ(sum[1], -inf);
  const auto least = value_of(value_of(min(executor(), a, b)).to_vector<float>());
  EXPECT_TRUE(std::isnan(least[2]));
  EXPECT_TRUE(std::isnan(least[5]));
  const auto quotient = value_of(value_of(div(executor(), a, b)).to_vector<float>());
  EXPECT_TRUE(std::isnan(quotient[3]));
  const auto positive = value_of(value_of(relu(executor(), a)).to_vector<float>());
  EXPECT_EQ(positive[0], inf);
  EXPECT_EQ(positive[1], 0);
  EXPECT_TRUE(std::isnan(positive[2]));
  const auto root =
      value_of(value_of(sqrt(executor(), make<float>({-1, inf, 0}, {3}))).to_vector<float>());
  EXPECT_TRUE(std::isnan(root[0]));
  EXPECT_EQ(root[1], inf);
}

using UnaryOp = Result<Tensor> (*)(const Executor&, const Tensor&);

template <typename T>
void check_unary(UnaryOp op, const char* name, double low, double high, long double ulps,
                 const std::function<long double(long double)>& oracle) {
  SCOPED_TRACE(::testing::Message() << name << " of " << name_of(dtype_of<T>()));
  for (const Dims& dims :
       std::vector<Dims>{{}, {0}, {1}, {7}, {8193}, {3, 5}, {33, 65}, {2, 3, 40}}) {
    const auto a = random_values<T>(static_cast<size_t>(*element_count(dims)), 5, low, high);
    for (int layout = 0; layout < 4; ++layout) {
      const auto got =
          value_of(value_of(op(executor(), make_strided(a, dims, layout))).template to_vector<T>());
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_TRUE(near(got[i], oracle(wide(a[i])), ulps))
            << "of " << static_cast<double>(wide(a[i])) << " in " << dims.to_string() << ", layout "
            << layout;
    }
  }
}

TEST(Elementwise, AbsNegRelu) {
  const auto check = []<typename T>(T) {
    check_unary<T>(abs, "abs", -100, 100, 0, [](long double x) { return std::fabs(x); });
    check_unary<T>(neg, "neg", -100, 100, 0, [](long double x) { return -x; });
    check_unary<T>(relu, "relu", -100, 100, 0, [](long double x) { return x < 0 ? 0 : x; });
  };
  for_signed_integers(check);
  for_floats(check);
}

TEST(Elementwise, FloatFunctions) {
  for_floats([]<typename T>(T) {
    // 16-bit results are rounded once more after an f32 result within 2 ulp of it.
    const long double ulps = sizeof(T) == 2 ? 0.51L : std::is_same_v<T, double> ? 4 : 2;
    check_unary<T>(sqrt, "sqrt", 0, 1000, 0.5L + (sizeof(T) == 2 ? 0.01L : 0),
                   [](long double x) { return std::sqrt(x); });
    check_unary<T>(rsqrt, "rsqrt", 0.001, 1000, std::max(ulps, 1.5L * (sizeof(T) > 2)),
                   [](long double x) { return 1 / std::sqrt(x); });
    check_unary<T>(tanh, "tanh", -5, 5, ulps, [](long double x) { return std::tanh(x); });
    check_unary<T>(sigmoid, "sigmoid", -15, 15, ulps,
                   [](long double x) { return 1 / (1 + std::exp(-x)); });
  });
}

TEST(Elementwise, Gelu) {
  for_floats([]<typename T>(T) {
    const auto a = random_values<T>(5000, 9, -6, 6);
    const auto got = value_of(value_of(gelu(executor(), make(a, {5000}))).template to_vector<T>());
    for (size_t i = 0; i < a.size(); ++i) {
      const long double x = wide(a[i]);
      const long double want = x / 2 * (1 + std::erf(x / std::sqrt(2.0L)));
      // 1 + erf cancels for negative x: the error is that of 1, not of the result.
      const long double inner = std::is_same_v<T, double> ? 0x1p-52L : 0x1p-23L;
      ASSERT_TRUE(near(got[i], want, sizeof(T) == 2 ? 0.51L : 4, 4 * inner * std::fabs(x)))
          << static_cast<double>(x);
    }
  });
}

TEST(Elementwise, Scalars) {
  for_numbers([]<typename T>(T) {
    const auto a = random_values<T>(777, 3, 0, 20);
    const Tensor x = make_strided(a, {7, 111}, 1);
    const auto plus = value_of(value_of(scalar_add(executor(), x, 3)).to_vector<T>());
    const auto times = value_of(value_of(scalar_mul(executor(), x, 2)).to_vector<T>());
    const auto held = value_of(value_of(clip(executor(), x, 4, 9)).to_vector<T>());
    const auto line = value_of(value_of(axpy(executor(), 2, x, x)).to_vector<T>());
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_TRUE(near(plus[i], wide(a[i]) + 3, kRounded));
      ASSERT_TRUE(near(times[i], wide(a[i]) * 2, kRounded));
      ASSERT_TRUE(near(held[i], std::clamp(wide(a[i]), 4.0L, 9.0L), 0));
      ASSERT_TRUE(near(line[i], wide(a[i]) * 3, 1));
    }
  });
  EXPECT_REFUSED(invalid_argument, "is no value of type u8",
                 scalar_add(executor(), make<uint8_t>({1}, {1}), -1));
  EXPECT_REFUSED(invalid_argument, "is no value of type i8",
                 scalar_mul(executor(), make<int8_t>({1}, {1}), 128));
  EXPECT_REFUSED(invalid_argument, "0.5 is no value of type i32",
                 clip(executor(), make<int32_t>({1}, {1}), 0, 0.5));
  EXPECT_REFUSED(invalid_argument, "no value of type u64",
                 scalar_add(executor(), make<uint64_t>({1}, {1}), std::nan("")));
  EXPECT_EQ(value_of(value_of(scalar_add(executor(), make<int64_t>({0}, {1}), INT64_MIN))
                         .to_vector<int64_t>())[0],
            INT64_MIN);
  EXPECT_EQ(value_of(value_of(scalar_add(executor(), make<uint64_t>({0}, {1}), UINT64_MAX))
                         .to_vector<uint64_t>())[0],
            UINT64_MAX);
  EXPECT_EQ(
      value_of(
          value_of(scalar_add(executor(), make<int8_t>({0}, {1}), -128)).to_vector<int8_t>())[0],
      -128);
}

TEST(Elementwise, WritesIntoGivenTensors) {
  const auto a = random_values<float>(600, 1, -5, 5), b = random_values<float>(600, 2, -5, 5);
  std::vector<float> want(600);
  for (size_t i = 0; i < 600; ++i) want[i] = a[i] + b[i];
  for (int layout = 0; layout < 4; ++layout) {
    const Tensor out = make_strided(std::vector<float>(600), {20, 30}, layout);
    EXPECT_OK(add(executor(), make(a, {20, 30}), make(b, {20, 30}), out));
    EXPECT_EQ(value_of(out.to_vector<float>()), want) << layout;
  }
  // In place, and overlapping.
  const Tensor x = make(a, {600});
  EXPECT_OK(add(executor(), x, make(b, {600}), x));
  EXPECT_EQ(value_of(x.to_vector<float>()), want);
  const Tensor y = make(a, {600});
  EXPECT_OK(add(executor(), value_of(y.narrow(0, 0, 599)), value_of(y.narrow(0, 1, 599)),
                value_of(y.narrow(0, 1, 599))));
  const auto shifted = value_of(y.to_vector<float>());
  for (size_t i = 1; i < 600; ++i) ASSERT_EQ(shifted[i], a[i - 1] + a[i]) << i;
  const Tensor square = make(std::vector<float>(a.begin(), a.begin() + 400), {20, 20});
  EXPECT_OK(add(executor(), square, value_of(square.transpose()), square));
  const auto symmetric = value_of(square.to_vector<float>());
  for (size_t i = 0; i < 20; ++i)
    for (size_t j = 0; j < 20; ++j) ASSERT_EQ(symmetric[i * 20 + j], a[i * 20 + j] + a[j * 20 + i]);
}

TEST(Elementwise, LargeTensorsOnAllThreads) {
  const size_t n = (size_t{1} << 21) + 12345;
  const auto a = random_values<float>(n, 1, -5, 5);
  const auto got = value_of(value_of(axpy(executor(), 2.f, make(a, {static_cast<int64_t>(n)}),
                                          make(a, {static_cast<int64_t>(n)})))
                                .to_vector<float>());
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(got[i], 2 * a[i] + a[i]) << i;
}

TEST(Elementwise, RefusesWhatDoesNotGoTogether) {
  const Tensor f = make<float>({1, 2}, {2}), i = make<int32_t>({1, 2}, {2});
  const Tensor three = make<float>({1, 2, 3}, {3}), u = make<uint8_t>({1}, {1});
  EXPECT_REFUSED(type_mismatch, "add of f32[2] and i32[2]: the types differ",
                 add(executor(), f, i));
  EXPECT_REFUSED(shape_mismatch, "shapes [2] and [3] do not broadcast", add(executor(), f, three));
  EXPECT_REFUSED(type_mismatch, "the output is i32[2], not f32", add(executor(), f, f, i));
  EXPECT_REFUSED(shape_mismatch, "the output is f32[3], not of shape [2]",
                 add(executor(), f, f, three));
  EXPECT_REFUSED(unsupported, "sqrt of i32 is not supported; it takes f16, bf16, f32, f64",
                 sqrt(executor(), i));
  EXPECT_REFUSED(unsupported, "neg of u8 is not supported", neg(executor(), u));
  EXPECT_REFUSED(unsupported, "relu of u8", relu(executor(), u));
  const Tensor flags = value_of(executor().empty(DType::boolean, {2}));
  EXPECT_REFUSED(unsupported, "add of bool", add(executor(), flags, flags));
  const Tensor tiny = value_of(executor().empty(DType::f8e4m3fn, {2}));
  EXPECT_REFUSED(unsupported, "add of f8e4m3fn", add(executor(), tiny, tiny));
  EXPECT_REFUSED(invalid_argument, "without storage", add(executor(), Tensor(), f));
  const float fixed[2] = {};
  const Tensor read_only = value_of(executor().borrow(std::span<const float>(fixed), {2}));
  EXPECT_REFUSED(invalid_argument, "read-only", add(executor(), f, f, read_only));
}

TEST(Memory, FillsAndCopies) {
  const auto check = []<typename T>(T) {
    for (const Dims& dims : std::vector<Dims>{{}, {0}, {1}, {9000}, {3, 70}}) {
      const Tensor t = value_of(full(executor(), dtype_of<T>(), dims, 3));
      for (const T& value : value_of(t.to_vector<T>())) ASSERT_EQ(wide(value), 3);
    }
    const Tensor grid = value_of(full(executor(), dtype_of<T>(), {4, 6}, 1));
    EXPECT_OK(fill(executor(), value_of(value_of(grid.transpose()).slice(0, 1, 6, 2)), 2));
    const auto values = value_of(grid.to_vector<T>());
    for (size_t i = 0; i < 24; ++i) ASSERT_EQ(wide(values[i]), i % 2 == 1 ? 2 : 1);
    const Tensor target = value_of(executor().empty(dtype_of<T>(), {3, 4}));
    EXPECT_OK(copy(executor(), make<T>({T(1), T(2), T(3), T(4)}, {4}), target));
    EXPECT_EQ(wide(value_of(target.to_vector<T>())[9]), 2);
  };
  for_integers(check);
  check(float{});
  check(double{});
  const Tensor halves = value_of(full(executor(), DType::f16, {5}, 0.5));
  EXPECT_EQ(static_cast<float>(value_of(halves.to_vector<Half>())[4]), 0.5f);
  EXPECT_REFUSED(type_mismatch, "copy: the output",
                 copy(executor(), halves, value_of(executor().empty(DType::f32, {5}))));
  EXPECT_REFUSED(shape_mismatch, "does not broadcast",
                 copy(executor(), halves, value_of(executor().empty(DType::f16, {4}))));
  EXPECT_REFUSED(invalid_argument, "fill: 300 is no value of type u8",
                 fill(executor(), value_of(executor().empty(DType::u8, {1})), 300));
}

}  // namespace
}  // namespace hologram::runtime::ops
