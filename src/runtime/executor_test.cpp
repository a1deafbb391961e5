#include "runtime/executor.h"

#include <gtest/gtest.h>

#include <functional>
#include <tuple>

#include "backends/cpu/cpu_backend.h"
#include "isa/builder.h"
#include "runtime/embedded_bundle.h"
#include "runtime/ops/ops.h"
#include "runtime/programs/op_table.h"
#include "runtime/programs/row_table.h"
#include "runtime/testing.h"

namespace hologram::runtime {
namespace {

using testing::executor;
using testing::value_of;

TEST(Buffer, CopiesInAndOutAndIsSeenInPlace) {
  auto buffer = value_of(executor().allocate<int32_t>(4));
  const std::vector<int32_t> values = {1, 2, 3, 4};
  EXPECT_OK(buffer.copy_from(values));
  std::vector<int32_t> out(2);
  EXPECT_OK(buffer.copy_to(out, 1));
  EXPECT_EQ(out, (std::vector<int32_t>{2, 3}));
  value_of(buffer.view())[0] = 9;
  const Tensor t = value_of(buffer.tensor({2, 2}));
  EXPECT_EQ(value_of(t.to_vector<int32_t>()), (std::vector<int32_t>{9, 2, 3, 4}));
  EXPECT_REFUSED(out_of_range, "elements 3 to 3 + 2 of a buffer of 4", buffer.copy_to(out, 3));
  EXPECT_REFUSED(out_of_range, "reaches outside", buffer.tensor({5}));
}

TEST(Buffer, TensorsKeepItsMemory) {
  Tensor t;
  {
    const Executor made = value_of(Executor::create(Config{}));
    auto buffer = value_of(made.allocate<float>(2));
    EXPECT_OK(buffer.copy_from(std::vector<float>{1, 2}));
    t = value_of(buffer.tensor());
  }
  EXPECT_EQ(value_of(t.to_vector<float>()), (std::vector<float>{1, 2}));
}

TEST(Executor, LoadsAndLaunches) {
  isa::Builder b("increment");
  const auto x = b.array("x", DType::i32, isa::Access::read_write);
  const auto i = b.id(isa::Opcode::global_id);
  b.store(x, i, b.add(b.load(x, i), b.integer(DType::i32, 1)));
  const KernelRef kernel = value_of(executor().load(value_of(b.finish())));
  auto buffer = value_of(executor().allocate<int32_t>(3));
  EXPECT_OK(buffer.copy_from(std::vector<int32_t>{1, 2, 3}));
  EXPECT_OK(executor().launch(*kernel, {{1, 1, 1}, {3, 1, 1}}, {buffer.output("x")}));
  EXPECT_EQ(value_of(buffer.view())[2], 4);
  EXPECT_REFUSED(invalid_argument, "given read-only",
                 executor().launch(*kernel, {}, {buffer.input()}));
}

TEST(Executor, HonoursTheConfiguration) {
  Config config;
  config.max_buffer_size = 100;
  const Executor small = value_of(Executor::create(config));
  EXPECT_REFUSED(resource_exhausted, "larger than the limit of 100", small.allocate<float>(26));
  EXPECT_REFUSED(resource_exhausted, "more than memory can address",
                 small.allocate<double>(uint64_t{1} << 62));
  config.backend = "quantum";
  EXPECT_REFUSED(not_found, "there is no backend 'quantum'", Executor::create(config));
}

TEST(Executor, FindsStandardKernels) {
  const KernelRef kernel = value_of(executor().standard_kernel("vector_add"));
  EXPECT_EQ(kernel->program().name, "vector_add");
  EXPECT_EQ(kernel, value_of(executor().standard_kernel("vector_add"))) << "loaded once";
  EXPECT_REFUSED(not_found, "'flub_f32'", executor().standard_kernel("flub_f32"));
}

// Calls `check` with the name of every kernel that an op may ask for.
void for_every_op_kernel(const std::function<void(const std::string&)>& check) {
  for (size_t op = 0; op < kElementwiseOpCount; ++op)
    for (size_t variant = 0; variant < kVariants; ++variant)
      for (uint8_t code = 0; code <= static_cast<uint8_t>(DType::f64); ++code)
        if (const auto [o, v, t] =
                std::tuple(static_cast<ElementwiseOp>(op), static_cast<Variant>(variant),
                           static_cast<DType>(code));
            has_program(o, v, t))
          check(program_name(o, v, t));
  for (size_t op = 0; op < kRowOpCount; ++op)
    for (uint8_t from = 0; from <= static_cast<uint8_t>(DType::f64); ++from)
      for (uint8_t to = 0; to <= static_cast<uint8_t>(DType::f64); ++to)
        if (const auto [o, e, r] = std::tuple(static_cast<RowOp>(op), static_cast<DType>(from),
                                              static_cast<DType>(to));
            has_row_program(o, e, r))
          check(row_program_name(o, e, r));
}

// Every op is a kernel of the standard library, or made from one.
TEST(KernelBundle, HoldsEveryOp) {
  size_t count = 0;
  for_every_op_kernel([&](const std::string& name) {
    EXPECT_TRUE(embedded_bundle().find(name)) << name;
    ++count;
  });
  EXPECT_GT(count, 400u);
  for (const ElementwiseInfo& op : kElementwiseOps)
    EXPECT_TRUE(embedded_bundle().find(std::string(op.kernel) + "_launch")) << op.kernel;
}

#ifdef HOLOGRAM_WITH_CODEGEN
TEST(KernelBundle, HasNativeCodeForEveryLevel) {
  for_every_op_kernel([&](const std::string& name) {
    const auto native = embedded_bundle().native(*embedded_bundle().find(name));
    ASSERT_EQ(native.size(), 3u) << name;
    EXPECT_EQ(native[0].level, "x86-64-v2");
    EXPECT_EQ(native[2].level, "x86-64-v4");
  });
  const KernelRef kernel = value_of(executor().standard_kernel("vector_add"));
  EXPECT_EQ(kernel->level(), executor().backend().capabilities().level);
}
#endif

TEST(KernelBundle, WritesAndReads) {
  KernelBundleWriter writer;
  const auto program = value_of(embedded_bundle().program(*embedded_bundle().find("vector_add")));
  isa::NativeCode code;
  code.level = "x86-64-v3";
  code.code = {std::byte{1}, std::byte{2}};
  code.entry_offset = 1;
  code.scratch_per_thread = 5;
  EXPECT_OK(writer.add(program, {code}));
  EXPECT_REFUSED(already_exists, "two kernels are named 'vector_add'", writer.add(program, {}));
  std::vector<std::byte> bytes = writer.finish();
  const KernelBundle bundle = value_of(KernelBundle::open(bytes));
  ASSERT_EQ(bundle.size(), 1u);
  EXPECT_EQ(bundle.find("vector_add"), 0u);
  EXPECT_FALSE(bundle.find("vector"));
  EXPECT_EQ(value_of(bundle.program(0)), program);
  EXPECT_EQ(bundle.native(0)[0].code, code.code);
  EXPECT_EQ(bundle.native(0)[0].scratch_per_thread, 5u);

  // Every damaged byte is an error or another bundle, and every shortened bundle an error.
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {1, 128, 255}) {
      std::vector<std::byte> damaged = bytes;
      damaged[i] ^= static_cast<std::byte>(flip);
      if (const auto opened = KernelBundle::open(damaged))
        for (size_t k = 0; k < opened->size(); ++k) {
          (void)opened->name(k);
          (void)opened->program(k);
          (void)opened->native(k);
        }
    }
    EXPECT_FALSE(KernelBundle::open(std::span(bytes).first(i)));
  }
}

// The same op by native code and by the interpreter: the same bits.
TEST(Executor, NativeCodeAndInterpreterAgree) {
  backends::CpuOptions options;
  options.native = false;
  const Executor interpreter(
      std::shared_ptr<backends::Backend>(value_of(backends::CpuBackend::create(options))));
  const auto a = testing::random_values<float>(3000, 1, -100, 100);
  const auto b = testing::random_values<float>(3000, 2, -100, 100);
  const auto run = [&](const Executor& on) {
    const Tensor x = value_of(on.tensor(std::span<const float>(a), {3000}));
    const Tensor y = value_of(on.tensor(std::span<const float>(b), {3000}));
    return value_of(
        value_of(ops::axpy(on, 1.5f, x, value_of(ops::div(on, x, y)))).to_vector<float>());
  };
  EXPECT_EQ(run(interpreter), run(executor()));
}

TEST(Executor, RefusesTensorsOfAnotherBackend) {
  const Executor other(
      std::shared_ptr<backends::Backend>(value_of(backends::CpuBackend::create())));
  const Tensor here = testing::make<float>({1}, {1});
  const Tensor there = value_of(other.tensor({1.f}, {1}));
  EXPECT_REFUSED(invalid_argument, "another backend", ops::add(executor(), here, there));
  EXPECT_REFUSED(invalid_argument, "two backends", copy_elements(here, there));
}

}  // namespace
}  // namespace hologram::runtime
