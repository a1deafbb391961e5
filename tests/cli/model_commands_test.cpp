// hologram compile, run, bench, inspect and export, as a user calls them.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "archive/archive.h"
#include "holotensor/safetensors.h"
#include "image/image.h"
#include "support/file.h"
#include "support/npy.h"

namespace hologram {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ModelCommands : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / fmt::format("hologram-models-test-{}", getpid());
    fs::create_directories(folder_);
    // The distribution's Python is the one that sees Debian's onnx.
    ASSERT_EQ(std::system(fmt::format("/usr/bin/python3 " HOLOGRAM_SOURCE_DIR
                                      "/tests/cli/make_models.py {}",
                                      folder_.string())
                              .c_str()),
              0);
    for (const char* model : {"image", "open", "branch"})
      ASSERT_EQ(std::system(fmt::format("cd {} && {}/hologram compile {}.onnx >/dev/null",
                                        folder_.string(), HOLOGRAM_BIN_DIR, model)
                                .c_str()),
                0);
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  // What it prints on both streams; code_ gets the exit code.
  std::string call(const std::string& arguments) {
    const std::string command =
        fmt::format("cd {} && {}/hologram {} 2>&1", folder_.string(), HOLOGRAM_BIN_DIR, arguments);
    FILE* pipe = popen(command.c_str(), "r");
    std::string text;
    for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
    code_ = WEXITSTATUS(pclose(pipe));
    return text;
  }
  void expect_refusal(const std::string& arguments, const std::string& words) {
    EXPECT_THAT(call(arguments), AllOf(HasSubstr("error: "), HasSubstr(words))) << arguments;
    EXPECT_EQ(code_, 2) << arguments;
  }
  std::vector<std::byte> bytes_of(const char* name) { return *read_file(folder_ / name); }

  static fs::path folder_;
  int code_ = -1;
};
fs::path ModelCommands::folder_;

TEST_F(ModelCommands, CompileNamesTheArchiveAfterTheModel) {
  EXPECT_THAT(call("compile image.onnx"), HasSubstr("image.holo: "));
  EXPECT_EQ(code_, 0);
  EXPECT_THAT(call("compile open.onnx -o fixed.holo --shape a=3,2 --shape b=3,2"),
              HasSubstr("fixed.holo"));
  EXPECT_THAT(call("inspect fixed.holo"), HasSubstr("a: f32 [3, 2]"));
}

TEST_F(ModelCommands, CompileRefusesAndWritesNothing) {
  expect_refusal("compile unknown.onnx", "node 'bad' (Frobnicate, opset 17)");
  expect_refusal("compile newer.onnx", "opset 99; supported: 1 to");
  expect_refusal("compile cycle.onnx", "node 'one' (Add)");
  expect_refusal("compile missing.onnx", "'nowhere' is read before anything writes it");
  expect_refusal("compile types.onnx", "node 'sum' (Add, opset 17)");
  expect_refusal("compile shapes.onnx", "[2, 3] and [4, 5] do not multiply");
  expect_refusal("compile cut.onnx", "cut.onnx: malformed protobuf");
  expect_refusal("compile text.onnx", "text.onnx: malformed protobuf");
  expect_refusal("compile nowhere.onnx", "nowhere.onnx");
  expect_refusal("compile image.holo", "compiled already");
  expect_refusal("compile image.onnx -o image.onnx", "would replace the model");
  expect_refusal("compile image.onnx -o nowhere/x.holo", "cannot write");
  expect_refusal("compile image.onnx --shape x=1,3,8 -o no.holo", "cannot become [1, 3, 8]");
  expect_refusal("compile image.onnx --shape z=1 -o no.holo", "no input 'z'");
  expect_refusal("compile image.onnx --shape x=1,3,-8,8 -o no.holo", "'-8'");
  expect_refusal("compile image.onnx --precision banana -o no.holo", "banana");
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    EXPECT_THAT(name, Not(HasSubstr("tmp"))) << "left behind";
    if (entry.path().extension() == ".holo") {
      EXPECT_THAT((std::set<std::string>{"image.holo", "open.holo", "branch.holo", "fixed.holo"}),
                  testing::Contains(name));
    }
  }
}

TEST_F(ModelCommands, RunTakesEveryKindOfFile) {
  call("run image.holo -i x=x.npy -o y=expected.npy");
  ASSERT_EQ(code_, 0);
  const auto expected = bytes_of("expected.npy");
  EXPECT_EQ(read_npy(folder_ / "expected.npy")->shape, (std::vector<int64_t>{1, 10}));
  for (const char* input : {"x.npy", "x=x.npz", "x.npz", "x=x.pb", "x=x.raw"}) {
    EXPECT_EQ(call(fmt::format("run image.holo --input {} --output out.npy", input)),
              "y written to out.npy\n");
    EXPECT_EQ(bytes_of("out.npy"), expected) << input;
  }
  // The model may stand behind the options.
  call("run --input x=x.npy --output out.npy image.holo");
  EXPECT_EQ(code_, 0);
  EXPECT_EQ(bytes_of("out.npy"), expected);
  // An .onnx model is compiled on the spot.
  call("run image.onnx -i x.npy -o out.npy");
  EXPECT_EQ(bytes_of("out.npy"), expected);
}

TEST_F(ModelCommands, RunTakesPictures) {
  image::Image picture{8, 8, std::vector<uint8_t>(8 * 8 * 3)};
  for (size_t i = 0; i < picture.rgb.size(); ++i) picture.rgb[i] = static_cast<uint8_t>(i);
  ASSERT_TRUE(image::write_png(folder_ / "picture.png", picture));
  NpyArray array{DType::f32, {1, 3, 8, 8}, {}};
  std::vector<float> values;
  for (size_t channel = 0; channel < 3; ++channel)
    for (size_t pixel = 0; pixel < 64; ++pixel)
      values.push_back((static_cast<float>(picture.rgb[3 * pixel + channel]) / 255 - 0.5f) / 0.25f);
  const auto bytes = std::as_bytes(std::span(values));
  array.data.assign(bytes.begin(), bytes.end());
  ASSERT_TRUE(write_npy(folder_ / "picture.npy", array));
  call("run image.holo -i x=picture.npy -o y=by_array.npy");
  call(
      "run image.holo -i picture.png --image 'mean=0.5,0.5,0.5;std=0.25,0.25,0.25' -o "
      "y=by_png.npy");
  EXPECT_EQ(code_, 0);
  const auto a = *read_npy(folder_ / "by_array.npy"), b = *read_npy(folder_ / "by_png.npy");
  for (size_t i = 0; i < 10; ++i)
    EXPECT_NEAR(reinterpret_cast<const float*>(a.data.data())[i],
                reinterpret_cast<const float*>(b.data.data())[i], 1e-4);
  expect_refusal("run image.holo -i picture.png --image upside-down", "upside-down");
}

TEST_F(ModelCommands, RunShowsASummaryOrTheLargest) {
  EXPECT_THAT(call("run image.holo -i x.npy"),
              AllOf(HasSubstr("y: f32 [1, 10]"), HasSubstr("min"), HasSubstr("mean")));
  const std::string top = call("run image.holo -i x.npy --top 3");
  EXPECT_EQ(std::count(top.begin(), top.end(), '\n'), 3);
  call("run image.holo -i x.npy -o y=y.json");
  const json file = json::parse(*read_text_file(folder_ / "y.json"));
  EXPECT_EQ(file["shape"], json::parse("[1, 10]"));
  double largest = -1e30;
  size_t at = 0;
  for (size_t i = 0; i < 10; ++i)
    if (file["data"][i].get<double>() > largest) largest = file["data"][at = i];
  EXPECT_EQ(std::stoul(top), at);
}

TEST_F(ModelCommands, RunRefusesByName) {
  expect_refusal("run image.holo", "input 'x' is not given");
  expect_refusal("run image.holo -i q=x.npy", "no input 'q'");
  expect_refusal("run image.holo -i x=nowhere.npy", "nowhere.npy");
  expect_refusal("run image.holo -i x=double.npy", ".astype(np.float32)");
  expect_refusal("run image.holo -i x=rank3.npy", "the file holds [3, 8, 8]");
  expect_refusal("run image.holo -i x=large.npy", "[1, 3, 9, 9]");
  expect_refusal("run image.holo -i other.npz", "holds 'q', which is no input");
  expect_refusal("run image.holo -i x=x.npy -i x=x.npy", "given twice");
  expect_refusal("run image.holo -i x=text.onnx", "has 6 bytes");
  expect_refusal("run image.holo -i x.npy -o q=q.npy", "no output 'q'");
  expect_refusal("run image.holo -i x.npy -o y=nowhere/q.npy", "cannot write");
  expect_refusal("run image.holo -i x.npy --top 0", "--top");
  expect_refusal("run open.holo -i x.npy", "which input is 'x.npy'");
  expect_refusal("run open.holo --random", "--shape a=");
  expect_refusal("run open.holo --random --shape a=3,2 --shape b=4,2", "dimension 0 is 3");
  expect_refusal("run x.npy", "not a .holo archive");
  expect_refusal("run nowhere.holo", "nowhere.holo");
}

TEST_F(ModelCommands, BenchMeasures) {
  EXPECT_THAT(call("bench image.holo --runs 3 --profile"),
              AllOf(HasSubstr("of 3 runs"), HasSubstr("median"), HasSubstr("share")));
  EXPECT_EQ(code_, 0);
  EXPECT_THAT(call("bench open.holo --runs 2 --shape a=5,2 --shape b=5,2"), HasSubstr("best"));
}

TEST_F(ModelCommands, InspectShowsSectionsStepsAndMemory) {
  EXPECT_THAT(call("inspect image.holo"),
              AllOf(HasSubstr("sections"), HasSubstr("constants"), HasSubstr("x: f32 [1, 3, 8, 8]"),
                    HasSubstr("y: f32 [1, 10]"), HasSubstr("Conv"), HasSubstr("memory: an arena")));
  EXPECT_EQ(code_, 0);
  EXPECT_THAT(call("inspect branch.holo"), AllOf(HasSubstr("then_branch"), HasSubstr("Mul")));
  EXPECT_THAT(call("inspect image.onnx"), HasSubstr("GlobalAveragePool"));
  expect_refusal("inspect x.npy", "not a .holo archive");
  expect_refusal("inspect image.holo --json --dot", "choose one");
  expect_refusal("inspect image.onnx --json", "not compiled");
}

TEST_F(ModelCommands, InspectWritesJson) {
  const json document = json::parse(call("inspect image.holo --json --profile"));
  const auto archive = archive::Archive::open(folder_ / "image.holo");
  ASSERT_TRUE(archive);
  EXPECT_EQ(document["plan"]["steps"].size(), archive->model().plan()->steps()->size());
  EXPECT_EQ(document["constants"].size(), archive->model().constants()->size());
  EXPECT_EQ(document["inputs"][0]["name"], "x");
  EXPECT_EQ(document["outputs"][0]["type"], "f32 [1, 10]");
  uint64_t arena = document["plan"]["arena"];
  for (const json& value : document["plan"]["values"])
    if (value.contains("offset")) {
      EXPECT_LE(value["offset"].get<uint64_t>() + value["size"].get<uint64_t>(), arena);
    }
  for (const json& step : document["plan"]["steps"]) EXPECT_TRUE(step.contains("milliseconds"));
}

TEST_F(ModelCommands, InspectWritesDotAndOnePage) {
  for (const char* file : {"image.holo", "image.onnx", "branch.holo"}) {
    const std::string dot = call(fmt::format("inspect {} --dot", file));
    EXPECT_EQ(dot.substr(0, 8), "digraph ");
    EXPECT_EQ(std::count(dot.begin(), dot.end(), '{'), std::count(dot.begin(), dot.end(), '}'));
    EXPECT_THAT(dot, HasSubstr(" -> "));
  }
  call("inspect branch.holo --html page.html");
  EXPECT_EQ(code_, 0);
  const std::string page = *read_text_file(folder_ / "page.html");
  EXPECT_THAT(page, AllOf(HasSubstr("<!doctype html>"), HasSubstr("then_branch"),
                          Not(HasSubstr("@DATA@")), Not(HasSubstr("src=\"http"))));
  const size_t begin = page.find("id=\"data\">") + 10, end = page.find("</script>", begin);
  EXPECT_TRUE(json::accept(page.substr(begin, end - begin)));
}

TEST_F(ModelCommands, ExportGivesBackEveryByte) {
  for (const std::string name : {"image", "branch"}) {
    call(fmt::format("export {0}.holo -o exported_{0}", name));
    ASSERT_EQ(code_, 0);
    const auto archive = *archive::Archive::open(folder_ / (name + ".holo"));
    const auto reader = *holotensor::SafetensorsReader::open(
        folder_ / fmt::format("exported_{}.safetensors", name));
    ASSERT_EQ(reader.tensors().size(), archive.model().constants()->size());
    for (flatbuffers::uoffset_t i = 0; i < archive.model().constants()->size(); ++i) {
      const archive::Constant& constant = *archive.model().constants()->Get(i);
      const auto bytes = archive.constants()->subspan(constant.offset(), constant.size());
      const auto read = *reader.read(reader.tensors()[i]);
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), read.begin(), read.end()));
      EXPECT_EQ(reader.tensors()[i].dtype, static_cast<DType>(constant.dtype()));
    }
    // The plan is the archive's own section.
    const auto plan = bytes_of(fmt::format("exported_{}.bin", name).c_str());
    const auto whole = bytes_of((name + ".holo").c_str());
    const archive::Section& section = archive.sections()[0];
    ASSERT_EQ(section.kind, archive::SectionKind::plan);
    EXPECT_TRUE(std::equal(plan.begin(), plan.end(),
                           whole.begin() + static_cast<ptrdiff_t>(section.offset),
                           whole.begin() + static_cast<ptrdiff_t>(section.offset + section.size)));
  }
  expect_refusal("export x.npy", "not a .holo archive");
}

TEST_F(ModelCommands, ExportDecodesWeightsAndQualityReadsThem) {
  call("compile wide.onnx -o plain.holo");
  call("compile wide.onnx --weights refine:4 -o stored.holo");
  ASSERT_EQ(code_, 0);
  const auto stored = *archive::Archive::open(folder_ / "stored.holo");
  ASSERT_FALSE(stored.weights().empty());
  call("export stored.holo -o from_stored");
  ASSERT_EQ(code_, 0);
  call("export plain.holo -o from_plain");
  EXPECT_EQ(bytes_of("from_stored.safetensors"), bytes_of("from_plain.safetensors"));
  EXPECT_THAT(call("quality stored.holo"), HasSubstr("bits a weight"));
  EXPECT_EQ(code_, 0);
  expect_refusal("quality image.holo", "its constants are plain");
}

TEST_F(ModelCommands, AFlippedByteIsRefusedByEveryCommand) {
  auto bytes = bytes_of("image.holo");
  bytes[bytes.size() / 2] ^= std::byte{1};
  ASSERT_TRUE(write_file(folder_ / "flipped.holo", bytes));
  for (const char* command :
       {"run flipped.holo -i x.npy", "bench flipped.holo", "export flipped.holo"})
    expect_refusal(command, "flipped.holo");
  fs::remove(folder_ / "flipped.holo");
}

TEST_F(ModelCommands, HelpHasExamplesAndMistakesAreExplained) {
  for (const char* command : {"compile", "run", "bench", "inspect", "export"}) {
    EXPECT_THAT(call(fmt::format("{} --help", command)),
                AllOf(HasSubstr("Examples:"), HasSubstr(fmt::format("hologram {}", command))));
    EXPECT_EQ(code_, 0);
    expect_refusal(command, fmt::format("hologram {} --help", command));
  }
  expect_refusal("compil image.onnx", "did you mean 'compile'?");
  expect_refusal("frobnicate", "no command 'frobnicate'");
  expect_refusal("run image.holo --no-such-option", "--no-such-option");
}

}  // namespace
}  // namespace hologram
