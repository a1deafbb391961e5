// The mathematical functions of the interpreter against MPFR.
#include <gtest/gtest.h>
#include <mpfr.h>

#include <bit>
#include <cmath>

#include "isa/testing/random.h"
#include "isa/testing/run_operation.h"

namespace hologram::isa {
namespace {

// Correctly rounded to T.
template <typename T>
T rounded(const mpfr_t x) {
  if constexpr (std::is_same_v<T, float>)
    return mpfr_get_flt(x, MPFR_RNDN);
  else
    return mpfr_get_d(x, MPFR_RNDN);
}

void sigmoid(mpfr_t result, const mpfr_t x) {
  mpfr_neg(result, x, MPFR_RNDN);
  mpfr_exp(result, result, MPFR_RNDN);
  mpfr_add_ui(result, result, 1, MPFR_RNDN);
  mpfr_ui_div(result, 1, result, MPFR_RNDN);
}

struct Function {
  Opcode op;
  void (*exact)(mpfr_t result, const mpfr_t x, const mpfr_t y);
};
#define UNARY(op, mpfr)                                                                      \
  Function {                                                                                 \
    Opcode::op, [](mpfr_t r, const mpfr_t x, const mpfr_t) { mpfr_##mpfr(r, x, MPFR_RNDN); } \
  }
const Function kFunctions[] = {
    UNARY(exp, exp),
    UNARY(exp2, exp2),
    UNARY(expm1, expm1),
    UNARY(log, log),
    UNARY(log1p, log1p),
    UNARY(log2, log2),
    UNARY(log10, log10),
    UNARY(sqrt, sqrt),
    UNARY(rsqrt, rec_sqrt),
    UNARY(sin, sin),
    UNARY(cos, cos),
    UNARY(tan, tan),
    UNARY(asin, asin),
    UNARY(acos, acos),
    UNARY(atan, atan),
    UNARY(sinh, sinh),
    UNARY(cosh, cosh),
    UNARY(tanh, tanh),
    UNARY(asinh, asinh),
    UNARY(acosh, acosh),
    UNARY(atanh, atanh),
    UNARY(erf, erf),
    {Opcode::sigmoid, [](mpfr_t r, const mpfr_t x, const mpfr_t) { sigmoid(r, x); }},
    {Opcode::pow, [](mpfr_t r, const mpfr_t x, const mpfr_t y) { mpfr_pow(r, x, y, MPFR_RNDN); }},
};
#undef UNARY

template <typename T>
int64_t place(T value) {
  using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  const auto bits = std::bit_cast<Bits>(value);
  return bits < 0 ? std::numeric_limits<Bits>::min() - int64_t{bits} : bits;
}

template <typename T>
void expect_precise() {
  testing::Random random(17);
  std::vector<T> a, b;
  for (int i = 0; i < 3000; ++i)
    for (auto* values : {&a, &b}) {
      const uint64_t bits = random.bits(dtype_of<T>());
      T value;
      std::memcpy(&value, &bits, sizeof value);
      values->push_back(value);
    }
  mpfr_t x, y, exact;
  mpfr_inits2(400, x, y, exact, nullptr);
  for (const Function& f : kFunctions) {
    const auto bits = testing::run_operation(f.op, dtype_of<T>(), dtype_of<T>(),
                                             testing::to_bits(a), testing::to_bits(b));
    ASSERT_TRUE(bits) << bits.error().to_string();
    const std::vector<T> result = testing::from_bits<T>(*bits);
    for (size_t i = 0; i < a.size(); ++i) {
      mpfr_set_d(x, a[i], MPFR_RNDN);
      mpfr_set_d(y, b[i], MPFR_RNDN);
      f.exact(exact, x, y);
      // IEEE 754 gives -0 a negative reciprocal square root, MPFR a positive one.
      if (f.op == Opcode::rsqrt && a[i] == 0) mpfr_set_inf(exact, std::signbit(a[i]) ? -1 : 1);
      const T want = rounded<T>(exact), got = result[i];
      if (std::isnan(want) || std::isnan(got)) {
        ASSERT_EQ(std::isnan(want), std::isnan(got))
            << info(f.op).name << ' ' << a[i] << ' ' << b[i];
        continue;
      }
      // One rounding of a nearly exact value: almost always the nearest, never further than next.
      ASSERT_LE(std::abs(place(got) - place(want)), 1)
          << info(f.op).name << ' ' << a[i] << ' ' << b[i] << ": " << got << " for " << want;
    }
  }
  mpfr_clears(x, y, exact, nullptr);
  mpfr_free_cache();
}

TEST(Functions, OfF32AreRoundedFromDouble) { expect_precise<float>(); }
TEST(Functions, OfF64AreRoundedFromLongDouble) { expect_precise<double>(); }

}  // namespace
}  // namespace hologram::isa
