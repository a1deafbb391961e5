// A hostile archive with right hashes: opening refuses operands that a kernel does not take; what
// only values and shapes tell, the kernel refuses. Nothing crashes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "backends/cpu/kernels/kernel.h"
#include "tests/fuzz_models/sanitizer_options.h"
#include "tests/hostile/hostile_plan.h"

namespace hologram::testing {
namespace {

using graph::Operator;
using ::testing::HasSubstr;

std::vector<const Operator*> operators_with_kernels() {
  std::vector<const Operator*> result;
  for (const Operator* entry : graph::operators().all())
    if (kernels::find_kernel(entry->kernel)) result.push_back(entry);
  return result;
}

void refused(const OneStep& step, const std::string& why) {
  const auto session = open(step);
  ASSERT_FALSE(session.has_value()) << step.kernel << ": " << why << " was opened";
  EXPECT_EQ(session.error().code(), ErrorCode::corrupt) << session.error().to_string();
  EXPECT_THAT(session.error().to_string(), HasSubstr("the plan is wrong"));
}

TEST(HostileArchive, EveryKernelHasASignature) {
  std::set<std::string_view> named;
  for (const Operator* entry : operators_with_kernels()) named.insert(entry->kernel);
  for (const kernels::Kernel* kernel : kernels::all_kernels())
    EXPECT_TRUE(named.contains(kernel->name)) << kernel->name << " is in no operator's entry";
}

TEST(HostileArchive, GoodPlansOpen) {
  for (const Operator* entry : operators_with_kernels()) {
    if (entry->pointwise) continue;  // kernels of some of its types alone
    const OneStep step = Draw(7).step(*entry, true);
    const auto session = open(step);
    EXPECT_TRUE(session.has_value()) << entry->name << ": " << session.error().to_string();
  }
}

TEST(HostileArchive, TooFewAndTooManyOperandsAreRefused) {
  for (const Operator* entry : operators_with_kernels()) {
    // A kernel may serve several operators; each has an entry of its own.
    size_t required = 0, required_outputs = 0, entries = 0;
    for (const auto& formal : entry->inputs) required += !formal.optional;
    for (const auto& formal : entry->outputs) required_outputs += !formal.optional;
    for (const Operator* other : operators_with_kernels())
      entries += other->kernel == entry->kernel;
    if (entries > 1) continue;
    const OneStep good = Draw(3).step(*entry, false);
    for (size_t count = 0; count < required; ++count) {
      OneStep step = good;
      step.inputs.resize(count);
      refused(step, fmt::format("{} inputs", count));
      step = good;
      if (step.inputs[count].form == "-" || entry->inputs[count].optional) continue;
      step.inputs[count].form = "-";
      refused(step, fmt::format("input {} left out", count));
    }
    for (size_t count = 0; count < required_outputs; ++count) {
      OneStep step = good;
      step.outputs.resize(count);
      refused(step, fmt::format("{} outputs", count));
    }
    if (entry->inputs.empty() || !entry->inputs.back().variadic) {
      OneStep step = good;
      step.inputs.resize(entry->inputs.size() + 1, Operand{"-"});
      refused(step, "one more input");
    }
    if (!entry->outputs.back().variadic) {
      OneStep step = good;
      step.outputs.resize(entry->outputs.size() + 1, Operand{});
      refused(step, "one more output");
    }
  }
}

TEST(HostileArchive, OtherTypesAreRefused) {
  for (const Operator* entry : operators_with_kernels()) {
    size_t entries = 0;
    for (const Operator* other : operators_with_kernels())
      entries += other->kernel == entry->kernel;
    if (entries > 1) continue;
    const OneStep good = Draw(5).step(*entry, false);
    for (size_t i = 0; i < good.inputs.size(); ++i) {
      const auto& formal = entry->inputs[std::min(i, entry->inputs.size() - 1)];
      if (good.inputs[i].form == "-" || formal.type == "V") continue;
      OneStep step = good;
      step.inputs[i].form = step.inputs[i].form == "seq" ? "" : "seq";
      refused(step, fmt::format("input {} of another form", i));
      for (int code = 0; code < 64; ++code) {
        const auto dtype = dtype_from_code(static_cast<uint8_t>(code));
        const auto constraint = entry->constraints.find(formal.type);
        if (!dtype || constraint == entry->constraints.end() || constraint->second.has(*dtype))
          continue;
        step = good;
        step.inputs[i].dtype = *dtype;
        refused(step, fmt::format("input {} of type {}", i, name_of(*dtype)));
      }
    }
  }
}

TEST(HostileArchive, AttributesOfAnotherKindAreRefused) {
  for (const Operator* entry : operators_with_kernels())
    for (const auto& [name, kind] : entry->attributes) {
      OneStep step = Draw(9).step(*entry, false);
      step.attributes = {{.name = name,
                          .kind = kind == 's' ? kernels::Attribute::Kind::integer
                                              : kernels::Attribute::Kind::text}};
      refused(step, "attribute " + name);
    }
}

#ifndef __SANITIZE_ADDRESS__
// It could not grow any more where a tensor has taken all the memory there may be.
[[gnu::noinline]] void grow_stack() {
  volatile char stack[4 << 20];
  for (size_t i = 0; i < sizeof(stack); i += 4096) stack[i] = 0;
}
#endif

// Runs that may crash are in a process of their own, one a kernel.
class Crashes : public ::testing::TestWithParam<const Operator*> {};

TEST_P(Crashes, NothingWhateverTheShapesAndValues) {
  const Operator& entry = *GetParam();
  const char* asked = std::getenv("HOLOGRAM_HOSTILE_DRAWS");
  const uint32_t draws = asked ? static_cast<uint32_t>(std::atoi(asked)) : 200;
  // Where the child is.
  auto* at = static_cast<volatile uint32_t*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t child = fork();
  if (child == 0) {
    alarm(300);
#ifndef __SANITIZE_ADDRESS__
    // A hostile size is refused by the allocator, as under the sanitizer.
    grow_stack();
    const rlimit memory{size_t{1} << 29, size_t{1} << 29};
    setrlimit(RLIMIT_AS, &memory);
#endif
    ThreadPool threads(1);
    for (uint32_t seed = 0; seed < draws; ++seed) {
      at[0] = seed;
      Draw draw(seed);
      const OneStep step = draw.step(entry, seed % 4 != 0);
      auto session = open(step);
      if (!session) continue;
      at[1] = at[1] + 1;
      session->use(threads);
      const auto values = draw.values(step);
      const auto result = session->run(values);
      at[2] = at[2] + result.has_value();
      if (!result && result.error().code() == ErrorCode::internal)
        fmt::print(stderr, "{}: draw {}: {}\n", entry.kernel, seed, result.error().to_string());
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << entry.kernel << ": draw " << at[0] << " ended with " << status;
  RecordProperty("opened", static_cast<int>(at[1]));
  RecordProperty("ran", static_cast<int>(at[2]));
  munmap(const_cast<uint32_t*>(at), 4096);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Crashes, ::testing::ValuesIn(operators_with_kernels()),
                         [](const auto& info) {
                           std::string name = info.param->domain + "_" + info.param->name;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

}  // namespace
}  // namespace hologram::testing
