// hologram kernels compile, run and list, as a user calls them.
#include <gmock/gmock.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "support/file.h"
#include "support/npy.h"

namespace hologram {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

long library_files() {
  return std::ranges::count_if(fs::recursive_directory_iterator(HOLOGRAM_SOURCE_DIR "/kernels"),
                               [](const auto& entry) { return entry.path().extension() == ".py"; });
}

class KernelsCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("hologram-kernels-{}", getpid());
    fs::create_directories(folder_);
    NpyArray a{DType::f32, {3}, {}};
    const float values[] = {1, 2, 3};
    const auto bytes = std::as_bytes(std::span(values));
    a.data.assign(bytes.begin(), bytes.end());
    ASSERT_TRUE(write_npy(folder_ / "a.npy", a));
  }
  void TearDown() override { fs::remove_all(folder_); }

  // What it prints on both streams; `code` gets the exit code.
  std::string call(const std::string& arguments, const char* program = "hologram") {
    const fs::path path = fs::path(HOLOGRAM_BIN_DIR) / program;  // an absolute one as it is
    const std::string command =
        fmt::format("cd {} && {} {} 2>&1", folder_.string(), path.string(), arguments);
    FILE* pipe = popen(command.c_str(), "r");
    std::string text;
    for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
    const int status = pclose(pipe);
    code_ = WEXITSTATUS(status);
    return text;
  }

  fs::path folder_;
  int code_ = -1;
  const std::string add_ = HOLOGRAM_SOURCE_DIR "/kernels/stdlib/vector/vector_add.py";
};

TEST_F(KernelsCommand, RunsASourceAndAnArchiveOnNumPyFiles) {
  const std::string arguments = " --kernel vector_add --arg a=a.npy --arg b=a.npy --arg n=3 --out ";
  EXPECT_EQ(call("kernels run " + add_ + arguments + "c=c.npy"), "c written to c.npy\n");
  EXPECT_THAT(call("kernels compile " + add_ + " -o k.holo"), HasSubstr("k.holo: 1 kernel"));
  EXPECT_EQ(call("kernels run k.holo" + arguments + "c=d.npy"), "c written to d.npy\n");
  for (const char* name : {"c.npy", "d.npy"}) {
    const auto result = read_npy(folder_ / name);
    ASSERT_TRUE(result);
    float values[3];
    std::memcpy(values, result->data.data(), sizeof values);
    EXPECT_THAT(values, testing::ElementsAre(2, 4, 6));
  }
}

TEST_F(KernelsCommand, EmitsEveryForm) {
  EXPECT_THAT(call("kernels compile --emit isa " + add_), HasSubstr("add.f32"));
  EXPECT_THAT(call("kernels compile --emit asm " + add_), HasSubstr("addps"));
  EXPECT_THAT(call("kernels compile --emit json " + add_ + " -o x.json"), HasSubstr("as json"));
  EXPECT_THAT(call("kernels compile --emit isa x.json"), HasSubstr("kernel vector_add("));
  EXPECT_THAT(call("kernels --check " HOLOGRAM_SOURCE_DIR "/kernels -j 2", "hologram-compile"),
              HasSubstr(" kernels in " + std::to_string(library_files()) + " files are right"));
  EXPECT_THAT(call("kernels list"), HasSubstr("vector_add(a: f32[], b: f32[], c: f32[], n: u32)"));
}

// Every kernel of the library's list, with the parameters it is known by.
TEST_F(KernelsCommand, ListsTheStandardLibrary) {
  const std::string list = call("kernels list");
  const auto has = [&](const std::string& line) {
    EXPECT_TRUE(list.starts_with(line) || list.find("\n" + line) != std::string::npos) << line;
  };
  for (const char* name : {"add", "sub", "mul", "div", "min", "max", "pow"})
    has(fmt::format("vector_{}(a: f32[], b: f32[], c: f32[], n: u32)\n", name));
  for (const char* name :
       {"vector_abs", "vector_neg", "vector_sqrt", "vector_rsqrt", "sigmoid", "tanh_activation"})
    has(fmt::format("{}(a: f32[], c: f32[], n: u32)\n", name));
  for (const char* name : {"exp", "log", "sin", "cos", "relu"})
    has(fmt::format("{}(a: f32[], b: f32[], n: u32)\n", name));
  has("vector_sum(a: f32[], result: f32[], n: u32)\n");
  has("vector_dot(a: f32[], b: f32[], result: f32[], n: u32)\n");
  for (const char* name : {"reduce_min", "reduce_max"})
    has(fmt::format("{}(a: f32[], result: f32[], n: u32)\n", name));
  has("reduce_mean(a: f32[], result: f32[], n: u32, count: f32)\n");
  has("softmax(a: f32[], c: f32[], n: u32)\n");
  has("layer_norm(input: f32[], gamma: f32[], beta: f32[], output: f32[], num_positions: u32, "
      "hidden_dim: u32, eps: f32)\n");
  has("gemm_f32(A: f32[], B: f32[], C: f32[], m: u32, n: u32, k: u32, lda: u32, ldb: u32, "
      "ldc: u32)\n");
  has("gemv_f32(A: f32[], x: f32[], y: f32[], m: u32, n: u32, lda: u32)\n");
  for (const char* name : {"add",
                           "sub",
                           "mul",
                           "div",
                           "scalar_mul",
                           "matmul",
                           "gemm",
                           "relu",
                           "sigmoid",
                           "tanh",
                           "gelu",
                           "leakyrelu",
                           "bias_gelu",
                           "softmax",
                           "skip_layer_norm",
                           "attention_scores",
                           "conv2d",
                           "batch_normalization",
                           "instance_normalization",
                           "layer_norm",
                           "averagepool",
                           "global_average_pool",
                           "reduce_mean",
                           "reduce_sum",
                           "argmax",
                           "cast_f32_i32",
                           "constant_fill",
                           "range",
                           "concat",
                           "flatten",
                           "reshape",
                           "squeeze",
                           "unsqueeze",
                           "transpose",
                           "gather",
                           "slice"}) {
    has(fmt::format("onnx_{}(", name));
    const std::string file = std::string_view(name).starts_with("cast") ? "cast" : name;
    EXPECT_TRUE(fs::exists(HOLOGRAM_SOURCE_DIR "/kernels/onnx/onnx_" + file + ".py")) << name;
  }
}

TEST_F(KernelsCommand, SaysWhatIsWrong) {
  ASSERT_TRUE(write_file(folder_ / "bad.py", std::string_view("def f(n):\n    pass\n")));
  EXPECT_THAT(call("kernels compile bad.py"), HasSubstr("bad.py:1:7: error: parameter 'n' has no"));
  EXPECT_EQ(code_, 2);
  EXPECT_THAT(call("kernels compile nothing"), HasSubstr("no file or folder 'nothing'"));
  EXPECT_THAT(call("kernels run " + add_ + " --arg a=a.npy"), HasSubstr("missing"));
  EXPECT_THAT(call("kernels run " + add_ + " --arg n=-1"), HasSubstr("not a value of u32"));
  EXPECT_THAT(call("kernels run " + add_ + " --arg z=1"), HasSubstr("has no parameter 'z'"));
  EXPECT_EQ(code_, 2);
}

// A program that runs on while the test goes on; what it prints is read as it comes.
class Running {
 public:
  // `terminal`: what it prints on is one, as far as it can tell.
  Running(const fs::path& folder, std::vector<std::string> words, bool terminal = false) {
    int ends[2] = {-1, -1};
    if (!terminal && pipe(ends) != 0) return;
    process_ = terminal ? forkpty(&ends[0], nullptr, nullptr, nullptr) : fork();
    if (process_ == 0) {
      if (!terminal) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
      }
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      if (chdir(folder.c_str()) == 0) execv(argv[0], argv.data());
      _exit(127);
    }
    if (!terminal) close(ends[1]);
    output_ = ends[0];
  }
  ~Running() {
    if (process_ > 0) stop(SIGKILL);
    close(output_);
  }

  bool started() const { return process_ > 0; }

  // Everything printed up to and with `text`; gives up when the program ends or says nothing for
  // 20 s.
  std::string until(const std::string& text) {
    std::string seen;
    while (seen.find(text) == std::string::npos) {
      pollfd wait{output_, POLLIN, 0};
      char c = 0;
      if (poll(&wait, 1, 20000) != 1 || read(output_, &c, 1) != 1) return seen + "<nothing more>";
      seen += c;
    }
    return seen;
  }
  // The exit code, or minus the signal that ended it.
  int stop(int signal) {
    kill(process_, signal);
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t process_ = -1;
  int output_ = -1;
};

TEST_F(KernelsCommand, WatchesUntilCtrlC) {
  const auto write = [&](std::string_view text) {
    ASSERT_TRUE(write_file(folder_ / "k.py", text));
  };
  write("def f(a: DeviceArray[f32]):\n    a[0] = 1\n");
  Running watch(folder_, {HOLOGRAM_BIN_DIR "/hologram", "kernels", "compile", "--watch", "k.py",
                          "-o", "k.holo"});
  EXPECT_THAT(watch.until("kB\n"),
              HasSubstr("watching 1 file; stop with Ctrl-C\nk.holo: 1 kernel"));
  write("def f(a: DeviceArray[f32]):\n    a[0] = y\n");
  EXPECT_THAT(watch.until("nothing was written\n"),
              testing::AllOf(HasSubstr("k.py:2:12: error: 'y' is not defined"),
                             HasSubstr("1 of 1 files rejected")));
  write(
      "def f(a: DeviceArray[f32]):\n    a[0] = 2\n\n\ndef g(a: DeviceArray[f32]):\n    a[0] = 3\n");
  EXPECT_THAT(watch.until("kB\n"), HasSubstr("changed: k.py\nk.holo: 2 kernels"));
  EXPECT_EQ(watch.stop(SIGINT), 0);
  EXPECT_EQ(watch.until("stopped\n"), "stopped\n");
}

// Sources that come and go count as well as those that change.
TEST_F(KernelsCommand, WatchesAFolder) {
  fs::create_directory(folder_ / "kernels");
  fs::copy_file(add_, folder_ / "kernels" / "add.py");
  Running watch(folder_,
                {HOLOGRAM_BIN_DIR "/hologram-compile", "kernels", "--watch", "--check", "kernels"});
  EXPECT_THAT(watch.until(")\n"), HasSubstr("1 kernel in 1 file is right"));
  ASSERT_TRUE(write_file(folder_ / "kernels" / "more.py",
                         std::string_view("def f(a: DeviceArray[f32]):\n    a[0] = 1\n")));
  EXPECT_THAT(watch.until(")\n"), HasSubstr("2 kernels in 2 files are right"));
  fs::remove(folder_ / "kernels" / "more.py");
  EXPECT_THAT(watch.until(")\n"), HasSubstr("1 kernel in 1 file is right"));
  EXPECT_EQ(watch.stop(SIGTERM), 0);
}

// Many files draw a bar on a terminal, and only there; any number of jobs gives the same archive.
TEST_F(KernelsCommand, ShowsProgressAndCompilesInParallel) {
  const std::string all = "kernels compile " HOLOGRAM_SOURCE_DIR "/kernels ";
  EXPECT_THAT(call(all + "--jobs 1 -o one.holo"), testing::Not(HasSubstr("compiling kernels")));
  call(all + "--jobs 7 -o seven.holo");
  EXPECT_EQ(*read_file(folder_ / "one.holo"), *read_file(folder_ / "seven.holo"));
  Running drawing(folder_,
                  {HOLOGRAM_BIN_DIR "/hologram", "kernels", "compile",
                   HOLOGRAM_SOURCE_DIR "/kernels", "--emit", "asm", "-j", "1", "-o", "all"},
                  true);
  if (!drawing.started()) GTEST_SKIP() << "this system gives no pseudo-terminals";
  const std::string drawn = drawing.until("as asm");
  EXPECT_THAT(drawn, testing::AllOf(HasSubstr("compiling kernels [====="), HasSubstr("100%"),
                                    HasSubstr(" kernels as asm")));
}

}  // namespace
}  // namespace hologram
