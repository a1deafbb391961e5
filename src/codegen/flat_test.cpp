// Programs that map elements: one loop, at most behind one test of the thread's number.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "codegen/compile.h"
#include "codegen/disassembler.h"
#include "codegen/testing/native_program.h"
#include "codegen/testing/targets.h"
#include "isa/builder.h"
#include "support/aligned.h"

namespace hologram::codegen {
namespace {

using isa::Access;
using isa::Argument;
using isa::Builder;
using isa::Opcode;
using isa::Register;
using testing::NativeProgram;
using testing::runnable_targets;

// out[i] = 2 a[i] + 1 for i < n, with ids of `type`; `swapped`: written n > i.
isa::Program guarded(DType type, bool swapped) {
  Builder p("guarded");
  const auto a = p.array("a", DType::f32, Access::read);
  const auto out = p.array("out", DType::f32, Access::write);
  const Register n = p.value(p.scalar("n", type));
  const Register i = p.id(Opcode::global_id, 0, type);
  p.if_(swapped ? p.compare(Opcode::gt, n, i) : p.lt(i, n), [&] {
    const Register x = p.load(a, i);
    p.store(out, i, p.add(p.add(x, x), p.floating(DType::f32, 1)));
  });
  return *p.finish();
}

NativeProgram compiled(const isa::Program& program, const Target& target) {
  const auto code = compile(program, target);
  EXPECT_TRUE(code) << code.error().to_string();
  return *NativeProgram::load(*code);
}

TEST(Flat, WritesExactlyTheThreadsBelowTheBound) {
  constexpr int64_t kElements = 1000;
  std::vector<float> a(kElements);
  std::iota(a.begin(), a.end(), 0.f);
  for (const Target& target : runnable_targets())
    for (DType type : {DType::u32, DType::i32, DType::u64, DType::i64})
      for (bool swapped : {false, true}) {
        const NativeProgram program = compiled(guarded(type, swapped), target);
        for (int64_t n : {int64_t{-5}, int64_t{0}, int64_t{1}, int64_t{15}, int64_t{64},
                          int64_t{65}, int64_t{300}, int64_t{511}, int64_t{960}, kElements}) {
          if (n < 0 && !is_signed_integer(type)) continue;
          // One call for all blocks, and a call for each third of them.
          for (uint64_t parts : {1, 3}) {
            std::vector<float> out(kElements, -1);
            const std::vector<Argument> arguments = {
                Argument::array(std::span(a)),
                Argument::array(std::span(out)),
                {nullptr, 0,
                 bits_of(type) == 32 ? static_cast<uint32_t>(n) : static_cast<uint64_t>(n)}};
            const isa::LaunchShape shape{{15, 1, 1}, {66, 1, 1}};
            for (uint64_t part = 0; part < parts; ++part)
              ASSERT_EQ(program.run(shape, arguments, part * 15 / parts, (part + 1) * 15 / parts),
                        0u);
            for (int64_t i = 0; i < kElements; ++i)
              ASSERT_EQ(out[i], i < std::min<int64_t>(n, 15 * 66) ? 2 * a[i] + 1 : -1.f)
                  << target.level_name() << " " << name_of(type) << " n " << n << " element " << i;
          }
        }
      }
}

// The short entry: the words alone, all threads below the bound.
TEST(Flat, RunsByItsWordsAlone) {
  constexpr int64_t kElements = 300;
  std::vector<float> a(kElements);
  std::iota(a.begin(), a.end(), 0.f);
  for (const Target& target : runnable_targets())
    for (DType type : {DType::u32, DType::i32, DType::u64, DType::i64}) {
      const NativeProgram program = compiled(guarded(type, false), target);
      ASSERT_NE(program.words(), nullptr);
      const auto run = reinterpret_cast<void (*)(const float*, float*, uint64_t)>(
          const_cast<void*>(program.words()));
      for (int64_t n : {-3, 0, 1, 15, 16, 64, 65, 255, 300}) {
        if (n < 0 && !is_signed_integer(type)) continue;
        std::vector<float> out(kElements, -1);
        run(a.data(), out.data(),
            bits_of(type) == 32 ? static_cast<uint32_t>(n) : static_cast<uint64_t>(n));
        for (int64_t i = 0; i < kElements; ++i)
          ASSERT_EQ(out[i], i < n ? 2 * a[i] + 1 : -1.f) << name_of(type) << " " << n << " " << i;
      }
    }
}

// Every type of scalar is taken from its word as from a launch.
TEST(Flat, TakesScalarsFromTheirWords) {
  const Target target = runnable_targets().back();
  for (DType type :
       {DType::i8, DType::u16, DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64}) {
    Builder p("fill");
    const auto out = p.array("out", type, Access::write);
    const Register value = p.value(p.scalar("value", type));
    const Register n = p.value(p.scalar("n", DType::u32));
    const Register i = p.id(Opcode::global_id, 0, DType::u32);
    p.if_(p.lt(i, n), [&] { p.store(out, i, value); });
    const NativeProgram program = compiled(*p.finish(), target);
    ASSERT_NE(program.words(), nullptr);
    constexpr uint64_t kBits = 0x123456789abc3c42;  // a word's upper bits mean nothing
    std::vector<std::byte> bytes(40 * size_of(type) + 8, std::byte{0x55});
    reinterpret_cast<void (*)(void*, uint64_t, uint64_t)>(const_cast<void*>(program.words()))(
        bytes.data(), kBits, 37);
    for (size_t k = 0; k < bytes.size(); ++k) {
      const auto wanted = k < 37 * size_of(type)
                              ? static_cast<uint8_t>(kBits >> (k % size_of(type) * 8))
                              : uint8_t{0x55};
      ASSERT_EQ(static_cast<uint8_t>(bytes[k]), wanted) << name_of(type) << " byte " << k;
    }
  }
}

// What a launch alone can say, or a trap, needs the launch.
TEST(Flat, HasNoShortEntryWhereTheLaunchMatters) {
  const Target target = runnable_targets().back();
  const auto words_of = [&](auto body, unsigned scalars = 0) {
    Builder p("program");
    const auto out = p.array("out", DType::u32, Access::write);
    const Register n = p.value(p.scalar("n", DType::u32));
    for (unsigned k = 0; k < scalars; ++k) p.scalar("s" + std::to_string(k), DType::u32);
    const Register i = p.id(Opcode::global_id, 0, DType::u32);
    p.if_(p.lt(i, n), [&] { p.store(out, i, body(p, i, n)); });
    return compiled(*p.finish(), target).words();
  };
  EXPECT_NE(words_of([](Builder&, Register i, Register) { return i; }, 4), nullptr);
  EXPECT_EQ(words_of([](Builder&, Register i, Register) { return i; }, 5), nullptr);
  EXPECT_EQ(words_of([](Builder& p, Register i, Register n) { return p.div(i, n); }), nullptr);
  EXPECT_EQ(words_of([](Builder& p, Register, Register) {
              return p.id(Opcode::block_size, 0, DType::u32);
            }),
            nullptr);
}

// Launches of other forms take the other function and give the same.
TEST(Flat, LeavesOtherGridsToTheGeneralFunction) {
  Builder p("rows");
  const auto out = p.array("out", DType::u32, Access::write);
  const Register y = p.id(Opcode::global_id, 1), x = p.id(Opcode::global_id, 0);
  p.store(out, p.ternary(Opcode::mad, y, p.integer(DType::u32, 100), x),
          p.ternary(Opcode::mad, y, p.integer(DType::u32, 1000), x));
  const isa::Program program = *p.finish();
  for (const Target& target : runnable_targets()) {
    const NativeProgram native = compiled(program, target);
    std::vector<uint32_t> made(1200, 7);
    const std::vector<Argument> arguments = {Argument::array(std::span(made))};
    ASSERT_EQ(native.run({{10, 3, 1}, {10, 4, 1}}, arguments), 0u);
    for (uint32_t i = 0; i < made.size(); ++i) ASSERT_EQ(made[i], i / 100 * 1000 + i % 100);
    std::ranges::fill(made, 7u);
    ASSERT_EQ(native.run({{10, 1, 1}, {10, 1, 1}}, arguments), 0u);
    for (uint32_t i = 0; i < made.size(); ++i) ASSERT_EQ(made[i], i < 100 ? i : 7u);
  }
}

// A division by zero behind the test traps where it is run, and only there.
TEST(Flat, Traps) {
  Builder p("divide");
  const auto a = p.array("a", DType::i32, Access::read_write);
  const Register n = p.value(p.scalar("n", DType::u32));
  const Register i = p.id(Opcode::global_id);
  p.if_(p.lt(i, n), [&] { p.store(a, i, p.div(p.integer(DType::i32, 12), p.load(a, i))); });
  const isa::Program program = *p.finish();
  for (const Target& target : runnable_targets()) {
    const NativeProgram native = compiled(program, target);
    std::vector<int32_t> values(200, 3);
    values[150] = 0;
    const auto run = [&](uint32_t threads) {
      return native.run(
          {{2, 1, 1}, {100, 1, 1}},
          std::vector<Argument>{Argument::array(std::span(values)), {nullptr, 0, threads}});
    };
    EXPECT_EQ(run(150), isa::kTrapNone);
    EXPECT_EQ(values[149], 4);
    EXPECT_EQ(run(151), isa::kTrapDivisionByZero);
  }
}

// Outputs beyond the caches are stored around them where they are aligned.
TEST(Flat, StreamsWhatIsLarge) {
  constexpr size_t kElements = (size_t{64} << 20) / sizeof(float) + 512;
  const isa::Program program = guarded(DType::u32, false);
  const auto target = Target::host();
  ASSERT_TRUE(target);
  const auto code = compile(program, *target);
  ASSERT_TRUE(code) << code.error().to_string();
  const auto instructions = disassemble(*code);
  ASSERT_TRUE(instructions);
  EXPECT_TRUE(std::ranges::any_of(*instructions, [](const MachineInstruction& i) {
    return i.text.find("movnt") != std::string::npos;
  }));
  EXPECT_TRUE(std::ranges::any_of(
      *instructions, [](const MachineInstruction& i) { return i.text.starts_with("sfence"); }));

  const NativeProgram native = *NativeProgram::load(*code);
  auto from = AlignedBytes::allocate(kElements * sizeof(float));
  auto to = AlignedBytes::allocate(kElements * sizeof(float));
  ASSERT_TRUE(from && to);
  const std::span<float> a = from->as<float>(), out = to->as<float>();
  for (size_t i = 0; i < kElements; ++i) a[i] = static_cast<float>(i % 1021);
  // Aligned, one element off, and onto its own input.
  for (const size_t by : {0, 1, 2}) {
    std::ranges::fill(out, -1.f);
    const std::span<float> result = by == 2 ? a : out.subspan(by);
    const auto n = static_cast<uint32_t>(kElements - 77);
    ASSERT_EQ(native.run({{static_cast<uint32_t>(kElements / 512), 1, 1}, {512, 1, 1}},
                         std::vector<Argument>{
                             Argument::array(a), Argument::array(result), {nullptr, 0, n}}),
              0u);
    for (size_t i = 0; i < n; ++i)
      ASSERT_EQ(result[i], static_cast<float>(2 * (i % 1021) + 1)) << "element " << i;
    if (by != 2) {
      for (size_t i = n; i + by < kElements; ++i) ASSERT_EQ(result[i], -1.f);
    }
  }
}

}  // namespace
}  // namespace hologram::codegen
