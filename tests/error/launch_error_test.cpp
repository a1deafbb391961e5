// Launches, buffers and devices that must be refused before anything runs: which code, which words.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "isa/builder.h"
#include "runtime/executor.h"

namespace hologram::runtime {
namespace {

using isa::Access;
using isa::Builder;
using isa::Opcode;

// out[i] += scale * x[i], with one fixed and one open shared array.
isa::Program program() {
  Builder b("mix");
  const auto x = b.array("x", DType::f32, Access::read);
  const auto out = b.array("out", DType::f32, Access::read_write);
  const auto scale = b.scalar("scale", DType::f32);
  const auto fixed = b.shared("fixed", DType::f32, 4);
  const auto open = b.shared("open", DType::f64, 0);
  const auto i = b.id(Opcode::global_id);
  const auto zero = b.integer(DType::u32, 0);
  b.store(fixed, zero, b.value(scale));
  (void)open;
  b.store(out, i, b.add(b.load(out, i), b.mul(b.value(scale), b.load(x, i))));
  return b.finish().value();
}

isa::Program flag_program() {
  Builder b("flagged");
  const auto out = b.array("out", DType::i8, Access::write);
  const auto flag = b.scalar("flag", DType::boolean);
  const auto small = b.scalar("small", DType::i8);
  b.store(out, b.integer(DType::u32, 2),
          b.select(b.value(flag), b.value(small), b.integer(DType::i8, 0)));
  return b.finish().value();
}

// Every thread below n writes its element: as kernels are usually written.
isa::Program guarded_program() {
  Builder b("guarded");
  const auto out = b.array("out", DType::f32, Access::write);
  const auto n = b.scalar("n", DType::u32);
  const auto i = b.id(Opcode::global_id);
  b.if_(b.lt(i, b.value(n)), [&] { b.store(out, i, b.floating(DType::f32, 1)); });
  return b.finish().value();
}

struct Fixture {
  std::shared_ptr<backends::Backend> backend = *backends::CpuBackend::create();
  Executor executor{backend};
  KernelRef kernel = executor.load(program()).value();
  KernelRef flagged = executor.load(flag_program()).value();
  KernelRef guarded = executor.load(guarded_program()).value();
  std::vector<float> x = std::vector<float>(8, 1.f), out = std::vector<float>(8, 5.f);
  std::vector<double> doubles = std::vector<double>(8);
  std::vector<int8_t> bytes = std::vector<int8_t>(3);
  LaunchShape shape{{1, 1, 1}, {8, 1, 1}, 16};

  Argument in() { return Argument::array(std::span<const float>(x)); }
  Argument to() { return Argument::array(std::span(out)); }
};

struct Case {
  const char* name;
  std::function<Status(Fixture&)> run;
  ErrorCode code;
  const char* message;
};

Status with_shape(Fixture& f, std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
                  uint64_t shared) {
  return f.executor.launch(*f.kernel, {grid, block, shared},
                           {f.in(), f.to(), Argument::scalar(1.f)});
}
Status with(Fixture& f, std::initializer_list<Argument> arguments) {
  return f.executor.launch(*f.kernel, f.shape, arguments);
}
template <typename T>
Status dropped(const Result<T>& result) {
  if (!result) return std::unexpected(result.error());
  return {};
}

const Case kCases[] = {
    {"too few arguments", [](Fixture& f) { return with(f, {f.in()}); }, ErrorCode::invalid_argument,
     "kernel 'mix' has 3 parameters ('x', 'out', 'scale'), 1 were given"},
    {"too many arguments",
     [](Fixture& f) {
       return with(f, {f.in(), f.to(), Argument::scalar(1.f), Argument::scalar(1.f)});
     },
     ErrorCode::invalid_argument, "has 3 parameters ('x', 'out', 'scale'), 4 were given"},
    {"a scalar for an array",
     [](Fixture& f) {
       return with(f, {Argument::scalar(1.f), f.to(), Argument::scalar(1.f)});
     },
     ErrorCode::type_mismatch, "parameter 'x' is an array of f32, not a scalar f32"},
    {"an array for a scalar",
     [](Fixture& f) {
       return with(f, {f.in(), f.to(), f.in()});
     },
     ErrorCode::type_mismatch, "parameter 'scale' is a scalar f32, not an array of f32"},
    {"a scalar of another type",
     [](Fixture& f) {
       return with(f, {f.in(), f.to(), Argument::scalar(1)});
     },
     ErrorCode::type_mismatch, "parameter 'scale' is a scalar f32, not a scalar i32"},
    {"an array of another type",
     [](Fixture& f) {
       return with(
           f, {Argument::array(std::span<const double>(f.doubles)), f.to(), Argument::scalar(1.f)});
     },
     ErrorCode::type_mismatch, "parameter 'x' is an array of f32, not an array of f64"},
    {"a read-only array that is written",
     [](Fixture& f) {
       return with(f, {f.in(), f.in(), Argument::scalar(1.f)});
     },
     ErrorCode::invalid_argument, "writes to array 'out', which is given read-only"},
    {"an unknown name",
     [](Fixture& f) {
       return with(f, {f.in(), f.to(), Argument::scalar(1.f, "factor")});
     },
     ErrorCode::not_found, "kernel 'mix' has no parameter 'factor'; it has 'x', 'out', 'scale'"},
    {"a name twice",
     [](Fixture& f) {
       return with(f, {Argument::array(std::span(f.out), "x"),
                       Argument::array(std::span(f.out), "x"), Argument::scalar(1.f, "scale")});
     },
     ErrorCode::already_exists, "parameter 'x' is given twice"},
    {"names out of order beside none",
     [](Fixture& f) {
       return with(f, {Argument::scalar(1.f, "scale"), f.to(), f.in()});
     },
     ErrorCode::invalid_argument,
     "argument 1 has no name, but others are given by name out of order"},
    {"a misaligned array",
     [](Fixture& f) {
       return with(
           f, {Argument::array_of(DType::f32, reinterpret_cast<char*>(f.x.data()) + 2, 7, false),
               f.to(), Argument::scalar(1.f)});
     },
     ErrorCode::invalid_argument, "not a multiple of its 4-byte elements"},
    {"an array at null",
     [](Fixture& f) {
       return with(
           f, {Argument::array_of(DType::f32, nullptr, 8, false), f.to(), Argument::scalar(1.f)});
     },
     ErrorCode::invalid_argument, "array 'x' of 8 elements has no address"},
    {"an array past the end of memory",
     [](Fixture& f) {
       return with(f, {Argument::array_of(DType::f32, f.x.data(), ~uint64_t{0} / 4, false), f.to(),
                       Argument::scalar(1.f)});
     },
     ErrorCode::out_of_range, "would pass the end of memory"},
    {"an array shorter than the grid",
     [](Fixture& f) {
       return with(f, {Argument::array(std::span<const float>(f.x).first(7)), f.to(),
                       Argument::scalar(1.f)});
     },
     ErrorCode::out_of_range, "this grid accesses element 7 of array 'x', which has 7"},
    {"an n beyond the array",
     [](Fixture& f) {
       return f.executor.launch(*f.guarded, {{1, 1, 1}, {64, 1, 1}},
                                {f.to(), Argument::scalar(uint32_t{9})});
     },
     ErrorCode::out_of_range, "this grid accesses element 8 of array 'out', which has 8"},
    {"a block without threads",
     [](Fixture& f) {
       return with_shape(f, {1, 1, 1}, {0, 1, 1}, 0);
     },
     ErrorCode::out_of_range, "a block of 0 x 1 x 1 threads; backend 'cpu' takes 1 to 1024"},
    {"a block of too many threads",
     [](Fixture& f) {
       return with_shape(f, {1, 1, 1}, {32, 32, 2}, 0);
     },
     ErrorCode::out_of_range, "a block of 32 x 32 x 2 threads"},
    {"a block whose size wraps",
     [](Fixture& f) {
       return with_shape(f, {1, 1, 1}, {1u << 31, 1u << 31, 4}, 0);
     },
     ErrorCode::out_of_range, "backend 'cpu' takes 1 to 1024"},
    {"a grid of too many blocks",
     [](Fixture& f) {
       return with_shape(f, {1u << 31, 1u << 31, 1u << 31}, {1, 1, 1}, 0);
     },
     ErrorCode::out_of_range, "a grid of 2147483648 x 2147483648 x 2147483648 blocks"},
    {"a grid longer than its arrays",
     [](Fixture& f) {
       return with_shape(f, {2, 1, 1}, {8, 1, 1}, 0);
     },
     ErrorCode::out_of_range, "accesses element 15 of array 'x', which has 8"},
    {"too many shared bytes",
     [](Fixture& f) {
       return with_shape(f, {1, 1, 1}, {8, 1, 1}, 1u << 21);
     },
     ErrorCode::out_of_range, "16 shared bytes declared and 2097152 given; backend 'cpu' has"},
    {"shared bytes that are no whole elements",
     [](Fixture& f) {
       return with_shape(f, {1, 1, 1}, {8, 1, 1}, 12);
     },
     ErrorCode::invalid_argument,
     "12 shared bytes are no whole number of the 8-byte elements of 'open'"},
    {"shared bytes without an open array",
     [](Fixture& f) {
       return f.executor.launch(*f.flagged, {{1, 1, 1}, {1, 1, 1}, 8},
                                {Argument::array(std::span(f.bytes)), Argument::scalar(true),
                                 Argument::scalar(int8_t{1})});
     },
     ErrorCode::invalid_argument, "it has no shared array of open length"},
    {"bits that are no boolean",
     [](Fixture& f) {
       return f.executor.launch(
           *f.flagged, {},
           {Argument::array(std::span(f.bytes)), Argument::scalar_of(DType::boolean, 2),
            Argument::scalar(int8_t{1})});
     },
     ErrorCode::invalid_argument, "parameter 'flag': bits 0x2 are no bool"},
    {"bits that do not fit",
     [](Fixture& f) {
       return f.executor.launch(*f.flagged, {},
                                {Argument::array(std::span(f.bytes)), Argument::scalar(true),
                                 Argument::scalar_of(DType::i8, 0x1ff)});
     },
     ErrorCode::invalid_argument, "parameter 'small': bits 0x1ff are no i8"},
    {"a constant index past the end",
     [](Fixture& f) {
       return f.executor.launch(*f.flagged, {},
                                {Argument::array(std::span(f.bytes).first(2)),
                                 Argument::scalar(true), Argument::scalar(int8_t{1})});
     },
     ErrorCode::out_of_range, "accesses element 2 of array 'out', which has 2"},
    {"a program that breaks a rule",
     [](Fixture& f) {
       isa::Program broken = program();
       broken.registers.clear();
       return dropped(f.executor.load(broken));
     },
     ErrorCode::verify_error, "kernel 'mix'"},
    {"native code of another ABI",
     [](Fixture& f) {
       isa::NativeCode code;
       code.abi_version = 77;
       code.level = "x86-64-v2";
       code.code.resize(8);
       return dropped(f.executor.load(program(), {&code, 1}));
     },
     ErrorCode::unsupported, "native code for x86-64-v2 has ABI version 77, this runtime takes 1"},
    {"a built-in kernel that is not there",
     [](Fixture& f) { return f.backend->call("teleport_f32", {}); }, ErrorCode::not_found,
     "backend 'cpu' has no built-in kernel 'teleport_f32'"},
    {"a built-in kernel past its arrays",
     [](Fixture& f) {
       // 3 x 3 by 3 x 3, where the arrays hold 8 elements.
       std::vector<Argument> arguments = {f.in(), f.in(), f.to()};
       for (uint64_t number : {3, 3, 3, 3, 1, 3, 1, 3})
         arguments.push_back(Argument::scalar(number));
       arguments.push_back(Argument::scalar(1.f));
       arguments.push_back(Argument::scalar(0.f));
       return f.backend->call("gemm_f32", arguments);
     },
     ErrorCode::out_of_range, "gemm of 3 x 3 by 3 x 3: strides reach outside arrays of 8, 8 and 8"},
    {"a standard kernel that is not there",
     [](Fixture& f) { return dropped(f.executor.standard_kernel("add_f128")); },
     ErrorCode::not_found, "there is no standard kernel 'add_f128'"},
    {"a buffer beyond the limit",
     [](Fixture& f) { return dropped(f.executor.allocate<double>(uint64_t{1} << 60)); },
     ErrorCode::resource_exhausted, "larger than the limit"},
    {"a buffer beyond addresses",
     [](Fixture& f) { return dropped(f.executor.allocate<double>(~uint64_t{0})); },
     ErrorCode::resource_exhausted, "more than memory can address"},
    {"a tensor of a type without whole bytes",
     [](Fixture& f) { return dropped(f.executor.empty(DType::u4, {2})); }, ErrorCode::unsupported,
     "memory for u4: its elements are no whole number of bytes"},
    {"a level the device does not have",
     [](Fixture&) {
       backends::CpuOptions options;
       options.level = "vax-11";
       return dropped(backends::CpuBackend::create(options));
     },
     ErrorCode::invalid_argument, "'vax-11' is no CPU level"},
};

TEST(LaunchErrors, AreRefusedBeforeAnythingRuns) {
  Fixture f;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const Status status = c.run(f);
    ASSERT_FALSE(status) << "not refused";
    EXPECT_EQ(status.error().code(), c.code) << status.error().to_string();
    EXPECT_NE(status.error().to_string().find(c.message), std::string::npos)
        << status.error().to_string();
  }
  for (float value : f.out) EXPECT_EQ(value, 5.f) << "something ran";
  // The same launch, made right, runs.
  EXPECT_TRUE(with(f, {f.in(), f.to(), Argument::scalar(1.f)}));
  EXPECT_EQ(f.out[7], 6.f);
}

}  // namespace
}  // namespace hologram::runtime
