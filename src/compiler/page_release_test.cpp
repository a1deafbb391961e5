// Large weights leave the process's memory behind the steps that read them, where that pays.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "compiler/test_session.h"
#include "support/file.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using kernels::Value;
using runtime::Session;

constexpr int64_t kWidth = 2048, kLayers = 5;
constexpr int64_t kConstantBytes = kWidth * kWidth * 4 * kLayers;  // 84 MB

// Bytes of this file that are in this process's memory.
int64_t resident_bytes(const std::filesystem::path& path) {
  std::ifstream file("/proc/self/smaps");
  int64_t total = 0;
  bool here = false;
  for (std::string line; std::getline(file, line);) {
    long kilobytes = 0;
    if (line.find('-') < line.find(' ')) here = line.ends_with(path.string());
    if (here && std::sscanf(line.c_str(), "Rss: %ld", &kilobytes) == 1) total += kilobytes * 1024;
  }
  return total;
}

// A chain of products of `rows` rows, in a file for as long as this lives.
class Chain {
 public:
  explicit Chain(int64_t rows) {
    Graph g;
    ValueId y = add_input(g, "x", {rows, kWidth});
    for (uint32_t layer = 0; layer < kLayers; ++layer)
      y = g.op("Tanh").input(ValueId(
          g.op("MatMul").input(y).input(g.add_constant(varied({kWidth, kWidth}, layer + 1)))));
    g.outputs = {y};
    g.output_names = {"y"};
    path = std::filesystem::temp_directory_path() /
           ("hologram_page_release_" + std::to_string(getpid()) + ".holo");
    const auto bytes = compile(std::move(g));
    EXPECT_TRUE(bytes && write_file(path, *bytes));
    inputs.emplace_back(varied({rows, kWidth}));
  }
  ~Chain() { std::filesystem::remove(path); }

  std::filesystem::path path;
  std::vector<Value> inputs;
};

TEST(PageRelease, LargeWeightsLeaveBehindTheRun) {
  if (!std::filesystem::exists("/proc/self/smaps")) GTEST_SKIP() << "no smaps";
  const Chain chain(128);
  const auto session = Session::open(chain.path),
             keeping = Session::open(chain.path, {.keep_pages = true});
  ASSERT_TRUE(session && keeping);
  const auto first = session->run(chain.inputs);
  ASSERT_TRUE(first.has_value()) << first.error().to_string();
  EXPECT_LT(resident_bytes(chain.path), kConstantBytes / 3);
  // They come back from the file.
  const auto again = session->run(chain.inputs);
  ASSERT_TRUE(again.has_value()) << again.error().to_string();
  const auto kept = keeping->run(chain.inputs);
  ASSERT_TRUE(kept.has_value()) << kept.error().to_string();
  EXPECT_GT(resident_bytes(chain.path), kConstantBytes * 9 / 10);
  for (const auto* other : {&again, &kept})
    EXPECT_EQ(
        std::memcmp((*first)[0].tensor.data, (**other)[0].tensor.data, (*first)[0].tensor.bytes()),
        0);
}

TEST(PageRelease, WeightsOfShortStepsStay) {
  if (!std::filesystem::exists("/proc/self/smaps")) GTEST_SKIP() << "no smaps";
  const Chain chain(1);
  const auto session = Session::open(chain.path);
  ASSERT_TRUE(session.has_value());
  ASSERT_TRUE(session->run(chain.inputs).has_value());
  EXPECT_GT(resident_bytes(chain.path), kConstantBytes * 9 / 10);
}

}  // namespace
}  // namespace hologram::compiler
