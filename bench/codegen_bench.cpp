// Code generation: how long compiling takes, and how fast what comes out is, on one thread, next to
// loops written by hand or compiled by g++. Both sides of a ratio run in turns; the best counts.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "bench/codegen/kernels.h"
#include "bench/codegen/loops.h"
#include "codegen/compile.h"
#include "codegen/testing/native_program.h"
#include "isa/opcode.h"

namespace {

using namespace hologram;
using codegen::Target;
using codegen::testing::NativeProgram;
using isa::Argument;
using isa::Opcode;

double seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Of this thread alone: compiling takes long enough for others to come between.
double processor_seconds(const std::function<void()>& body) {
  const auto now = [] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double start = now();
  body();
  return now() - start;
}

// Best seconds of one call each, taken in turns for about `budget` seconds.
std::pair<double, double> in_turns(const std::function<void()>& a, const std::function<void()>& b,
                                   double budget = 0.6) {
  a(), b();
  const double once = std::max(seconds(a), 1e-8);
  const int batch = std::max(1, static_cast<int>(20e-6 / once));
  const auto batched = [batch](const std::function<void()>& f) {
    return seconds([&] {
             for (int i = 0; i < batch; ++i) f();
           }) /
           batch;
  };
  double best_a = 1e9, best_b = 1e9, spent = 0;
  for (int turn = 0; spent < budget || turn < 5; ++turn) {
    const double ta = batched(a), tb = batched(b);
    best_a = std::min(best_a, ta), best_b = std::min(best_b, tb);
    spent += (ta + tb) * batch;
  }
  return {best_a, best_b};
}

NativeProgram native(const isa::Program& program) {
  return *NativeProgram::load(*codegen::compile(program, *Target::host()));
}

void compile_times() {
  fmt::print("compiling, processor time, best of 20:\n");
  const std::pair<const char*, isa::Program> kernels[] = {
      {"vector_add", bench::vector_add()},
      {"relu", bench::relu()},
      {"gelu", bench::gelu()},
      {"row_softmax", bench::row_softmax()},
      {"matmul", bench::matmul()},
      {"convolution3x3", bench::convolution3x3()},
      {"tanh f64", bench::elementwise(Opcode::tanh, DType::f64)}};
  for (codegen::Level level : codegen::kLevels)
    for (const auto& [name, program] : kernels) {
      double best = 1e9;
      for (int i = 0; i < 20; ++i)
        best = std::min(best,
                        processor_seconds([&] { (void)codegen::compile(program, Target(level)); }));
      const auto code = codegen::compile(program, Target(level));
      fmt::print("  {} {:16} {:7.2f} ms {:7} bytes\n", name_of(level), name, best * 1e3,
                 code->code.size());
    }
}

void elementwise_ratios() {
  fmt::print("against a hand-written AVX-512 loop, one thread:\n");
  const NativeProgram add = native(bench::vector_add()), relu = native(bench::relu()),
                      axpy = native(bench::axpy()), sum = native(bench::sum());
  for (size_t n : {size_t{4} << 10, size_t{1} << 20, size_t{64} << 20}) {
    std::vector<float> a(n, 1.25f), b(n, -2.5f), c(n), d(n);
    const auto count = static_cast<uint32_t>(n);
    isa::LaunchShape shape{.grid = {(count + 255) / 256, 1, 1}, .block = {256, 1, 1}};
    const std::vector<Argument> two = {Argument::array(std::span(a)), Argument::array(std::span(b)),
                                       Argument::array(std::span(c)), Argument::scalar(count)};
    const std::vector<Argument> one = {two[0], two[2], two[3]};
    const auto report = [&](const char* name, const NativeProgram& program,
                            const std::vector<Argument>& arguments, auto hand) {
      const auto prepared = program.prepare(shape, arguments);
      const auto [ours, theirs] = in_turns([&] { prepared(); }, hand);
      fmt::print("  {:12} {:9} floats: {:8.1f} us, by hand {:8.1f} us, ratio {:.3f}\n", name, n,
                 ours * 1e6, theirs * 1e6, theirs / ours);
    };
    report("vector_add", add, two,
           [&] { bench::hand_vector_add(a.data(), b.data(), d.data(), n); });
    report("relu", relu, one, [&] { bench::hand_relu(a.data(), d.data(), n); });
    report("a*x+y", axpy, two, [&] { bench::hand_axpy(a.data(), b.data(), d.data(), n); });
    shape = {.grid = {1, 1, 1}, .block = {256, 1, 1}};
    volatile float total = 0;
    report("sum", sum, one, [&] { total = bench::hand_sum(a.data(), n); });
  }
}

void loop_ratios() {
  fmt::print("against the same loops by g++ -O3 for this level, one thread:\n");
  for (uint32_t n : {256u, 512u, 1024u}) {
    std::vector<float> a(n * n, 0.5f), b(n * n, 0.25f), c(n * n), d(n * n);
    const NativeProgram program = native(bench::matmul());
    const auto prepared =
        program.prepare({.grid = {n / 16, n / 16, 1}, .block = {16, 16, 1}},
                        {Argument::array(std::span(a)), Argument::array(std::span(b)),
                         Argument::array(std::span(c)), Argument::scalar(n), Argument::scalar(n),
                         Argument::scalar(n)});
    const auto [ours, theirs] = in_turns(
        [&] { prepared(); }, [&] { bench::plain_matmul(a.data(), b.data(), d.data(), n, n, n); });
    fmt::print("  matmul {:4}: {:7.2f} GFLOP/s, g++ {:7.2f}, ratio {:.2f}{}\n", n,
               2e-9 * n * n * n / ours, 2e-9 * n * n * n / theirs, theirs / ours,
               c == d ? "" : "  DIFFERENT RESULT");
  }
  for (int size : {64, 224, 1024}) {
    const size_t count = static_cast<size_t>(size) * size;
    std::vector<float> in(count, 0.5f), weight(9, 0.25f), out(count), other(count);
    const NativeProgram program = native(bench::convolution3x3());
    const uint32_t blocks = static_cast<uint32_t>(size + 15) / 16;
    const auto prepared = program.prepare(
        {.grid = {blocks, blocks, 1}, .block = {16, 16, 1}},
        {Argument::array(std::span(in)), Argument::array(std::span(weight)),
         Argument::array(std::span(out)), Argument::scalar(size), Argument::scalar(size)});
    const auto [ours, theirs] = in_turns(
        [&] { prepared(); },
        [&] { bench::plain_convolution3x3(in.data(), weight.data(), other.data(), size, size); });
    fmt::print("  convolution3x3 {:4}: {:8.1f} us, g++ {:8.1f} us, ratio {:.2f}{}\n", size,
               ours * 1e6, theirs * 1e6, theirs / ours, out == other ? "" : "  DIFFERENT RESULT");
  }
}

void function_speeds() {
  fmt::print("functions in the first-level cache, one thread:\n");
  constexpr uint32_t kCount = 2048;
  for (DType type : {DType::f32, DType::f64})
    for (Opcode op : {Opcode::exp, Opcode::log, Opcode::tanh, Opcode::sigmoid, Opcode::erf,
                      Opcode::sin, Opcode::cos, Opcode::log2, Opcode::atan}) {
      std::vector<double> in(kCount), out(kCount);
      for (uint32_t i = 0; i < kCount; ++i) {
        const double x = 0.001 * i + 0.1;
        if (type == DType::f32)
          reinterpret_cast<float*>(in.data())[i] = static_cast<float>(x);
        else
          in[i] = x;
      }
      const NativeProgram program = native(bench::elementwise(op, type));
      const auto prepared =
          program.prepare({.grid = {kCount / 256, 1, 1}, .block = {256, 1, 1}},
                          {Argument::array(in.data(), kCount), Argument::array(out.data(), kCount),
                           Argument::scalar(kCount)});
      const double ours = in_turns([&] { prepared(); }, [] {}, 0.1).first;
      fmt::print("  {:8} {} {:6.3f} ns each\n", isa::info(op).name, name_of(type),
                 ours * 1e9 / kCount);
    }
  const NativeProgram gelu = native(bench::gelu()), softmax = native(bench::row_softmax());
  std::vector<float> in(kCount, 0.5f), out(kCount);
  const auto run_gelu = gelu.prepare(
      {.grid = {kCount / 256, 1, 1}, .block = {256, 1, 1}},
      {Argument::array(std::span(in)), Argument::array(std::span(out)), Argument::scalar(kCount)});
  fmt::print("  gelu     f32 {:6.3f} ns each\n",
             in_turns([&] { run_gelu(); }, [] {}, 0.1).first * 1e9 / kCount);
  const auto run_softmax = softmax.prepare(
      {.grid = {1, 1, 1}, .block = {64, 1, 1}},
      {Argument::array(std::span(in)), Argument::array(std::span(out)), Argument::scalar(kCount)});
  fmt::print("  softmax  f32 {:6.3f} ns each, a row of {}\n",
             in_turns([&] { run_softmax(); }, [] {}, 0.1).first * 1e9 / kCount, kCount);
}

}  // namespace

int main() {
  compile_times();
  elementwise_ratios();
  loop_ratios();
  function_speeds();
}
