#include "lang/compile.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "lang/json/json.h"
#include "lang/run_test_kernel.h"
#include "support/file.h"

namespace hologram::lang {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Compile, AddsVectors) {
  const auto kernel = compile_or_fail(R"(
from hologram_lang import *

def vector_add(a: DeviceArray[f32], b: DeviceArray[f32], c: DeviceArray[f32], n: u32):
    """c = a + b"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = a[i] + b[i]
)");
  std::vector<float> a = {1, 2, 3}, b = {10, 20, 30}, c = {0, 0, 0};
  run(kernel, {1, 1, 1}, {4, 1, 1}, {array(a), array(b), array(c), scalar(uint32_t{3})});
  EXPECT_THAT(c, ElementsAre(11, 22, 33));
  EXPECT_EQ(kernel.program.parameters[0].access, isa::Access::read);
  EXPECT_EQ(kernel.program.parameters[2].access, isa::Access::write);
  ASSERT_TRUE(kernel.ir.launch);
  EXPECT_EQ(kernel.ir.doc, "c = a + b");
}

TEST(Compile, KeepsPythonsDivision) {
  const auto kernel = compile_or_fail(R"(
def f(a: DeviceArray[i32], q: DeviceArray[i32], r: DeviceArray[i32], d: DeviceArray[f32]):
    for i in range(len(a)):
        q[i] = a[i] // 3
        r[i] = a[i] % -3
        d[i] = a[i] / 2
)");
  std::vector<int> a = {-7, -6, -1, 0, 1, 7}, q(6), r(6);
  std::vector<float> d(6);
  run(kernel, {1, 1, 1}, {1, 1, 1}, {array(a), array(q), array(r), array(d)});
  EXPECT_THAT(q, ElementsAre(-3, -2, -1, 0, 0, 2));
  EXPECT_THAT(r, ElementsAre(-1, 0, -1, 0, -2, -2));
  EXPECT_THAT(d, ElementsAre(-3.5f, -3, -0.5f, 0, 0.5f, 3.5f));
}

TEST(Compile, HelpersReturnFromAnywhere) {
  const auto kernel = compile_or_fail(R"(
@inline
def sign(x: f32) -> f32:
    if x > 0:
        return 1.0
    elif x < 0:
        return -1.0
    return 0.0

@inline
def first_above(a: DeviceArray[f32], limit: f32) -> i32:
    for i in range(len(a)):
        for k in range(2):
            if k == 1 and a[i] > limit:
                return i32(i)
    return -1

def f(a: DeviceArray[f32], s: DeviceArray[f32], at: DeviceArray[i32]):
    for i in range(len(a)):
        s[i] = sign(a[i])
    at[0] = first_above(a, 1.5)
    at[1] = first_above(a, 99)
)");
  std::vector<float> a = {-2, 0, 1, 2, 3}, s(5);
  std::vector<int> at(2);
  run(kernel, {1, 1, 1}, {1, 1, 1}, {array(a), array(s), array(at)});
  EXPECT_THAT(s, ElementsAre(-1, 0, 1, 1, 1));
  EXPECT_THAT(at, ElementsAre(3, -1));
}

TEST(Compile, TwoDimensionsBringTheirExtents) {
  const auto kernel = compile_or_fail(R"(
TILE = 4

def transpose(a: DeviceArray[f32, 2], b: DeviceArray[f32, 2]):
    launch(a.shape[1], a.shape[0])
    block(TILE, TILE)
    tile = shared(f32, TILE, TILE + 1)
    x = get_global_id(0)
    y = get_global_id(1)
    if x < a.shape[1] and y < a.shape[0]:
        tile[get_local_id(1), get_local_id(0)] = a[y, x]
    barrier()
    column = get_group_id(1) * TILE + get_local_id(0)
    row = get_group_id(0) * TILE + get_local_id(1)
    if row < a.shape[1] and column < a.shape[0]:
        b[row, column] = tile[get_local_id(0), get_local_id(1)]
)");
  ASSERT_EQ(kernel.program.parameters.size(), 6u);
  EXPECT_EQ(kernel.program.parameters[2].name, "a_shape0");
  EXPECT_EQ(kernel.program.parameters[5].name, "b_shape1");
  constexpr uint64_t kRows = 5, kColumns = 7;
  std::vector<float> a(kRows * kColumns), b(kRows * kColumns);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
  run(kernel, {2, 2, 1}, {4, 4, 1},
      {array(a), array(b), scalar(kRows), scalar(kColumns), scalar(kColumns), scalar(kRows)});
  for (size_t y = 0; y < kRows; ++y)
    for (size_t x = 0; x < kColumns; ++x) EXPECT_EQ(b[x * kRows + y], a[y * kColumns + x]);
}

TEST(Compile, SignedAndUnsignedMeetInATypeThatHoldsBoth) {
  const auto kernel = compile_or_fail(R"(
def f(a: DeviceArray[i64], n: int, k: u32, s: i8, t: u8):
    a[0] = k + n
    a[1] = k * n
    a[2] = t - s
    a[3] = n // k
    a[4] = 1 if n < k else 0
    a[5] = 1 if k < n else 0
    if get_global_id(0) < n:
        a[6] = 1
)");
  std::vector<int64_t> a(7);
  run(kernel, {1, 1, 1}, {1, 1, 1},
      {array(a), scalar(int32_t{-3}), scalar(uint32_t{4'000'000'000}), scalar(int8_t{-128}),
       scalar(uint8_t{255})});
  EXPECT_THAT(a, ElementsAre(3'999'999'997, -12'000'000'000, 383, -1, 1, 0, 0));
}

TEST(Compile, ABlockAloneIsTheWholeLaunch) {
  const auto kernel = compile_or_fail(R"(
def f(a: DeviceArray[f32]):
    block(8, 4)
    a[get_local_id(1) * 8 + get_local_id(0)] = 1.0
)");
  ASSERT_TRUE(kernel.ir.launch);
  std::vector<uint64_t> threads;
  for (const ir::Expr& e : kernel.ir.launch->threads) threads.push_back(e.integer);
  EXPECT_THAT(threads, ElementsAre(8, 4));
}

TEST(Compile, MapsAndReduces) {
  const auto kernel = compile_or_fail(R"(
@inline
def square(x: i64) -> i64:
    return x ** 2

def f(a: DeviceArray[i64], b: DeviceArray[i64], total: DeviceArray[i64], n: u32):
    parallel_map(square, a, b, n)
    parallel_reduce(max, a, total, n)
)");
  ASSERT_TRUE(kernel.ir.launch);
  std::vector<int64_t> a = {3, -4, 5, 1, 2}, b(5), total(1);
  run(kernel, {1, 1, 1}, {2, 1, 1}, {array(a), array(b), array(total), scalar(uint32_t{5})});
  EXPECT_THAT(b, ElementsAre(9, 16, 25, 1, 4));
  EXPECT_EQ(total[0], 5);
}

TEST(Compile, AllErrorsAreShownWithACaret) {
  const auto result = compile_source(
      "def f(a: DeviceArray[f32], n: u32):\n"
      "    x = y + 1\n"
      "    a[0] = u64(n) + i32(1)\n"
      "    class A:\n"
      "        pass\n",
      "bad.py");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(),
            "bad.py:2:9: error: 'y' is not defined\n"
            "        x = y + 1\n"
            "            ^\n"
            "  hint: did you mean 'a'?\n"
            "bad.py:3:19: error: u64 and i32 do not mix: no type holds both\n"
            "        a[0] = u64(n) + i32(1)\n"
            "                      ^\n"
            "  hint: convert one of them: u64(...) or i32(...)\n"
            "bad.py:4:5: error: classes are not supported\n"
            "        class A:\n"
            "        ^\n"
            "  hint: write functions; pass arrays and scalars");
}

TEST(Compile, ABarrierThatNotAllReachIsShownInTheSource) {
  const auto result = compile_source(
      "def f(a: DeviceArray[f32], n: u32):\n"
      "    if get_local_id() < n:\n"
      "        barrier()\n",
      "bad.py");
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(), HasSubstr("bad.py:3:9: error: not all threads"));
}

// Files of this test's own.
class Imports : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "inner");
    write("one.py", "def f(a: DeviceArray[f32]):\n    a[0] = 1\ndef g(n: u32):\n    pass\n");
    write("inner/two.py", "from ..one import f as again\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const char* name, std::string_view text) {
    ASSERT_TRUE(write_file(folder_ / name, text));
  }
  std::string rejection(const char* source) {
    const auto kernels = compile_source(source, (folder_ / "k.py").string());
    return kernels ? "" : kernels.error().message();
  }
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("hologram-imports-{}", getpid());
};

TEST_F(Imports, TakeOverKernelsUnderOtherNames) {
  const auto kernels = compile_source(
      "from .one import f, g as h\nfrom .inner.two import again\ndef own(n: u32):\n    pass\n",
      (folder_ / "k.py").string());
  ASSERT_TRUE(kernels) << kernels.error().message();
  std::vector<std::string> names;
  for (const CompiledKernel& k : *kernels) names.push_back(k.program.name);
  EXPECT_THAT(names, ElementsAre("f", "h", "again", "own"));
  EXPECT_EQ((*kernels)[0].program.body, (*kernels)[2].program.body);
}

TEST_F(Imports, AreRefusedWithTheirPlace) {
  EXPECT_THAT(rejection("from .nothing import f\n"),
              testing::AllOf(HasSubstr("k.py:1:22: error: there is no file '"),
                             HasSubstr("nothing.py' to import from")));
  EXPECT_THAT(rejection("from .one import f, z\n"),
              testing::AllOf(HasSubstr("k.py:1:21: error: '"), HasSubstr("has no kernel 'z'"),
                             HasSubstr("hint: it has f, g")));
  EXPECT_THAT(rejection("from .one import *\n"), HasSubstr("imported by name"));
  EXPECT_THAT(rejection("from .one import f\ndef f(n: u32):\n    pass\n"),
              HasSubstr("1:18: error: 'f' is already a function of this file"));
  write("bad.py", "def f(n: u32):\n    x = y\n");
  EXPECT_THAT(rejection("from .bad import f\n"),
              testing::AllOf(HasSubstr("is rejected itself"), HasSubstr("'y' is not defined")));
  write("circle.py", "from .circle import f\n");
  EXPECT_THAT(rejection("from .circle import f\n"), HasSubstr("imported in a circle"));
  const auto text = compile_source("from .one import f\n");
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message(), HasSubstr("a source that is no file"));
}

TEST(Json, RoundTrips) {
  const auto kernel = compile_or_fail(R"(
@inline
def clamp(x: f32, low: f32, high: f32) -> f32:
    return min(max(x, low), high)

def f(a: DeviceArray[f32, 2], c: DeviceArray[u32], n: u32, s: f32):
    launch(n)
    t = shared(f32, 8)
    total: f32 = 0.0
    for i in range(0, n, 2):
        if i == 3 or a[i, 0] > 1e30:
            continue
        total += clamp(a[i, 1], -1, s) if i > 0 else 0
        while total > 100:
            total /= 2
            break
    atomic_add(c, 0, 1)
    t[0] = total
    fence()
    barrier()
    a[0, 0] = group_add(t[0]) ** 0.5
)");
  const std::string text = write_json(kernel.ir);
  auto again = read_json(text);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(*again, kernel.ir);
  EXPECT_EQ(write_json(*again), text);
}

}  // namespace
}  // namespace hologram::lang
