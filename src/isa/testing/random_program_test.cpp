#include "isa/testing/random_program.h"

#include <gtest/gtest.h>

#include <set>

#include "isa/interpreter.h"
#include "isa/text.h"
#include "isa/verifier.h"

namespace hologram::isa::testing {
namespace {

constexpr auto kNoTolerance = [](Opcode, DType) -> uint64_t { return 0; };

class RandomPrograms : public ::testing::TestWithParam<FloatMode> {};

TEST_P(RandomPrograms, RunWithoutTrapsWhateverTheOrderOfBlocks) {
  std::set<std::pair<Opcode, DType>> seen;
  std::set<Opcode> operations;
  size_t changed = 0;
  constexpr uint64_t kCases = 1500;
  for (uint64_t seed = 0; seed < kCases; ++seed) {
    const RandomCase c = draw_case(seed, GetParam());
    ASSERT_TRUE(verify(c.program)) << verify(c.program).error().to_string();
    ASSERT_FALSE(c.program.body.empty());
    for (const Instruction& i : c.program.body) {
      seen.insert({i.op, i.type});
      operations.insert(i.op);
    }
    Arrays serial = c.arrays, parallel = c.arrays;
    const Status first = interpret(c.program, c.shape, c.arguments(serial), {.parallel = false});
    ASSERT_TRUE(first) << seed << first.error().to_string() << '\n' << disassemble(c.program);
    ASSERT_TRUE(interpret(c.program, c.shape, c.arguments(parallel)));
    ASSERT_EQ(difference(c, serial, parallel, kNoTolerance), "") << seed;
    changed += serial != c.arrays;
  }
  EXPECT_GT(changed, kCases * 9 / 10);
  for (uint8_t i = 0; i < kOpcodeCount; ++i) {
    const auto op = static_cast<Opcode>(i);
    const bool function = op >= Opcode::exp && op <= Opcode::pow && op != Opcode::sqrt;
    EXPECT_EQ(operations.contains(op), !function || GetParam() == FloatMode::math) << info(op).name;
  }
  for (Opcode op : {Opcode::add, Opcode::div, Opcode::rem, Opcode::min, Opcode::mad, Opcode::lt,
                    Opcode::group_add, Opcode::convert, Opcode::load, Opcode::store_shared})
    for (uint8_t code = 1; code <= static_cast<uint8_t>(DType::f64); ++code)
      EXPECT_TRUE(seen.contains({op, static_cast<DType>(code)})) << info(op).name << int{code};
}

INSTANTIATE_TEST_SUITE_P(Modes, RandomPrograms,
                         ::testing::Values(FloatMode::exact, FloatMode::math));

TEST(RandomProgram, AreTheSameForTheSameSeed) {
  const RandomCase a = draw_case(7), b = draw_case(7), other = draw_case(8);
  EXPECT_EQ(a.program, b.program);
  EXPECT_EQ(a.arrays, b.arrays);
  EXPECT_NE(disassemble(a.program), disassemble(other.program));
}

TEST(Difference, SaysWhere) {
  RandomCase c;
  c.program.parameters = {{"x", true, DType::f32, Access::write},
                          {"y", true, DType::i16, Access::read_write}};
  c.functions = {Opcode::exp, Opcode::mov};
  const auto bytes = [](auto... values) {
    std::vector<std::byte> result;
    (result.insert(result.end(), reinterpret_cast<const std::byte*>(&values),
                   reinterpret_cast<const std::byte*>(&values + 1)),
     ...);
    return result;
  };
  const Arrays expected = {bytes(1.0f, -0.0f, NAN, INFINITY), bytes(int16_t{1}, int16_t{-2})};
  Arrays got = expected;
  const auto two_ulp = [](Opcode, DType) -> uint64_t { return 2; };
  EXPECT_EQ(difference(c, expected, got, two_ulp), "");
  got[0] = bytes(1.0000002f, 0.0f, -NAN, 3.4028235e38f);
  EXPECT_EQ(difference(c, expected, got, two_ulp), "");
  EXPECT_EQ(difference(c, expected, got, kNoTolerance),
            "x[0]: expected 1.0 (0x3f800000), got 1.0000002 (0x3f800002), 0 ulp allowed");
  got = expected;
  got[0] = bytes(1.0f, -0.0f, 1.0f, INFINITY);
  EXPECT_EQ(difference(c, expected, got, two_ulp),
            "x[2]: expected nan (0x7fc00000), got 1.0 (0x3f800000), 2 ulp allowed");
  got = expected;
  got[1] = bytes(int16_t{1}, int16_t{-1});
  EXPECT_EQ(difference(c, expected, got, two_ulp),
            "y[1]: expected -2 (0xfffe), got -1 (0xffff), 0 ulp allowed");
}

}  // namespace
}  // namespace hologram::isa::testing
