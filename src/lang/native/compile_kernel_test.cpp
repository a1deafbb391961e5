#include "lang/native/compile_kernel.h"

#include <gmock/gmock.h>

#include "runtime/executor.h"

namespace hologram {
namespace {

using runtime::Executor;
using runtime::named;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kAxpy = R"(
from hologram_lang import *

def axpy(x: DeviceArray[f32], y: DeviceArray[f32], a: f32, n: u32):
    launch(n)
    i = get_global_id()
    if i < n:
        y[i] += a * x[i]
)";

Executor executor() { return *Executor::create(); }

TEST(CompileKernel, RunsOnBuffersByPositionAndByName) {
  const Executor e = executor();
  auto axpy = compile_kernel(kAxpy);
  ASSERT_TRUE(axpy) << axpy.error().message();
  EXPECT_EQ(axpy->signature(), "axpy(x: f32[], y: f32[], a: f32, n: u32)");
  auto x = *e.allocate<float>(3);
  auto y = *e.allocate<float>(3);
  ASSERT_TRUE(x.copy_from(std::vector<float>{1, 2, 3}));
  ASSERT_TRUE(y.copy_from(std::vector<float>{10, 20, 30}));
  ASSERT_TRUE(e.run(*axpy, x, y, 2.0f, uint32_t{3}));
  const auto second =
      e.run(*axpy, named("n", uint32_t{2}), named("a", 1.0f), named("y", y), named("x", x));
  ASSERT_TRUE(second) << second.error().to_string();
  EXPECT_THAT(*std::as_const(y).view(), ElementsAre(13, 26, 36));
}

TEST(CompileKernel, TensorsBringTheirShape) {
  const Executor e = executor();
  auto kernel = compile_kernel(R"(
def transpose(a: DeviceArray[i32, 2], b: DeviceArray[i32, 2]):
    launch(a.shape[1], a.shape[0])
    x = get_global_id(0)
    y = get_global_id(1)
    if x < a.shape[1] and y < a.shape[0]:
        b[x, y] = a[y, x]
)");
  ASSERT_TRUE(kernel) << kernel.error().message();
  const auto a = *e.tensor<int32_t>({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto b = *e.empty(DType::i32, {3, 2});
  const auto done = e.run(*kernel, a, b);
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_THAT(*b.view<const int32_t>(), ElementsAre(1, 4, 2, 5, 3, 6));
  const auto view = e.run(*kernel, *b.transpose(), a);
  ASSERT_FALSE(view);
  EXPECT_THAT(view.error().message(), HasSubstr("a view with gaps; pass its contiguous()"));
}

TEST(CompileKernel, AnEmptyLaunchRunsNothing) {
  const Executor e = executor();
  auto axpy = *compile_kernel(kAxpy);
  auto x = *e.allocate<float>(0);
  EXPECT_TRUE(e.run(axpy, x, x, 2.0f, uint32_t{0}));
}

TEST(CompileKernel, RefusesWhatDoesNotFit) {
  const Executor e = executor();
  auto axpy = *compile_kernel(kAxpy);
  auto x = *e.allocate<float>(3);
  auto wrong = *e.allocate<int32_t>(3);
  const auto message = [](const Status& s) { return s ? "" : s.error().message(); };
  EXPECT_THAT(message(e.run(axpy, x, x, 2.0f)), HasSubstr("takes 4 arguments, 3 were given"));
  EXPECT_THAT(message(e.run(axpy, x, wrong, 2.0f, uint32_t{3})), HasSubstr("'y'"));
  EXPECT_THAT(message(e.run(axpy, x, x, 2.0f, 3)), HasSubstr("'n'"));
  EXPECT_THAT(message(e.run(axpy, x, x, 2.0f, named("m", uint32_t{3}))),
              HasSubstr("has no parameter 'm'"));
  EXPECT_THAT(message(e.run(axpy, x, x, named("x", x), uint32_t{3})),
              HasSubstr("parameter 'x' is given twice"));
}

TEST(CompileKernel, NamesTheKernelsThereAre) {
  const std::string two = std::string(kAxpy) + "\ndef other(a: DeviceArray[f32]):\n    a[0] = 1\n";
  EXPECT_TRUE(compile_kernel(two, "other"));
  EXPECT_THAT(compile_kernel(two).error().message(), HasSubstr("say which of axpy, other"));
  EXPECT_THAT(compile_kernel(two, "x").error().message(), HasSubstr("it has axpy, other"));
  EXPECT_THAT(compile_kernel("def f(:", "", "f.py").error().message(), HasSubstr("f.py:1:7"));
}

}  // namespace
}  // namespace hologram
