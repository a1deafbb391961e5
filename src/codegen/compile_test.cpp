#include "codegen/compile.h"

#include <gtest/gtest.h>

#include <numeric>

#include "codegen/testing/native_program.h"
#include "codegen/testing/targets.h"
#include "isa/builder.h"

namespace hologram::codegen {
namespace {

using isa::Access;
using isa::Argument;
using isa::Opcode;
using testing::NativeProgram;

isa::Program vector_add() {
  isa::Builder p("vector_add");
  const auto a = p.array("a", DType::f32, Access::read);
  const auto b = p.array("b", DType::f32, Access::read);
  const auto c = p.array("c", DType::f32, Access::write);
  const auto n = p.scalar("n", DType::u32);
  const auto i = p.id(Opcode::global_id);
  p.if_(p.lt(i, p.value(n)), [&] { p.store(c, i, p.add(p.load(a, i), p.load(b, i))); });
  return *p.finish();
}

TEST(Compile, AddsVectorsOfAnyLength) {
  for (const Target& target : testing::runnable_targets()) {
    const auto code = compile(vector_add(), target);
    ASSERT_TRUE(code) << code.error().to_string();
    const auto program = NativeProgram::load(*code);
    for (uint32_t n : {0u, 1u, 2u, 3u, 15u, 16u, 17u, 63u, 64u, 65u, 255u, 256u, 1000u}) {
      std::vector<float> a(n), b(n), c(n + 300, -1);
      std::iota(a.begin(), a.end(), 0.5f);
      std::iota(b.begin(), b.end(), 100.f);
      const isa::LaunchShape shape{.grid = {(n + 127) / 128 + 1, 1, 1}, .block = {128, 1, 1}};
      const std::vector<Argument> arguments = {Argument::array(std::span(a)),
                                               Argument::array(std::span(b)),
                                               Argument::array(std::span(c)), Argument::scalar(n)};
      EXPECT_EQ(program->run(shape, arguments), 0u);
      for (uint32_t i = 0; i < c.size(); ++i)
        ASSERT_EQ(c[i], i < n ? a[i] + b[i] : -1)
            << target.level_name() << " n=" << n << " i=" << i;
    }
  }
}

TEST(Compile, RefusesWhatItCannotDo) {
  isa::Program broken = vector_add();
  broken.body[0].dst = {};
  EXPECT_EQ(compile(broken, Target(Level::v3)).error().code(), ErrorCode::verify_error);

  isa::Builder p("jumpy");
  const auto c = p.array("c", DType::u32, Access::write);
  const auto i = p.id(Opcode::global_id);
  for (uint32_t k = 0; k < 1001; ++k)
    p.if_(p.compare(Opcode::eq, i, p.integer(DType::u32, k)), [&] { p.return_(); });
  p.store(c, i, i);
  const auto refused = compile(*p.finish(), Target(Level::v3));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::unsupported);
  EXPECT_EQ(
      refused.error().message(),
      "kernel 'jumpy' has 1001 breaks, continues and returns; native code is made for at most "
      "1000: split the kernel, or let the interpreter run it");
}

TEST(Compile, ManyJumpsNestDeeply) {
  isa::Builder p("many_returns");
  const auto c = p.array("c", DType::u32, Access::write);
  const auto i = p.id(Opcode::global_id);
  for (uint32_t k = 0; k < 300; ++k)
    p.if_(p.compare(Opcode::eq, i, p.integer(DType::u32, k * 3)), [&] { p.return_(); });
  p.store(c, i, p.integer(DType::u32, 1));
  const auto code = compile(*p.finish(), Target(Level::v2), Effort::quick);
  ASSERT_TRUE(code) << code.error().to_string();
  std::vector<uint32_t> values(1000, 0);
  NativeProgram::load(*code)->run({.grid = {10, 1, 1}, .block = {100, 1, 1}},
                                  std::vector<Argument>{Argument::array(std::span(values))});
  for (uint32_t k = 0; k < 1000; ++k) ASSERT_EQ(values[k], k < 900 && k % 3 == 0 ? 0u : 1u) << k;
}

TEST(Compile, ShowsItsIr) {
  const auto ir = compile_to_ir(vector_add(), Target(Level::v4));
  ASSERT_TRUE(ir);
  EXPECT_NE(ir->find("fadd <64 x float>"), std::string::npos) << *ir;
}

TEST(Target, IsKnownByName) {
  for (Level level : kLevels) EXPECT_EQ(Target::named(name_of(level))->level(), level);
  EXPECT_EQ(Target::named("host")->level(), Target::host()->level());
  const auto unknown = Target::named("x86-64-v5");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), ErrorCode::not_found);
  EXPECT_EQ(unknown.error().message(),
            "no target 'x86-64-v5'; there are host, x86-64-v2, x86-64-v3 and x86-64-v4");
}

}  // namespace
}  // namespace hologram::codegen
