// Archives whose constants are HoloTensor fragments, from compiling to running.
#include "compiler/weights.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "archive/archive.h"
#include "compiler/compile.h"
#include "holotensor/classical/seeded_random.h"
#include "runtime/session/session.h"
#include "support/aligned.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::ValueType;
using kernels::Tensor;
using kernels::Value;
using runtime::Session;
using runtime::WeightOptions;
using runtime::WeightQuality;
using testing::HasSubstr;
using Kind = WeightQuality::Kind;

template <typename T>
Tensor tensor(const kernels::Dims& dims, const std::vector<T>& elements) {
  return *Tensor::from<T>(dims, std::span<const T>(elements));
}

std::vector<float> gaussian(int64_t count, uint64_t seed) {
  holotensor::SeededRandom random(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(random.normal()) / 8;
  return values;
}

// relu(x * w1 + b) * w2, in the rows that an integer constant chooses.
Graph network(int64_t width, int64_t hidden) {
  Graph g;
  g.name = "network";
  const ValueId x =
      g.add_input("x", ValueType::tensor(DType::f32, Shape(std::vector<Dim>{2, width})));
  const ValueId w1 =
      g.add_constant(tensor<float>({width, hidden}, gaussian(width * hidden, 1)), "w1");
  const ValueId b = g.add_constant(tensor<float>({hidden}, gaussian(hidden, 2)), "b");
  const ValueId w2 =
      g.add_constant(tensor<float>({hidden, width}, gaussian(width * hidden, 3)), "w2");
  std::vector<int64_t> order(static_cast<size_t>(width));
  for (int64_t i = 0; i < width; ++i) order[static_cast<size_t>(i)] = (i * 7) % width;
  const ValueId rows = g.add_constant(tensor<int64_t>({width}, order), "rows");
  const ValueId sum = g.op("Add").input(ValueId(g.op("MatMul").input(x).input(w1))).input(b);
  const ValueId product = g.op("MatMul").input(ValueId(g.op("Relu").input(sum))).input(w2);
  g.outputs = {g.op("Gather").input(product).input(rows).attribute("axis", 1)};
  g.output_names = {"y"};
  EXPECT_TRUE(g.status().has_value()) << g.status().error().to_string();
  return g;
}

std::vector<std::byte> compiled(int64_t width, int64_t hidden, const char* weights) {
  CompileOptions options;
  if (weights) options.weights = *parse_weight_encoding(weights);
  auto bytes = compile(network(width, hidden), options);
  EXPECT_TRUE(bytes.has_value()) << bytes.error().to_string();
  return *std::move(bytes);
}

Result<Session> open(std::span<const std::byte> bytes, const WeightOptions& weights = {}) {
  HOLOGRAM_TRY(AlignedBytes memory, AlignedBytes::allocate(std::max<size_t>(64, bytes.size())));
  std::memcpy(memory.data(), bytes.data(), bytes.size());
  auto owner = std::make_shared<AlignedBytes>(std::move(memory));
  HOLOGRAM_TRY(auto archive, archive::Archive::open(owner->bytes().first(bytes.size()), owner));
  return Session::open(std::move(archive), weights);
}

WeightOptions fixed(Kind kind, double value = 0) { return {{kind, value}, false}; }

Value input(const Session& session) {
  kernels::Dims dims;
  for (const Dim& dim : session.inputs()[0].shape->dims()) dims.push_back(dim.value());
  return tensor<float>(dims, gaussian(dims.count(), 4));
}

std::vector<float> run(const Session& session) {
  auto outputs = session.run(std::vector{input(session)});
  EXPECT_TRUE(outputs.has_value()) << outputs.error().to_string();
  const auto values = (*outputs)[0].tensor.span<float>();
  return {values.begin(), values.end()};
}

// What 1, 2, ... fragments of every tensor give.
std::vector<std::vector<float>> results_by_fragments(std::span<const std::byte> archive,
                                                     int count) {
  std::vector<std::vector<float>> results;
  for (int k = 1; k <= count; ++k) {
    auto session = open(archive, fixed(Kind::fragments, k));
    EXPECT_TRUE(session.has_value()) << session.error().to_string();
    results.push_back(run(*session));
  }
  return results;
}

double squared_error(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
  return sum;
}

TEST(WeightEncoding, IsParsed) {
  auto encoding = parse_weight_encoding("refine:8");
  ASSERT_TRUE(encoding.has_value());
  EXPECT_EQ(encoding->encoder.scheme, holotensor::SchemeId::refine);
  EXPECT_EQ(encoding->encoder.fragments, 8);
  EXPECT_EQ(encoding->encoder.distribution, holotensor::Distribution::ordered);
  EXPECT_EQ(parse_weight_encoding("spectral:4,any")->encoder.distribution,
            holotensor::Distribution::any);
  for (const char* bad : {"", "refine", "refine:", "refine:0", "refine:99999", "refine:8x",
                          "refine:8,all", "zip:8", ":8"})
    EXPECT_FALSE(parse_weight_encoding(bad).has_value()) << bad;
}

TEST(WeightQuality, IsParsed) {
  EXPECT_EQ(WeightQuality::parse("exact")->kind, Kind::exact);
  EXPECT_EQ(WeightQuality::parse("0.5")->value, 0.5);
  EXPECT_EQ(WeightQuality::parse("25%")->value, 0.25);
  EXPECT_EQ(WeightQuality::parse("25%")->kind, Kind::fraction);
  EXPECT_EQ(WeightQuality::parse("3fragments")->kind, Kind::fragments);
  EXPECT_EQ(WeightQuality::parse("20.5dB")->value, 20.5);
  for (const char* bad : {"", "0", "-1", "1.5", "101%", "0.5fragments", "nan", "20 bits", "dB"})
    EXPECT_FALSE(WeightQuality::parse(bad).has_value()) << bad;
}

TEST(Weights, GiveTheSameBitsWhenAllAreThere) {
  const auto plain = compiled(64, 96, nullptr);
  const auto expected = run(*open(plain));
  for (const char* weights : {"refine:8", "refine:1", "refine:8,any", "spectral:4", "projection:4",
                              "lowrank:4", "packed:1"}) {
    const auto refined = compiled(64, 96, weights);
    auto session = open(refined);
    ASSERT_TRUE(session.has_value()) << weights << ": " << session.error().to_string();
    EXPECT_EQ(run(*session), expected) << weights;
    const auto status = session->weights();
    EXPECT_TRUE(status.exact);
    EXPECT_EQ(status.tensors, 2u) << "the bias and the integers are plain";
    EXPECT_GE(status.bytes, status.all_bytes * 99 / 100);
    EXPECT_LE(status.bytes, status.all_bytes);
  }
  EXPECT_LT(compiled(64, 96, "refine:8").size(), plain.size());
  EXPECT_EQ(open(plain)->weights().version, 0u);
  EXPECT_TRUE(open(plain)->wait_for_weights().has_value());
}

TEST(Weights, GetBetterWithEveryFragment) {
  const auto archive = compiled(64, 96, "refine:4");
  const auto exact = run(*open(archive));
  double last_error = HUGE_VAL, last_snr = 0;
  uint64_t last_bytes = 0;
  for (int k = 1; last_error > 0; ++k) {  // small tensors have fewer fragments than asked for
    ASSERT_LE(k, 4);
    auto session = open(archive, fixed(Kind::fragments, k));
    ASSERT_TRUE(session.has_value()) << session.error().to_string();
    const auto status = session->weights();
    EXPECT_GT(status.snr_db, last_snr);
    EXPECT_GT(status.bytes, last_bytes);
    const double error = squared_error(run(*session), exact);
    EXPECT_LT(error, last_error) << k;
    last_error = error, last_snr = status.snr_db, last_bytes = status.bytes;
  }
  auto at_30 = open(archive, fixed(Kind::decibels, 30));
  ASSERT_TRUE(at_30.has_value());
  EXPECT_GE(at_30->weights().snr_db, 30);
  EXPECT_FALSE(at_30->weights().exact);
  auto half = open(archive, fixed(Kind::fraction, 0.5));
  ASSERT_TRUE(half.has_value());
  EXPECT_LE(half->weights().bytes, half->weights().all_bytes / 2);
  auto too_little = open(archive, fixed(Kind::fraction, 0.02));
  ASSERT_FALSE(too_little.has_value());
  EXPECT_THAT(too_little.error().to_string(), HasSubstr("too few"));
}

TEST(Weights, EveryPrefixOfTheFileIsRefusedOrWorthWhatItSays) {
  const auto whole = compiled(64, 64, "refine:4");
  const auto results = results_by_fragments(whole, 4);
  const size_t weights =
      std::search(whole.begin(), whole.end(), reinterpret_cast<const std::byte*>("HOLT"),
                  reinterpret_cast<const std::byte*>("HOLT") + 4) -
      whole.begin();
  ASSERT_LT(weights, whole.size());
  double last_snr = 0;
  size_t opened = 0;
  for (size_t size = 0; size < whole.size(); size += size < weights + 512 ? 17 : 101) {
    const auto prefix = std::span(whole).first(size);
    EXPECT_FALSE(open(prefix).has_value()) << "not every bit is there: " << size;
    auto session = open(prefix, fixed(Kind::fragments, 4));
    if (!session) {
      EXPECT_EQ(opened, 0u) << "a longer prefix is never worse";
      continue;
    }
    ++opened;
    EXPECT_GT(size, weights);
    const auto status = session->weights();
    EXPECT_FALSE(status.exact);
    EXPECT_GE(status.snr_db, last_snr);
    last_snr = status.snr_db;
    EXPECT_FALSE(session->wait_for_weights().has_value());
    // The same bytes, asked for by their fraction of the whole file.
    const double fraction =
        static_cast<double>(size - weights) / static_cast<double>(whole.size() - weights);
    auto same = open(whole, fixed(Kind::fraction, std::min(1.0, fraction + 1e-9)));
    ASSERT_TRUE(same.has_value()) << same.error().to_string();
    EXPECT_EQ(run(*session), run(*same)) << size;
  }
  EXPECT_GT(opened, 100u);
  EXPECT_GT(last_snr, 40);
}

TEST(Weights, AFlippedByteIsAnErrorOrALowerQualityAndNeverAnotherResult) {
  const auto good = compiled(64, 64, "refine:4");
  // One tensor may be damaged while the other is whole, so results are those of any pair.
  const auto exact = run(*open(good));
  size_t lowered = 0, refused = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    auto bad = good;
    bad[at] ^= std::byte{0x10};
    if (at % 16 == 0) {
      auto exact_session = open(bad);
      EXPECT_FALSE(exact_session && exact_session->run(std::vector{input(*exact_session)}))
          << "every bit was asked for; byte " << at;
    }
    auto session = open(bad, fixed(Kind::fragments, 4));
    // Plain constants are checked before the first run.
    if (!session || !session->run(std::vector{input(*session)})) {
      ++refused;
      continue;
    }
    ++lowered;
    const auto status = session->weights();
    ASSERT_FALSE(status.exact) << at;
    ASSERT_EQ(status.exact_tensors, 1u) << at;
    // What is left of the damaged tensor is what its measured quality promises: no garbage.
    const double relative = squared_error(run(*session), exact) /
                            squared_error(exact, std::vector<float>(exact.size(), 0.0f));
    EXPECT_LT(relative, 3 * std::pow(10, -status.snr_db / 10)) << at;
    EXPECT_FALSE(session->wait_for_weights().has_value());
  }
  EXPECT_GT(lowered, good.size() / 2);
  EXPECT_GT(refused, 500u);
}

TEST(Weights, OfAnyDistributionSurviveALostFragment) {
  auto archive = compiled(64, 64, "refine:6,any");
  const auto exact = run(*open(archive));
  archive.back() ^= std::byte{1};  // in the last fragment of one tensor
  auto session = open(archive, fixed(Kind::fragments, 6));
  ASSERT_TRUE(session.has_value()) << session.error().to_string();
  EXPECT_GE(session->weights().snr_db, 28);
  EXPECT_LT(squared_error(run(*session), exact), 0.01);
}

TEST(Weights, ImproveWhileTheyAreUsedAndRunsNeverMixVersions) {
  constexpr int kFragments = 12;
  const auto archive = compiled(512, 512, "refine:12");
  const auto results = results_by_fragments(archive, kFragments);
  for (int repeat = 0; repeat < 3; ++repeat) {
    auto session = open(archive, {{Kind::fragments, 1}, true});
    ASSERT_TRUE(session.has_value()) << session.error().to_string();
    std::atomic<size_t> wrong = 0, backwards = 0, improvements = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        size_t last = 0;
        for (bool more = true; more;) {
          more = session->weights().improving;
          const auto found = std::ranges::find(results, run(*session));
          const auto now = static_cast<size_t>(found - results.begin());
          wrong += found == results.end();
          backwards += now < last;
          improvements += now > last;
          last = now;
        }
      });
    EXPECT_TRUE(session->wait_for_weights().has_value());
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(backwards, 0u);
    EXPECT_GT(improvements, 0u);
    EXPECT_TRUE(session->weights().exact);
    EXPECT_FALSE(session->weights().improving);
    EXPECT_EQ(run(*session), results.back());
  }
}

TEST(Weights, ClosingASessionEndsTheImproving) {
  const auto archive = compiled(256, 256, "refine:12");
  for (int repeat = 0; repeat < 20; ++repeat) {
    auto session = open(archive, {{Kind::fragments, 1}, true});
    ASSERT_TRUE(session.has_value());
    if (repeat % 2) run(*session);
  }
}

// 8-bit weights in each of the forms models have them: of a convolution (cast and scaled), of a
// product by floats and by integers, and a table of which rows are taken.
Graph quantised_network() {
  Graph g;
  holotensor::SeededRandom random(5);
  const auto codes = [&](const kernels::Dims& dims, const char* name) {
    std::vector<uint8_t> bytes(static_cast<size_t>(dims.count()));
    for (uint8_t& b : bytes)
      b = static_cast<uint8_t>(std::clamp(128 + 30 * random.normal(), 0.0, 255.0));
    return g.add_constant(tensor<uint8_t>(dims, bytes), name);
  };
  const auto f32 = static_cast<int64_t>(DType::f32);
  const ValueId scale = g.add_constant(tensor<float>({}, {1.0f / 512}), "scale");
  const ValueId zero = g.add_constant(tensor<uint8_t>({}, {128}), "zero");
  const auto floats = [&](ValueId bytes) -> ValueId {
    return g.op("DequantizeLinear").input(bytes).input(scale).input(zero);
  };
  const ValueId x =
      g.add_input("x", ValueType::tensor(DType::f32, Shape(std::vector<Dim>{2, 256, 8})));
  const ValueId filters = g.op("Cast").input(codes({256, 256, 3}, "conv")).attribute("to", f32);
  const ValueId middle = g.add_constant(tensor<float>({1}, {128}), "middle");
  const ValueId conv =
      g.op("Conv")
          .input(x)
          .input(ValueId(
              g.op("Mul").input(ValueId(g.op("Sub").input(filters).input(middle))).input(scale)))
          .attribute("pads", std::vector<int64_t>{1, 1});
  const ValueId rows =
      g.op("Transpose").input(conv).attribute("perm", std::vector<int64_t>{0, 2, 1});
  const ValueId product = g.op("MatMul").input(rows).input(floats(codes({256, 256}, "product")));
  auto&& quantise = g.op("DynamicQuantizeLinear");
  quantise.input(product).outputs(3);
  const ValueId integers = g.op("MatMulInteger")
                               .input(quantise.output(0))
                               .input(codes({256, 256}, "integers"))
                               .input(quantise.output(2))
                               .input(zero);
  const ValueId back = g.op("Mul")
                           .input(ValueId(g.op("Cast").input(integers).attribute("to", f32)))
                           .input(ValueId(g.op("Mul").input(quantise.output(1)).input(scale)));
  const ValueId chosen = g.add_constant(tensor<int64_t>({8}, {1, 0, 7, 99, 3, 2, 5, 4}), "chosen");
  const ValueId table = g.op("Gather").input(floats(codes({100, 256}, "table"))).input(chosen);
  g.outputs = {g.op("Add").input(back).input(table)};
  g.output_names = {"y"};
  EXPECT_TRUE(g.status().has_value()) << g.status().error().to_string();
  return g;
}

TEST(Weights, OfEightBitsAreFragmentsInEveryFormOfTheirUse) {
  const auto plain = *compile(quantised_network(), {});
  CompileOptions options{.weights = *parse_weight_encoding("refine:16")};
  const auto refined = *compile(quantised_network(), options);
  const auto expected = run(*open(plain));
  auto whole = open(refined);
  ASSERT_TRUE(whole.has_value()) << whole.error().to_string();
  EXPECT_EQ(whole->weights().tensors, 4u);
  const double power = squared_error(expected, std::vector<float>(expected.size(), 0.0f));
  // The product by floats is summed in another order; a code may be rounded the other way.
  EXPECT_LT(squared_error(run(*whole), expected), 1e-5 * power);
  const auto exact = run(*whole);
  double last = HUGE_VAL;
  for (const double fraction : {0.25, 0.5, 0.75, 1.0}) {
    auto session = open(refined, fixed(Kind::fraction, fraction));
    ASSERT_TRUE(session.has_value()) << session.error().to_string();
    const double error = squared_error(run(*session), exact) / power;
    EXPECT_LT(error, last) << fraction;
    last = error;
  }
  EXPECT_EQ(last, 0);
}

TEST(Weights, StayPlainWhereEveryBitCarriesMeaning) {
  auto masked = [](DType type) {
    Graph g;
    const ValueId x = g.add_input("x", ValueType::tensor(type, Shape(std::vector<Dim>{64, 64})));
    std::vector<float> mask(64 * 64, 0.0f);
    for (size_t i = 0; i < mask.size(); i += 3) mask[i] = -HUGE_VALF;
    const ValueId m = g.add_constant(tensor<float>({64, 64}, mask), "mask");
    g.outputs = {g.op("Add").input(x).input(m)};
    g.output_names = {"y"};
    return g;
  };
  CompileOptions options{.weights = *parse_weight_encoding("refine:4")};
  auto session = open(*compile(masked(DType::f32), options));
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->weights().version, 0u) << "an infinite mask is no weight";
}

}  // namespace
}  // namespace hologram::compiler
