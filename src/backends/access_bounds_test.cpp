#include "backends/access_bounds.h"

#include <gtest/gtest.h>

#include "isa/builder.h"
#include "support/function_ref.h"

namespace hologram::backends {
namespace {

using isa::Access;
using isa::Builder;
using isa::Opcode;
using isa::Register;

uint64_t needed(const isa::Program& program, const isa::LaunchShape& shape,
                std::vector<uint64_t> words, uint32_t parameter) {
  std::vector<uint64_t> lengths(program.parameters.size(), 0);
  AccessBounds(program).require(shape, words.data(), lengths.data());
  return lengths[parameter];
}

TEST(AccessBounds, LastThreadOfTheLastBlock) {
  Builder b("copy");
  const auto in = b.array("in", DType::f32, Access::read);
  const auto out = b.array("out", DType::f32, Access::write);
  const Register i = b.id(Opcode::global_id);
  b.store(out, b.add(i, b.integer(DType::u32, 3)), b.load(in, i));
  const auto program = b.finish();
  ASSERT_TRUE(program) << program.error().to_string();
  const isa::LaunchShape shape{{5, 1, 1}, {7, 1, 1}};
  EXPECT_EQ(needed(*program, shape, {0, 0}, 0), 35u);
  EXPECT_EQ(needed(*program, shape, {0, 0}, 1), 38u);
  EXPECT_EQ(needed(*program, {{0, 1, 1}, {7, 1, 1}}, {0, 0}, 0), 0u) << "an empty grid";
}

TEST(AccessBounds, FollowsScalars) {
  Builder b("rows");
  const auto in = b.array("in", DType::i32, Access::read_write);
  const auto stride = b.scalar("stride", DType::u64);
  const Register row = b.id(Opcode::block_id, 1, DType::u64);
  const Register column = b.id(Opcode::thread_id, 0, DType::u64);
  const Register at = b.add(b.mul(row, b.value(stride)), column);
  b.store(in, at, b.load(in, at));
  const auto program = b.finish();
  ASSERT_TRUE(program);
  EXPECT_EQ(needed(*program, {{1, 4, 1}, {8, 1, 1}}, {0, 100}, 0), 3 * 100 + 8u);
  EXPECT_TRUE(AccessBounds(*program).depends_on(1));
  EXPECT_FALSE(AccessBounds(*program).depends_on(0));
  // A product that passes 64 bits wraps in the program too: nothing is claimed.
  EXPECT_EQ(needed(*program, {{1, 4, 1}, {8, 1, 1}}, {0, ~uint64_t{0} / 2}, 0), 0u);
}

// A program that stores to out[i] behind the test that `guard` makes of i and n.
isa::Program guarded(FunctionRef<void(Builder&, Register, Register, FunctionRef<void()>)> guard) {
  Builder b("guarded");
  const auto out = b.array("out", DType::f32, Access::write);
  const auto n = b.scalar("n", DType::u32);
  const Register i = b.id(Opcode::global_id);
  guard(b, i, b.value(n), [&] { b.store(out, i, b.floating(DType::f32, 1)); });
  auto program = b.finish();
  EXPECT_TRUE(program) << program.error().to_string();
  return *std::move(program);
}

TEST(AccessBounds, BehindATestOfAnId) {
  const isa::LaunchShape shape{{5, 1, 1}, {8, 1, 1}};  // ids 0..39
  const auto below =
      guarded([](Builder& b, Register i, Register n, auto body) { b.if_(b.lt(i, n), body); });
  EXPECT_EQ(needed(below, shape, {0, 30}, 0), 30u);
  EXPECT_EQ(needed(below, shape, {0, 100}, 0), 40u) << "the grid ends before n";
  EXPECT_EQ(needed(below, shape, {0, 0}, 0), 0u) << "no thread passes";
  EXPECT_TRUE(AccessBounds(below).depends_on(1));
  const auto above = guarded([](Builder& b, Register i, Register n, auto body) {
    b.if_(b.compare(Opcode::ge, n, i), body);  // i <= n
  });
  EXPECT_EQ(needed(above, shape, {0, 30}, 0), 31u);
  EXPECT_EQ(needed(above, shape, {0, 0}, 0), 1u);
  const auto early = guarded([](Builder& b, Register i, Register n, auto body) {
    b.if_(b.compare(Opcode::ge, i, n), [&] { b.return_(); });
    body();
  });
  EXPECT_EQ(needed(early, shape, {0, 30}, 0), 30u);
  EXPECT_EQ(needed(early, shape, {0, 0}, 0), 0u);
}

TEST(AccessBounds, ClaimsNothingBehindOtherTests) {
  const auto even = guarded([](Builder& b, Register i, Register n, auto body) {
    b.if_(b.compare(Opcode::eq, b.rem(i, n), b.integer(DType::u32, 0)), body);
  });
  EXPECT_TRUE(AccessBounds(even).empty());
  const auto otherwise = guarded([](Builder& b, Register i, Register n, auto body) {
    b.if_else(
        b.lt(i, n), [] {}, body);
  });
  EXPECT_TRUE(AccessBounds(otherwise).empty());
  const auto late = guarded([](Builder& b, Register i, Register n, auto body) {
    b.if_(b.lt(i, n), [&] { b.return_(); });
    body();
  });
  EXPECT_TRUE(AccessBounds(late).empty());
}

TEST(AccessBounds, TwoAxesJoinedByAnd) {
  Builder b("matrix");
  const auto out = b.array("out", DType::f32, Access::write);
  const auto rows = b.scalar("rows", DType::u32), columns = b.scalar("columns", DType::u32);
  const Register i = b.id(Opcode::global_id, 1), j = b.id(Opcode::global_id, 0);
  const Register inside =
      b.binary(Opcode::bit_and, b.lt(i, b.value(rows)), b.lt(j, b.value(columns)));
  b.if_(inside, [&] {
    b.store(out, b.ternary(Opcode::mad, i, b.value(columns), j), b.floating(DType::f32, 1));
  });
  const auto program = b.finish();
  ASSERT_TRUE(program) << program.error().to_string();
  const isa::LaunchShape shape{{4, 4, 1}, {8, 8, 1}};
  EXPECT_EQ(needed(*program, shape, {0, 10, 20}, 0), 200u);
  EXPECT_EQ(needed(*program, shape, {0, 10, 50}, 0), 9 * 50 + 32u) << "columns end with the grid";
  EXPECT_EQ(needed(*program, shape, {0, 10, 0}, 0), 0u);
}

// i < n says nothing of how far the thread's place within its block goes.
TEST(AccessBounds, ClaimsNothingForAnotherIdOfATestedAxis) {
  Builder b("mixed");
  const auto out = b.array("out", DType::f32, Access::write);
  const auto n = b.scalar("n", DType::u32);
  const Register i = b.id(Opcode::global_id), t = b.id(Opcode::thread_id);
  b.if_(b.lt(i, b.value(n)), [&] { b.store(out, t, b.floating(DType::f32, 1)); });
  const auto program = b.finish();
  ASSERT_TRUE(program);
  EXPECT_TRUE(AccessBounds(*program).empty());
}

TEST(AccessBounds, CountedLoopsWithUniformBounds) {
  Builder b("dot");
  const auto in = b.array("in", DType::f32, Access::read);
  const auto out = b.array("out", DType::f32, Access::write);
  const auto n = b.scalar("n", DType::u32), k = b.scalar("k", DType::u32);
  const Register i = b.id(Opcode::global_id), columns = b.value(k);
  b.if_(b.lt(i, b.value(n)), [&] {
    const Register sum = b.variable(DType::f32);
    b.assign(sum, b.floating(DType::f32, 0));
    b.for_(b.integer(DType::u32, 0), columns, b.integer(DType::u32, 3), [&](Register c) {
      b.assign(sum, b.add(sum, b.load(in, b.ternary(Opcode::mad, i, columns, c))));
    });
    b.store(out, i, sum);
  });
  const auto program = b.finish();
  ASSERT_TRUE(program) << program.error().to_string();
  const isa::LaunchShape shape{{4, 1, 1}, {8, 1, 1}};
  EXPECT_EQ(needed(*program, shape, {0, 0, 10, 20}, 0), 9 * 20 + 18 + 1u) << "0, 3 .. 18";
  EXPECT_EQ(needed(*program, shape, {0, 0, 10, 20}, 1), 10u);
  EXPECT_EQ(needed(*program, shape, {0, 0, 10, 0}, 0), 0u) << "no turn";
  EXPECT_EQ(needed(*program, shape, {0, 0, 10, 0}, 1), 10u);
}

TEST(AccessBounds, ClaimsNothingInLoopsThatAreLeftEarly) {
  Builder b("search");
  const auto in = b.array("in", DType::f32, Access::read);
  const auto out = b.array("out", DType::f32, Access::write);
  const auto n = b.scalar("n", DType::u32);
  const Register zero = b.floating(DType::f32, 0);
  b.for_(b.integer(DType::u32, 0), b.value(n), b.integer(DType::u32, 1),
         [&](Register c) { b.if_(b.lt(b.load(in, c), zero), [&] { b.break_(); }); });
  b.store(out, b.id(Opcode::global_id), zero);
  const auto program = b.finish();
  ASSERT_TRUE(program) << program.error().to_string();
  EXPECT_EQ(needed(*program, {{1, 1, 1}, {8, 1, 1}}, {0, 0, 100}, 0), 0u);
  EXPECT_EQ(needed(*program, {{1, 1, 1}, {8, 1, 1}}, {0, 0, 100}, 1), 8u);
}

TEST(AccessBounds, ClaimsNothingForVariables) {
  Builder b("variable");
  const auto out = b.array("out", DType::f32, Access::write);
  const Register i = b.variable(DType::u32);
  b.assign(i, b.integer(DType::u32, 100));
  b.assign(i, b.integer(DType::u32, 0));
  b.store(out, i, b.floating(DType::f32, 1));
  const auto program = b.finish();
  ASSERT_TRUE(program);
  EXPECT_TRUE(AccessBounds(*program).empty());
}

}  // namespace
}  // namespace hologram::backends
