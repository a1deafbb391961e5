// dense_bench [FILTER]: the CPU's numeric kernels at the shapes of known models, each beside the
// machine's ceiling measured in turns with it. Prints kernel, shape, median time and speed, and
// what share of the ceiling that was in the median turn, with the middle 80% of the turns.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cpu/dense/activate.h"
#include "backends/cpu/dense/attention.h"
#include "backends/cpu/dense/conv.h"
#include "backends/cpu/dense/conv_bf16.h"
#include "backends/cpu/dense/conv_digits.h"
#include "backends/cpu/dense/gemm.h"
#include "backends/cpu/dense/gemm_bits.h"
#include "backends/cpu/dense/gemm_narrow.h"
#include "backends/cpu/dense/movement.h"
#include "backends/cpu/dense/normalize.h"
#include "backends/cpu/dense/pool.h"
#include "backends/cpu/dense/recurrent.h"
#include "backends/cpu/dense/unit_tile.h"
#include "bench/measure.h"
#include "fmt/core.h"
#include "support/aligned.h"

namespace hologram::bench {
namespace {
using namespace backends::dense;

std::string filter;
bool wanted(const std::string& name) { return name.find(filter) != std::string::npos; }

struct Floats {
  AlignedBytes bytes;
  explicit Floats(size_t count, float scale = 1.0f)
      : bytes(AlignedBytes::allocate(count * sizeof(float) + 64).value()) {
    uint32_t state = 12345;
    for (float& v : bytes.as<float>()) {
      state = state * 1664525u + 1013904223u;
      v = scale * (static_cast<float>(state >> 8) / 16777216.0f - 0.5f);
    }
  }
  float* data() const { return bytes.as<float>().data(); }
};

void row(const std::string& name, const std::string& shape, double amount, const char* unit,
         Timing t, unsigned threads = 1) {
  const double part = amount * 1e-9 / threads;
  fmt::print("{:<26} {:<34} {:>10.1f} us {:>8.1f} {:<8} {:>5.3f} ({:.2f}..{:.2f}) of {:.1f}\n",
             name, shape, t.seconds * 1e6, amount / t.seconds * 1e-9, unit, part * t.share,
             part * t.low, part * t.high, t.ceiling);
  std::fflush(stdout);
}

double bench_gemm(const char* name, size_t m, size_t n, size_t k, ThreadPool& pool,
                  Activation activation = Activation::none, bool packed = true) {
  if (!wanted(name)) return 0;
  Floats a(m * k), b(k * n), c(m * n), bias(n), b_packed(packed_b_bytes(k, n) / 4);
  pack_b(k, n, b.data(), n, false, b_packed.data(), pool);
  Gemm g{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .c = c.data(), .ldc = n};
  g.packed_b = packed ? b_packed.data() : nullptr;
  g.b = packed ? nullptr : b.data();
  g.ldb = n;
  g.epilogue.bias = bias.data();
  g.epilogue.activation = activation;
  Floats scratch(gemm_scratch_bytes(g) / 4);
  const auto run = [&] { gemm(g, scratch.bytes.data(), pool); };
  const Timing t = measure(run, fma_ceiling, 0.3, pool.size() == 1);
  row(name, fmt::format("{}x{}x{} threads {}", m, n, k, pool.size()), 2.0 * m * n * k, "GFLOP/s", t,
      pool.size());
  return t.seconds;
}

// Weights far beyond the caches: each call uses the next matrix of a ring.
constexpr size_t kRingBytes = size_t{1} << 30;
void bench_gemv(const char* name, size_t m, size_t n, size_t k, ThreadPool& pool) {
  if (!wanted(name)) return;
  const size_t bytes = packed_b_bytes(k, n), ring = kRingBytes / bytes;
  Floats a(m * k), c(m * n), b(ring * bytes / 4);
  Gemm g{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .c = c.data(), .ldc = n};
  size_t turn = 0;
  g.packed_b = b.data();
  Floats scratch(gemm_scratch_bytes(g) / 4);
  const auto run = [&] {
    g.packed_b = b.data() + turn++ % ring * (bytes / 4);
    gemm(g, scratch.bytes.data(), pool);
  };
  const Timing t = measure(run, read_ceiling, 1.0, pool.size() == 1);
  row(name, fmt::format("{}x{}x{} threads {}", m, n, k, pool.size()), static_cast<double>(bytes),
      "GB/s", t);
}

// By weights of 4 or 8 bits: what counts as read is the packed matrix, scales and all.
void bench_gemv_bits(const char* name, size_t m, size_t n, size_t k, unsigned bits, size_t group,
                     ThreadPool& pool, bool zeros = false) {
  const std::string title = fmt::format("{} int{}{}", name, bits, zeros ? " zeros" : "");
  if (!wanted(title)) return;
  GemmBits g{.m = m,
             .form = {.k = k, .n = n, .bits = bits, .group = group, .zeros = zeros},
             .lda = k,
             .ldc = n};
  const size_t bytes = packed_b_bits_bytes(g.form), ring = kRingBytes / bytes;
  // Scales must be numbers, or sums slow down: what a real matrix packs to, over and over.
  const std::vector<uint8_t> codes(k * n, 5);
  const std::vector<float> scales(n * g.form.groups(), 0.01f);
  Floats a(m * k), c(m * n), b(ring * bytes / 4);
  pack_b_bits(g.form, {.codes = codes.data(), .scales = scales.data()}, b.bytes.data());
  for (size_t i = 1; i < ring; ++i) std::memcpy(b.bytes.data() + i * bytes, b.bytes.data(), bytes);
  g.a = a.data();
  g.c = c.data();
  Floats scratch(gemm_bits_scratch_bytes(g) / 4);
  size_t turn = 0;
  const auto run = [&] {
    g.packed_b = b.bytes.data() + turn++ % ring * bytes;
    gemm_bits(g, scratch.bytes.data(), pool);
  };
  row(title, fmt::format("{}x{}x{} threads {}", m, n, k, pool.size()), static_cast<double>(bytes),
      "GB/s", measure(run, read_ceiling, 1.0, pool.size() == 1));
}

// Few rows by one matrix in f32, by weights of 16 bits and by bf16, in turns: medians, and what
// part of the time of f32 the others take. `ring` matrices follow each other: one stays in the
// cache where it fits.
void bench_gemv_forms(size_t m, size_t n, size_t k, size_t ring, ThreadPool& pool) {
  if (!wanted("gemv forms")) return;
  const BitsForm form{.k = k, .n = n, .bits = 16, .group = 128};
  constexpr size_t kForms = 4;
  const size_t bytes[kForms] = {packed_b_bytes(k, n), packed_b_bits_bytes(form),
                                packed_b_bf16_bytes(k, n),
                                align_up(packed_b_int8_bytes(k, n), kAlignment)};
  Floats a(m * k), b(k * n), c(m * n), scales(n);
  const std::vector<int8_t> codes(k * n, 3);
  std::vector<Floats> matrices;
  for (size_t f = 0; f < kForms; ++f) matrices.emplace_back(ring * bytes[f] / 4);
  for (size_t i = 0; i < ring; ++i) {
    pack_b(k, n, b.data(), n, false, matrices[0].data() + i * bytes[0] / 4, pool);
    pack_b_words(form, b.data(), n, false, matrices[1].bytes.data() + i * bytes[1]);
    pack_b_bf16(k, n, b.data(), n, false, matrices[2].bytes.data() + i * bytes[2]);
    pack_b_int8(k, n, codes.data(), n, false, true, matrices[3].bytes.data() + i * bytes[3]);
  }
  Gemm plain{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .c = c.data(), .ldc = n};
  GemmBits words{.m = m, .form = form, .a = a.data(), .lda = k, .c = c.data(), .ldc = n};
  GemmBf16 bf16{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .c = c.data(), .ldc = n};
  GemmInt8 int8{.m = m, .n = n, .k = k, .lda = k, .values = a.data(), .output = Int8Output::f32};
  int8.c = c.data(), int8.ldc = n, int8.scales = scales.data();
  plain.packed_b = matrices[0].data();
  Floats scratch((gemm_scratch_bytes(plain) + gemm_bits_scratch_bytes(words) +
                  gemm_bf16_scratch_bytes(bf16) + gemm_int8_scratch_bytes(int8)) /
                     4 +
                 16);
  size_t turns[kForms] = {};
  const auto run = [&](size_t f) {
    const std::byte* matrix = matrices[f].bytes.data() + turns[f]++ % ring * bytes[f];
    plain.packed_b = reinterpret_cast<const float*>(matrix);
    words.packed_b = bf16.packed_b = int8.packed_b = matrix;
    if (f == 0) gemm(plain, scratch.bytes.data(), pool);
    if (f == 1) gemm_bits(words, scratch.bytes.data(), pool);
    if (f == 2) gemm_bf16(bf16, scratch.bytes.data(), pool);
    if (f == 3) gemm_int8(int8, scratch.bytes.data(), pool);
  };
  std::vector<double> times[kForms];
  const size_t calls = ring == 1 ? std::max<size_t>(1, 4000000 / (m * n * k)) : ring;
  for (size_t round = 0; round < 40; ++round)
    for (size_t f = 0; f < kForms; ++f) {
      run(f);
      const auto start = std::chrono::steady_clock::now();
      for (size_t i = 0; i < calls; ++i) run(f);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      times[f].push_back(taken.count() / static_cast<double>(calls));
    }
  double medians[kForms];
  for (size_t f = 0; f < kForms; ++f) {
    std::ranges::nth_element(times[f], times[f].begin() + 20);
    medians[f] = times[f][20];
  }
  fmt::print("{:<26} {:<34} f32 {:>8.2f} us  16 bits {:>5.2f}  bf16 {:>5.2f}  8 bits {:>5.2f}\n",
             "gemv forms",
             fmt::format("{}x{}x{} threads {}{}", m, n, k, pool.size(), ring > 1 ? " memory" : ""),
             medians[0] * 1e6, medians[1] / medians[0], medians[2] / medians[0],
             medians[3] / medians[0]);
  std::fflush(stdout);
}

void gemv_forms_table(ThreadPool& one, ThreadPool& two) {
  for (size_t m : {1, 2, 3, 4})
    for (auto [n, k] : {std::pair<size_t, size_t>{32, 64},
                        {16, 512},
                        {32, 256},
                        {64, 128},
                        {128, 128},
                        {512, 128},
                        {128, 1536},
                        {1000, 512},
                        {1000, 1280}})
      bench_gemv_forms(m, n, k, 1, one);
  for (size_t m : {8, 32}) bench_gemv_forms(m, 512, 128, 1, one);  // steps of an LSTM
  bench_gemv_forms(1, 128, 1536, 1, two);
  bench_gemv_forms(1, 1000, 1280, 1, two);
  for (size_t m : {1, 2, 4}) bench_gemv_forms(m, 4096, 4096, 8, one);
  bench_gemv_forms(1, 4096, 4096, 8, two);
}

void gemm_table(ThreadPool& one, ThreadPool& two) {
  bench_gemm("gemm square", 512, 512, 512, one);
  bench_gemm("gemm bert up", 128, 3072, 768, one);
  bench_gemm("gemm bert down", 128, 768, 3072, one);
  bench_gemm("gemm bert up gelu", 128, 3072, 768, one, Activation::gelu_erf);
  bench_gemm("gemm bert projection", 128, 768, 768, one);
  bench_gemm("gemm vit up", 197, 3072, 768, one);
  bench_gemm("gemm gpt2 head", 128, 50257, 768, one);
  bench_gemm("gemm minilm", 128, 1536, 384, one);
  bench_gemm("gemm unpacked", 512, 512, 512, one, Activation::none, false);
  bench_gemm("gemm unpacked scores", 128, 128, 64, one, Activation::none, false);
  bench_gemm("gemm odd", 333, 333, 333, one);
  for (auto [m, n, k] :
       {std::array<size_t, 3>{512, 512, 512}, {128, 3072, 768}, {128, 768, 3072}}) {
    const double t1 = bench_gemm("gemm scaling", m, n, k, one);
    const double t2 = bench_gemm("gemm scaling", m, n, k, two);
    if (t1 > 0)
      fmt::print("{:<26} {}x{}x{}: {:.2f} on two threads\n", "gemm scaling", m, n, k, t1 / t2);
  }
  for (size_t m : {1, 2, 3, 4, 6, 8, 12, 14, 16}) bench_gemv("gemv gpt2", m, 3072, 768, one);
  for (size_t n : {128, 1536})
    for (size_t m : {3, 6, 8, 14, 24}) bench_gemm("gemm few", m, n, 512, one);
  bench_gemv("gemv llama", 1, 4096, 4096, one);
  bench_gemv("gemv llama", 1, 4096, 4096, two);
  for (unsigned bits : {8u, 4u}) {
    const size_t group = bits == 4 ? 32 : 0;
    bench_gemv_bits("gemv gpt2", 1, 3072, 768, bits, group, one);
    for (size_t m : {1, 2, 4}) bench_gemv_bits("gemv llama", m, 4096, 4096, bits, group, one);
    bench_gemv_bits("gemv llama", 1, 4096, 4096, bits, group, two);
  }
  bench_gemv_bits("gemv llama", 1, 4096, 4096, 4, 32, one, true);
}

void bench_conv(const std::string& name, size_t in, size_t out, size_t size, size_t kernel,
                size_t stride, size_t groups, ThreadPool& pool, Layout input = Layout::blocked,
                Layout output = Layout::blocked, Activation activation = Activation::relu,
                ConvAlgorithm algorithm = ConvAlgorithm::direct) {
  if (!wanted(name)) return;
  Conv c;
  ConvShape& s = c.shape;
  s.algorithm = algorithm;
  s.in_channels = in;
  s.out_channels = out;
  s.in_height = s.in_width = size;
  s.kernel_height = s.kernel_width = kernel;
  s.stride_height = s.stride_width = stride;
  s.pad_top = s.pad_left = kernel / 2;
  s.groups = groups;
  s.out_height = s.out_width = conv_output_size(size, kernel / 2 * 2, kernel, stride, 1);
  c.input_layout = input;
  c.output_layout = output;
  const size_t taps = kernel * kernel;
  Floats weights(out * in / groups * taps), packed(packed_conv_weight_bytes(s, input) / 4);
  pack_conv_weights(s, input, weights.data(), packed.data());
  Floats x(channel_blocks(in) * 16 * size * size), bias(out);
  Floats y(channel_blocks(out) * 16 * s.out_height * s.out_width);
  c.input = x.data();
  c.output = y.data();
  c.packed_weights = packed.data();
  c.epilogue.bias = bias.data();
  c.epilogue.activation = activation;
  c.epilogue.first = 1.0f;
  Floats scratch(conv_scratch_bytes(c) / 4);
  const auto run = [&] { conv(c, scratch.bytes.data(), pool); };
  const Timing t = measure(run, fma_ceiling, 0.15, pool.size() == 1);
  row(name, fmt::format("{}->{} {}x{} k{} s{} g{}", in, out, size, size, kernel, stride, groups),
      2.0 * out * in / groups * taps * s.out_height * s.out_width, "GFLOP/s", t, pool.size());
}

void bench_conv_bf16(const char* name, Bf16Parts parts, size_t in, size_t out, size_t size,
                     size_t kernel, size_t stride, ThreadPool& pool) {
  if (!wanted(name)) return;
  ConvBf16 c;
  c.input_layout = in <= 4 ? Layout::nchw : Layout::blocked;
  ConvShape& s = c.shape;
  s.in_channels = in;
  s.out_channels = out;
  s.in_height = s.in_width = size;
  s.kernel_height = s.kernel_width = kernel;
  s.stride_height = s.stride_width = stride;
  s.pad_top = s.pad_left = kernel / 2;
  s.out_height = s.out_width = conv_output_size(size, kernel / 2 * 2, kernel, stride, 1);
  c.parts = parts;
  Floats weights(out * in * kernel * kernel),
      packed(packed_conv_bf16_bytes(s, parts, c.input_layout) / 4);
  pack_conv_bf16(s, parts, weights.data(), packed.bytes.data(), c.input_layout);
  Floats x(channel_blocks(in) * 16 * size * size), bias(out);
  Floats y(channel_blocks(out) * 16 * s.out_height * s.out_width);
  c.input = x.data();
  c.output = y.data();
  c.packed_weights = packed.bytes.data();
  c.epilogue.bias = bias.data();
  c.epilogue.activation = Activation::relu;
  Floats scratch(conv_bf16_scratch_bytes(c) / 4);
  const auto run = [&] { conv_bf16(c, scratch.bytes.data(), pool); };
  const Timing t = measure(run, fma_ceiling, 0.15, pool.size() == 1);
  row(name, fmt::format("{}->{} {}x{} k{} s{}", in, out, size, size, kernel, stride),
      2.0 * out * in * kernel * kernel * s.out_height * s.out_width, "GFLOP/s", t, pool.size());
}

void bench_conv_digits(const char* name, const ConvShape& s, ThreadPool& pool) {
  if (!wanted(name)) return;
  const size_t taps = s.kernel_height * s.kernel_width;
  Floats weights(s.out_channels * s.in_channels * taps), packed(packed_conv_digits_bytes(s) / 4);
  pack_conv_digits(s, weights.data(), packed.bytes.data());
  Floats x(channel_blocks(s.in_channels) * 16 * s.in_height * s.in_width), bias(s.out_channels);
  Floats y(channel_blocks(s.out_channels) * 16 * s.out_height * s.out_width);
  ConvDigits c{
      .shape = s, .input = x.data(), .packed_weights = packed.bytes.data(), .output = y.data()};
  c.epilogue.bias = bias.data();
  c.epilogue.activation = Activation::relu;
  Floats scratch(conv_digits_scratch_bytes(c) / 4);
  const auto run = [&] { conv_digits(c, scratch.bytes.data(), pool); };
  const Timing t = measure(run, fma_ceiling, 0.15, pool.size() == 1);
  const bool pays = conv_digits_pays(s);
  row(name + std::string(pays ? " *" : ""),
      fmt::format("{}->{} {}x{} k{} s{}", s.in_channels, s.out_channels, s.in_height, s.in_width,
                  s.kernel_height, s.stride_height),
      2.0 * s.out_channels * s.in_channels * taps * s.out_height * s.out_width, "GFLOP/s", t,
      pool.size());
}

// Two parts against digits; a star where the compiler takes digits.
void conv_forms_table(ThreadPool& one) {
  struct Layer {
    size_t in, out, size, kernel, stride;
  };
  for (const Layer& l : {// ResNet
                         Layer{64, 64, 56, 3, 1},
                         {128, 128, 28, 3, 1},
                         {256, 256, 14, 3, 1},
                         {512, 512, 7, 3, 1},
                         {128, 128, 56, 3, 2},
                         {512, 512, 14, 3, 2},
                         {256, 64, 56, 1, 1},
                         {64, 256, 56, 1, 1},
                         {1024, 256, 14, 1, 1},
                         {256, 1024, 14, 1, 1},
                         {64, 64, 56, 1, 1},
                         {512, 1024, 28, 1, 2},
                         // DenseNet
                         {128, 32, 28, 3, 1},
                         {256, 128, 28, 1, 1},
                         {96, 128, 56, 1, 1},
                         // SqueezeNet
                         {64, 16, 55, 1, 1},
                         {16, 64, 55, 1, 1},
                         {16, 64, 55, 3, 1},
                         {32, 128, 27, 3, 1},
                         {48, 192, 13, 3, 1},
                         {64, 256, 13, 3, 1},
                         {512, 1000, 13, 1, 1},
                         // MobileNet, RetinaFace
                         {24, 144, 56, 1, 1},
                         {144, 24, 56, 1, 1},
                         {96, 576, 14, 1, 1},
                         {64, 32, 64, 3, 1}}) {
    bench_conv_bf16("conv forms parts", Bf16Parts::two, l.in, l.out, l.size, l.kernel, l.stride,
                    one);
    ConvShape s;
    s.in_channels = l.in;
    s.out_channels = l.out;
    s.in_height = s.in_width = l.size;
    s.kernel_height = s.kernel_width = l.kernel;
    s.stride_height = s.stride_width = l.stride;
    s.pad_top = s.pad_left = l.kernel / 2;
    s.out_height = s.out_width = conv_output_size(l.size, l.kernel / 2 * 2, l.kernel, l.stride, 1);
    bench_conv_digits("conv forms digits", s, one);
  }
}

void conv_bf16_table(ThreadPool& one) {
  for (auto [parts, name] :
       {std::pair{Bf16Parts::two, "conv fast"}, {Bf16Parts::one, "conv bf16"}}) {
    bench_conv_bf16(name, parts, 3, 64, 224, 7, 2, one);
    bench_conv_bf16(name, parts, 3, 32, 224, 3, 2, one);
    for (auto [channels, size] :
         {std::pair<size_t, size_t>{64, 56}, {128, 28}, {256, 14}, {512, 7}}) {
      bench_conv_bf16(name, parts, channels * 4, channels, size, 1, 1, one);
      bench_conv_bf16(name, parts, channels, channels, size, 3, 1, one);
      bench_conv_bf16(name, parts, channels, channels * 4, size, 1, 1, one);
      if (channels < 512) bench_conv_bf16(name, parts, channels * 2, channels * 2, size, 3, 2, one);
    }
  }
}

void conv_table(ThreadPool& one, ThreadPool& two) {
  bench_conv("conv first", 3, 64, 224, 7, 2, 1, one, Layout::nchw);
  bench_conv("conv first", 3, 32, 224, 3, 2, 1, one, Layout::nchw);
  const std::string resnet = "conv resnet50";
  for (auto [channels, size] :
       {std::pair<size_t, size_t>{64, 56}, {128, 28}, {256, 14}, {512, 7}}) {
    bench_conv(resnet, channels * 4, channels, size, 1, 1, 1, one);
    bench_conv(resnet, channels, channels, size, 3, 1, 1, one);
    bench_conv(resnet, channels, channels * 4, size, 1, 1, 1, one);
    if (channels < 512) bench_conv(resnet, channels * 2, channels * 2, size, 3, 2, 1, one);
    if (channels < 512) bench_conv(resnet, channels * 4, channels * 8, size, 1, 2, 1, one);
  }
  for (auto [channels, size] :
       {std::pair<size_t, size_t>{32, 112}, {64, 56}, {128, 28}, {256, 14}, {512, 7}}) {
    ConvShape s{.in_channels = channels,
                .in_height = size,
                .in_width = size,
                .out_channels = channels,
                .out_height = size,
                .out_width = size,
                .kernel_height = 3,
                .kernel_width = 3};
    for (auto [algorithm, name] : {std::pair{ConvAlgorithm::direct, "conv 3x3 direct"},
                                   {ConvAlgorithm::winograd, "conv 3x3 winograd"}})
      bench_conv(name + std::string(algorithm == best_conv_algorithm(s) ? " *" : ""), channels,
                 channels, size, 3, 1, 1, one, Layout::blocked, Layout::blocked, Activation::relu,
                 algorithm);
  }
  bench_conv("conv nchw", 64, 64, 56, 3, 1, 1, one, Layout::nchw, Layout::nchw);
  bench_conv("conv nchw", 256, 64, 56, 1, 1, 1, one, Layout::nchw, Layout::nchw);
  bench_conv("conv two threads", 128, 128, 28, 3, 1, 1, two);
  const std::string mobile = "conv mobilenet";
  bench_conv(mobile, 16, 96, 112, 1, 1, 1, one);
  bench_conv(mobile, 96, 24, 56, 1, 1, 1, one);
  bench_conv(mobile, 24, 144, 56, 1, 1, 1, one);
  bench_conv(mobile, 192, 32, 28, 1, 1, 1, one);
  bench_conv(mobile, 384, 64, 14, 1, 1, 1, one);
  bench_conv(mobile, 960, 160, 7, 1, 1, 1, one);
  bench_conv(mobile, 320, 1280, 7, 1, 1, 1, one);
  bench_conv("conv silu", 24, 144, 56, 1, 1, 1, one, Layout::blocked, Layout::blocked,
             Activation::silu);
  bench_conv("depthwise", 32, 32, 112, 3, 1, 32, one);
  bench_conv("depthwise", 96, 96, 112, 3, 2, 96, one);
  bench_conv("depthwise", 144, 144, 56, 3, 1, 144, one);
  bench_conv("depthwise", 384, 384, 14, 3, 1, 384, one);
  bench_conv("depthwise", 960, 960, 7, 3, 1, 960, one);
  bench_conv("depthwise", 240, 240, 28, 5, 2, 240, one);
  bench_conv("depthwise nchw", 144, 144, 56, 3, 1, 144, one, Layout::nchw, Layout::nchw);
  bench_conv("depthwise silu", 144, 144, 56, 3, 1, 144, one, Layout::blocked, Layout::blocked,
             Activation::silu);
  bench_conv("conv vit patch", 3, 768, 224, 16, 16, 1, one, Layout::nchw);
}

void bench_int8(size_t m, size_t n, size_t k, ThreadPool& pool) {
  if (!wanted("gemm int8")) return;
  Floats a(m * k / 4 + 1), b(n * k / 4 + 1), c(m * n), scales(n);
  Floats packed(packed_b_int8_bytes(k, n) / 4);
  pack_b_int8(k, n, b.data(), n, false, true, packed.bytes.data());
  GemmInt8 g{.m = m,
             .n = n,
             .k = k,
             .a = a.data(),
             .lda = k,
             .a_zero = 128,
             .packed_b = packed.bytes.data(),
             .output = Int8Output::f32,
             .c = c.data(),
             .ldc = n,
             .scales = scales.data()};
  Floats scratch(gemm_int8_scratch_bytes(g) / 4);
  const auto run = [&] { gemm_int8(g, scratch.bytes.data(), pool); };
  row("gemm int8", fmt::format("{}x{}x{}", m, n, k), 2.0 * m * n * k, "GOP/s",
      measure(run, fma_ceiling, 0.2, pool.size() == 1), pool.size());
  // Rows of f32, as products by constants have them where errors allow it.
  Floats values(m * k);
  g.values = values.data();
  Floats more(gemm_int8_scratch_bytes(g) / 4);
  const auto run_floats = [&] { gemm_int8(g, more.bytes.data(), pool); };
  row("gemm int8 of f32", fmt::format("{}x{}x{}", m, n, k), 2.0 * m * n * k, "GOP/s",
      measure(run_floats, fma_ceiling, 0.2, pool.size() == 1), pool.size());
}

void bench_bf16(const char* name, Bf16Parts parts, size_t m, size_t n, size_t k, ThreadPool& pool) {
  if (!wanted(name)) return;
  Floats a(m * k), b(n * k), c(m * n), packed(packed_b_bf16_bytes(k, n, parts) / 4);
  pack_b_bf16(k, n, b.data(), n, false, packed.bytes.data(), parts);
  GemmBf16 g{.m = m,
             .n = n,
             .k = k,
             .a = a.data(),
             .lda = k,
             .parts = parts,
             .packed_b = packed.bytes.data(),
             .c = c.data(),
             .ldc = n};
  Floats scratch(gemm_bf16_scratch_bytes(g) / 4);
  const auto run = [&] { gemm_bf16(g, scratch.bytes.data(), pool); };
  row(name, fmt::format("{}x{}x{}", m, n, k), 2.0 * m * n * k, "GFLOP/s",
      measure(run, fma_ceiling, 0.2, pool.size() == 1), pool.size());
}

void bench_digits(const char* name, size_t m, size_t n, size_t k, ThreadPool& pool) {
  if (!wanted(name)) return;
  Floats a(m * k), b(n * k), c(m * n), packed(packed_b_digits_bytes(k, n) / 4);
  pack_b_digits(k, n, b.data(), n, false, packed.bytes.data());
  GemmDigits g{.m = m,
               .n = n,
               .k = k,
               .a = a.data(),
               .lda = k,
               .packed_b = packed.bytes.data(),
               .c = c.data(),
               .ldc = n};
  Floats scratch(gemm_digits_scratch_bytes(g) / 4);
  const auto run = [&] { gemm_digits(g, scratch.bytes.data(), pool); };
  row(name, fmt::format("{}x{}x{}", m, n, k), 2.0 * m * n * k, "GFLOP/s",
      measure(run, fma_ceiling, 0.2, pool.size() == 1), pool.size());
}

void bench_shorts(const char* name, size_t m, size_t n, size_t k, ThreadPool& pool) {
  if (!wanted(name)) return;
  Floats a(m * k), b(n * k), c(m * n), packed(packed_b_shorts_bytes(k, n) / 4);
  pack_b_shorts(k, n, b.data(), n, false, packed.bytes.data());
  GemmShorts g{.m = m,
               .n = n,
               .k = k,
               .a = a.data(),
               .lda = k,
               .packed_b = packed.bytes.data(),
               .c = c.data(),
               .ldc = n};
  Floats scratch(gemm_shorts_scratch_bytes(g) / 4);
  const auto run = [&] { gemm_shorts(g, scratch.bytes.data(), pool); };
  row(name, fmt::format("{}x{}x{}", m, n, k), 2.0 * m * n * k, "GFLOP/s",
      measure(run, fma_ceiling, 0.2, pool.size() == 1), pool.size());
}

void bench_attention(const char* model, size_t heads, size_t tokens, size_t depth, bool causal,
                     ThreadPool& pool, size_t parts) {
  const bool shorts = parts == 3;  // in the place of parts
  const char* name = shorts       ? "attention shorts"
                     : parts == 2 ? "attention fast"
                     : parts == 1 ? "attention bf16"
                                  : "attention";
  if (!wanted(name)) return;
  const size_t width = heads * depth;
  Floats q(tokens * width), k(tokens * width), v(tokens * width), out(tokens * width);
  const HeadStrides strides{tokens * width, depth, width};
  Attention a{.heads = heads,
              .kv_heads = heads,
              .queries = tokens,
              .keys = tokens,
              .depth = depth,
              .value_depth = depth,
              .q = q.data(),
              .k = k.data(),
              .v = v.data(),
              .out = out.data(),
              .q_strides = strides,
              .k_strides = strides,
              .v_strides = strides,
              .out_strides = strides,
              .scale = 0.125f,
              .causal = causal,
              .parts = shorts ? 0 : parts,
              .shorts = shorts};
  Floats scratch(attention_scratch_bytes(a) / 4);
  const auto run = [&] { attention(a, scratch.bytes.data(), pool); };
  const double work = 4.0 * heads * tokens * tokens * depth * (causal ? 0.5 : 1.0);
  row(name, fmt::format("{} {} heads {} tokens", model, heads, tokens), work, "GFLOP/s",
      measure(run, fma_ceiling, 0.2, pool.size() == 1), pool.size());
}

// Kernels that move more than they compute: bytes read and written, against the read ceiling.
void bench_bytes(const char* name, const std::string& shape, double bytes,
                 const std::function<void()>& run) {
  if (wanted(name)) row(name, shape, bytes, "GB/s", measure(run, read_ceiling, 0.3, true));
}

void memory_table(ThreadPool& one) {
  const size_t tokens = 128, width = 768;
  Floats x(tokens * 3072 * 4), y(tokens * 3072 * 4), scale(width), bias(width);
  const auto run_norm = [&] {
    row_norm({.rows = tokens,
              .n = width,
              .x = x.data(),
              .scale = scale.data(),
              .bias = bias.data(),
              .y = y.data()},
             one);
  };
  bench_bytes("layer norm", "bert 128x768", 8.0 * tokens * width, run_norm);
  bench_bytes("softmax", "12x128x128", 8.0 * 12 * 128 * 128,
              [&] { softmax(12 * 128, 128, 1, x.data(), y.data(), one); });
  bench_bytes("softmax", "imagenet 64x1000", 8.0 * 64 * 1000,
              [&] { softmax(64, 1000, 1, x.data(), y.data(), one); });
  for (auto [activation, name] : {std::pair{Activation::gelu_erf, "gelu erf"},
                                  {Activation::gelu_tanh, "gelu tanh"},
                                  {Activation::silu, "silu"},
                                  {Activation::sigmoid, "sigmoid"},
                                  {Activation::exp, "exp"}})
    bench_bytes(name, "128x3072", 8.0 * tokens * 3072, [&, a = activation] {
      activate(a, 1.0f, 0.0f, x.data(), y.data(), tokens * 3072, one);
    });
  const size_t dims[] = {128, 12, 64}, heads[] = {1, 0, 2}, keys[] = {1, 2, 0};
  bench_bytes("permute", "128x12x64 to heads", 8.0 * tokens * width,
              [&] { permute(dims, heads, 4, x.data(), y.data(), one); });
  bench_bytes("permute", "128x12x64 to keys", 8.0 * tokens * width,
              [&] { permute(dims, keys, 4, x.data(), y.data(), one); });
  bench_bytes("to blocked", "64x56x56", 8.0 * 64 * 56 * 56,
              [&] { to_blocked(1, 64, 56 * 56, x.data(), y.data(), one); });
  Pool p{.layout = Layout::blocked,
         .channels = 64,
         .in_height = 112,
         .in_width = 112,
         .out_height = 56,
         .out_width = 56,
         .kernel_height = 3,
         .kernel_width = 3,
         .stride_height = 2,
         .stride_width = 2,
         .pad_top = 1,
         .pad_left = 1,
         .x = x.data(),
         .y = y.data()};
  bench_bytes("max pool", "resnet 64x112x112 blocked", 4.0 * 64 * (112 * 112 + 56 * 56),
              [&] { pool(p, one); });
  Pool plain = p;
  plain.layout = Layout::nchw;
  bench_bytes("max pool", "resnet 64x112x112 nchw", 4.0 * 64 * (112 * 112 + 56 * 56),
              [&] { pool(plain, one); });
}

void bench_lstm(size_t steps, size_t hidden, bool words, ThreadPool& one) {
  if (!wanted("lstm")) return;
  Floats x(steps * hidden), plain(hidden * 4 * hidden), w(packed_b_bytes(hidden, 4 * hidden) / 4),
      y(steps * hidden), narrow(packed_b_bits_bytes(word_form(hidden, 4 * hidden)) / 4);
  pack_b(hidden, 4 * hidden, plain.data(), hidden, true, w.data(), one);
  pack_b_words(word_form(hidden, 4 * hidden), plain.data(), hidden, true, narrow.bytes.data());
  Recurrent r{.steps = steps,
              .batch = 1,
              .input = hidden,
              .hidden = hidden,
              .x = x.data(),
              .x_step = hidden,
              .x_sample = hidden,
              .packed_w = w.data(),
              .packed_r = w.data(),
              .y = y.data(),
              .y_step = hidden,
              .y_sample = hidden};
  if (words) {
    r.words_r = narrow.bytes.data();
    if (steps == 1) r.words_w = narrow.bytes.data();
  }
  Floats scratch(lstm_scratch_bytes(r) / 4);
  const auto run = [&] { lstm(r, scratch.bytes.data(), one); };
  row(words ? "lstm 16 bits" : "lstm", fmt::format("{} steps, {} units", steps, hidden),
      2.0 * steps * 8 * hidden * hidden, "GFLOP/s", measure(run, fma_ceiling, 0.2, true));
}

void lstm_table(ThreadPool& one) {
  for (const size_t hidden : {64, 128, 256})
    for (const size_t steps : {1, 32})
      for (const bool words : {false, true}) bench_lstm(steps, hidden, words, one);
}

}  // namespace
}  // namespace hologram::bench

int main(int argc, char** argv) {
  using namespace hologram;
  if (argc > 1) bench::filter = argv[1];
  ThreadPool one(1), two(2);
  fmt::print("one thread: FMA {:.1f} GFLOP/s, read {:.1f} GB/s\n", bench::fma_ceiling(0.1),
             bench::read_ceiling(0.1));
  bench::gemm_table(one, two);
  bench::gemv_forms_table(one, two);
  bench::conv_table(one, two);
  bench::conv_bf16_table(one);
  bench::conv_forms_table(one);
  for (auto [m, n, k] : {std::array<size_t, 3>{512, 512, 512},
                         {128, 3072, 768},
                         {128, 768, 3072},
                         {1500, 384, 384},
                         {1500, 1536, 384},
                         {1, 768, 768}}) {
    bench::bench_int8(m, n, k, one);
    bench::bench_bf16("gemm bf16", backends::dense::Bf16Parts::one, m, n, k, one);
    bench::bench_bf16("gemm fast", backends::dense::Bf16Parts::two, m, n, k, one);
    bench::bench_shorts("gemm shorts", m, n, k, one);
    bench::bench_digits("gemm digits", m, n, k, one);
  }
  for (size_t parts : {0, 2, 1, 3}) {
    bench::bench_attention("bert", 12, 128, 64, false, one, parts);
    bench::bench_attention("gpt2", 12, 128, 64, true, one, parts);
    bench::bench_attention("vit", 12, 197, 64, false, one, parts);
    bench::bench_attention("whisper", 6, 1500, 64, false, one, parts);
  }
  bench::memory_table(one);
  bench::lstm_table(one);
}
