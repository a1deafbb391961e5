// What the threads of a block do together, and what several blocks do at the same time.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

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

TEST(Reductions, HaveTheTreeOfTheIsaForEveryBlockSize) {
  for (DType type : {DType::f32, DType::f16, DType::i64, DType::u8}) {
    Builder p("reductions");
    const auto a = p.array("a", type, Access::read);
    const auto c = p.array("c", type, Access::write);
    const Register t = p.id(Opcode::thread_id);
    const Register x = p.load(a, t);
    uint32_t slot = 0;
    for (Opcode op : {Opcode::group_add, Opcode::group_mul, Opcode::group_min, Opcode::group_max}) {
      const Register place =
          p.ternary(Opcode::mad, t, p.integer(DType::u32, 4), p.integer(DType::u32, slot++));
      p.store(c, place, p.group(op, x));
    }
    const Comparison program(*p.finish());
    std::vector<uint32_t> random(400 * 8 / 4);
    for (size_t k = 0; k < random.size(); ++k)
      random[k] = static_cast<uint32_t>(k * 2654435761u) & 0x3bff3bff;  // finite floats
    for (uint32_t threads : {1u, 2u, 3u, 7u, 8u, 9u, 16u, 31u, 33u, 64u, 100u, 128u, 255u, 400u}) {
      auto values = bytes_of(random);
      values.resize(threads * size_of(type));
      program.expect_same({.block = {threads, 1, 1}},
                          {values, std::vector<std::byte>(threads * 4 * size_of(type))}, {{}, {}});
    }
  }
}

// A block of the size that the program strides by runs as one vector, other blocks as ever; values
// of threads live across the reductions.
TEST(Reductions, OfWholeBlocksAndOfOthers) {
  for (DType type : {DType::f32, DType::f64, DType::i32, DType::u64}) {
    Builder p("strides");
    const auto a = p.array("a", type, Access::read);
    const auto c = p.array("c", type, Access::read_write);
    const auto n = p.scalar("n", DType::u32);
    const Register t = p.id(Opcode::thread_id), block = p.id(Opcode::block_id);
    const Register y = p.id(Opcode::block_id, 1), step = p.integer(DType::u32, 64);
    const Register total = p.variable(type), least = p.variable(type);
    p.assign(total, p.convert(t, type));
    p.assign(least, p.load(a, p.integer(DType::u32, 0)));
    p.for_(t, p.value(n), step, [&](Register i) {
      const Register x = p.load(a, i);
      p.assign(total, p.add(total, x));
      p.assign(least, p.binary(Opcode::min, least, x));
    });
    const Register sum = p.group(Opcode::group_add, total);
    const Register low = p.group(Opcode::group_min, least);
    const Register place =
        p.ternary(Opcode::mad, p.ternary(Opcode::mad, y, p.integer(DType::u32, 2), block),
                  p.integer(DType::u32, 300), t);
    p.store(c, place, p.add(p.add(sum, low), total));
    const Comparison program(*p.finish());
    std::vector<std::byte> values;
    for (uint32_t k = 0; k < 300; ++k) {
      const uint32_t bits = k * 2654435761u;
      const auto append = [&](auto value) {
        const auto* const first = reinterpret_cast<const std::byte*>(&value);
        values.insert(values.end(), first, first + sizeof value);
      };
      if (type == DType::f32) append(static_cast<float>(bits) * 0x1p-30f);
      if (type == DType::f64) append(static_cast<double>(bits) * 0x1p-30);
      if (type == DType::i32) append(static_cast<int32_t>(bits));
      if (type == DType::u64) append(uint64_t{bits});
    }
    for (uint32_t threads : {64u, 63u, 65u, 16u, 128u})
      for (uint32_t count : {0u, 1u, 63u, 64u, 65u, 128u, 300u})
        program.expect_same({.grid = {2, 2, 1}, .block = {threads, 1, 1}},
                            {values, std::vector<std::byte>(1200 * size_of(type)), {}},
                            {{}, {}, Argument::scalar(count)});
    program.expect_same({.block = {64, 2, 1}},
                        {values, std::vector<std::byte>(1200 * size_of(type)), {}},
                        {{}, {}, Argument::scalar(uint32_t{70})});
  }
}

TEST(Reductions, KeepTheSignOfZero) {
  Builder p("zeros");
  const auto c = p.array("c", DType::f32, Access::write);
  const Register zero = p.variable(DType::f32);
  p.assign(zero, p.floating(DType::f32, -0.0));
  p.store(c, p.id(Opcode::thread_id), p.group(Opcode::group_add, zero));
  const Comparison program(*p.finish());
  for (uint32_t threads : {1u, 3u, 20u})
    program.expect_same({.block = {threads, 1, 1}}, {bytes_of(std::vector<float>(20, 1.f))}, {{}});
}

// A tile of a product: barriers in a uniform loop, sums kept across them.
TEST(Barriers, InUniformLoops) {
  Builder p("tiles");
  const auto a = p.array("a", DType::f32, Access::read);
  const auto b = p.array("b", DType::f32, Access::read);
  const auto c = p.array("c", DType::f32, Access::write);
  const auto n = p.scalar("n", DType::u32);
  const auto tile_a = p.shared("tile_a", DType::f32, 64),
             tile_b = p.shared("tile_b", DType::f32, 64);
  const Register size = p.value(n), eight = p.integer(DType::u32, 8);
  const Register tx = p.id(Opcode::thread_id, 0), ty = p.id(Opcode::thread_id, 1);
  const Register row = p.id(Opcode::global_id, 1), column = p.id(Opcode::global_id, 0);
  const Register here = p.ternary(Opcode::mad, ty, eight, tx);
  const Register sum = p.variable(DType::f32);
  p.assign(sum, p.floating(DType::f32, 0));
  p.for_(p.integer(DType::u32, 0), size, eight, [&](Register k0) {
    p.store(tile_a, here, p.load(a, p.ternary(Opcode::mad, row, size, p.add(k0, tx))));
    p.store(tile_b, here, p.load(b, p.ternary(Opcode::mad, p.add(k0, ty), size, column)));
    p.barrier();
    p.for_(p.integer(DType::u32, 0), eight, p.integer(DType::u32, 1), [&](Register k) {
      const Register x = p.load(tile_a, p.ternary(Opcode::mad, ty, eight, k));
      const Register y = p.load(tile_b, p.ternary(Opcode::mad, k, eight, tx));
      p.assign(sum, p.ternary(Opcode::fma, x, y, sum));
    });
    p.barrier();
  });
  p.store(c, p.ternary(Opcode::mad, row, size, column), sum);
  std::vector<float> values(32 * 32);
  for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k % 13) - 6.5f;
  Comparison(*p.finish())
      .expect_same({.grid = {4, 4, 1}, .block = {8, 8, 1}},
                   {bytes_of(values), bytes_of(values), bytes_of(values), {}},
                   {{}, {}, {}, Argument::scalar(32u)});
}

// Values the whole block agrees on change once a segment, not once a vector; threads that return
// in one segment are not there in the next.
TEST(Barriers, UniformValuesAndReturns) {
  Builder p("uniform");
  const auto c = p.array("c", DType::i32, Access::write);
  const auto n = p.scalar("n", DType::i32);
  const auto number = [&](int32_t v) { return p.integer(DType::i32, v); };
  const Register t = p.id(Opcode::thread_id, 0, DType::i32);
  const Register turn = p.variable(DType::i32), total = p.variable(DType::i32);
  p.assign(turn, number(0));
  p.assign(total, number(0));
  p.loop([&] {
    p.assign(turn, p.add(turn, number(1)));
    p.if_(p.compare(Opcode::gt, turn, p.value(n)), [&] { p.break_(); });
    p.assign(total, p.add(total, p.group(Opcode::group_max, p.mul(t, turn))));
    p.if_(p.compare(Opcode::eq, turn, number(2)), [&] { p.continue_(); });
    p.assign(total, p.add(total, number(1)));
    p.barrier();
  });
  p.if_(p.lt(p.value(n), number(100)), [&] {
    p.barrier();
    p.if_(p.compare(Opcode::eq, p.rem(t, number(3)), number(1)), [&] { p.return_(); });
    p.assign(total, p.add(total, t));
  });
  p.store(c, t, total);
  const Comparison program(*p.finish());
  for (uint32_t width : {1u, 4u, 16u, 33u, 100u})
    for (int32_t n_value : {0, 1, 2, 5, 200})
      program.expect_same({.block = {width, 1, 1}}, {bytes_of(std::vector<int32_t>(100, -1)), {}},
                          {{}, Argument::scalar(n_value)});
}

// Blocks run on several threads: no addition may get lost.
TEST(Atomics, OfManyThreads) {
  Builder p("atomics");
  const auto integers = p.array("integers", DType::u64, Access::read_write);
  const auto floats = p.array("floats", DType::f32, Access::read_write);
  const Register i = p.id(Opcode::global_id);
  const Register zero = p.integer(DType::u32, 0), one = p.integer(DType::u32, 1);
  p.atomic(Opcode::atomic_add, integers, zero, p.convert(i, DType::u64));
  p.atomic(Opcode::atomic_max, integers, one, p.convert(i, DType::u64));
  p.atomic(Opcode::atomic_add, floats, zero, p.floating(DType::f32, 1));
  p.atomic(Opcode::atomic_max, floats, one, p.convert(i, DType::f32));
  p.atomic(Opcode::atomic_min, floats, p.integer(DType::u32, 2),
           p.unary(Opcode::neg, p.convert(i, DType::f32)));
  const isa::Program program = *p.finish();
  for (const Target& target : testing::runnable_targets()) {
    const auto native = testing::NativeProgram::load(*compile(program, target));
    std::vector<uint64_t> integer_values(2, 0);
    std::vector<float> float_values(3, 0.f);
    const std::vector<Argument> arguments = {Argument::array(std::span(integer_values)),
                                             Argument::array(std::span(float_values))};
    const isa::LaunchShape shape{.grid = {400, 1, 1}, .block = {100, 1, 1}};
    std::vector<std::thread> threads;
    for (uint64_t k = 0; k < 4; ++k)
      threads.emplace_back([&, k] { native->run(shape, arguments, k * 100, (k + 1) * 100); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(integer_values[0], uint64_t{40000} * 39999 / 2);
    EXPECT_EQ(integer_values[1], 39999u);
    EXPECT_EQ(float_values[0], 40000.f);
    EXPECT_EQ(float_values[1], 39999.f);
    EXPECT_EQ(float_values[2], -39999.f);
  }
}

}  // namespace
}  // namespace hologram::codegen
