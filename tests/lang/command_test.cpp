// hologram kernels compile, run and list, as a user calls them.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>

#include "support/file.h"
#include "support/npy.h"

namespace hologram {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

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
    const std::string command = fmt::format("cd {} && {}/{} {} 2>&1", folder_.string(),
                                            HOLOGRAM_BIN_DIR, program, arguments);
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
              HasSubstr("89 kernels in 64 files are right"));
  EXPECT_THAT(call("kernels list"), HasSubstr("vector_add(a: f32[], b: f32[], c: f32[], n: u32)"));
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

}  // namespace
}  // namespace hologram
