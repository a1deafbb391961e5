// Random programs, run by the interpreter and by native code of every level this machine has.
//
// DIFFERENTIAL_CASES and DIFFERENTIAL_SEED change how many are drawn and where
// they start.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

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

struct Attempt {
  Target target;
  Effort effort;
  uint64_t cut;  // where the blocks are split between two calls, as two workers would
};

// What is wrong with native code of `program` on the inputs of `c`; empty if nothing is.
std::string complaint(const RandomCase& c, const isa::Program& program, const Attempt& attempt) {
  Arrays expected = c.arrays, got = c.arrays;
  if (auto done = isa::interpret(program, c.shape, c.arguments(expected),
                                 {.parallel = false, .max_steps = 1 << 20});
      !done)
    return "interpreter: " + done.error().to_string();
  const auto code = compile(program, attempt.target, attempt.effort);
  if (!code) return "compiler: " + code.error().to_string();
  const auto native = NativeProgram::load(*code);
  if (!native) return native.error().to_string();
  const uint64_t blocks = uint64_t{c.shape.grid[0]} * c.shape.grid[1] * c.shape.grid[2];
  const uint64_t cut = attempt.cut % (blocks + 1);
  const uint32_t trap = native->run(c.shape, c.arguments(got), 0, cut) |
                        native->run(c.shape, c.arguments(got), cut, blocks);
  if (trap != 0) return "native code trapped";
  return isa::testing::difference(c, expected, got, kTolerance);
}

std::string compare(uint64_t seed, FloatMode mode, const Attempt& attempt) {
  const RandomCase c = draw_case(seed, mode);
  const std::string wrong = complaint(c, c.program, attempt);
  if (wrong.empty()) return {};
  const isa::Program small = reduce(c.program, [&](const isa::Program& candidate) {
    const std::string still = complaint(c, candidate, attempt);
    return !still.empty() && !still.starts_with("interpreter");
  });
  return fmt::format("seed {}, {}, block {} {} {}: {}\nreduced: {}\n{}", seed,
                     attempt.target.level_name(), c.shape.block[0], c.shape.block[1],
                     c.shape.block[2], wrong, complaint(c, small, attempt),
                     isa::disassemble(small));
}

// Compares `cases` programs; every one on one level, the levels take turns.
void compare_many(uint64_t cases, FloatMode mode, Effort effort) {
  const uint64_t first = setting("DIFFERENTIAL_SEED", 1);
  const auto host = Target::host();
  ASSERT_TRUE(host) << host.error().to_string();
  const uint64_t levels = static_cast<uint64_t>(host->level()) + 1;
  std::atomic<uint64_t> next = first;
  std::mutex mutex;
  std::string failure;
  const auto work = [&] {
    for (uint64_t seed = next++; seed < first + cases; seed = next++) {
      const Target target(static_cast<Level>(seed % levels));
      const std::string wrong = compare(seed, mode, {target, effort, seed});
      if (wrong.empty()) continue;
      const std::scoped_lock lock(mutex);
      if (failure.empty()) failure = wrong;
      next = first + cases;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failure, "");
}

TEST(NativeDifferential, ExactProgramsCompiledQuickly) {
  compare_many(setting("DIFFERENTIAL_CASES", 1300), FloatMode::exact, Effort::quick);
}
TEST(NativeDifferential, MathProgramsCompiledQuickly) {
  compare_many(setting("DIFFERENTIAL_CASES", 700), FloatMode::math, Effort::quick);
}
TEST(NativeDifferential, ExactProgramsCompiledFully) {
  compare_many(setting("DIFFERENTIAL_CASES", 250), FloatMode::exact, Effort::full);
}
TEST(NativeDifferential, MathProgramsCompiledFully) {
  compare_many(setting("DIFFERENTIAL_CASES", 150), FloatMode::math, Effort::full);
}

}  // namespace
}  // namespace hologram::codegen
