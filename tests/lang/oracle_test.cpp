// Every kernel of the library and the examples and 200 random programs: what CPython gives
// (oracle_cases.py) is what the interpreter and the native code give. Integers and bool agree in
// every bit, floats within a tolerance; NaN with NaN.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "codegen/compile.h"
#include "codegen/testing/native_program.h"
#include "isa/interpreter.h"
#include "lang/compile.h"
#include "lang/intrinsics.h"
#include "lang/json/json.h"
#include "support/file.h"

namespace hologram::lang {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// HOLOGRAM_ORACLE_SEEDS=1000:300 draws other programs.
constexpr const char* kPrograms = "0:200";
constexpr int kParts = 2;  // processes of CPython at a time

double element(const std::byte* at, DType type) {
  const auto as = [&]<typename T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (type) {
    case DType::f16:
      return f16_to_f32(as(uint16_t{}));
    case DType::bf16:
      return bf16_to_f32(as(uint16_t{}));
    case DType::f32:
      return as(float{});
    default:
      return as(double{});
  }
}

// Of the type's own precision: a difference the oracle's rounding can explain.
double precision(DType type, double tolerance) {
  return type == DType::f16 ? 2e-3 : type == DType::bf16 ? 1.6e-2 : tolerance;
}

// The first element that differs, or an empty text.
std::string difference(DType type, std::span<const std::byte> got,
                       std::span<const std::byte> expected, double tolerance) {
  const size_t size = size_of(type);
  for (size_t i = 0; i < got.size() / size; ++i) {
    const std::byte *a = &got[i * size], *b = &expected[i * size];
    if (!is_float(type)) {
      if (std::memcmp(a, b, size) == 0) continue;
      int64_t x = 0, y = 0;
      std::memcpy(&x, a, size);
      std::memcpy(&y, b, size);
      return fmt::format("element {}: {:#x}, CPython has {:#x}", i, x, y);
    }
    const double x = element(a, type), y = element(b, type);
    if ((std::isnan(x) && std::isnan(y)) || x == y) continue;
    const double allowed = precision(type, tolerance) * std::max(1.0, std::abs(y));
    if (std::abs(x - y) <= allowed) continue;
    return fmt::format("element {}: {}, CPython has {}", i, x, y);
  }
  return "";
}

// One case: arguments as the program takes them, kept alive.
struct Arguments {
  std::vector<std::vector<std::byte>> memory;
  std::vector<isa::Argument> list;
};

class Oracle : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("hologram-oracle-{}", getpid());
    std::vector<std::thread> parts;
    std::vector<int> codes(kParts, -1);
    const char* const seeds = std::getenv("HOLOGRAM_ORACLE_SEEDS");
    for (int part = 0; part < kParts; ++part)
      parts.emplace_back([&, part] {
        const std::string command = fmt::format(
            "/usr/bin/python3 {0}/tests/lang/oracle_cases.py {1}/{2} "
            "{0}/kernels:{0}/examples/kernels {3} {2}/{4}",
            HOLOGRAM_SOURCE_DIR, folder_.string(), part, seeds ? seeds : kPrograms, kParts);
        codes[part] = std::system(command.c_str());
      });
    for (std::thread& t : parts) t.join();
    for (int code : codes) ASSERT_EQ(code, 0) << "CPython could not run the kernels";
  }
  void TearDown() override { fs::remove_all(folder_); }

  Arguments arguments(const Json& test, const std::vector<std::byte>& data) {
    Arguments out;
    const auto bytes = [&](size_t at, size_t count) {
      // A device array is never null, not even an empty one.
      std::vector<std::byte> copy(std::max<size_t>(count, 8));
      std::memcpy(copy.data(), data.data() + at, count);
      return copy;
    };
    for (const Json& a : test["arguments"]) {
      const DType type = *dtype_from_name(a["type"].get<std::string>());
      if (!a.contains("shape")) {
        uint64_t word = 0;
        std::memcpy(&word, data.data() + a["before"].get<size_t>(), size_of(type));
        out.list.push_back({nullptr, 0, word});
        continue;
      }
      uint64_t count = 1;
      for (uint64_t n : a["shape"]) count *= n;
      out.memory.push_back(bytes(a["before"], count * size_of(type)));
      out.list.push_back(isa::Argument::array(out.memory.back().data(), count));
    }
    for (const Json& a : test["arguments"])
      if (a.contains("shape") && a["shape"].size() > 1)
        for (uint64_t n : a["shape"]) out.list.push_back(isa::Argument::scalar(n));
    return out;
  }

  void compare(const Json& test, const std::vector<std::byte>& data, const Arguments& got,
               const std::string& how) {
    size_t next = 0;
    for (const Json& a : test["arguments"]) {
      if (!a.contains("shape")) continue;
      const DType type = *dtype_from_name(a["type"].get<std::string>());
      uint64_t count = 1;
      for (uint64_t n : a["shape"]) count *= n;
      const size_t bytes = count * size_of(type);
      const std::string wrong =
          difference(type, std::span(got.memory[next++]).first(bytes),
                     std::span(data).subspan(a["after"].get<size_t>(), bytes), test["tolerance"]);
      EXPECT_EQ(wrong, "") << test["file"] << " " << test["kernel"] << " (" << test["label"]
                           << "), array " << a["name"] << ", " << how;
    }
  }

  void run(const Json& test, const std::vector<std::byte>& data) {
    const std::string file = test["file"], name = test["kernel"];
    auto [found, added] = compiled_.try_emplace(file + ":" + name);
    if (added) {
      const auto source = read_text_file(file);
      ASSERT_TRUE(source);
      auto kernels = compile_source(*source, file);
      ASSERT_TRUE(kernels) << kernels.error().message() << *source;
      for (CompiledKernel& kernel : *kernels) {
        if (kernel.ir.name != name) continue;
        // Through the JSON text, as another front end would.
        auto again = compile_json(write_json(kernel.ir));
        ASSERT_TRUE(again) << again.error().to_string();
        ASSERT_EQ(again->program, kernel.program);
        auto code = codegen::compile(kernel.program, *codegen::Target::host());
        ASSERT_TRUE(code) << code.error().to_string();
        auto native = codegen::testing::NativeProgram::load(*code);
        ASSERT_TRUE(native) << native.error().to_string();
        found->second = {std::move(kernel), *std::move(native)};
      }
    }
    const CompiledKernel& kernel = found->second.first;
    Arguments interpreted = arguments(test, data);
    auto shape = default_launch(kernel, interpreted.list);
    ASSERT_TRUE(shape) << shape.error().to_string();
    if (const Json& launch = test.at("launch"); !launch.is_null()) {
      shape->grid = launch.at(0).get<std::array<uint32_t, 3>>();
      shape->block = launch.at(1).get<std::array<uint32_t, 3>>();
    }
    const Status status = isa::interpret(kernel.program, *shape, interpreted.list);
    ASSERT_TRUE(status) << file << ": " << status.error().to_string();
    compare(test, data, interpreted, "interpreted");
    Arguments native = arguments(test, data);
    ASSERT_EQ(found->second.second->run(*shape, native.list), 0u);
    compare(test, data, native, "native");
  }

  fs::path folder_;
  std::map<std::string, std::pair<CompiledKernel, std::optional<codegen::testing::NativeProgram>>>
      compiled_;
};

// What the programs must have used, in the words of coverage.py: every statement, operator and
// type of docs/kernel-language.md. The functions come from the front end's own table.
std::set<std::string> whole_language() {
  std::set<std::string> all = {
      // Files and functions.
      "kernel", "@inline", "doc string", "constant", "annotated constant", "return", "return v",
      // Statements.
      "=", "element =", "x: T", "x: T = v", "if", "elif", "else", "range of 1", "range of 2",
      "range of 3", "range down", "while", "break", "continue", "pass",
      // Expressions.
      "And", "Or", "Not", "UAdd", "USub", "Invert", "ifexp", "Lt", "LtE", "Gt", "GtE", "Eq",
      "NotEq", "comparison chain", "a[i, j]", ".shape", "len()", "min of three", "max of three",
      "abs()", "round()", "DeviceArray of rank 2", "DeviceArray of rank 3", "int", "float", "int()",
      "float()", "bool",
      // Threads.
      "launch()", "block()", "shared()", "barrier()", "fence()", "parallel_map of 1",
      "parallel_map of 2", "parallel_reduce add", "parallel_reduce mul", "parallel_reduce min",
      "parallel_reduce max",
      // The other names of functions.
      "fabs()", "fmin()", "fmax()", "fabsf()", "fminf()", "fmaxf()"};
  for (const char* op : {"Add", "Sub", "Mult", "Div", "FloorDiv", "Mod", "Pow", "LShift", "RShift",
                         "BitAnd", "BitOr", "BitXor"}) {
    all.insert(op);
    all.insert(std::string(op) + "=");
  }
  for (uint8_t code = 0; code <= static_cast<uint8_t>(DType::f64); ++code) {
    const std::string type(name_of(static_cast<DType>(code)));
    all.insert(type + "()");
    all.insert("DeviceArray[" + type + "]");
  }
  for (const Intrinsic& f : intrinsics()) {
    all.insert(std::string(f.name) + "()");
    if (f.kind == IntrinsicKind::math) all.insert(std::string(f.name) + "f()");
  }
  return all;
}

TEST_F(Oracle, CPythonAndCompiledCodeAgree) {
  size_t cases = 0;
  std::set<std::string> unseen = whole_language();
  for (int part = 0; part < kParts; ++part) {
    const auto text = read_text_file(folder_ / std::to_string(part) / "cases.json");
    const auto data = read_file(folder_ / std::to_string(part) / "data.bin");
    ASSERT_TRUE(text && data);
    const auto seen = read_text_file(folder_ / std::to_string(part) / "seen.json");
    ASSERT_TRUE(seen);
    for (const Json& name : Json::parse(*seen)) unseen.erase(name.get<std::string>());
    const Json list = Json::parse(*text);
    for (const Json& test : list) {
      run(test, *data);
      ++cases;
      if (HasFatalFailure()) return;
    }
  }
  const bool drawn_anew = std::getenv("HOLOGRAM_ORACLE_SEEDS") != nullptr;
  EXPECT_TRUE(drawn_anew || unseen.empty())
      << "no program uses: " << fmt::format("{}", fmt::join(unseen, ", "));
  // Every kernel of the library and the examples, several shapes each, and the programs.
  size_t kernels = 0;
  for (const char* folder :
       {HOLOGRAM_SOURCE_DIR "/kernels", HOLOGRAM_SOURCE_DIR "/examples/kernels"})
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".py") continue;
      const auto source = compile_source(*read_text_file(entry.path()), entry.path().string());
      ASSERT_TRUE(source);
      for (const CompiledKernel& kernel : *source) {
        EXPECT_TRUE(compiled_.contains(entry.path().string() + ":" + kernel.ir.name))
            << kernel.ir.name << " was not compared";
        ++kernels;
      }
    }
  EXPECT_GE(kernels, 93u);
  EXPECT_TRUE(drawn_anew || compiled_.size() == kernels + 200) << compiled_.size();
  EXPECT_GT(cases, 600u);
  RecordProperty("cases", static_cast<int>(cases));
  RecordProperty("kernels", static_cast<int>(compiled_.size()));
}

}  // namespace
}  // namespace hologram::lang
