#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "holotensor/classical/seeded_random.h"
#include "holotensor/model/choose_scheme.h"
#include "holotensor/model/model_codec.h"
#include "holotensor/model/quality_report.h"
#include "holotensor/reader.h"
#include "holotensor/safetensors.h"
#include "holotensor/values.h"

namespace hologram::holotensor {
namespace {

class ModelTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("model_test_" + std::to_string(::getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    SeededRandom random(1);
    add("attention.q", DType::bf16, {96, 128}, [&](size_t) { return 0.02 * random.normal(); });
    add("mlp.up", DType::f32, {128, 160}, [&](size_t) { return 0.02 * random.normal(); });
    add("position", DType::f32, {100, 64}, [](size_t i) {
      return std::sin(0.03 * static_cast<double>(i / 64)) *
             std::cos(0.05 * static_cast<double>(i % 64));
    });
    add("bias", DType::f32, {96}, [&](size_t) { return random.normal(); });
    add("ids", DType::i64, {5000}, [](size_t i) { return static_cast<double>(i); });
    auto writer = SafetensorsWriter::create(input(), entries_);
    ASSERT_TRUE(writer);
    for (const auto& bytes : bytes_) ASSERT_TRUE(writer->write(bytes));
    ASSERT_TRUE(writer->finish());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  template <typename F>
  void add(std::string name, DType dtype, std::vector<int64_t> shape, F value) {
    size_t count = 1;
    for (const int64_t dimension : shape) count *= static_cast<size_t>(dimension);
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(value(i));
    bytes_.emplace_back(bytes_for(dtype, count));
    ASSERT_TRUE(from_f32(values, dtype, bytes_.back()));
    entries_.push_back({std::move(name), dtype, std::move(shape)});
  }

  std::filesystem::path input() const { return folder_ / "model.safetensors"; }
  std::filesystem::path encoded() const { return folder_ / "model.ht"; }
  std::filesystem::path output() const { return folder_ / "back.safetensors"; }

  double nmse_of(size_t tensor) const {
    const auto reader = SafetensorsReader::open(output());
    for (const auto& entry : reader->tensors()) {
      if (entry.name != entries_[tensor].name) continue;
      const auto bytes = *reader->read(entry);
      const size_t count = bytes_[tensor].size() / size_of(entries_[tensor].dtype);
      std::vector<float> before(count), after(count);
      EXPECT_TRUE(to_f32(entries_[tensor].dtype, bytes_[tensor], before));
      EXPECT_TRUE(to_f32(entry.dtype, bytes, after));
      ErrorSum sum;
      sum.add(before, after);
      return sum.quality(false).nmse;
    }
    ADD_FAILURE() << "no tensor " << entries_[tensor].name;
    return NAN;
  }

  std::filesystem::path folder_;
  std::vector<SafetensorsEntry> entries_;
  std::vector<std::vector<std::byte>> bytes_;
};

TEST_F(ModelTest, WithoutATargetEveryBitComesBackByEveryScheme) {
  for (const SchemeId scheme : kAllSchemes) {
    std::vector<std::string> seen;
    const auto result = encode_model(input(), encoded(), {.encoder = {.scheme = scheme}},
                                     [&](const ModelProgress& progress) -> Status {
                                       seen.emplace_back(progress.tensor);
                                       EXPECT_EQ(progress.count, 5u);
                                       EXPECT_LE(progress.bytes_done, progress.bytes_total);
                                       return {};
                                     });
    ASSERT_TRUE(result) << result.error().to_string();
    EXPECT_EQ(seen.size(), 6u);
    EXPECT_EQ(seen.back(), "");
    EXPECT_EQ(result->file_bytes, std::filesystem::file_size(encoded()));
    const auto decoded = decode_model(encoded(), output());
    ASSERT_TRUE(decoded) << decoded.error().to_string();
    EXPECT_TRUE(decoded->worst.exact);
    EXPECT_EQ(decoded->bytes_read, decoded->file_bytes);
    const auto reader = SafetensorsReader::open(output());
    for (size_t i = 0; i < entries_.size(); ++i) {
      EXPECT_EQ(reader->tensors()[i].name, entries_[i].name);
      EXPECT_EQ(reader->tensors()[i].shape, entries_[i].shape);
      EXPECT_EQ(reader->read(reader->tensors()[i]).value(), bytes_[i]) << entries_[i].name;
    }
  }
}

TEST_F(ModelTest, TargetsHoldForWeightsAndRulesForNames) {
  EncodeModelOptions options;
  options.encoder.target_bits = 4;
  options.rules = {{.pattern = "attention.*", .target_bits = 8}};
  const auto result = encode_model(input(), encoded(), options);
  ASSERT_TRUE(result) << result.error().to_string();
  const auto bits = [&](size_t i) {
    return 8.0 * static_cast<double>(result->tensors[i].stored_bytes) /
           (static_cast<double>(bytes_[i].size()) /
            static_cast<double>(size_of(entries_[i].dtype)));
  };
  EXPECT_NEAR(bits(0), 8, 0.7);
  EXPECT_NEAR(bits(1), 4, 0.5);
  EXPECT_TRUE(result->tensors[3].quality.exact) << "a bias is always exact";
  EXPECT_TRUE(result->tensors[4].quality.exact) << "indices are always exact";
  ASSERT_TRUE(decode_model(encoded(), output()));
  EXPECT_LE(nmse_of(0), result->tensors[0].quality.nmse * 1.0001 + 1e-5);
  EXPECT_EQ(nmse_of(4), 0);
}

TEST_F(ModelTest, DecodesToAQualityInAnotherTypeAndOnlySomeTensors) {
  ASSERT_TRUE(encode_model(input(), encoded(), {}));
  const auto decoded = decode_model(encoded(), output(),
                                    {.target = QualityTarget::snr_db(20),
                                     .rules = {{"attention.*", QualityTarget::lossless()}},
                                     .type = DType::f16,
                                     .tensors = {"attention*", "mlp*", "ids"}});
  ASSERT_TRUE(decoded) << decoded.error().to_string();
  EXPECT_EQ(decoded->tensors, 3u);
  EXPECT_LT(decoded->bytes_read, decoded->file_bytes);
  EXPECT_LE(nmse_of(1), 0.01);
  EXPECT_GT(nmse_of(1), 1e-6) << "no more was read than needed";
  EXPECT_LT(nmse_of(0), 1e-6);
  const auto reader = SafetensorsReader::open(output());
  EXPECT_EQ(reader->tensors()[0].dtype, DType::f16);
  EXPECT_EQ(reader->tensors()[2].dtype, DType::i64) << "integers stay what they are";

  const auto one = decode_model(encoded(), output(), {.fragments = 1});
  ASSERT_TRUE(one);
  EXPECT_LT(one->bytes_read, decoded->file_bytes);
  EXPECT_FALSE(one->worst.exact);
  EXPECT_EQ(decode_model(encoded(), output(), {.tensors = {"nothing"}}).error().code(),
            ErrorCode::not_found);
}

TEST_F(ModelTest, StoppingLeavesNothingBehind) {
  const auto stopped = encode_model(input(), encoded(), {}, [](const ModelProgress& p) -> Status {
    if (p.index == 2) return fail(ErrorCode::cancelled, "enough");
    return {};
  });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), ErrorCode::cancelled);
  size_t files = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder_)) ++files;
  EXPECT_EQ(files, 1u) << "only the model that was there";
  EXPECT_FALSE(encode_model(folder_ / "nothing.safetensors", encoded()));
  EXPECT_FALSE(decode_model(input(), output())) << "not a .ht file";
}

TEST_F(ModelTest, AutoPicksWhatIsBestAtTheAskedSize) {
  const auto choose = [&](size_t i, EncoderOptions options) {
    return choose_scheme({entries_[i].name, entries_[i].dtype, entries_[i].shape, bytes_[i]},
                         options);
  };
  const auto white = choose(1, {.target_bits = 4});
  ASSERT_TRUE(white) << white.error().to_string();
  ASSERT_EQ(white->trials.size(), 4u);
  for (const SchemeTrial& trial : white->trials) {
    if (trial.error) continue;
    EXPECT_LE(white->encoded.info.curve.back().nmse * 0.6, trial.quality.nmse)
        << name_of(trial.scheme);
    EXPECT_LE(8.0 * static_cast<double>(trial.bytes) / (128 * 160), 4.1) << name_of(trial.scheme);
  }
  EXPECT_EQ(white->encoded.info.scheme, SchemeId::refine) << "nothing is clearly better";
  // A surface of rank one: its one component beats coding the weights one by one.
  const auto smooth = choose(2, {.target_bits = 2});
  ASSERT_TRUE(smooth);
  EXPECT_TRUE(smooth->encoded.info.scheme == SchemeId::lowrank ||
              smooth->encoded.info.scheme == SchemeId::spectral)
      << name_of(smooth->encoded.info.scheme);
  EXPECT_FALSE(choose(1, {.target_bits = 1e-6}));

  const auto result = encode_model(input(), encoded(), {.automatic = true});
  ASSERT_TRUE(result) << result.error().to_string();
  ASSERT_TRUE(decode_model(encoded(), output())->worst.exact);
}

TEST_F(ModelTest, AutoKeepsWhatAnyIsFor) {
  // Exact by every scheme, and smaller by others: but those give nothing before the last fragment.
  const auto choice =
      choose_scheme({entries_[1].name, entries_[1].dtype, entries_[1].shape, bytes_[1]},
                    {.distribution = Distribution::any});
  ASSERT_TRUE(choice) << choice.error().to_string();
  EXPECT_EQ(choice->encoded.info.scheme, SchemeId::refine);
  EXPECT_GE(choice->encoded.info.curve[3].snr_db(), 16);
}

TEST_F(ModelTest, SharedFragmentsAreReadOnce) {
  auto twice = entries_;
  for (auto entry : entries_) {
    entry.name += ".again";
    twice.push_back(std::move(entry));
  }
  auto writer = *SafetensorsWriter::create(input(), twice);
  for (const int round : {0, 1})
    for (const auto& bytes : bytes_) ASSERT_TRUE(writer.write(bytes)) << round;
  ASSERT_TRUE(writer.finish());
  const auto stored = encode_model(input(), encoded());
  ASSERT_TRUE(stored) << stored.error().to_string();
  EXPECT_LT(stored->file_bytes, stored->source_bytes * 55 / 100) << "each content is stored once";
  const auto read = decode_model(encoded(), output());
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_TRUE(read->worst.exact);
  EXPECT_EQ(read->bytes_read, read->file_bytes);
}

TEST_F(ModelTest, TheReportCountsEveryByte) {
  ASSERT_TRUE(encode_model(input(), encoded(), {}));
  const auto report = quality_report(encoded());
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(report->file_bytes, std::filesystem::file_size(encoded()));
  EXPECT_EQ(report->points.back().bytes, report->file_bytes);
  EXPECT_EQ(report->points.front().bytes, report->overhead);
  EXPECT_DOUBLE_EQ(report->points.back().exact_weights, 1);
  for (size_t k = 1; k < report->points.size(); ++k) {
    EXPECT_LE(report->points[k].nmse, report->points[k - 1].nmse);
  }
  ASSERT_FALSE(report->prefixes.empty());
  EXPECT_EQ(report->prefixes.back().bytes, report->file_bytes);
  EXPECT_DOUBLE_EQ(report->prefixes.back().exact_weights, 1);
  for (size_t i = 1; i < report->prefixes.size(); ++i) {
    EXPECT_GE(report->prefixes[i].bytes, report->prefixes[i - 1].bytes);
    EXPECT_LE(report->prefixes[i].worst_nmse, report->prefixes[i - 1].worst_nmse);
  }
  const std::string table = report_table(*report);
  for (const char* text : {"attention.q", "mlp.up", "bits/weight", "exact", "bf16", "[96, 128]"}) {
    EXPECT_NE(table.find(text), std::string::npos) << text << "\n" << table;
  }
  const std::string svg = report_svg(*report, "a <model> & \"more\"");
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_EQ(svg.find("<model>"), std::string::npos) << "names are escaped";
  EXPECT_EQ(std::count(svg.begin(), svg.end(), '<'), std::count(svg.begin(), svg.end(), '>'));
  EXPECT_EQ(svg.find("href"), std::string::npos) << "needs nothing but itself";
}

}  // namespace
}  // namespace hologram::holotensor
