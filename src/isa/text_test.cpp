#include "isa/text.h"

#include <gtest/gtest.h>

#include <bit>

#include "isa/builder.h"
#include "isa/literal.h"
#include "isa/testing/random_program.h"
#include "isa/verifier.h"

namespace hologram::isa {
namespace {

constexpr std::string_view kCanonical =
    R"(kernel everything(a: f32, x: read f32[], y: read_write f32[], n: u32, c: read_write i32[])
  shared tile: f32[64]
  shared rest: u8[]
  register %29: i16
  %0 = global_id.x.u32
  %1 = length x
  %2 = convert.u64 %0
  %3 = lt.u64 %2, %1
  %4 = imm.u32 1
  %5 = thread_id.y.i64
  %6 = imm.f32 -0.5
  store_shared tile[%5], %6
  barrier
  %7 = group_add.f32 %6
  if %3
    %8 = param a
    %9 = load x[%0]
    %10 = fma.f32 %8, %9, %7
    store y[%0], %10
  else
    fence
  end
  for.u32 %11 = %4 to %0 step %4
    %12 = shl.u32 %11, %4
    %13 = select.u32 %3, %12, %11
    loop
      %14 = eq.u32 %13, %12
      if %14
        break
      else
        continue
      end
    end
  end
  %15 = imm.i32 -2147483648
  %16 = atomic_add c[%0], %15
  %17 = atomic_cas c[%0], %16, %15
  %18 = load_shared tile[%4]
  %19 = bitcast.u32 %18
  %20 = imm.bool true
  %21 = not.bool %20
  %22 = imm.f16 inf
  %23 = imm.bf16 nan
  %24 = imm.f64 0x7ff8000000000001
  %25 = imm.u8 200
  %26 = class_neighbour.u8 %25, %25
  %27 = param n
  %28 = mov.u32 %27
  return
end
)";

Program assembled(std::string_view text) {
  auto program = assemble(text);
  EXPECT_TRUE(program) << program.error().to_string();
  return program ? *std::move(program) : Program{};
}

TEST(Text, CanonicalTextIsAFixedPoint) {
  EXPECT_EQ(disassemble(assembled(kCanonical)), kCanonical);
}

TEST(Text, RandomProgramsSurviveTheRoundTrip) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Program program =
        testing::draw_case(seed, seed % 2 ? testing::FloatMode::math : testing::FloatMode::exact)
            .program;
    const std::string text = disassemble(program);
    const auto back = assemble(text);
    ASSERT_TRUE(back) << back.error().to_string() << '\n' << text;
    ASSERT_EQ(*back, program) << text;
    ASSERT_EQ(disassemble(*back), text);
  }
}

TEST(Text, IsPleasantToWrite) {
  const Program program = assembled(R"(
    ; Names, comments, constants in place, types where they are known.
    kernel scale(
      x: read_write f32[],   # one a thread
      by: f32
    )
      %i = global_id.x
      %inside = lt %i, 100   ; the constant is a u32, as %i
      if %inside
        %v = load x[%i]
        %k = param by
        %v = mul %v, %k
        store x[%i], %v
        for %j = 0 to %i
          store x[0], 1.5
        end
      end
    end
  )");
  EXPECT_EQ(disassemble(program), R"(kernel scale(x: read_write f32[], by: f32)
  %0 = global_id.x.u32
  %2 = imm.u32 100
  %1 = lt.u32 %0, %2
  if %1
    %3 = load x[%0]
    %4 = param by
    %3 = mul.f32 %3, %4
    store x[%0], %3
    %6 = imm.u32 0
    %7 = imm.u32 1
    for.u32 %5 = %6 to %0 step %7
      %8 = imm.u64 0
      %9 = imm.f32 1.5
      store x[%8], %9
    end
  end
end
)");
}

TEST(Text, KeepsRegistersThatNothingAssigns) {
  Program program;
  program.name = "unused";
  program.registers = {DType::f16, DType::boolean, DType::u64};
  program.body = {{.op = Opcode::imm, .type = DType::boolean, .dst = {1}, .immediate = 1}};
  ASSERT_TRUE(verify(program));
  EXPECT_EQ(assembled(disassemble(program)), program);
}

// What can never be reached may read what is assigned further down, or nowhere.
TEST(Text, KeepsRegistersReadBeforeTheirAssignment) {
  Program program;
  program.name = "unreachable";
  program.registers = {DType::i32, DType::i32, DType::i32};
  program.body = {{.op = Opcode::loop_begin},
                  {.op = Opcode::end},
                  {.op = Opcode::mov, .type = DType::i32, .dst = {0}, .a = {1}},
                  {.op = Opcode::mov, .type = DType::i32, .dst = {1}, .a = {2}}};
  ASSERT_TRUE(verify(program));
  EXPECT_EQ(assembled(disassemble(program)), program);
}

// Every 16-bit pattern, and many of the others.
TEST(Literal, EveryBitSurvives) {
  for (DType type : {DType::f16, DType::bf16, DType::i16, DType::u16})
    for (uint64_t bits = 0; bits < 0x10000; ++bits) {
      const auto back = parse_literal(type, print_literal(type, bits));
      ASSERT_TRUE(back) << back.error().message();
      ASSERT_EQ(*back, bits) << name_of(type) << ' ' << print_literal(type, bits);
    }
  uint64_t state = 1;
  for (int i = 0; i < 200'000; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    for (DType type : {DType::f32, DType::f64, DType::i8, DType::u8, DType::i32, DType::u32,
                       DType::i64, DType::u64}) {
      const uint64_t bits = (state ^ state >> 29) & (~uint64_t{0} >> (64 - bits_of(type)));
      const auto back = parse_literal(type, print_literal(type, bits));
      ASSERT_TRUE(back) << back.error().message();
      ASSERT_EQ(*back, bits) << name_of(type) << ' ' << print_literal(type, bits);
    }
  }
}

TEST(Literal, PrintsFloatsSo) {
  const auto f32 = [](float value) {
    return print_literal(DType::f32, std::bit_cast<uint32_t>(value));
  };
  EXPECT_EQ(f32(0.1f), "0.1");
  EXPECT_EQ(f32(3.0f), "3.0");
  EXPECT_EQ(f32(-0.0f), "-0.0");
  EXPECT_EQ(f32(1e30f), "1e+30");
  EXPECT_EQ(f32(1e-45f), "1e-45");
  EXPECT_EQ(print_literal(DType::f32, 0xff800000), "-inf");
  EXPECT_EQ(print_literal(DType::f32, 0xffc00000), "0xffc00000");
  EXPECT_EQ(*parse_literal(DType::f32, "-nan"), 0xffc00000u);
}

TEST(Literal, ReadsOddSpellings) {
  EXPECT_EQ(*parse_literal(DType::f32, "1"), 0x3f800000u);
  EXPECT_EQ(*parse_literal(DType::f32, "+1.5e0"), 0x3fc00000u);
  EXPECT_EQ(*parse_literal(DType::f32, "1e400"), 0x7f800000u);
  EXPECT_EQ(*parse_literal(DType::f32, "1e-400"), 0u);
  EXPECT_EQ(*parse_literal(DType::f16, "65520"), 0x7c00u);
  EXPECT_EQ(*parse_literal(DType::i8, "-0x80"), 0x80u);
  EXPECT_EQ(*parse_literal(DType::u64, "0xffffffffffffffff"), ~uint64_t{0});
  for (const char* bad :
       {"", "-", "1.", "x", "1e", "--1", "0x", "-0x1", "1.5.2", "infinity", "0x1p3"}) {
    const auto bits = parse_literal(DType::f32, bad);
    if (std::string_view(bad) == "1.")
      EXPECT_TRUE(bits);
    else
      EXPECT_FALSE(bits) << bad;
  }
  for (const char* bad : {"", "-", "128", "-129", "1.0", "0x100", "1e2", "- 1", "true"})
    EXPECT_FALSE(parse_literal(DType::i8, bad)) << bad;
}

}  // namespace
}  // namespace hologram::isa
