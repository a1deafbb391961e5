// Other forms of a kernel: the same meaning in another type, and over rows.
#include "lang/variant.h"

#include <gmock/gmock.h>

#include "isa/interpreter.h"
#include "lang/compile.h"
#include "lang/lower.h"

namespace hologram::lang {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kScaled = R"(
from hologram_lang import *
def scaled(a: DeviceArray[f32], b: DeviceArray[f32], c: DeviceArray[f32], s: f32, n: u32):
    i = get_global_id()
    if i < n:
        x = a[i] * s
        c[i] = max(x, 2) + b[i]
)";

ir::Kernel kernel_of(const char* source) {
  auto kernels = compile_source(source);
  EXPECT_TRUE(kernels) << kernels.error().message();
  return std::move((*kernels)[0].ir);
}

template <typename T>
isa::Argument array(std::vector<T>& values) {
  return isa::Argument::array(std::span<T>(values));
}

void run(const ir::Kernel& kernel, isa::LaunchShape shape, std::vector<isa::Argument> arguments) {
  const auto program = lower(kernel);
  ASSERT_TRUE(program) << program.error().to_string();
  const Status status = isa::interpret(*program, shape, arguments);
  EXPECT_TRUE(status) << status.error().to_string();
}

TEST(Variant, ComputesInAnotherType) {
  const auto wide = retype(kernel_of(kScaled), DType::i64, DType::i64);
  ASSERT_TRUE(wide) << wide.error().to_string();
  // Past what f32 could hold.
  std::vector<int64_t> a = {(1ll << 40) + 1, -5, 0}, b = {1, 2, 3}, c(3);
  run(*wide, {{1, 1, 1}, {3, 1, 1}},
      {array(a), array(b), array(c), isa::Argument::scalar(int64_t{3}),
       isa::Argument::scalar(uint32_t{3})});
  EXPECT_THAT(c, ElementsAre(3 * ((1ll << 40) + 1) + 1, 4, 5));
}

TEST(Variant, HalvesRoundOnceAndResultsMayBeWider) {
  // 2049 is no f16: rounded at each step the sum would be 2048 + 1 = 2048.
  const auto half = retype(kernel_of(kScaled), DType::f16, DType::f32);
  ASSERT_TRUE(half) << half.error().to_string();
  std::vector<uint16_t> a = {f64_to_f16(2048)}, b = {f64_to_f16(1)};
  std::vector<float> c(1);
  run(*half, {},
      {array(a), array(b), array(c), isa::Argument{nullptr, 0, f64_to_f16(1)},
       isa::Argument::scalar(uint32_t{1})});
  EXPECT_EQ(c[0], 2049.f);
  EXPECT_EQ(half->params[2].type, DType::f32);
  EXPECT_EQ(half->params[3].type, DType::f16);
}

TEST(Variant, WalksRows) {
  const std::string staying[] = {"b"};
  const auto rows = by_rows(kernel_of(kScaled), staying);
  ASSERT_TRUE(rows) << rows.error().to_string();
  std::vector<std::string> names;
  for (const ir::Param& p : rows->params) names.push_back(p.name);
  EXPECT_THAT(names, ElementsAre("a", "b", "c", "s", "n", "a_row", "b_row", "c_row"));
  // Two rows of two, three apart in a; one b a row.
  std::vector<float> a = {1, 2, 99, 3, 4, 99}, b = {10, 20}, c(4);
  run(*rows, {{1, 2, 1}, {2, 1, 1}},
      {array(a), array(b), array(c), isa::Argument::scalar(2.f), isa::Argument::scalar(uint32_t{2}),
       isa::Argument::scalar(uint64_t{3}), isa::Argument::scalar(uint64_t{1}),
       isa::Argument::scalar(uint64_t{2})});
  EXPECT_THAT(c, ElementsAre(12, 14, 26, 28));
}

TEST(Variant, RefusesWhatItCannotMake) {
  const auto message = [](const auto& result) {
    EXPECT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::unsupported);
    return result.error().message();
  };
  const auto half = kernel_of(R"(
def half(a: DeviceArray[f32], n: u32):
    a[0] = 0.5
)");
  EXPECT_THAT(message(retype(half, DType::i32, DType::i32)), HasSubstr("0.5 is no value of i32"));
  const auto below = kernel_of("def below(a: DeviceArray[f32]):\n    a[0] = -1\n");
  EXPECT_THAT(message(retype(below, DType::u8, DType::u8)), HasSubstr("-1 is no value of u8"));
  const auto sum = kernel_of(
      "def total(a: DeviceArray[f32], b: DeviceArray[f32], n: u32):\n"
      "    parallel_reduce(add, a, b, n)\n");
  EXPECT_THAT(message(retype(sum, DType::f64, DType::f64)), HasSubstr("whole arrays"));
  const auto plane = kernel_of("def plane(a: DeviceArray[f32, 2]):\n    a[0, 0] = 1\n");
  EXPECT_THAT(message(by_rows(plane, {})), HasSubstr("'a' has 2 dimensions"));
}

}  // namespace
}  // namespace hologram::lang
