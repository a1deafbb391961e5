// hologram quantize, as a user calls it.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "support/file.h"
#include "support/npy.h"

namespace hologram {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Quantize : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / fmt::format("hologram-quantize-test-{}", getpid());
    fs::create_directories(folder_);
    ASSERT_EQ(std::system(fmt::format("/usr/bin/python3 " HOLOGRAM_SOURCE_DIR
                                      "/tests/cli/make_quantize_models.py {}",
                                      folder_.string())
                              .c_str()),
              0);
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  std::string shell(const std::string& command) {
    FILE* pipe = popen(fmt::format("cd {} && {} 2>&1", folder_.string(), command).c_str(), "r");
    std::string text;
    for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
    code_ = WEXITSTATUS(pclose(pipe));
    return text;
  }
  std::string call(const std::string& arguments) {
    return shell(fmt::format("{}/hologram {}", HOLOGRAM_BIN_DIR, arguments));
  }
  void expect_refusal(const std::string& arguments, const std::string& words) {
    EXPECT_THAT(call(arguments), AllOf(HasSubstr("error: "), HasSubstr(words))) << arguments;
    EXPECT_EQ(code_, 2) << arguments;
  }
  static std::vector<float> values_of(const std::string& file) {
    const auto y = read_npy(folder_ / file);
    std::vector<float> values(y->data.size() / sizeof(float));
    std::memcpy(values.data(), y->data.data(), y->data.size());
    return values;
  }
  std::vector<float> result_of(const std::string& model, const std::string& x = "x.npy") {
    const std::string text = call(fmt::format("run {} -i x={} -o y=y.npy", model, x));
    EXPECT_EQ(code_, 0) << text;
    return values_of("y.npy");
  }
  // Of the range of the result in f32.
  double error_of(const std::string& quantised, const std::string& model = "network.onnx") {
    return error_between(result_of(model), result_of(quantised));
  }
  static double error_between(const std::vector<float>& exact, const std::vector<float>& given) {
    EXPECT_EQ(exact.size(), given.size());
    double worst = 0, low = HUGE_VAL, high = -HUGE_VAL;
    for (size_t i = 0; i < std::min(exact.size(), given.size()); ++i) {
      worst = std::max(worst, std::abs(double{exact[i]} - given[i]));
      low = std::min<double>(low, exact[i]), high = std::max<double>(high, exact[i]);
    }
    return worst / (high - low);
  }

  static fs::path folder_;
  int code_ = -1;
};
fs::path Quantize::folder_;

TEST_F(Quantize, WritesAModelThatRunsInIntegers) {
  const std::string text = call("quantize network.onnx --calibrate samples -o q.onnx");
  EXPECT_EQ(code_, 0) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("6 samples, ranges by the least squared error"),
                          HasSubstr("4 nodes by 8-bit weights, a scale a channel; 3 convolutions "
                                    "and 1 products run in integers"),
                          HasSubstr("SNR dB"), HasSubstr("q.onnx: ")));
  const double error = error_of("q.onnx");
  EXPECT_LE(error, 0.03);
  EXPECT_GT(error, 0);
  EXPECT_THAT(call("compile q.onnx --explain"),
              AllOf(HasSubstr("ConvInteger u8 x i8 -> i32, bias, Relu"),
                    HasSubstr("ConvInteger u8 x i8 -> i32, QuantizeLinear"),
                    HasSubstr("hologram.MatMulInteger"), Not(HasSubstr("hologram.Conv\n"))));
  // The standard's own checker.
  const std::string checked = shell(
      "/usr/bin/python3 -c \"import onnx; m = onnx.load('q.onnx'); onnx.checker.check_model(m, "
      "full_check=True); print(sorted(i.name for i in m.graph.initializer if i.data_type == 1))\"");
  EXPECT_EQ(code_, 0) << checked;
  EXPECT_THAT(checked, AllOf(HasSubstr("b4"), HasSubstr("w1_scale"), Not(HasSubstr("'w1'"))));
}

TEST_F(Quantize, TakesEveryKindOfSampleAndModel) {
  EXPECT_THAT(call("quantize network.onnx --calibrate npy --method minmax -o m.onnx"),
              HasSubstr("6 samples, ranges by the smallest and largest value"));
  EXPECT_LE(error_of("m.onnx"), 0.05);
  EXPECT_THAT(call("quantize network.onnx --calibrate pb -o p.onnx"), HasSubstr("1 samples"));
  call("quantize external.onnx --calibrate samples -o e.onnx");
  EXPECT_EQ(code_, 0);
  fs::rename(folder_ / "external.bin", folder_ / "moved.bin");
  result_of("e.onnx");  // has its weights inside
  fs::rename(folder_ / "moved.bin", folder_ / "external.bin");
  EXPECT_THAT(call("quantize old.onnx --calibrate samples -o o.onnx"),
              HasSubstr("one scale a tensor"));
  error_of("o.onnx", "old.onnx");
  EXPECT_THAT(call("inspect o.onnx"), Not(HasSubstr("w1:")));
  EXPECT_THAT(call("quantize network.onnx --calibrate samples -o q.holo"), HasSubstr("q.holo: "));
  EXPECT_LE(error_of("q.holo"), 0.03);
}

TEST_F(Quantize, LeavesNodesInFloats) {
  EXPECT_THAT(call("quantize network.onnx --calibrate samples --skip head --skip first -o s.onnx"),
              AllOf(HasSubstr("2 nodes by 8-bit"), HasSubstr("in f32: Gemm 'head': --skip")));
  EXPECT_LE(error_of("s.onnx"), 0.03);
}

TEST_F(Quantize, SaysWhatToDoInstead) {
  expect_refusal("quantize network.onnx --calibrate empty", "Put one .npz a sample there");
  expect_refusal("quantize network.onnx --calibrate nowhere", "takes a folder of inputs");
  expect_refusal("quantize network.onnx --calibrate wrong", "0.npz");
  expect_refusal("quantize network.onnx --calibrate samples --method best", "mse and minmax");
  expect_refusal("quantize network.onnx --calibrate samples --skip heart", "no node 'heart'");
  expect_refusal("quantize nothing.onnx --calibrate samples", "nothing to quantise");
  expect_refusal("quantize ancient.onnx --calibrate samples", "opset 9");
  expect_refusal("quantize network.holo --calibrate samples", "only an .onnx model");
}

TEST_F(Quantize, ChecksAPrecisionOnSamples) {
  const std::string text = call("compile network.onnx --precision bf16 --check samples -o b.holo");
  EXPECT_EQ(code_, 0) << text;
  // What is faster here is not known.
  const auto in_f32 = HasSubstr("samples: f32 is faster here");
  EXPECT_THAT(text, AnyOf(in_f32, HasSubstr("6 samples: off by ")));
  EXPECT_LE(error_of("b.holo"), 2e-2);
  const std::string close = call("compile close.onnx --precision bf16 --check rows -o c.holo");
  EXPECT_EQ(code_, 0) << close;
  EXPECT_THAT(close, AnyOf(in_f32, AllOf(HasSubstr(" products widened"),
                                         Not(HasSubstr(" 0 products widened")))));
  expect_refusal("compile network.onnx --precision int8 --check samples",
                 "--check is for --precision f32, fast and bf16");
  expect_refusal("compile network.onnx --precision fast --check empty -o no.holo", "empty");
  expect_refusal("compile network.onnx --precision fast --check nowhere -o no.holo",
                 "--check, takes a folder of inputs");
}

TEST_F(Quantize, SumsInDoubleWhereF32IsNotNearEnough) {
  const auto exact = values_of("pair_y.npy");  // by NumPy, in f64
  call("compile delicate.onnx -o plain.holo");
  EXPECT_GT(error_between(exact, result_of("plain.holo", "pair.npy")), 1e-5);
  const std::string text = call("compile delicate.onnx --check pairs -o d.holo --explain");
  EXPECT_EQ(code_, 0) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("3 samples: off by "),
                          HasSubstr("from f64, 1 convolutions by sums of f64"),
                          HasSubstr("precision: f32: 1 convolutions by sums of f64, 1 of f32")));
  EXPECT_LE(error_between(exact, result_of("d.holo", "pair.npy")), 1e-5);

  EXPECT_THAT(call("compile network.onnx --check samples -o n.holo"),
              HasSubstr("from f64, by sums of f32"));
  EXPECT_EQ(result_of("n.holo"), result_of("network.onnx"));
  expect_refusal("compile close.onnx --check rows -o no.holo",
                 "more than is promised by sums of f64 as well");
}

}  // namespace
}  // namespace hologram
