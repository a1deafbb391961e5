// Models that must be refused: with which code, in which words; and nothing may crash.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <limits>

#include "compiler/compile.h"
#include "onnx/model.h"
#include "onnx_bytes.h"
#include "support/file.h"

namespace hologram {
namespace {

namespace fs = std::filesystem;
using namespace hologram::testing;  // the model's parts
using ::testing::AllOf;
using ::testing::HasSubstr;

class OnnxErrors : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_ / "inside"); }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path store(const std::string& bytes) const {
    const fs::path path = folder_ / "inside" / "model.onnx";
    EXPECT_TRUE(write_file(path, std::string_view(bytes)));
    return path;
  }
  void refused(const std::string& bytes, ErrorCode code, const auto& message) const {
    const auto result = compiler::compile_onnx(store(bytes));
    ASSERT_FALSE(result.has_value()) << "was compiled";
    EXPECT_EQ(result.error().code(), code) << result.error().to_string();
    EXPECT_THAT(result.error().to_string(), message);
  }

  const fs::path folder_ =
      fs::temp_directory_path() / ("hologram-onnx-error-" + std::to_string(getpid()));
};

const std::string kGood = one_node({"Add", {"x", "b"}, {"y"}});

TEST_F(OnnxErrors, FilesThatAreNoModel) {
  refused("", ErrorCode::corrupt, HasSubstr("not an ONNX model: it has no graph"));
  refused("hello, world: this is text", ErrorCode::corrupt, HasSubstr("malformed protobuf"));
  refused(std::string(1000, '\xff'), ErrorCode::corrupt, HasSubstr("malformed protobuf"));
  // The graph (field 7) as a number: an assertion inside protozero once.
  refused("\x38\x01", ErrorCode::corrupt, HasSubstr("malformed protobuf"));
  const auto missing = compiler::compile_onnx(folder_ / "none.onnx");
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().to_string(), HasSubstr("none.onnx"));
}

TEST_F(OnnxErrors, EveryPrefixAndEveryFlippedByte) {
  ASSERT_TRUE(compiler::compile_onnx(store(kGood)).has_value());
  for (size_t size = 0; size < kGood.size(); ++size) {
    const auto result = compiler::compile_onnx(store(kGood.substr(0, size)));
    if (result) continue;
    EXPECT_NE(result.error().code(), ErrorCode::internal) << result.error().to_string();
  }
  for (size_t i = 0; i < kGood.size(); ++i)
    for (const int mask : {0x01, 0x80, 0xff}) {
      std::string bytes = kGood;
      bytes[i] = static_cast<char>(bytes[i] ^ mask);
      const auto result = compiler::compile_onnx(store(bytes));
      if (result) continue;
      EXPECT_NE(result.error().code(), ErrorCode::internal)
          << i << ": " << result.error().to_string();
    }
}

TEST_F(OnnxErrors, OperatorsDomainsAndOpsets) {
  refused(one_node({"Frobnicate", {"x"}, {"y"}, {}, "", "nowhere"}), ErrorCode::unsupported,
          AllOf(HasSubstr("node 'nowhere' (Frobnicate, opset 17)"),
                HasSubstr("operator Frobnicate is not supported")));
  refused(one_node({"Add", {"x", "b"}, {"y"}, {}, "com.example"}), ErrorCode::corrupt,
          HasSubstr("the model imports no opset for domain 'com.example'"));
  refused(one_node({"Fancy", {"x"}, {"y"}, {}, "com.example"},
                   {opset("", 17), opset("com.example", 3)}),
          ErrorCode::unsupported, HasSubstr("operator com.example.Fancy is not supported"));
  refused(one_node({"Add", {"x", "b"}, {"y"}}, {opset("", 29)}), ErrorCode::unsupported,
          HasSubstr("opset 29; supported: 1 to 28"));
  refused(one_node({"Add", {"x", "b"}, {"y"}}, {opset("", 0)}), ErrorCode::unsupported,
          HasSubstr("opset 0; supported: 1 to 28"));
  refused(one_node({"Add", {"x", "b"}, {"y"}}, {}), ErrorCode::corrupt,
          HasSubstr("imports no opset for domain ''"));
  refused(one_node({"AlignAxes", {"x", "b"}, {"y"}, {}, "hologram"},
                   {opset("", 17), opset("hologram", 1)}),
          ErrorCode::unsupported, HasSubstr("the domain 'hologram' is the compiler's own"));
}

TEST_F(OnnxErrors, SequencesOfNothingAndOfSequences) {
  const auto length_of = [](const std::string& element) {
    return model(graph_text({{node({"SequenceLength", {"x"}, {"y"}, {}, "", "n"})},
                             {sequence_value("x", element)},
                             {value("y", kInt64, {})},
                             {}}));
  };
  refused(length_of(""), ErrorCode::corrupt, HasSubstr("without an element type"));
  std::string tensor, inner, nested;
  protozero::pbf_writer(tensor).add_int32(1, kFloat);
  protozero::pbf_writer(inner).add_message(1, tensor);
  protozero::pbf_writer sequence(nested);
  std::string of_tensors;
  protozero::pbf_writer(of_tensors).add_message(1, inner);
  sequence.add_message(4, of_tensors);
  refused(length_of(nested), ErrorCode::unsupported, HasSubstr("sequences of tensors"));
}

TEST_F(OnnxErrors, ControlFlowWithoutResultsDoesNothing) {
  const std::string body = graph_text({{node({"Identity", {"in"}, {"out"}})},
                                       {value("in", kFloat, {2})},
                                       {value("out", kFloat, {2})},
                                       {}});
  std::string tensor, element;
  protozero::pbf_writer(tensor).add_int32(1, kFloat);
  protozero::pbf_writer(element).add_message(1, tensor);
  const std::string bytes =
      model(graph_text({{node({"SequenceMap", {"s"}, {}, {graph_attribute("body", body)}}),
                         node({"Identity", {"x"}, {"y"}})},
                        {sequence_value("s", element), value("x", kFloat, {2})},
                        {value("y", kFloat, {2})},
                        {}}));
  const auto archive = compiler::compile_onnx(store(bytes));
  EXPECT_TRUE(archive) << archive.error().to_string();
}

TEST_F(OnnxErrors, TypesAndInputs) {
  auto typed = [](const char* op, int x, int b) {
    return model(graph_text({{node({op, {"x", "b"}, {"y"}, {}, "", "n"})},
                             {value("x", x, {2, 3}), value("b", b, {2, 3})},
                             {value("y", x, {-99})},
                             {}}));
  };
  refused(
      typed("Add", kFloat, kInt64), ErrorCode::type_mismatch,
      AllOf(HasSubstr("node 'n' (Add, opset 17)"), HasSubstr("input B is i64"), HasSubstr("f32")));
  refused(typed("And", kFloat, kFloat), ErrorCode::unsupported,
          HasSubstr("input A of type f32 is not supported; supported: bool"));
  refused(
      typed("Sub", kString, kString), ErrorCode::unsupported,
      AllOf(HasSubstr("input A of type string is not supported; supported: i8"), HasSubstr("f64")));
  refused(typed("Add", 99, 99), ErrorCode::unsupported,
          HasSubstr("element type 99 is not one ONNX defines"));
  refused(one_node({"Add", {"x"}, {"y"}}), ErrorCode::invalid_argument,
          HasSubstr("input B is missing"));
  refused(one_node({"Add", {"x", ""}, {"y"}}), ErrorCode::invalid_argument,
          HasSubstr("input B is missing"));
  refused(one_node({"Add", {"x", "b", "b"}, {"y"}}), ErrorCode::invalid_argument,
          HasSubstr("3 inputs; the operator takes at most 2"));
  refused(one_node({"Add", {"x", "z"}, {"y"}}), ErrorCode::corrupt,
          HasSubstr("'z' is read before anything writes it (a missing input, or a cycle)"));
  refused(one_node({"Add", {"x", "b"}, {"other"}}), ErrorCode::corrupt, HasSubstr("output 'y'"));
  refused(one_node({"Add", {"x", "b"}, {"x"}}), ErrorCode::corrupt,
          HasSubstr("the name 'x' is given twice"));
}

TEST_F(OnnxErrors, Cycles) {
  refused(
      model(graph_text(
          {{node({"Add", {"x", "q"}, {"p"}, {}, "", "first"}), node({"Relu", {"p"}, {"q"}})},
           {value("x", kFloat, {2})},
           {value("q", kFloat, {2})},
           {}})),
      ErrorCode::corrupt,
      AllOf(HasSubstr("node 'first' (Add)"), HasSubstr("'q' is read before anything writes it")));
}

TEST_F(OnnxErrors, Attributes) {
  refused(one_node({"Relu", {"x"}, {"y"}, {attribute("slope", int64_t{1})}}),
          ErrorCode::unsupported, HasSubstr("attribute 'slope' is not known to the operator"));
  refused(one_node({"Softmax", {"x"}, {"y"}, {attribute("axis", std::vector<int64_t>{1})}}),
          ErrorCode::type_mismatch, HasSubstr("attribute 'axis' has the wrong kind"));
  refused(one_node({"Concat", {"x", "b"}, {"y"}, {attribute("axis", int64_t{7})}}),
          ErrorCode::out_of_range, HasSubstr("7"));
  refused(one_node({"Constant", {}, {"y"}}), ErrorCode::corrupt,
          HasSubstr("a Constant has one attribute and one output"));
}

TEST_F(OnnxErrors, ImpossibleShapes) {
  auto product = [](std::vector<int64_t> x, std::vector<int64_t> b) {
    return model(graph_text({{node({"MatMul", {"x", "b"}, {"y"}, {}, "", "product"})},
                             {value("x", kFloat, x), value("b", kFloat, b)},
                             {value("y", kFloat, {-99})},
                             {}}));
  };
  refused(product({2, 3}, {4, 5}), ErrorCode::shape_mismatch,
          AllOf(HasSubstr("node 'product' (MatMul, opset 17)"),
                HasSubstr("[2, 3] and [4, 5] do not multiply")));
  refused(product({}, {4, 5}), ErrorCode::shape_mismatch, HasSubstr("a scalar operand"));
  const std::vector<int64_t> deep(17, 1);
  refused(product(deep, deep), ErrorCode::unsupported, HasSubstr("rank 17; at most 16"));
  auto reshape = [](const std::vector<int64_t>& to) {
    std::string raw(reinterpret_cast<const char*>(to.data()), 8 * to.size());
    return model(graph_text({{node({"Reshape", {"x", "shape"}, {"y"}})},
                             {value("x", kFloat, {2, 3})},
                             {value("y", kFloat, {-99})},
                             {weights("shape", kInt64, {static_cast<int64_t>(to.size())}, raw)}}));
  };
  refused(reshape({4, 2}), ErrorCode::shape_mismatch, HasSubstr("[2, 3]"));
  std::vector<int64_t> many(17, 1);
  many[0] = 6;
  refused(reshape(many), ErrorCode::unsupported, HasSubstr("a result of rank 17; at most 16"));
  for (const char* op : {"Reshape", "Expand"})
    refused(
        model(graph_text({{node({op, {"x", "shape"}, {"y"}})},
                          {value("x", kFloat, {2, 3}), value("shape", kInt64, {int64_t{1} << 31})},
                          {value("y", kFloat, {-99})},
                          {}})),
        ErrorCode::unsupported, HasSubstr("a result of rank 2147483648; at most 16"));
  refused(reshape({-1, -1}), ErrorCode::shape_mismatch, HasSubstr("more than one dimension of -1"));
  refused(reshape({-5, 1}), ErrorCode::shape_mismatch, HasSubstr("dimension -5"));
}

TEST_F(OnnxErrors, ShapesThatNoTensorHas) {
  const auto input = [](const std::vector<int64_t>& dims) {
    return model(graph_text({{node({"Relu", {"x"}, {"y"}})},
                             {value("x", kFloat, dims)},
                             {value("y", kFloat, {-99})},
                             {}}));
  };
  refused(input({int64_t{1} << 40, int64_t{1} << 40}), ErrorCode::corrupt,
          HasSubstr("impossible shape [1099511627776, 1099511627776]"));
  refused(input({std::numeric_limits<int64_t>::max()}), ErrorCode::corrupt,
          HasSubstr("impossible shape"));
}

TEST_F(OnnxErrors, WeightsThatAreCutOrLie) {
  auto with = [](const std::string& tensor) {
    return model(graph_text({{node({"Add", {"x", "w"}, {"y"}})},
                             {value("x", kFloat, {2, 2})},
                             {value("y", kFloat, {2, 2})},
                             {tensor}}));
  };
  ASSERT_TRUE(
      compiler::compile_onnx(store(with(weights("w", kFloat, {2, 2}, std::string(16, 0))))));
  refused(with(weights("w", kFloat, {2, 2}, std::string(12, 0))), ErrorCode::corrupt,
          AllOf(HasSubstr("tensor 'w'"), HasSubstr("12 bytes where f32 of [2, 2] wants 16")));
  refused(with(weights("w", kFloat, {-2, 2}, std::string(16, 0))), ErrorCode::corrupt,
          HasSubstr("impossible shape [-2, 2]"));
  refused(with(weights("w", kFloat, {int64_t{1} << 40, int64_t{1} << 40}, "")), ErrorCode::corrupt,
          HasSubstr("impossible shape"));
  refused(with(weights("w", kFloat, {0, int64_t{1} << 40, int64_t{1} << 40}, "")),
          ErrorCode::corrupt, HasSubstr("impossible shape [0, "));
  refused(with(weights("w", 77, {1}, "")), ErrorCode::unsupported,
          HasSubstr("element type 77 is not one ONNX defines"));
  refused(with(weights("w", kString, {3}, "")), ErrorCode::corrupt, HasSubstr("0 strings for [3]"));
}

TEST_F(OnnxErrors, ExternalDataStaysInTheFolder) {
  ASSERT_TRUE(write_file(folder_ / "secret.bin", std::string_view("0123456789abcdef")));
  ASSERT_TRUE(write_file(folder_ / "inside" / "w.bin", std::string_view("0123456789abcdef")));
  fs::create_symlink(folder_ / "secret.bin", folder_ / "inside" / "link.bin");
  auto with = [](std::initializer_list<std::pair<const char*, std::string>> where) {
    return model(graph_text({{node({"Add", {"x", "w"}, {"y"}})},
                             {value("x", kFloat, {2, 2})},
                             {value("y", kFloat, {2, 2})},
                             {external("w", {2, 2}, where)}}));
  };
  ASSERT_TRUE(compiler::compile_onnx(store(with({{"location", "w.bin"}}))));
  ASSERT_TRUE(compiler::compile_onnx(
      store(with({{"location", "./x/../w.bin"}, {"offset", "0"}, {"length", "16"}}))));
  for (const std::string& path : {std::string("../secret.bin"), (folder_ / "secret.bin").string(),
                                  std::string("x/../../secret.bin"), std::string("")})
    refused(with({{"location", path}}), ErrorCode::permission_denied,
            HasSubstr("external data '" + path + "' lies outside the model's folder"));
  refused(with({{"location", "link.bin"}}), ErrorCode::permission_denied,
          HasSubstr("'link.bin' leads outside the model's folder"));
  refused(with({}), ErrorCode::corrupt, HasSubstr("external data without a location"));
  refused(with({{"location", "none.bin"}}), ErrorCode::not_found, HasSubstr("none.bin"));
  refused(with({{"location", "w.bin"}, {"offset", "4"}}), ErrorCode::corrupt,
          HasSubstr("'w.bin': 16 bytes at 4 of a file of 16, for a tensor of 16"));
  refused(with({{"location", "w.bin"}, {"offset", "18446744073709551615"}}), ErrorCode::corrupt,
          HasSubstr("of a file of 16"));
  refused(with({{"location", "w.bin"}, {"length", "12"}}), ErrorCode::corrupt,
          HasSubstr("12 bytes at 0"));
  refused(with({{"location", "w.bin"}, {"offset", "-1"}}), ErrorCode::corrupt,
          HasSubstr("external data with offset '-1'"));
}

// Three GiB that take no disk: the file is a hole.
TEST_F(OnnxErrors, MoreThanTwoGibibytesAreRead) {
  const std::string bytes = model(
      graph_text({{node({"Add", {"x", "w"}, {"y"}})},
                  {value("x", kFloat, {2, 2})},
                  {value("y", kFloat, {2, 2})},
                  {external("w", {2, 2}, {{"location", "big.bin"}, {"offset", "3221225472"}})}}));
  ASSERT_TRUE(write_file(folder_ / "inside" / "big.bin", std::string_view("")));
  fs::resize_file(folder_ / "inside" / "big.bin", (uint64_t{3} << 30) + 16);
  EXPECT_TRUE(compiler::compile_onnx(store(bytes)));

  // The same within the model: 2.5 GiB of raw data, at the end of everything. Only mapped.
  constexpr uint64_t kRaw = uint64_t{5} << 29;
  std::string tensor = weights("w", kFloat, {static_cast<int64_t>(kRaw / 4)}, "");
  tensor.resize(tensor.size() - 2);  // without the empty raw data
  auto varint = [](uint64_t n) {
    std::string text;
    for (; n > 127; n >>= 7) text += static_cast<char>(n | 128);
    return text + static_cast<char>(n);
  };
  tensor += "\x4a" + varint(kRaw);
  std::string inner =
      graph_text({{node({"Shape", {"w"}, {"y"}})}, {}, {value("y", kInt64, {1})}, {}});
  inner += "\x2a" + varint(tensor.size() + kRaw) + tensor;
  std::string whole =
      std::string("\x08\x08") + "\x42" + varint(opset("", 17).size()) + opset("", 17);
  whole += "\x3a" + varint(inner.size() + kRaw) + inner;
  const fs::path path = store(whole);
  fs::resize_file(path, whole.size() + kRaw);
  const auto read = onnx::read_model(path);
  ASSERT_TRUE(read.has_value()) << read.error().to_string();
  EXPECT_EQ(read->value(read->nodes[0].inputs[0]).constant->bytes(), kRaw);
}

TEST_F(OnnxErrors, FunctionsThatNeverEnd) {
  auto with = [](Names functions) {
    return model(graph_text({{node({"F", {"x"}, {"y"}, {}, "local"})},
                             {value("x", kFloat, {2})},
                             {value("y", kFloat, {-99})},
                             {}}),
                 {opset("", 17), opset("local", 1)}, std::move(functions));
  };
  refused(with({function("F", {node({"F", {"x"}, {"y"}, {}, "local"})})}), ErrorCode::corrupt,
          HasSubstr("calls itself"));
  // Thirty functions, each calling the next twice: 2^30 nodes.
  Names functions;
  for (int i = 0; i < 30; ++i) {
    const std::string own = i == 0 ? "F" : "F" + std::to_string(i),
                      next = "F" + std::to_string(i + 1);
    const std::string domain = i == 29 ? "" : "local", op = i == 29 ? "Relu" : next;
    functions.push_back(function(
        own, {node({op, {"x"}, {"t"}, {}, domain}), node({op, {"t"}, {"y"}, {}, domain})}));
  }
  refused(with(functions), ErrorCode::resource_exhausted, HasSubstr("nodes"));
}

TEST_F(OnnxErrors, GraphsInsideNodes) {
  const std::string branch =
      graph_text({{node({"Relu", {"x"}, {"r"}})}, {}, {value("r", kFloat, {-99})}, {}});
  const std::string other =
      graph_text({{node({"Shape", {"x"}, {"r"}})}, {}, {value("r", kInt64, {-99})}, {}});
  auto with = [&](Names attributes) {
    return model(graph_text({{node({"If", {"c"}, {"y"}, std::move(attributes)})},
                             {value("x", kFloat, {2}), value("c", kBool, {})},
                             {value("y", kFloat, {-99})},
                             {}}));
  };
  ASSERT_TRUE(compiler::compile_onnx(store(
      with({graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)}))));
  refused(with({graph_attribute("then_branch", branch)}), ErrorCode::corrupt,
          HasSubstr("attribute 'else_branch' is missing"));
  refused(with({graph_attribute("then_branch", branch), graph_attribute("else_branch", other)}),
          ErrorCode::type_mismatch,
          AllOf(HasSubstr("output 0 is f32[2] in one branch"), HasSubstr("i64[1] in the other")));
  std::string nested = branch;
  for (int i = 0; i < 200; ++i)
    nested = graph_text(
        {{node({"If",
                {"c"},
                {"r"},
                {graph_attribute("then_branch", nested), graph_attribute("else_branch", branch)}})},
         {},
         {value("r", kFloat, {-99})},
         {}});
  refused(with({graph_attribute("then_branch", nested), graph_attribute("else_branch", branch)}),
          ErrorCode::corrupt, HasSubstr("malformed protobuf"));
}

// The command: exit code 2, one message, and no archive left behind.
TEST_F(OnnxErrors, TheCommandExitsWithTwo) {
  const fs::path archive = folder_ / "out.holo";
  auto call = [&](const std::string& arguments) {
    const std::string command =
        fmt::format("{} {} > {} 2>&1", HOLOGRAM_COMMAND, arguments, (folder_ / "log").string());
    return WEXITSTATUS(std::system(command.c_str()));
  };
  auto log = [&] { return *read_text_file(folder_ / "log"); };
  const std::string out = " -o " + archive.string();
  EXPECT_EQ(call("compile " + store(kGood).string() + out), 0) << log();
  EXPECT_TRUE(fs::exists(archive));
  fs::remove(archive);
  EXPECT_EQ(call("compile " + store(one_node({"Frobnicate", {"x"}, {"y"}})).string() + out), 2);
  EXPECT_THAT(log(), HasSubstr("operator Frobnicate is not supported"));
  EXPECT_EQ(call("compile " + store("garbage").string() + out), 2);
  EXPECT_THAT(log(), HasSubstr("malformed protobuf"));
  EXPECT_EQ(call("compile " + (folder_ / "none.onnx").string() + out), 2);
  EXPECT_EQ(call("run " + store(kGood).string()), 2) << log();  // no inputs
  EXPECT_EQ(call("frobnicate"), 2);
  EXPECT_FALSE(fs::exists(archive));
  size_t left = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) left += entry.path() != folder_ / "log";
  EXPECT_EQ(left, 1u) << "something half-written beside 'inside'";
}

}  // namespace
}  // namespace hologram
