#include "codegen/compile.h"

#include <gtest/gtest.h>

#include <numeric>

#include "codegen/testing/native_program.h"
#include "isa/builder.h"

namespace hologram::codegen {
namespace {

using isa::Access;
using isa::Argument;
using isa::Opcode;
using testing::NativeProgram;

// The levels this machine can run.
std::vector<Target> targets() {
  std::vector<Target> result;
  for (Level level : kLevels)
    if (level <= Target::host()->level()) result.emplace_back(level);
  result.push_back(*Target::host());
  return result;
}

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
  for (const Target& target : targets()) {
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

}  // namespace
}  // namespace hologram::codegen
