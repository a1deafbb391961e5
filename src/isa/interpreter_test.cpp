#include "isa/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "isa/builder.h"

namespace hologram::isa {
namespace {

Program finished(Builder& b) {
  auto program = b.finish();
  EXPECT_TRUE(program) << program.error().to_string();
  return program ? *std::move(program) : Program{};
}

void expect_ok(const Status& status) { EXPECT_TRUE(status) << status.error().to_string(); }

TEST(Interpreter, RunsEveryThreadOfTheGrid) {
  Builder b("saxpy");
  const auto a = b.scalar("a", DType::f32);
  const auto x = b.array("x", DType::f32, Access::read);
  const auto y = b.array("y", DType::f32, Access::read_write);
  const Register i = b.id(Opcode::global_id, 0, DType::u64);
  b.if_(b.lt(i, b.length(x)),
        [&] { b.store(y, i, b.ternary(Opcode::fma, b.value(a), b.load(x, i), b.load(y, i))); });
  const Program program = finished(b);
  for (size_t n : {0u, 1u, 255u, 1000u, 100'003u}) {
    std::vector<float> xs(n), ys(n, 1.0f);
    std::iota(xs.begin(), xs.end(), 0.0f);
    const Argument arguments[] = {Argument::scalar(2.0f), Argument::array(std::span(xs)),
                                  Argument::array(std::span(ys))};
    const LaunchShape shape{.grid = {static_cast<uint32_t>(n / 96 + 1), 1, 1}, .block = {96, 1, 1}};
    expect_ok(interpret(program, shape, arguments));
    for (size_t k = 0; k < n; ++k) ASSERT_EQ(ys[k], 2.0f * static_cast<float>(k) + 1.0f) << k;
  }
}

TEST(Interpreter, NumbersBlocksAndThreadsXFastest) {
  Builder b("where");
  const auto out = b.array("out", DType::u32, Access::write);
  const auto id = [&](Opcode op, int axis) { return b.id(op, axis); };
  // ((gz * GY*BY + gy) * GX*BX + gx): the linear place of a thread in the whole grid.
  const auto extent = [&](int axis) {
    return b.mul(id(Opcode::grid_size, axis), id(Opcode::block_size, axis));
  };
  const Register row =
      b.ternary(Opcode::mad, id(Opcode::global_id, 2), extent(1), id(Opcode::global_id, 1));
  const Register place = b.ternary(Opcode::mad, row, extent(0), id(Opcode::global_id, 0));
  Register packed = b.integer(DType::u32, 0);
  const Register shift = b.integer(DType::u32, 4);
  for (Opcode op : {Opcode::block_id, Opcode::thread_id})
    for (int axis = 0; axis < 3; ++axis)
      packed = b.binary(Opcode::bit_or, b.shift(Opcode::shl, packed, shift), id(op, axis));
  b.store(out, place, packed);
  const Program program = finished(b);
  constexpr uint32_t kG[] = {3, 2, 2}, kB[] = {2, 3, 4};
  std::vector<uint32_t> result(3 * 2 * 2 * 2 * 3 * 4);
  const Argument arguments[] = {Argument::array(std::span(result))};
  expect_ok(interpret(program, {.grid = {3, 2, 2}, .block = {2, 3, 4}}, arguments));
  for (uint32_t z = 0; z < kG[2] * kB[2]; ++z)
    for (uint32_t y = 0; y < kG[1] * kB[1]; ++y)
      for (uint32_t x = 0; x < kG[0] * kB[0]; ++x) {
        const uint32_t got = result[(z * kG[1] * kB[1] + y) * kG[0] * kB[0] + x];
        const uint32_t want = (x / kB[0]) << 20 | (y / kB[1]) << 16 | (z / kB[2]) << 12 |
                              (x % kB[0]) << 8 | (y % kB[1]) << 4 | z % kB[2];
        ASSERT_EQ(got, want) << x << ' ' << y << ' ' << z;
      }
}

// Collatz with a twist: loops, breaks, continues, returns and ifs that all diverge.
uint64_t collatz_like(uint64_t n) {
  uint64_t steps = 0, odd = 0;
  if (n == 13) return 777;  // the store of these threads never runs
  for (uint64_t round = 0; round < 3; ++round) {
    uint64_t v = n + round;
    if (v % 7 == 0) continue;
    while (true) {
      if (v <= 1) break;
      ++steps;
      if (v % 2 == 0) {
        v /= 2;
        continue;
      }
      v = 3 * v + 1;
      ++odd;
      if (odd == 99) return 777;
    }
    if (steps > 150) break;
  }
  return steps * 1000 + odd;
}

TEST(Interpreter, ThreadsGoTheirOwnWays) {
  Builder b("collatz");
  const auto out = b.array("out", DType::u64, Access::write);
  const DType u64 = DType::u64;
  const auto number = [&](uint64_t value) { return b.unsigned_integer(u64, value); };
  const Register n = b.id(Opcode::global_id, 0, u64);
  const Register steps = b.variable(u64), odd = b.variable(u64), v = b.variable(u64);
  const Register zero = number(0), one = number(1), two = number(2);
  b.assign(steps, zero);
  b.assign(odd, zero);
  b.if_(b.compare(Opcode::eq, n, number(13)), [&] { b.return_(); });
  b.for_(zero, number(3), one, [&](Register round) {
    b.assign(v, b.add(n, round));
    b.if_(b.compare(Opcode::eq, b.rem(v, number(7)), zero), [&] { b.continue_(); });
    b.loop([&] {
      b.if_(b.compare(Opcode::le, v, one), [&] { b.break_(); });
      b.assign(steps, b.add(steps, one));
      b.if_else(
          b.compare(Opcode::eq, b.rem(v, two), zero),
          [&] {
            b.assign(v, b.div(v, two));
            b.continue_();
          },
          [&] { b.assign(v, b.ternary(Opcode::mad, v, number(3), one)); });
      b.assign(odd, b.add(odd, one));
      b.if_(b.compare(Opcode::eq, odd, number(99)), [&] { b.return_(); });
    });
    b.if_(b.compare(Opcode::gt, steps, number(150)), [&] { b.break_(); });
  });
  b.store(out, n, b.ternary(Opcode::mad, steps, number(1000), odd));
  const Program program = finished(b);
  std::vector<uint64_t> result(3000, 777);
  const Argument arguments[] = {Argument::array(std::span(result))};
  expect_ok(interpret(program, {.grid = {30, 1, 1}, .block = {100, 1, 1}}, arguments));
  for (uint64_t k = 0; k < result.size(); ++k) ASSERT_EQ(result[k], collatz_like(k)) << k;
}

// The bounds of a for are read once; counters that would leave their type stop.
template <typename T>
std::vector<T> counted(T begin, T end, T step) {
  Builder b("counted");
  const DType type = dtype_of<T>();
  const auto out = b.array("out", type, Access::write);
  const Register first = b.value(b.scalar("begin", type));
  const Register last = b.value(b.scalar("end", type));
  const Register by = b.value(b.scalar("step", type));
  const Register at = b.variable(DType::u32);
  b.assign(at, b.integer(DType::u32, 0));
  b.for_(first, last, by, [&](Register i) {
    b.store(out, at, i);
    b.assign(at, b.add(at, b.integer(DType::u32, 1)));
    b.assign(last, first);
    b.assign(by, b.integer(type, 0));
  });
  const Program program = finished(b);
  std::vector<T> result(16, T{77});
  const Argument arguments[] = {Argument::array(std::span(result)), Argument::scalar(begin),
                                Argument::scalar(end), Argument::scalar(step)};
  expect_ok(interpret(program, {}, arguments));
  result.resize(std::find(result.begin(), result.end(), T{77}) - result.begin());
  return result;
}

TEST(Interpreter, CountsUpDownAndToTheEdge) {
  using ::testing::ElementsAre;
  EXPECT_THAT(counted<int32_t>(0, 5, 2), ElementsAre(0, 2, 4));
  EXPECT_THAT(counted<int32_t>(5, 0, -2), ElementsAre(5, 3, 1));
  EXPECT_THAT(counted<int32_t>(5, 0, 2), ElementsAre());
  EXPECT_THAT(counted<int32_t>(0, 0, -1), ElementsAre());
  EXPECT_THAT(counted<int8_t>(100, 127, 20), ElementsAre(100, 120));
  EXPECT_THAT(counted<int8_t>(-100, -128, -20), ElementsAre(-100, -120));
  EXPECT_THAT(counted<uint8_t>(250, 255, 4), ElementsAre(250, 254));
  EXPECT_THAT(counted<uint64_t>(~uint64_t{0} - 3, ~uint64_t{0}, 2),
              ElementsAre(~uint64_t{0} - 3, ~uint64_t{0} - 1));
}

TEST(Interpreter, SharedMemoryIsOfTheBlock) {
  Builder b("reverse");
  const auto data = b.array("data", DType::i16, Access::read_write);
  b.shared("unused", DType::u8, 3);
  const auto tile = b.shared("tile", DType::i16, 0);
  const Register t = b.id(Opcode::thread_id);
  const Register i = b.id(Opcode::global_id);
  b.store(tile, t, b.load(data, i));
  b.barrier();
  const Register last = b.sub(b.id(Opcode::block_size), b.integer(DType::u32, 1));
  b.store(data, i, b.load(tile, b.sub(last, t)));
  const Program program = finished(b);
  std::vector<int16_t> values(40);
  std::iota(values.begin(), values.end(), int16_t{0});
  const Argument arguments[] = {Argument::array(std::span(values))};
  const LaunchShape shape{.grid = {4, 1, 1}, .block = {10, 1, 1}, .shared_bytes = 20};
  expect_ok(interpret(program, shape, arguments));
  for (int k = 0; k < 40; ++k) EXPECT_EQ(values[k], k / 10 * 10 + 9 - k % 10);
}

// The documented tree, written down again: padded to a power of two with the identity.
template <typename T, typename Op>
T tree(std::vector<T> v, T identity, Op op) {
  size_t n = 1;
  while (n < v.size()) n *= 2;
  v.resize(n, identity);
  for (size_t half = n / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i) v[i] = op(v[i], v[i + half]);
  return v[0];
}

TEST(Interpreter, ReducesByTheDocumentedTree) {
  Builder b("reduce");
  const auto in = b.array("in", DType::f32, Access::read);
  const auto out = b.array("out", DType::f32, Access::write);
  const auto back = b.array("back", DType::f32, Access::write);
  const Register i = b.id(Opcode::global_id);
  const Register four = b.integer(DType::u32, 4);
  Register base = b.mul(b.id(Opcode::block_id), four);
  const Register value = b.load(in, i);
  for (Opcode op : {Opcode::group_add, Opcode::group_mul, Opcode::group_min, Opcode::group_max}) {
    const Register result = b.group(op, value);
    b.store(out, base, result);
    b.store(back, i, result);  // the last one: every thread has it
    base = b.add(base, b.integer(DType::u32, 1));
  }
  const Program program = finished(b);
  std::mt19937 random(5);
  for (uint32_t threads : {1u, 2u, 3u, 31u, 64u, 100u, 1024u}) {
    std::vector<float> values(threads), result(4), all(threads);
    for (float& v : values)
      v = std::ldexp(1.0f + static_cast<float>(random() % 4096) / 4096, int(random() % 21) - 10);
    const Argument arguments[] = {Argument::array(std::span(values)),
                                  Argument::array(std::span(result)),
                                  Argument::array(std::span(all))};
    expect_ok(interpret(program, {.block = {threads, 1, 1}}, arguments));
    EXPECT_EQ(result[0], tree(values, -0.0f, [](float x, float y) { return x + y; }));
    EXPECT_EQ(result[1], tree(values, 1.0f, [](float x, float y) { return x * y; }));
    EXPECT_EQ(result[2], *std::min_element(values.begin(), values.end()));
    EXPECT_EQ(result[3], *std::max_element(values.begin(), values.end()));
    EXPECT_THAT(all, ::testing::Each(result[3]));
  }
}

TEST(Interpreter, AtomicsHappenInThreadOrder) {
  Builder b("atomics");
  const auto bins = b.array("bins", DType::u32, Access::read_write);
  const auto old = b.array("old", DType::u32, Access::write);
  const auto swap = b.array("swap", DType::i64, Access::read_write);
  const Register i = b.id(Opcode::global_id);
  const Register bin = b.rem(i, b.integer(DType::u32, 3));
  b.store(old, i, b.atomic(Opcode::atomic_add, bins, bin, b.integer(DType::u32, 2)));
  const Register wide = b.convert(i, DType::i64);
  b.atomic_cas(swap, b.integer(DType::i8, 0), wide, b.add(wide, b.integer(DType::i64, 1)));
  b.atomic(Opcode::atomic_exchange, swap, b.integer(DType::i8, 1), wide);
  b.atomic(Opcode::atomic_max, swap, b.integer(DType::i8, 2), wide);
  b.atomic(Opcode::atomic_min, swap, b.integer(DType::i8, 3), wide);
  const Program program = finished(b);
  std::vector<uint32_t> bin_values(3), olds(1000);
  std::vector<int64_t> swaps = {0, -1, -1, 5};
  const Argument arguments[] = {Argument::array(std::span(bin_values)),
                                Argument::array(std::span(olds)),
                                Argument::array(std::span(swaps))};
  expect_ok(interpret(program, {.grid = {10, 1, 1}, .block = {100, 1, 1}}, arguments));
  EXPECT_THAT(bin_values, ::testing::ElementsAre(668, 666, 666));
  for (uint32_t k = 0; k < 1000; ++k) ASSERT_EQ(olds[k], k / 3 * 2);
  EXPECT_THAT(swaps, ::testing::ElementsAre(1000, 999, 999, 0));
}

TEST(Interpreter, AnyByteButZeroIsTrue) {
  Builder b("bools");
  const auto in = b.array("in", DType::boolean, Access::read);
  const auto out = b.array("out", DType::boolean, Access::write);
  const Register i = b.id(Opcode::global_id);
  b.store(out, i, b.load(in, i));
  const Program program = finished(b);
  std::vector<uint8_t> bytes(256), result(256, 9);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  const Argument arguments[] = {Argument::array(bytes.data(), 256),
                                Argument::array(result.data(), 256)};
  expect_ok(interpret(program, {.block = {256, 1, 1}}, arguments));
  for (int k = 0; k < 256; ++k) EXPECT_EQ(result[k], k != 0);
}

// ---- traps

std::string trap_of(FunctionRef<void(Builder&, Register)> write, bool parallel = true) {
  Builder b("k");
  const Register t = b.id(Opcode::global_id);
  write(b, t);
  const Program program = finished(b);
  std::vector<float> values(100);
  std::vector<Argument> arguments(program.parameters.size(), Argument::array(std::span(values)));
  const LaunchShape shape{.grid = {2, 3, 1}, .block = {70, 1, 1}};
  const Status status = interpret(program, shape, arguments, {.parallel = parallel});
  if (status) return "no trap";
  EXPECT_EQ(status.error().code(), ErrorCode::trap);
  return status.error().message();
}

TEST(Interpreter, TrapsNameThreadBlockAndInstruction) {
  EXPECT_EQ(
      trap_of([](Builder& b, Register t) { b.load(b.array("x", DType::f32, Access::read), t); }),
      "kernel 'k': block (1,0,0) thread (30,0,0): instruction 1 `%1 = load x[%0]`: index 100 "
      "is out of range: 'x' has 100 elements");
  EXPECT_EQ(
      trap_of([](Builder& b, Register t) {
        const Register i = b.sub(b.convert(t, DType::i32), b.integer(DType::i32, 1));
        b.store(b.array("x", DType::f32, Access::write), i, b.floating(DType::f32, 0));
      }),
      "kernel 'k': block (0,0,0) thread (0,0,0): instruction 5 `store x[%3], %4`: index -1 is "
      "out of range: 'x' has 100 elements");
  EXPECT_EQ(trap_of([](Builder& b, Register t) { b.store(b.shared("s", DType::u32, 69), t, t); }),
            "kernel 'k': block (0,0,0) thread (69,0,0): instruction 1 `store_shared s[%0], %0`: "
            "index 69 is out of range: 's' has 69 elements");
  EXPECT_EQ(trap_of([](Builder& b, Register t) { b.div(t, b.sub(t, b.integer(DType::u32, 75))); }),
            "kernel 'k': block (1,0,0) thread (5,0,0): instruction 3 `%3 = div.u32 %0, %2`: "
            "division by zero");
  EXPECT_EQ(trap_of([](Builder& b, Register t) { b.rem(t, t); }),
            "kernel 'k': block (0,0,0) thread (0,0,0): instruction 1 `%1 = rem.u32 %0, %0`: "
            "division by zero");
  EXPECT_EQ(
      trap_of([](Builder& b, Register t) { b.shift(Opcode::shl, b.convert(t, DType::i8), t); }),
      "kernel 'k': block (0,0,0) thread (8,0,0): instruction 2 `%2 = shl.i8 %1, %0`: shift by "
      "8, but i8 has 8 bits");
  EXPECT_EQ(trap_of([](Builder& b, Register t) { b.for_(t, t, t, [](Register) {}); }),
            "kernel 'k': block (0,0,0) thread (0,0,0): instruction 1 `for.u32 %1 = %0 to %0 step "
            "%0`: the step is zero");
}

TEST(Interpreter, TheFirstTrapInLaunchOrderIsReported) {
  const auto write = [](Builder& b, Register t) {
    const Register late = b.compare(Opcode::ge, t, b.integer(DType::u32, 60));
    b.if_(late, [&] {
      b.load(b.array("x", DType::f32, Access::read), b.add(t, b.integer(DType::u32, 1000)));
    });
  };
  EXPECT_EQ(trap_of(write, true), trap_of(write, false));
  EXPECT_THAT(trap_of(write), ::testing::HasSubstr("block (0,0,0) thread (60,0,0)"));
}

TEST(Interpreter, AThreadThatIsNotThereDoesNotTrap) {
  EXPECT_EQ(trap_of([](Builder& b, Register t) {
              const auto x = b.array("x", DType::f32, Access::read);
              const Register inside = b.lt(t, b.integer(DType::u32, 100));
              b.if_(inside, [&] { b.load(x, t); });
            }),
            "no trap");
}

TEST(Interpreter, StopsAtTheLimit) {
  const auto limited = [](FunctionRef<void(Builder&)> write) {
    Builder b("endless");
    write(b);
    return interpret(finished(b), {}, {}, {.max_steps = 1000});
  };
  const auto expect_timeout = [](const Status& status) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::timeout);
    EXPECT_EQ(status.error().message(), "kernel 'endless': more than 1000 instructions");
  };
  expect_timeout(limited([](Builder& b) { b.loop([] {}); }));
  expect_timeout(limited([](Builder& b) { b.loop([&] { b.continue_(); }); }));
  expect_timeout(limited([](Builder& b) {
    const Register one = b.integer(DType::i64, 1);
    b.for_(one, b.integer(DType::i64, INT64_MAX), one, [](Register) {});
  }));
}

TEST(Launch, RefusesWhatCannotBeRight) {
  Builder b("k");
  b.array("x", DType::f32, Access::read);
  b.scalar("s", DType::i8);
  const Program program = finished(b);
  float value = 0;
  const Argument x = Argument::array(&value, 1), s = Argument::scalar(int8_t{-1});
  const auto refusal = [&](std::vector<Argument> arguments, LaunchShape shape = {}) {
    const Status status = interpret(program, shape, arguments);
    return status ? "ok" : status.error().message();
  };
  EXPECT_EQ(refusal({x, s}), "ok");
  EXPECT_EQ(refusal({x}), "kernel 'k' has 2 parameters, the launch gives 1");
  EXPECT_EQ(refusal({Argument::array(nullptr, 1), s}),
            "kernel 'k': array 'x' has 1 elements at null");
  EXPECT_EQ(refusal({Argument::array(reinterpret_cast<char*>(&value) + 1, 1), s}),
            "kernel 'k': array 'x' is not aligned to its 4-byte elements");
  EXPECT_EQ(refusal({x, Argument::scalar(int32_t{-1})}),
            "kernel 'k': scalar 's': bits 0xffffffff are not a i8");
  EXPECT_EQ(refusal({x, s}, {.block = {0, 1, 1}}),
            "kernel 'k': a block of 0x1x1 threads; a block has 1 to 1024");
  EXPECT_EQ(refusal({x, s}, {.block = {1024, 2, 1}}),
            "kernel 'k': a block of 1024x2x1 threads; a block has 1 to 1024");
  EXPECT_EQ(refusal({x, s}, {.grid = {~0u, ~0u, 2}}),
            "kernel 'k': a grid of 4294967295x4294967295x2 blocks is too large");
  EXPECT_EQ(refusal({x, s}, {.shared_bytes = 64}),
            "kernel 'k' has no dynamic shared array, the launch gives it 64 bytes");
  EXPECT_EQ(refusal({x, s}, {.grid = {0, 1, 1}}), "ok");
}

}  // namespace
}  // namespace hologram::isa
