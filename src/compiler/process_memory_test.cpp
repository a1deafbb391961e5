// Two processes that run one archive have its constants once: the second grows by activations only.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "compiler/test_session.h"
#include "support/file.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using kernels::Tensor;
using kernels::Value;
using runtime::Session;

constexpr int64_t kWidth = 1536, kLayers = 6;
constexpr int64_t kConstantBytes = kWidth * kWidth * 4 * kLayers;  // 57 MB

// Bytes of memory that no other process has.
int64_t private_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  int64_t total = 0;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("Private_")) {
      long kilobytes = 0;
      if (std::sscanf(line.c_str(), "%*s %ld", &kilobytes) == 1) total += kilobytes * 1024;
    }
  return total;
}

Result<Session> open_and_run(const std::filesystem::path& path) {
  HOLOGRAM_TRY(Session session, Session::open(path));
  const std::vector inputs{Value(varied({4, kWidth}))};
  HOLOGRAM_CHECK(session.run(inputs));
  return session;
}

TEST(ProcessMemory, ASecondProcessGrowsByActivationsOnly) {
  if (!std::filesystem::exists("/proc/self/smaps_rollup")) GTEST_SKIP() << "no smaps_rollup";
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's shadow memory is in the way";
#endif
  Graph g;
  ValueId y = add_input(g, "x", {4, kWidth});
  for (uint32_t layer = 0; layer < kLayers; ++layer)
    y = g.op("Relu").input(ValueId(
        g.op("MatMul").input(y).input(g.add_constant(varied({kWidth, kWidth}, layer + 1)))));
  g.outputs = {y};
  g.output_names = {"y"};
  const auto path = std::filesystem::temp_directory_path() /
                    ("hologram_process_memory_" + std::to_string(getpid()) + ".holo");
  {
    auto bytes = compile(std::move(g));
    ASSERT_TRUE(bytes.has_value()) << bytes.error().to_string();
    ASSERT_GT(static_cast<int64_t>(bytes->size()), kConstantBytes);
    ASSERT_TRUE(write_file(path, *bytes).has_value());
  }
  const auto first = open_and_run(path);
  ASSERT_TRUE(first.has_value()) << first.error().to_string();

  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  if (child == 0) {
    // Threads of the parent's pool are not here: a pool of one runs on the caller alone.
    ThreadPool alone(1);
    const int64_t before = private_bytes();
    int64_t grown = -1;
    auto session = Session::open(path);
    if (session) {
      session->use(alone);
      const std::vector inputs{Value(varied({4, kWidth}))};
      if (session->run(inputs)) grown = private_bytes() - before;
    }
    const bool written = write(pipes[1], &grown, sizeof(grown)) == sizeof(grown);
    _exit(written ? 0 : 1);
  }
  int64_t grown = -1;
  close(pipes[1]);
  EXPECT_EQ(read(pipes[0], &grown, sizeof(grown)), static_cast<ssize_t>(sizeof(grown)));
  close(pipes[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  std::filesystem::remove(path);
  EXPECT_GE(grown, 0);
  // Activations and what kernels need beside them, a tenth of the constants at most.
  EXPECT_LT(grown, kConstantBytes / 10);
  std::printf("the second process grew by %.2f MB, the constants are %.1f MB\n",
              static_cast<double>(grown) / 1e6, static_cast<double>(kConstantBytes) / 1e6);
}

}  // namespace
}  // namespace hologram::compiler
