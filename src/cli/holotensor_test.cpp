// encode, decode and quality as a user calls them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "cli/command.h"
#include "cli/model_weights.h"
#include "cli/quality_target.h"
#include "compiler/compile.h"
#include "holotensor/model/quality_report.h"
#include "holotensor/safetensors.h"
#include "support/file.h"
#include "support/hash.h"

namespace hologram::cli {
namespace {

class HolotensorCommands : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("holotensor_commands_" + std::to_string(::getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    values_.resize(64 * 96);
    uint32_t state = 1;
    for (float& value : values_) {
      value = 0;
      for (int i = 0; i < 12; ++i) {  // nearly Gaussian
        state = state * 1664525u + 1013904223u;
        value += static_cast<float>(state >> 8) * 0x1p-24f;
      }
      value -= 6;
    }
    auto writer = holotensor::SafetensorsWriter::create(folder_ / "model.safetensors",
                                                        {{"attention.q", DType::f32, {64, 96}}});
    ASSERT_TRUE(writer->write(std::as_bytes(std::span(values_))));
    ASSERT_TRUE(writer->finish());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  int run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "hologram");
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code =
        run_program(static_cast<int>(pointers.size()), pointers.data(), "test", add_all_commands);
    out_ = testing::internal::GetCapturedStdout();
    error_ = testing::internal::GetCapturedStderr();
    return code;
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
  std::vector<float> values_;
  std::string out_, error_;
};

TEST_F(HolotensorCommands, EncodeAndDecodeGiveEveryBitBack) {
  ASSERT_EQ(run({"encode", path("model.safetensors")}), 0) << error_;
  EXPECT_NE(out_.find("1 tensors (1 exact)"), std::string::npos) << out_;
  ASSERT_EQ(run({"decode", path("model.ht"), "-o", path("back.safetensors")}), 0) << error_;
  EXPECT_NE(out_.find("every bit exact"), std::string::npos) << out_;
  EXPECT_EQ(*read_file(path("back.safetensors")), *read_file(path("model.safetensors")));
}

TEST_F(HolotensorCommands, QualitiesFragmentsAndRulesAreObeyed) {
  ASSERT_EQ(run({"encode", path("model.safetensors"), "-o", path("a.ht"), "-q", "4bits", "--rule",
                 "attention.*=8bits"}),
            0)
      << error_;
  const auto report = holotensor::quality_report(std::filesystem::path(path("a.ht")));
  EXPECT_GT(report->points.back().bits_a_weight, 6);
  EXPECT_LT(report->points.back().bits_a_weight, 9);
  for (const char* scheme : {"auto", "spectral", "projection", "lowrank", "packed"}) {
    EXPECT_EQ(run({"encode", path("model.safetensors"), "-o", path("s.ht"), "--scheme", scheme}), 0)
        << scheme << error_;
  }
  ASSERT_EQ(run({"encode", path("model.safetensors"), "-o", path("any.ht"), "--any"}), 0) << error_;
  ASSERT_EQ(
      run({"encode", path("model.safetensors"), "-o", path("any.ht"), "--any", "--fragments", "2"}),
      0)
      << error_;
  ASSERT_EQ(run({"encode", path("model.safetensors")}), 0);
  ASSERT_EQ(run({"decode", path("model.ht"), "-o", path("half.safetensors"), "-q", "12dB", "--type",
                 "f16"}),
            0)
      << error_;
  EXPECT_NE(out_.find("dB at worst"), std::string::npos) << out_;
  ASSERT_EQ(run({"decode", path("model.ht"), "-o", path("one.safetensors"), "--fragments", "1"}),
            0);
}

TEST_F(HolotensorCommands, QualityPrintsATableAndWritesAPlot) {
  ASSERT_EQ(run({"encode", path("model.safetensors")}), 0);
  ASSERT_EQ(run({"quality", path("model.ht"), "--svg", path("plot.svg")}), 0) << error_;
  EXPECT_NE(out_.find("attention.q"), std::string::npos);
  EXPECT_TRUE(read_text_file(path("plot.svg"))->starts_with("<svg "));
}

TEST_F(HolotensorCommands, MistakesAreExplainedWithCodeTwoAndLeaveNothing) {
  const std::vector<std::vector<std::string>> mistakes = {
      {"encode"},
      {"encode", path("nothing.safetensors")},
      {"encode", path("model.txt")},
      {"encode", path("model.safetensors"), "-q", "4"},
      {"encode", path("model.safetensors"), "--rule", "4bits"},
      {"encode", path("model.safetensors"), "--scheme", "best"},
      {"encode", path("model.safetensors"), "--fragments", "0"},
      {"encode", path("model.safetensors"), "--any", "--fragments", "2", "--min-fragments", "3"},
      {"encode", path("model.safetensors"), "-o", path("model.safetensors")},
      {"encode", path("model.safetensors"), "-o", path("no/such/folder/x.ht")},
      {"decode", path("model.safetensors"), "-o", path("x.safetensors")},
      {"decode", path("nothing.ht")},
      {"decode", path("nothing.ht"), "--type", "i8"},
      {"decode", path("nothing.ht"), "-q", "4bits"},
      {"decode", path("nothing.ht"), "-q", "30dB", "--fragments", "2"},
      {"quality", path("model.safetensors")},
  };
  for (const auto& arguments : mistakes) {
    EXPECT_EQ(run(arguments), 2) << arguments[0] << " "
                                 << (arguments.size() > 1 ? arguments[1] : "");
    EXPECT_TRUE(error_.starts_with("error: ")) << error_;
  }
  size_t files = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder_)) ++files;
  EXPECT_EQ(files, 1u);
}

TEST_F(HolotensorCommands, DamageIsNamedAndWhatIsLeftCanBeHad) {
  ASSERT_EQ(run({"encode", path("model.safetensors")}), 0);
  auto bytes = *read_file(path("model.ht"));
  bytes.back() ^= std::byte{1};
  std::ofstream(path("model.ht"), std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  EXPECT_EQ(run({"decode", path("model.ht"), "-o", path("x.safetensors")}), 2);
  for (const char* part : {"attention.q", "dB with", "ask for that or less", "checksum"})
    EXPECT_NE(error_.find(part), std::string::npos) << error_;
  EXPECT_FALSE(std::filesystem::exists(path("x.safetensors")));
  EXPECT_EQ(run({"decode", path("model.ht"), "-o", path("x.safetensors"), "-q", "12dB"}), 0)
      << error_;
}

TEST_F(HolotensorCommands, HelpShowsExamples) {
  for (const char* command : {"encode", "decode", "quality"}) {
    EXPECT_EQ(run({command, "--help"}), 0);
    EXPECT_NE(out_.find(std::string("hologram ") + command + " model"), std::string::npos) << out_;
  }
}

// A model with an initialiser in raw bytes, one in numbers, and a Constant node.
TEST_F(HolotensorCommands, ReadsTheWeightsOfOnnxModels) {
  const auto field = [](int number, const std::string& bytes) {
    return std::string(1, static_cast<char>(number << 3 | 2)) +
           std::string(1, static_cast<char>(bytes.size())) + bytes;
  };
  const auto integer = [](int number, int value) {
    return std::string{static_cast<char>(number << 3), static_cast<char>(value)};
  };
  const std::string raw = integer(1, 2) + integer(2, 1) + field(8, "raw") +
                          field(9, std::string("\0\0\x80\x3f\0\0\0\x40", 8));  // f32 [2]: 1, 2
  const std::string numbers =
      integer(1, 3) + integer(2, 7) + field(7, std::string("\x05\x06\x07")) + field(8, "numbers");
  const std::string constant =
      field(2, "constant") + field(4, "Constant") +
      field(5, field(1, "value") + std::string("\xa0\x01\x04") +
                   field(5, integer(1, 1) + integer(2, 2) + field(9, "\x2a")));  // u8 [1]: 42
  const std::string graph = field(1, constant) + field(2, "g") + field(5, raw) + field(5, numbers);
  const std::string model = integer(1, 8) + field(7, graph) + field(8, integer(2, 17));
  std::ofstream(path("model.onnx"), std::ios::binary) << model;

  const auto input = open_model_weights(path("model.onnx"));
  ASSERT_TRUE(input) << input.error().to_string();
  ASSERT_EQ((*input)->tensors().size(), 3u);
  ASSERT_EQ(run({"encode", path("model.onnx"), "-o", path("onnx.ht")}), 0) << error_;
  ASSERT_EQ(run({"decode", path("onnx.ht"), "-o", path("onnx.safetensors")}), 0) << error_;
  const auto reader = holotensor::SafetensorsReader::open(path("onnx.safetensors"));
  ASSERT_TRUE(reader);
  const auto bytes_of = [&](const std::string& name) {
    for (const auto& entry : reader->tensors()) {
      if (entry.name == name) return *reader->read(entry);
    }
    return std::vector<std::byte>();
  };
  const float floats[] = {1, 2};
  const int64_t integers[] = {5, 6, 7};
  EXPECT_TRUE(std::ranges::equal(bytes_of("raw"), std::as_bytes(std::span(floats))));
  EXPECT_TRUE(std::ranges::equal(bytes_of("numbers"), std::as_bytes(std::span(integers))));
  EXPECT_EQ(bytes_of("constant"), std::vector{std::byte{42}});
  std::ofstream(path("bad.onnx"), std::ios::binary) << "this is no model";
  EXPECT_EQ(run({"encode", path("bad.onnx")}), 2);
}

TEST(QualityText, ParsesUnits) {
  EXPECT_EQ(parse_quality("4bits")->bits, 4.0);
  EXPECT_EQ(parse_quality("2.5bits")->bits, 2.5);
  EXPECT_EQ(parse_quality("1bit")->bits, 1.0);
  EXPECT_NEAR(parse_quality("30dB")->target->max_nmse, 1e-3, 1e-12);
  EXPECT_EQ(parse_quality("nmse=0.25")->target->max_nmse, 0.25);
  EXPECT_TRUE(parse_quality("exact")->target->exact);
  for (const char* bad : {"", "4", "bits", "-1bits", "0bits", "nanbits", "infdB",
                          "nmse=", "nmse=-1", "30 dB", "EXACT"}) {
    EXPECT_FALSE(parse_quality(bad)) << bad;
  }
  const auto rule = parse_quality_rule("*mlp*=nmse=0.1");
  ASSERT_TRUE(rule);
  EXPECT_EQ(rule->pattern, "*mlp*");
  EXPECT_EQ(rule->wish.target->max_nmse, 0.1);
  EXPECT_FALSE(parse_quality_rule("=4bits"));
}

TEST_F(HolotensorCommands, DecodeReadsTheOlderFormat) {
  // Four ones: the orthonormal DCT has one coefficient, 2.
  std::vector<std::byte> bytes;
  const auto put = [&](auto value) {
    for (const std::byte b : std::as_bytes(std::span(&value, 1))) bytes.push_back(b);
  };
  for (const char c : {'H', 'T', 'N', 'S'}) put(c);
  put(uint32_t{1});                     // version
  put(uint8_t{0}), put(uint8_t{0});     // spectral, not compressed
  put(uint16_t{0x1 | 0x2 | 0x20});      // both checksums, interleaved
  put(uint16_t{1}), put(uint16_t{1});   // fragments
  put(uint64_t{16}), put(uint64_t{0});  // bytes, seed
  put(uint8_t{0}), put(uint8_t{1});     // type, rank
  put(uint64_t{4}), put(uint64_t{0}), put(uint64_t{0}), put(uint64_t{0});
  for (int i = 0; i < 4; ++i) put(1.0f);  // the curve
  bytes.resize(88);
  put(hash64(bytes));
  const float payload[] = {2, 0, 0, 0};
  put(uint16_t{0}), put(uint16_t{0});
  put(uint32_t{120}), put(uint32_t{16}), put(uint32_t{16});
  put(hash64(std::as_bytes(std::span(payload))));
  for (const float value : payload) put(value);
  ASSERT_TRUE(write_file(path("old.htns"), bytes));
  ASSERT_EQ(run({"decode", path("old.htns"), "-o", path("old.safetensors")}), 0) << error_;
  const auto reader = holotensor::SafetensorsReader::open(path("old.safetensors"));
  const auto values = *reader->read(reader->tensors()[0]);
  ASSERT_EQ(values.size(), 16u);
  for (int i = 0; i < 4; ++i) {
    float value;
    std::memcpy(&value, values.data() + i * 4, 4);
    EXPECT_NEAR(value, 1, 1e-6);
  }
  bytes.back() ^= std::byte{1};
  ASSERT_TRUE(write_file(path("old.htns"), bytes));
  EXPECT_NE(run({"decode", path("old.htns"), "-o", path("bad.safetensors")}), 0);
}

TEST_F(HolotensorCommands, RunUsesPartOfAnArchivesWeights) {
  for (const bool fragments : {true, false}) {
    graph::Graph g;
    const graph::ValueId x =
        g.add_input("x", graph::ValueType::tensor(DType::f32, Shape(std::vector<Dim>{1, 64})));
    const graph::ValueId w = g.add_constant(
        *kernels::Tensor::from<float>({64, 96}, std::span<const float>(values_)), "w");
    g.outputs = {g.op("MatMul").input(x).input(w)};
    g.output_names = {"y"};
    compiler::CompileOptions options;
    if (fragments) options.weights = *compiler::parse_weight_encoding("refine:4");
    ASSERT_TRUE(write_file(path(fragments ? "parts.holo" : "plain.holo"),
                           *compiler::compile(std::move(g), options)));
  }
  const auto run_at = [&](const std::string& file, const std::string& quality) {
    return run({"run", path(file), "--random", "--quality", quality});
  };
  EXPECT_EQ(run_at("parts.holo", "0.5"), 0) << error_;
  EXPECT_NE(error_.find("dB or better"), std::string::npos) << error_;
  const std::string half = out_;
  EXPECT_EQ(run_at("parts.holo", "exact"), 0) << error_;
  EXPECT_NE(error_.find("weights exact, 100.0%"), std::string::npos) << error_;
  const std::string exact = out_;
  EXPECT_NE(half, exact);
  ASSERT_EQ(run({"run", path("plain.holo"), "--random"}), 0) << error_;
  EXPECT_EQ(out_, exact) << "the same bits as without fragments";
  EXPECT_NE(run_at("parts.holo", "0.01"), 0);
  EXPECT_NE(error_.find("too few"), std::string::npos) << error_;
  EXPECT_NE(run_at("parts.holo", "much"), 0);
  EXPECT_NE(run_at("plain.holo", "0.5"), 0);
  EXPECT_NE(error_.find("--weights"), std::string::npos) << error_;
}

}  // namespace
}  // namespace hologram::cli
