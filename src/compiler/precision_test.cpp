#include "compiler/precision.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/dense/gemm_bits.h"
#include "backends/cpu/dense/gemm_narrow.h"
#include "backends/cpu/dense/unit_tile.h"
#include "compiler/compile.h"
#include "runtime/session/session.h"
#include "support/aligned.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::ValueType;
using kernels::Tensor;

Tensor random_tensor(const kernels::Dims& dims, uint32_t seed, float scale = 1.0f) {
  Tensor t = *Tensor::allocate(DType::f32, dims);
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  for (int64_t i = 0; i < t.count(); ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    t.as<float>()[i] = scale * (static_cast<float>(state >> 40) / 8388608.0f - 1.0f);
  }
  return t;
}

// Convolutions of 1x1 and 3x3 with stride, activation and a residual, then a product.
Graph network() {
  Graph g;
  const ValueId x = g.add_input("x", ValueType::tensor(DType::f32, Shape({1, 32, 15, 13})));
  const auto constant = [&](const kernels::Dims& dims, uint32_t seed, double depth) {
    return g.add_constant(random_tensor(dims, seed, static_cast<float>(1 / std::sqrt(depth))),
                          "c" + std::to_string(seed));
  };
  const ValueId a = g.op("Relu").input(
      g.op("Conv").input(x).input(constant({48, 32, 1, 1}, 1, 32)).input(constant({48}, 2, 1)));
  const ValueId b = g.op("Conv")
                        .input(a)
                        .input(constant({48, 48, 3, 3}, 3, 432))
                        .attribute("pads", std::vector<int64_t>{1, 1, 1, 1});
  const ValueId c = g.op("Relu").input(g.op("Add").input(a).input(b));
  const ValueId d = g.op("Conv")
                        .input(c)
                        .input(constant({40, 48, 3, 3}, 4, 432))
                        .attribute("strides", std::vector<int64_t>{2, 2})
                        .attribute("pads", std::vector<int64_t>{1, 1, 1, 1});
  const ValueId flat = g.op("Flatten").input(d).attribute("axis", 1);
  g.outputs = {g.op("MatMul").input(flat).input(constant({40 * 8 * 7, 129}, 5, 2240))};
  g.output_names = {"y"};
  EXPECT_TRUE(g.status().has_value()) << g.status().error().to_string();
  return g;
}

std::vector<float> result_of(Graph graph, const kernels::Dims& input, const CompileOptions& options,
                             size_t* bytes = nullptr) {
  auto archive = compile(std::move(graph), options);
  EXPECT_TRUE(archive.has_value()) << archive.error().to_string();
  if (bytes) *bytes = archive->size();
  auto owner = std::make_shared<AlignedBytes>(*AlignedBytes::allocate(archive->size()));
  std::ranges::copy(*archive, owner->data());
  auto session = runtime::Session::open(*archive::Archive::open(owner->bytes(), owner));
  EXPECT_TRUE(session.has_value()) << session.error().to_string();
  const kernels::Value x(random_tensor(input, 9));
  auto y = session->run(std::span(&x, 1));
  EXPECT_TRUE(y.has_value()) << y.error().to_string();
  const Tensor& t = (*y)[0].tensor;
  return {t.as<float>(), t.as<float>() + t.count()};
}

std::vector<float> result(Precision precision, size_t* bytes = nullptr, uint8_t wider = 0) {
  return result_of(network(), {1, 32, 15, 13},
                   {.precision = precision, .widened = std::vector<uint8_t>(100, wider)}, bytes);
}

double error(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = 0, range = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(double(a[i]) - b[i]));
    range = std::max(range, std::abs(double(b[i])));
  }
  return worst / range;
}

TEST(Precision, ErrorsAreWhatWasAskedFor) {
  size_t f32_bytes = 0, bf16_bytes = 0;
  const std::vector<float> exact = result(Precision::f32, &f32_bytes);
  EXPECT_LE(error(result(Precision::fast), exact), 1e-4);
  const std::vector<float> half = result(Precision::bf16, &bf16_bytes);
  EXPECT_LE(error(half, exact), 2e-2);
  EXPECT_NE(half, exact);  // it is what was asked for
  EXPECT_LT(bf16_bytes, f32_bytes * 8 / 10);
}

TEST(Precision, F16StoresHalfTheBytes) {
  size_t f32_bytes = 0, f16_bytes = 0;
  const std::vector<float> exact = result(Precision::f32, &f32_bytes);
  const std::vector<float> half = result(Precision::f16, &f16_bytes);
  EXPECT_LE(error(half, exact), 2e-3);
  EXPECT_NE(half, exact);
  EXPECT_LT(f16_bytes, f32_bytes * 6 / 10);
}

// One product of `rows` rows with a 64 x n matrix.
CompileReport product_report(int64_t rows, int64_t n, Precision precision) {
  Graph g;
  const ValueId x = g.add_input("x", ValueType::tensor(DType::f32, Shape({rows, 64})));
  g.outputs = {g.op("MatMul").input(x).input(g.add_constant(random_tensor({64, n}, 1), "w"))};
  g.output_names = {"y"};
  CompileReport report;
  EXPECT_TRUE(compile(std::move(g), {.precision = precision, .report = &report}).has_value());
  return report;
}

// The network's product is its largest constant.
TEST(Precision, CodesMakeWeightsSmallAndCostLittle) {
  size_t f32_bytes = 0, int8_bytes = 0, int4_bytes = 0;
  const std::vector<float> exact = result(Precision::f32, &f32_bytes);
  const std::vector<float> int8 = result(Precision::int8, &int8_bytes);
  const std::vector<float> int4 = result(Precision::int4, &int4_bytes);
  EXPECT_LE(error(int8, exact), 2e-2);
  EXPECT_LE(error(int4, exact), 2e-1);
  EXPECT_NE(int8, exact);
  EXPECT_NE(int4, int8);
  const size_t weights = 2240 * 33 * 4;
  EXPECT_LT(int8_bytes, f32_bytes - weights * 6 / 10);
  EXPECT_LT(int4_bytes, f32_bytes - weights * 7 / 10);
  EXPECT_EQ(product_report(64, 32, Precision::int4).precision_note,
            "int4: 1 steps by weights of 4 bits, 0 in f32");
}

TEST(Precision, FewRowsOfASmallMatrixStayF32) {
  EXPECT_EQ(product_report(1, 32, Precision::bf16).narrow_steps, 0u);
  EXPECT_EQ(product_report(1, 32, Precision::bf16).wide_steps, 1u);
  EXPECT_EQ(product_report(64, 32, Precision::bf16).narrow_steps, 1u);
  EXPECT_EQ(product_report(1, 5000, Precision::bf16).narrow_steps, 1u);  // half the bytes to read
  EXPECT_EQ(product_report(4, 5000, Precision::fast).narrow_steps, 0u);  // as many
}

// A CPU that multiplies 16-bit integers in pairs takes three rows by them; by AVX2 alone two.
TEST(Precision, RowsByWeightsOf16BitsWithoutDotProducts) {
  if ((hwy::SupportedTargets() & HWY_AVX2) == 0) GTEST_SKIP() << "no AVX2";
  hwy::SetSupportedTargetsForTest(HWY_AVX2);
  hwy::GetChosenTarget().Update(HWY_AVX2);
  EXPECT_FALSE(backends::dense::has_word_products());
  const auto by_words = [](int64_t rows, Precision precision) {
    return product_report(rows, 100, precision).precision_note.find("by weights of 16 bits") !=
           std::string::npos;
  };
  EXPECT_TRUE(by_words(1, Precision::bf16));
  EXPECT_FALSE(by_words(2, Precision::bf16));
  EXPECT_TRUE(by_words(2, Precision::fast));
  EXPECT_FALSE(by_words(3, Precision::fast));
  const auto run = [](Precision precision) {
    Graph g;
    const ValueId x = g.add_input("x", ValueType::tensor(DType::f32, Shape({2, 300})));
    g.outputs = {g.op("MatMul").input(x).input(g.add_constant(random_tensor({300, 170}, 1), "a"))};
    g.output_names = {"y"};
    return result_of(std::move(g), {2, 300}, {.precision = precision});
  };
  const std::vector<float> exact = run(Precision::f32), words = run(Precision::fast);
  EXPECT_LE(error(words, exact), 5e-5);
  EXPECT_NE(words, exact);
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(Precision, OneRowTakesWeightsOf16Bits) {
  for (const Precision precision : {Precision::fast, Precision::bf16}) {
    const std::string note = product_report(1, 100, precision).precision_note;
    EXPECT_NE(note.find("by weights of 16 bits"), std::string::npos) << note;
    EXPECT_EQ(product_report(1, 32, precision).narrow_steps, 0u);  // the row costs as much
    EXPECT_EQ(product_report(1, 1, precision).narrow_steps, 0u);
  }
  if (!backends::dense::has_bf16_tiles()) {
    const int64_t most = backends::dense::has_word_products() ? 3 : 2;
    EXPECT_EQ(product_report(most, 100, Precision::fast).precision_note,
              "fast: 1 steps by weights of 16 bits, 0 steps in f32, since this CPU has no bf16 "
              "tiles");
  }
  EXPECT_EQ(product_report(1, 100, Precision::bf16).precision_note,
            "bf16: 1 steps as bf16, 0 in f32; 1 of them by weights of 16 bits");

  // One after the other, the second by a matrix that lies the other way.
  const auto run = [](Precision precision, uint8_t wider, size_t* bytes) {
    Graph g;
    const ValueId x = g.add_input("x", ValueType::tensor(DType::f32, Shape({1, 300})));
    const ValueId hidden =
        g.op("Relu").input(g.op("Gemm")
                               .input(x)
                               .input(g.add_constant(random_tensor({300, 250}, 1), "a"))
                               .input(g.add_constant(random_tensor({250}, 3), "bias")));
    g.outputs = {g.op("Gemm")
                     .input(hidden)
                     .input(g.add_constant(random_tensor({170, 250}, 2), "b"))
                     .attribute("transB", 1)};
    g.output_names = {"y"};
    return result_of(std::move(g), {1, 300}, {.precision = precision, .widened = {wider, wider}},
                     bytes);
  };
  size_t f32_bytes = 0, words_bytes = 0, wider_bytes = 0;
  const std::vector<float> exact = run(Precision::f32, 0, &f32_bytes);
  const std::vector<float> words = run(Precision::fast, 0, &words_bytes);
  EXPECT_LE(error(words, exact), 5e-5);
  EXPECT_EQ(run(Precision::fast, 1, &wider_bytes), exact);
  EXPECT_EQ(run(Precision::bf16, 0, nullptr), words);
  EXPECT_NE(words, exact);
  EXPECT_LT(words_bytes, f32_bytes - (300 * 250 + 170 * 250) * 7 / 4);
  EXPECT_EQ(wider_bytes, f32_bytes);
}

// An LSTM in two directions and a GRU behind it, of one sample.
TEST(Precision, RecurrentLayersTakeWeightsOf16Bits) {
  const auto run = [](int64_t steps, int64_t batch, Precision precision, uint8_t wider,
                      size_t* bytes, std::string* note, bool open = false) {
    Graph g;
    Shape inputs({steps, batch, 40});
    if (open) inputs[0] = Dim("steps");
    const ValueId x = g.add_input("x", ValueType::tensor(DType::f32, inputs));
    const auto constant = [&](const kernels::Dims& dims, uint32_t seed) {
      return g.add_constant(random_tensor(dims, seed, 0.2f), "c" + std::to_string(seed));
    };
    const ValueId both = g.op("LSTM")
                             .input(x)
                             .input(constant({2, 4 * 48, 40}, 1))
                             .input(constant({2, 4 * 48, 48}, 2))
                             .input(constant({2, 8 * 48}, 3))
                             .attribute("hidden_size", 48)
                             .attribute("direction", "bidirectional");
    const ValueId shape = g.add_constant(
        *Tensor::from<int64_t>({3}, std::vector<int64_t>{open ? -1 : steps, batch, 96}), "shape");
    g.outputs = {g.op("GRU")
                     .input(g.op("Reshape")
                                .input(g.op("Transpose")
                                           .input(both)
                                           .attribute("perm", std::vector<int64_t>{0, 2, 1, 3}))
                                .input(shape))
                     .input(constant({1, 3 * 64, 96}, 4))
                     .input(constant({1, 3 * 64, 64}, 5))
                     .attribute("hidden_size", 64)};
    g.output_names = {"y"};
    EXPECT_TRUE(g.status().has_value()) << g.status().error().to_string();
    CompileReport report;
    std::vector<float> y =
        result_of(std::move(g), {steps, batch, 40},
                  {.precision = precision, .widened = {wider, wider}, .report = &report}, bytes);
    if (note) *note = report.precision_note;
    return y;
  };
  constexpr size_t kStates = 2 * 4 * 48 * 48 + 3 * 64 * 64, kInputs = 2 * 4 * 48 * 40 + 3 * 64 * 96;
  for (const int64_t steps : {1, 7}) {
    size_t f32_bytes = 0, words_bytes = 0, wider_bytes = 0;
    std::string note;
    const auto exact = run(steps, 1, Precision::f32, 0, &f32_bytes, nullptr);
    const auto words = run(steps, 1, Precision::bf16, 0, &words_bytes, &note);
    EXPECT_LE(error(words, exact), 5e-5);
    EXPECT_EQ(run(steps, 1, Precision::bf16, 2, nullptr, nullptr), words);
    EXPECT_EQ(run(steps, 1, Precision::bf16, 3, &wider_bytes, nullptr), exact);
    EXPECT_EQ(wider_bytes, f32_bytes);
    EXPECT_NE(note.find("; 2 of them by weights of 16 bits"), std::string::npos) << note;
    EXPECT_NE(words, exact);
    // All steps at once are many rows for W.
    const size_t narrow = steps == 1 ? kStates + kInputs : kStates;
    EXPECT_LT(words_bytes, f32_bytes - narrow * 7 / 4);
    EXPECT_GT(words_bytes, f32_bytes - narrow * 2);
  }
  size_t f32_bytes = 0, batch_bytes = 0;
  // How many is not known: as if there were few, and right for many.
  const auto exact = run(5, 1, Precision::f32, 0, &f32_bytes, nullptr, true);
  const auto words = run(5, 1, Precision::bf16, 0, &batch_bytes, nullptr, true);
  EXPECT_LE(error(words, exact), 5e-5);
  EXPECT_LT(batch_bytes, f32_bytes - (kStates + kInputs) * 7 / 4);
  run(2, 3, Precision::f32, 0, &f32_bytes, nullptr);
  run(2, 3, Precision::bf16, 0, &batch_bytes, nullptr);
  EXPECT_EQ(batch_bytes, f32_bytes);
}

TEST(Precision, TheReportSaysWhatBecameOfIt) {
  EXPECT_EQ(product_report(64, 32, Precision::f32).precision_note, "");
  EXPECT_EQ(product_report(64, 32, Precision::bf16).precision_note,
            "bf16: 1 steps as bf16, 0 in f32");
  const CompileReport fast = product_report(64, 32, Precision::fast);
  EXPECT_EQ(fast.narrow_steps + fast.wide_steps, 1u);
  EXPECT_NE(fast.to_text().find("precision: fast: 1 steps"), std::string::npos);
}

TEST(Precision, StepsCanBeWider) {
  const auto report_of = [](const std::vector<uint8_t>& widened) {
    CompileReport report;
    EXPECT_TRUE(
        compile(network(), {.precision = Precision::bf16, .widened = widened, .report = &report})
            .has_value());
    return report;
  };
  const CompileReport none = report_of({}), all = report_of(std::vector<uint8_t>(100, 2));
  EXPECT_EQ(none.precision_note.find("wider"), std::string::npos);
  EXPECT_NE(all.precision_note.find(" of them wider"), std::string::npos);
  EXPECT_NE(report_of({0, 3}).precision_note.find("; 1 of them wider"), std::string::npos);
  EXPECT_EQ(none.narrow_steps + none.wide_steps, all.narrow_steps + all.wide_steps);
  // Each step that is wider brings the result nearer, until it is that of `fast`, or of f32.
  const std::vector<float> exact = result(Precision::f32);
  const double first = error(result(Precision::bf16), exact);
  const double last = error(result(Precision::bf16, nullptr, 2), exact);
  EXPECT_GT(first, 1e-4);
  EXPECT_LE(last, 1e-4);
  EXPECT_EQ(result(Precision::fast, nullptr, 2), exact);
}

TEST(Precision, MeasuredProductsMayBeIntegers) {
  const auto run = [](Precision precision, uint8_t wider) {
    Graph g;
    const ValueId x = g.add_input("x", ValueType::tensor(DType::f32, Shape({50, 200})));
    const ValueId hidden = g.op("Relu").input(
        g.op("MatMul").input(x).input(g.add_constant(random_tensor({200, 300}, 1), "a")));
    g.outputs = {
        g.op("MatMul").input(hidden).input(g.add_constant(random_tensor({300, 70}, 2), "b"))};
    g.output_names = {"y"};
    return result_of(std::move(g), {50, 200},
                     {.precision = precision, .widened = {wider, wider}, .measured = true});
  };
  const std::vector<float> exact = run(Precision::f32, 0);
  const std::vector<float> digits = run(Precision::fast, 0), parts = run(Precision::fast, 1);
  EXPECT_LE(error(digits, exact), 5e-5);
  EXPECT_LE(error(parts, exact), 5e-6);
  EXPECT_EQ(run(Precision::fast, 2), exact);
  EXPECT_EQ(digits != parts,
            backends::dense::has_bf16_tiles() || backends::dense::has_word_products());
  const std::vector<float> bytes = run(Precision::bf16, 0), one_part = run(Precision::bf16, 1);
  EXPECT_LE(error(bytes, exact), 2e-2);
  EXPECT_LE(error(one_part, exact), 4e-3);
  EXPECT_NE(bytes, one_part);
  EXPECT_EQ(run(Precision::bf16, widest_grade(Precision::bf16)), exact);
}

TEST(Precision, GradesThatAreTheSameAreNamed) {
  Graph g;
  const ValueId x = g.add_input("x", ValueType::tensor(DType::f32, Shape({50, 200})));
  Tensor infinite = random_tensor({300, 70}, 2);
  infinite.as<float>()[7] = HUGE_VALF;
  const ValueId hidden =
      g.op("MatMul").input(x).input(g.add_constant(random_tensor({200, 300}, 1), "a"));
  g.outputs = {g.op("MatMul").input(hidden).input(g.add_constant(std::move(infinite), "b"))};
  g.output_names = {"y"};
  CompileReport report;
  backends::dense::detail::pretend_bf16_tiles(true);
  EXPECT_TRUE(
      compile(std::move(g), {.precision = Precision::bf16, .measured = true, .report = &report})
          .has_value());
  backends::dense::detail::pretend_bf16_tiles(false);
  // What is not finite has no 8-bit form.
  ASSERT_EQ(report.same_grades.size(), 2u);
  EXPECT_EQ(report.same_grades[0], (std::vector<uint8_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(report.same_grades[1], (std::vector<uint8_t>{1, 1, 2, 3, 4}));
  EXPECT_EQ(report.precision_note, "bf16: 2 steps as bf16, 0 in f32; 1 of them 8-bit integers");
}

// As a CPU with tiles compiles it; the results are the same without them.
TEST(Precision, MeasuredConvolutionsMayBeIntegers) {
  struct Report {
    std::string note;
    std::vector<float> y;
    size_t bytes = 0;
  };
  const auto run = [](Precision precision, bool measured, uint8_t wider = 0, uint8_t last = 0) {
    Report result;
    CompileReport report;
    result.y = result_of(network(), {1, 32, 15, 13},
                         {.precision = precision,
                          .widened = {wider, wider, std::max(wider, last)},
                          .measured = measured,
                          .report = &report},
                         &result.bytes);
    result.note = report.precision_note;
    return result;
  };
  const std::vector<float> exact = result(Precision::f32);
  backends::dense::detail::pretend_bf16_tiles(true);
  const Report parts = run(Precision::fast, false), digits = run(Precision::fast, true);
  const Report wider = run(Precision::fast, true, 1), widest = run(Precision::fast, true, 2);
  const Report bf16 = run(Precision::bf16, true), wider_bf16 = run(Precision::bf16, true, 2);
  const Report plain_row = run(Precision::fast, false, 0, 1);
  backends::dense::detail::pretend_bf16_tiles(false);

  const std::string counts =
      "fast: 3 steps as two bf16 parts, 1 in f32; 1 of them by weights of 16 bits";
  EXPECT_EQ(parts.note, counts);
  // The 1x1 kernel over 32 channels would multiply zeros; the last one has a plain output.
  EXPECT_EQ(digits.note, counts + "; 1 of them 16-bit integers");
  EXPECT_LE(error(digits.y, exact), 1e-4);
  EXPECT_NE(digits.y, parts.y);
  EXPECT_LT(digits.bytes + 48 * 48 * 9, parts.bytes);
  EXPECT_EQ(wider.y, plain_row.y);
  EXPECT_EQ(widest.y, exact);
  // Images between them are bf16 all the same.
  EXPECT_EQ(
      bf16.note,
      "bf16: 3 steps as bf16, 1 in f32; 2 of them 8-bit integers; 1 images between them as bf16");
  EXPECT_LE(error(bf16.y, exact), 2e-2);
  EXPECT_NE(wider_bf16.note.find("; 1 of them 16-bit integers"), std::string::npos);
  EXPECT_LE(error(wider_bf16.y, exact), 1e-4);
}

// Without tiles 16-bit integers are multiplied whole, where the CPU has such products.
TEST(Precision, MeasuredStepsMayBeWholeIntegers) {
  namespace dense = backends::dense;
  if (!dense::has_word_products()) GTEST_SKIP() << "no products of 16-bit integers";
  dense::detail::allow_amx(false);
  const auto run = [](Precision precision, uint8_t wider, std::string* note = nullptr) {
    CompileReport report;
    const std::vector<float> y = result_of(network(), {1, 32, 15, 13},
                                           {.precision = precision,
                                            .widened = std::vector<uint8_t>(4, wider),
                                            .measured = true,
                                            .report = &report});
    if (note) *note = report.precision_note;
    return y;
  };
  std::string note, bf16_note;
  const std::vector<float> exact = result(Precision::f32), shorts = run(Precision::fast, 0, &note);
  const std::vector<float> wider = run(Precision::fast, 1);
  const std::vector<float> in_bf16 = run(Precision::bf16, 2, &bf16_note);
  dense::detail::allow_amx(true);
  // The last convolution has a plain output.
  EXPECT_EQ(note,
            "fast: 2 steps by 16-bit integers, 1 steps by weights of 16 bits, 1 steps in f32, "
            "since this CPU has no bf16 tiles");
  EXPECT_LE(error(shorts, exact), 1e-4);
  EXPECT_NE(shorts, exact);
  EXPECT_EQ(wider, exact);
  EXPECT_NE(bf16_note.find("; 2 of them 16-bit integers"), std::string::npos) << bf16_note;
  EXPECT_LE(error(in_bf16, exact), 1e-4);
}

TEST(Precision, NamesAreKnownOrRefused) {
  EXPECT_EQ(*parse_precision("fast"), Precision::fast);
  EXPECT_EQ(*parse_precision("f16"), Precision::f16);
  EXPECT_EQ(*parse_precision("int4"), Precision::int4);
  EXPECT_EQ(parse_precision("table").error().code(), ErrorCode::unsupported);
  EXPECT_EQ(parse_precision("f31").error().code(), ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace hologram::compiler
