// Control flow and thread geometry: what random programs meet rarely.
#include <gtest/gtest.h>

#include <numeric>

#include "codegen/testing/comparison.h"
#include "isa/builder.h"

namespace hologram::codegen {
namespace {

using isa::Access;
using isa::Argument;
using isa::Builder;
using isa::LaunchShape;
using isa::Opcode;
using isa::Register;
using testing::bytes_of;
using testing::Comparison;

std::vector<int32_t> numbers(size_t count, int32_t first = 0) {
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

constexpr uint32_t kWidths[] = {1, 3, 8, 16, 17, 64, 65, 100, 256};

TEST(Guards, EarlyReturn) {
  Builder p("early_return");
  const auto a = p.array("a", DType::i32, Access::read);
  const auto c = p.array("c", DType::i32, Access::write);
  const auto n = p.scalar("n", DType::i32);
  const Register i = p.id(Opcode::global_id, 0, DType::i32);
  p.if_(p.compare(Opcode::ge, i, p.value(n)), [&] { p.return_(); });
  p.store(c, i, p.add(p.load(a, i), i));
  const Comparison program(*p.finish());
  for (uint32_t width : kWidths)
    for (int32_t n_value : {0, 1, 31, 64, 200, 255})
      program.expect_same({.grid = {256 / width + 1, 1, 1}, .block = {width, 1, 1}},
                          {bytes_of(numbers(256)), bytes_of(numbers(256, 7)), {}},
                          {{}, {}, Argument::scalar(n_value)});
}

TEST(Guards, BothSidesStore) {
  Builder p("both_sides");
  const auto c = p.array("c", DType::i32, Access::write);
  const auto n = p.scalar("n", DType::u32);
  const Register i = p.id(Opcode::global_id);
  const Register low = p.compare(Opcode::gt, p.value(n), i);
  const Register lowest = p.compare(Opcode::le, i, p.integer(DType::u32, 3));
  const Register not_high =
      p.unary(Opcode::bit_not, p.compare(Opcode::ge, i, p.integer(DType::u32, 99)));
  const auto put = [&](int32_t value) { p.store(c, i, p.integer(DType::i32, value)); };
  p.if_else(
      p.binary(Opcode::bit_or, low, lowest), [&] { put(1); },
      [&] {
        p.if_else(
            not_high, [&] { put(2); }, [&] { put(3); });
      });
  p.if_(p.binary(Opcode::bit_and, low, not_high), [&] { put(4); });
  const Comparison program(*p.finish());
  for (uint32_t width : kWidths)
    for (uint32_t n_value : {0u, 2u, 50u, 98u, 130u})
      program.expect_same({.grid = {256 / width + 1, 1, 1}, .block = {width, 1, 1}},
                          {bytes_of(numbers(512)), {}}, {{}, Argument::scalar(n_value)});
}

TEST(Guards, TwoDimensions) {
  Builder p("two_dimensions");
  const auto a = p.array("a", DType::f32, Access::read);
  const auto c = p.array("c", DType::f32, Access::write);
  const auto w = p.scalar("w", DType::u32), h = p.scalar("h", DType::u32);
  const Register x = p.id(Opcode::global_id, 0), y = p.id(Opcode::global_id, 1);
  p.if_(p.lt(y, p.value(h)), [&] {
    p.if_(p.lt(x, p.value(w)), [&] {
      const Register i = p.ternary(Opcode::mad, y, p.value(w), x);
      p.store(c, i, p.add(p.load(a, i), p.convert(x, DType::f32)));
    });
  });
  const Comparison program(*p.finish());
  std::vector<float> a_values(37 * 23, 0.5f);
  for (uint32_t width : {1u, 5u, 16u, 40u, 64u})
    program.expect_same({.grid = {37 / width + 1, 4, 1}, .block = {width, 7, 1}},
                        {bytes_of(a_values), bytes_of(std::vector<float>(37 * 23, -1.f)), {}, {}},
                        {{}, {}, Argument::scalar(37u), Argument::scalar(23u)});
}

// A 32-bit unsigned index below zero wraps around between two lanes.
TEST(Indices, WrapBetweenLanes) {
  for (DType type : {DType::u32, DType::i32, DType::u64}) {
    Builder p("stencil");
    const auto a = p.array("a", DType::f32, Access::read);
    const auto c = p.array("c", DType::f32, Access::write);
    const auto n = p.scalar("n", type);
    const Register i = p.id(Opcode::global_id, 0, type);
    const Register one = p.integer(type, 1);
    const Register sum = p.variable(DType::f32);
    p.if_(p.lt(i, p.value(n)), [&] {
      p.assign(sum, p.load(a, i));
      const Register left = p.sub(i, one), right = p.add(i, one);
      const Register has_left = is_signed_integer(type)
                                    ? p.compare(Opcode::ge, left, p.integer(type, 0))
                                    : p.lt(left, p.value(n));
      p.if_(has_left, [&] { p.assign(sum, p.add(sum, p.load(a, left))); });
      p.if_(p.lt(right, p.value(n)), [&] { p.assign(sum, p.add(sum, p.load(a, right))); });
      p.store(c, i, sum);
    });
    const Comparison program(*p.finish());
    std::vector<float> a_values(200);
    std::iota(a_values.begin(), a_values.end(), 1.f);
    program.expect_same(
        {.grid = {4, 1, 1}, .block = {64, 1, 1}}, {bytes_of(a_values), bytes_of(a_values), {}},
        {{},
         {},
         type == DType::u64 ? Argument::scalar<uint64_t>(200) : Argument::scalar<uint32_t>(200)});
  }
}

// Ids beyond 2^32 wrap, and threads there must not run as a vector that believes otherwise. The
// same for arrays so long that a 32-bit index can wrap inside them.
TEST(Indices, LaunchesBeyondThirtyTwoBits) {
  Builder p("far");
  const auto c = p.array("c", DType::i32, Access::read_write);
  const Register i = p.id(Opcode::global_id);
  const Register next = p.add(i, p.integer(DType::u32, 2));
  p.if_(p.lt(i, p.integer(DType::u32, 5)),
        [&] { p.store(c, next, p.add(p.load(c, next), p.integer(DType::i32, 1))); });
  const isa::Program program = *p.finish();
  for (const Target& target : testing::runnable_targets()) {
    const auto native = testing::NativeProgram::load(*compile(program, target));
    const LaunchShape shape{.grid = {(1u << 24) + 1, 1, 1}, .block = {256, 1, 1}};
    for (uint64_t length : {uint64_t{100}, uint64_t{1} << 33}) {
      std::vector<int32_t> values(100, 0);
      const std::vector<Argument> arguments = {Argument::array(values.data(), length)};
      native->run(shape, arguments, 0, 2);
      native->run(shape, arguments, (1u << 24) - 1, (1u << 24) + 1);
      for (int32_t k = 0; k < 100; ++k)
        EXPECT_EQ(values[static_cast<size_t>(k)], k >= 2 && k < 7 ? 2 : 0)
            << target.level_name() << " " << k;
    }
  }
}

TEST(Arrays, MayBeTheSame) {
  Builder p("in_place");
  const auto a = p.array("a", DType::f32, Access::read);
  const auto c = p.array("c", DType::f32, Access::write);
  const Register i = p.id(Opcode::global_id);
  p.store(c, i, p.mul(p.load(a, i), p.floating(DType::f32, 2)));
  const isa::Program program = *p.finish();
  for (const Target& target : testing::runnable_targets()) {
    std::vector<float> values(300);
    std::iota(values.begin(), values.end(), 0.f);
    const std::vector<Argument> arguments = {Argument::array(std::span(values)),
                                             Argument::array(std::span(values))};
    testing::NativeProgram::load(*compile(program, target))
        ->run({.grid = {3, 1, 1}, .block = {100, 1, 1}}, arguments);
    for (size_t k = 0; k < values.size(); ++k) ASSERT_EQ(values[k], 2.f * static_cast<float>(k));
  }
}

// All threads store to one element: as if one after the other.
TEST(Arrays, OneElementForAll) {
  Builder p("one_element");
  const auto c = p.array("c", DType::i32, Access::write);
  const Register t = p.id(Opcode::thread_id, 0, DType::i32);
  p.store(c, p.integer(DType::u32, 0), t);
  p.if_(p.lt(t, p.integer(DType::i32, 5)),
        [&] { p.store(c, p.integer(DType::u32, 1), p.integer(DType::i32, 9)); });
  Comparison(*p.finish()).expect_same({.block = {100, 1, 1}}, {bytes_of(numbers(4))}, {{}});
}

// Loops in which lanes leave, skip and return at different times.
TEST(Loops, LanesGoSeparateWays) {
  Builder p("separate_ways");
  const auto c = p.array("c", DType::i32, Access::write);
  const Register i = p.id(Opcode::global_id, 0, DType::i32);
  const auto number = [&](int32_t v) { return p.integer(DType::i32, v); };
  const Register sum = p.variable(DType::i32), k = p.variable(DType::i32);
  p.assign(sum, number(0));
  p.assign(k, number(0));
  p.store(c, i, number(-1));
  p.loop([&] {
    p.assign(k, p.add(k, number(1)));
    p.if_(p.compare(Opcode::gt, k, p.rem(i, number(11))), [&] { p.break_(); });
    p.for_(number(0), p.binary(Opcode::bit_and, i, number(3)), number(1), [&](Register j) {
      p.if_(p.compare(Opcode::eq, j, p.rem(k, number(3))), [&] { p.continue_(); });
      p.if_(p.compare(Opcode::eq, p.add(sum, i), number(77)), [&] { p.return_(); });
      p.assign(sum, p.add(sum, p.ternary(Opcode::mad, j, k, number(1))));
    });
    p.if_(p.compare(Opcode::eq, p.rem(sum, number(5)), number(2)), [&] { p.continue_(); });
    p.assign(sum, p.add(sum, k));
  });
  p.store(c, i, sum);
  const Comparison program(*p.finish());
  for (uint32_t width : kWidths)
    program.expect_same({.grid = {3, 1, 1}, .block = {width, 1, 1}}, {bytes_of(numbers(3 * 256))},
                        {{}});
}

// Strided loops over a row start in different places and end together.
TEST(Loops, StrideByTheBlock) {
  Builder p("strided");
  const auto a = p.array("a", DType::f32, Access::read);
  const auto c = p.array("c", DType::f32, Access::write);
  const auto n = p.scalar("n", DType::u32);
  const Register sum = p.variable(DType::f32);
  p.assign(sum, p.floating(DType::f32, 0));
  p.for_(p.id(Opcode::thread_id), p.value(n), p.id(Opcode::block_size),
         [&](Register i) { p.assign(sum, p.add(sum, p.load(a, i))); });
  p.store(c, p.id(Opcode::thread_id), p.group(Opcode::group_add, sum));
  const Comparison program(*p.finish());
  std::vector<float> values(777);
  for (size_t k = 0; k < values.size(); ++k) values[k] = 1.f / static_cast<float>(k + 1);
  for (uint32_t width : kWidths)
    program.expect_same({.block = {width, 1, 1}},
                        {bytes_of(values), bytes_of(std::vector<float>(256)), {}},
                        {{}, {}, Argument::scalar(777u)});
}

}  // namespace
}  // namespace hologram::codegen
