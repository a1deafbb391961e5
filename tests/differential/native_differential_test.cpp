// Random programs, run by the interpreter and by native code of every level this machine has.
//
// DIFFERENTIAL_CASES and DIFFERENTIAL_SEED change how many are drawn and where
// they start.
#include <gtest/gtest.h>

#include <cstdlib>

#include "codegen/compile.h"
#include "codegen/testing/native_program.h"
#include "isa/interpreter.h"
#include "isa/testing/random_program.h"
#include "isa/text.h"
#include "tests/differential/reduce.h"

namespace hologram::codegen {
namespace {

using isa::Opcode;
using isa::testing::Arrays;
using isa::testing::draw_case;
using isa::testing::FloatMode;
using isa::testing::RandomCase;
using testing::NativeProgram;

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// The documented errors. What rounds to f16 or bf16 may fall to the other side once.
constexpr auto kTolerance = [](Opcode, DType type) -> uint64_t {
  return type == DType::f64 ? 4 : type == DType::f32 ? 2 : 1;
};

// What is wrong with native code of `program` on the inputs of `c`; empty if nothing is.
std::string complaint(const RandomCase& c, const isa::Program& program, const Target& target,
                      uint64_t cut) {
  Arrays expected = c.arrays, got = c.arrays;
  if (auto done = isa::interpret(program, c.shape, c.arguments(expected), {.max_steps = 1 << 20});
      !done)
    return "interpreter: " + done.error().to_string();
  const auto code = compile(program, target);
  if (!code) return "compiler: " + code.error().to_string();
  const auto native = NativeProgram::load(*code);
  if (!native) return native.error().to_string();
  // As two workers would share it.
  const uint64_t blocks = uint64_t{c.shape.grid[0]} * c.shape.grid[1] * c.shape.grid[2];
  const uint32_t trap = native->run(c.shape, c.arguments(got), 0, cut % (blocks + 1)) |
                        native->run(c.shape, c.arguments(got), cut % (blocks + 1), blocks);
  if (trap != 0) return "native code trapped";
  return isa::testing::difference(c, expected, got, kTolerance);
}

void compare(uint64_t seed, FloatMode mode, const Target& target) {
  const RandomCase c = draw_case(seed, mode);
  const std::string wrong = complaint(c, c.program, target, seed);
  if (wrong.empty()) return;
  const isa::Program small = reduce(c.program, [&](const isa::Program& candidate) {
    const std::string still = complaint(c, candidate, target, seed);
    return !still.empty() && !still.starts_with("interpreter");
  });
  FAIL() << "seed " << seed << ", " << target.level_name() << ", block " << c.shape.block[0] << " "
         << c.shape.block[1] << " " << c.shape.block[2] << ": " << wrong
         << "\nreduced: " << complaint(c, small, target, seed) << "\n"
         << isa::disassemble(small);
}

class NativeDifferential : public ::testing::TestWithParam<FloatMode> {};

TEST_P(NativeDifferential, RandomProgramsGiveWhatTheInterpreterGives) {
  const uint64_t cases = setting("DIFFERENTIAL_CASES", 1200);
  const uint64_t first = setting("DIFFERENTIAL_SEED", 1);
  const auto host = Target::host();
  ASSERT_TRUE(host) << host.error().to_string();
  // Every program on one level; the levels take turns.
  for (uint64_t seed = first; seed < first + cases; ++seed) {
    const Level level = static_cast<Level>(seed % (static_cast<uint64_t>(host->level()) + 1));
    compare(seed, GetParam(), Target(level));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, NativeDifferential,
                         ::testing::Values(FloatMode::exact, FloatMode::math),
                         [](const auto& mode) {
                           return mode.param == FloatMode::exact ? "exact" : "math";
                         });

}  // namespace
}  // namespace hologram::codegen
