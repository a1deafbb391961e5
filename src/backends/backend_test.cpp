#include "backends/backend.h"

#include <gtest/gtest.h>

#include <numeric>

#include "backends/cpu/code_map.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/cpu_level.h"
#include "backends/null/null_backend.h"
#include "backends/registry.h"
#include "isa/builder.h"

namespace hologram::backends {
namespace {

using isa::Access;
using isa::Builder;
using isa::Opcode;
using isa::Register;

// out[i] = scale * x[i], without a test against a length.
isa::Program scale_program() {
  Builder b("scale");
  const auto x = b.array("x", DType::f32, Access::read);
  const auto out = b.array("out", DType::f32, Access::write);
  const auto scale = b.scalar("scale", DType::f32);
  const Register i = b.id(Opcode::global_id);
  b.store(out, i, b.mul(b.value(scale), b.load(x, i)));
  return b.finish().value();
}

isa::Program divide_program() {
  Builder b("divide");
  const auto x = b.array("x", DType::i32, Access::read_write);
  const auto by = b.scalar("by", DType::i32);
  const Register i = b.id(Opcode::global_id);
  b.store(x, i, b.div(b.load(x, i), b.value(by)));
  return b.finish().value();
}

TEST(CpuBackend, RunsAProgram) {
  auto backend = CpuBackend::create();
  ASSERT_TRUE(backend);
  auto kernel = (*backend)->load(scale_program());
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  std::vector<float> x(1000), out(1000);
  std::iota(x.begin(), x.end(), 0.f);
  const LaunchShape shape{{10, 1, 1}, {100, 1, 1}};
  const Argument arguments[] = {Argument::array(std::span<const float>(x)),
                                Argument::array(std::span(out)), Argument::scalar(3.f)};
  ASSERT_TRUE((*backend)->launch(**kernel, shape, arguments));
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(out[i], 3 * x[i]);
}

TEST(CpuBackend, TakesNamedArgumentsInAnyOrder) {
  auto backend = CpuBackend::create();
  auto kernel = (*backend)->load(scale_program());
  ASSERT_TRUE(kernel);
  std::vector<float> x = {1, 2}, out(2);
  const Argument arguments[] = {Argument::scalar(2.f, "scale"),
                                Argument::array(std::span(out), "out"),
                                Argument::array(std::span<const float>(x), "x")};
  ASSERT_TRUE((*backend)->launch(**kernel, {{1, 1, 1}, {2, 1, 1}}, arguments));
  EXPECT_EQ(out, (std::vector<float>{2, 4}));
}

TEST(CpuBackend, PreparedLaunchTakesNewArguments) {
  auto backend = CpuBackend::create();
  auto kernel = (*backend)->load(scale_program());
  ASSERT_TRUE(kernel);
  std::vector<float> x = {1, 2, 3}, y = {10, 20, 30}, out(3);
  const Argument arguments[] = {Argument::array(std::span<const float>(x)),
                                Argument::array(std::span(out)), Argument::scalar(2.f)};
  auto prepared = (*backend)->prepare(**kernel, {{1, 1, 1}, {3, 1, 1}}, arguments);
  ASSERT_TRUE(prepared) << prepared.error().to_string();
  ASSERT_TRUE((*prepared)->run());
  EXPECT_EQ(out, (std::vector<float>{2, 4, 6}));
  ASSERT_TRUE((*prepared)->set_array(0, y.data(), y.size()));
  ASSERT_TRUE((*prepared)->set_scalar(2, 0.5f));
  ASSERT_TRUE((*prepared)->run());
  EXPECT_EQ(out, (std::vector<float>{5, 10, 15}));

  const auto code = [](const Status& s) { return s ? ErrorCode::internal : s.error().code(); };
  EXPECT_EQ(code((*prepared)->set_array(0, y.data(), 2)), ErrorCode::out_of_range);
  EXPECT_EQ(code((*prepared)->set_array(2, y.data(), 3)), ErrorCode::type_mismatch);
  EXPECT_EQ(code((*prepared)->set_array(9, y.data(), 3)), ErrorCode::out_of_range);
  EXPECT_EQ(code((*prepared)->set_array(0, nullptr, 3)), ErrorCode::invalid_argument);
  EXPECT_EQ(code((*prepared)->set_array(0, reinterpret_cast<char*>(y.data()) + 1, 3)),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code((*prepared)->set_scalar(2, 1)), ErrorCode::type_mismatch);
  EXPECT_EQ(code((*prepared)->set_scalar(0, 1.f)), ErrorCode::type_mismatch);
  EXPECT_EQ(code((*prepared)->set_scalar(7, 1.f)), ErrorCode::out_of_range);
  ASSERT_TRUE((*prepared)->run());
  EXPECT_EQ(out, (std::vector<float>{5, 10, 15})) << "a refusal changes nothing";
}

TEST(CpuBackend, PreparedLaunchChecksScalarsThatBoundAccesses) {
  Builder b("at");
  const auto out = b.array("out", DType::f32, Access::write);
  const auto index = b.scalar("index", DType::u64);
  b.store(out, b.value(index), b.floating(DType::f32, 1));
  auto backend = CpuBackend::create();
  auto kernel = (*backend)->load(b.finish().value());
  ASSERT_TRUE(kernel);
  std::vector<float> out_values(4);
  const Argument arguments[] = {Argument::array(std::span(out_values)),
                                Argument::scalar(uint64_t{0})};
  auto prepared = (*backend)->prepare(**kernel, {}, arguments);
  ASSERT_TRUE(prepared);
  EXPECT_TRUE((*prepared)->set_scalar(1, uint64_t{3}));
  const Status refused = (*prepared)->set_scalar(1, uint64_t{4});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::out_of_range);
  EXPECT_FALSE((*prepared)->set_array(0, out_values.data(), 3));
  ASSERT_TRUE((*prepared)->run());
  EXPECT_EQ(out_values, (std::vector<float>{0, 0, 0, 1}));
}

TEST(CpuBackend, ReportsTraps) {
  auto backend = CpuBackend::create();
  auto kernel = (*backend)->load(divide_program());
  ASSERT_TRUE(kernel);
  std::vector<int32_t> x = {7};
  const Argument arguments[] = {Argument::array(std::span(x)), Argument::scalar(int32_t{0})};
  const Status trapped = (*backend)->launch(**kernel, {}, arguments);
  ASSERT_FALSE(trapped);
  EXPECT_EQ(trapped.error().code(), ErrorCode::trap);
}

TEST(CpuBackend, AnEmptyGridRunsNothing) {
  auto backend = CpuBackend::create();
  auto kernel = (*backend)->load(divide_program());
  ASSERT_TRUE(kernel);
  const Argument arguments[] = {Argument::array(std::span<int32_t>()),
                                Argument::scalar(int32_t{0})};
  EXPECT_TRUE((*backend)->launch(**kernel, {{0, 1, 1}, {1, 1, 1}}, arguments));
}

TEST(CpuBackend, RefusesNativeCodeOfAnotherAbi) {
  auto backend = CpuBackend::create();
  isa::NativeCode code;
  code.abi_version = isa::kNativeAbiVersion + 1;
  code.level = "x86-64-v2";
  code.code.resize(16);
  const auto refused = (*backend)->load(scale_program(), {&code, 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::unsupported);
  code.abi_version = isa::kNativeAbiVersion;
  code.entry_offset = 16;
  const auto corrupt = (*backend)->load(scale_program(), {&code, 1});
  ASSERT_FALSE(corrupt);
  EXPECT_EQ(corrupt.error().code(), ErrorCode::corrupt);
}

TEST(CpuBackend, InterpretsWithoutCodeForItsLevel) {
  auto backend = CpuBackend::create();
  isa::NativeCode code;
  code.level = "sparc-v9";
  code.code.resize(16);
  const auto kernel = (*backend)->load(scale_program(), {&code, 1});
  ASSERT_TRUE(kernel);
  EXPECT_EQ((*kernel)->level(), "");
}

TEST(CpuBackend, RefusesLevelsItDoesNotHave) {
  CpuOptions options;
  options.level = "x86-64-v9";
  const auto unknown = CpuBackend::create(options);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), ErrorCode::invalid_argument);
  EXPECT_GT(level_rank("x86-64-v4"), level_rank("x86-64-v3"));
  EXPECT_EQ(level_rank("native"), 0);
}

#if defined(__x86_64__)
TEST(CodeMap, RunsMappedCode) {
  // mov eax, 42; ret
  const unsigned char bytes[] = {0xb8, 42, 0, 0, 0, 0xc3};
  auto map = CodeMap::map(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(map) << map.error().to_string();
  const auto function = reinterpret_cast<int (*)()>(const_cast<std::byte*>(map->data()));
  EXPECT_EQ(function(), 42);
  EXPECT_FALSE(CodeMap::map({}));
}
#endif

TEST(Backend, CopiesWithinRange) {
  for (const char* name : {"cpu", "null"}) {
    Config config;
    config.backend = name;
    auto backend = create_backend(config);
    ASSERT_TRUE(backend);
    auto memory = (*backend)->allocate(16);
    ASSERT_TRUE(memory);
    std::array<std::byte, 16> from, to{};
    for (size_t i = 0; i < 16; ++i) from[i] = static_cast<std::byte>(i);
    ASSERT_TRUE((*backend)->write(*memory, 0, from));
    ASSERT_TRUE((*backend)->copy(*memory, 4, *memory, 0, 12)) << "overlapping";
    ASSERT_TRUE((*backend)->read(*memory, 0, to));
    EXPECT_EQ(static_cast<int>(to[15]), 11);
    EXPECT_FALSE((*backend)->write(*memory, 1, from));
    EXPECT_FALSE((*backend)->read(*memory, 17, std::span<std::byte>(to).first(0)));
    EXPECT_FALSE((*backend)->copy(*memory, 0, *memory, 8, 9));
    EXPECT_FALSE((*backend)->copy(*memory, 8, *memory, 0, 9));
    EXPECT_FALSE((*backend)->read(*memory, ~uint64_t{0}, to)) << "an offset that would wrap";
  }
}

TEST(NullBackend, ChecksAndComputesNothing) {
  auto backend = NullBackend::create();
  ASSERT_TRUE(backend);
  auto kernel = (*backend)->load(scale_program());
  ASSERT_TRUE(kernel);
  std::vector<float> x = {1}, out = {9};
  const Argument arguments[] = {Argument::array(std::span<const float>(x)),
                                Argument::array(std::span(out)), Argument::scalar(2.f)};
  EXPECT_TRUE((*backend)->launch(**kernel, {}, arguments));
  auto prepared = (*backend)->prepare(**kernel, {}, arguments);
  ASSERT_TRUE(prepared);
  EXPECT_TRUE((*prepared)->run());
  EXPECT_EQ((*backend)->launches(), 2u);
  EXPECT_EQ(out[0], 9);
  EXPECT_FALSE((*backend)->launch(**kernel, {{2, 1, 1}, {1, 1, 1}}, arguments));
  EXPECT_EQ((*backend)->launches(), 2u);
  EXPECT_FALSE((*backend)->call("gemm_f32", {}));
}

TEST(Registry, NamesItsBackends) {
  Config config;
  config.backend = "abacus";
  const auto refused = create_backend(config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::not_found);
  EXPECT_NE(refused.error().message().find("cpu, null"), std::string::npos);
}

TEST(Builtins, AreSortedAndFound) {
  auto backend = CpuBackend::create();
  const auto all = (*backend)->builtins();
  ASSERT_GT(all.size(), 1u);
  for (size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1].name, all[i].name);
  for (const Builtin& builtin : all) EXPECT_EQ((*backend)->find_builtin(builtin.name), &builtin);
  EXPECT_EQ((*backend)->find_builtin("gemm"), nullptr);
}

TEST(Builtins, CheckTheirArguments) {
  auto backend = CpuBackend::create();
  std::vector<float> a(6), b(6), c(4);
  const auto gemm = [&](uint64_t m, uint64_t n, uint64_t k, uint64_t a_row, uint64_t a_column) {
    const Argument arguments[] = {Argument::array(std::span<const float>(a)),
                                  Argument::array(std::span<const float>(b)),
                                  Argument::array(std::span(c)),
                                  Argument::scalar(m),
                                  Argument::scalar(n),
                                  Argument::scalar(k),
                                  Argument::scalar(a_row),
                                  Argument::scalar(a_column),
                                  Argument::scalar(n),
                                  Argument::scalar(uint64_t{1}),
                                  Argument::scalar(n),
                                  Argument::scalar(1.f),
                                  Argument::scalar(0.f)};
    return (*backend)->call("gemm_f32", arguments);
  };
  EXPECT_TRUE(gemm(2, 2, 3, 3, 1));
  EXPECT_TRUE(gemm(2, 2, 3, 1, 2)) << "transposed";
  EXPECT_FALSE(gemm(3, 2, 3, 3, 1)) << "a is too short";
  EXPECT_FALSE(gemm(2, 3, 3, 3, 1)) << "b is too short";
  EXPECT_FALSE(gemm(uint64_t{1} << 33, 2, 3, uint64_t{1} << 33, 1)) << "a product that wraps";
  EXPECT_FALSE(gemm(2, 2, 2, 2, 2)) << "neither rows nor columns are contiguous";
}

}  // namespace
}  // namespace hologram::backends
