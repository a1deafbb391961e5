#include "backends/access_bounds.h"

#include <gtest/gtest.h>

#include "isa/builder.h"

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

TEST(AccessBounds, ClaimsNothingBehindATest) {
  Builder b("guarded");
  const auto out = b.array("out", DType::f32, Access::write);
  const auto n = b.scalar("n", DType::u32);
  const Register i = b.id(Opcode::global_id);
  b.if_(b.lt(i, b.value(n)), [&] { b.store(out, i, b.floating(DType::f32, 1)); });
  const auto program = b.finish();
  ASSERT_TRUE(program);
  EXPECT_TRUE(AccessBounds(*program).empty());
}

TEST(AccessBounds, ClaimsNothingAfterAReturn) {
  Builder b("early");
  const auto out = b.array("out", DType::f32, Access::write);
  const Register i = b.id(Opcode::global_id);
  b.if_(b.lt(b.integer(DType::u32, 4), i), [&] { b.return_(); });
  b.store(out, i, b.floating(DType::f32, 1));
  const auto program = b.finish();
  ASSERT_TRUE(program);
  EXPECT_TRUE(AccessBounds(*program).empty());
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
