#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "cli/command.h"
#include "compiler/compile.h"
#include "support/file.h"

namespace hologram::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Commands with keys in a folder of their own.
class Keys : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("hologram-keys-" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    ::setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
  }
  void TearDown() override {
    fs::remove_all(folder_);
    ::unsetenv("XDG_CONFIG_HOME");
  }
  // Exit code; what was printed is in printed_.
  int run(std::vector<std::string> words) {
    words.insert(words.begin(), "hologram");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    ::testing::internal::CaptureStdout();
    const int code =
        run_program(static_cast<int>(arguments.size()), arguments.data(), "test", add_all_commands);
    printed_ = ::testing::internal::GetCapturedStdout();
    return code;
  }
  fs::path folder_;
  std::string printed_;
};

TEST_F(Keys, KeyIsMadeOnce) {
  EXPECT_EQ(run({"key"}), 0);
  const std::string first = printed_;
  EXPECT_THAT(first, StartsWith("ed25519:"));
  EXPECT_EQ(run({"key"}), 0);
  EXPECT_EQ(printed_, first);
  EXPECT_EQ(run({"trust"}), 0);
  EXPECT_THAT(printed_, HasSubstr("your own key"));
}

TEST_F(Keys, KeysAreTrustedAndForgotten) {
  const std::string key = archive::KeyPair::generate()->public_key().to_text();
  EXPECT_EQ(run({"trust", key, "--comment", "a friend"}), 0);
  EXPECT_EQ(run({"trust", "--list"}), 0);
  EXPECT_THAT(printed_, HasSubstr(key + "  a friend"));
  EXPECT_EQ(run({"trust", key, "--remove"}), 0);
  EXPECT_EQ(run({"trust"}), 0);
  EXPECT_THAT(printed_, Not(HasSubstr(key)));
  EXPECT_EQ(run({"trust", key, "--remove"}), 2);
  EXPECT_EQ(run({"trust", "ed25519:nonsense"}), 2);
  EXPECT_EQ(run({"trust", (folder_ / "missing.holo").string()}), 2);
}

TEST_F(Keys, WhoSignedAnArchiveCanBeTrusted) {
  const archive::KeyPair key = *archive::KeyPair::generate();
  const auto archive_of = [&](std::optional<archive::KeyPair> signer) {
    graph::Graph g;
    const auto x = g.add_input("x", graph::ValueType::tensor(DType::f32, Shape({4})));
    g.outputs = {g.op("Abs").input(x)};
    g.output_names = {"y"};
    const fs::path path = folder_ / "model.holo";
    EXPECT_TRUE(write_file(path, *compiler::compile(std::move(g), {.key = signer})));
    return path.string();
  };
  EXPECT_EQ(run({"trust", archive_of(std::nullopt)}), 2);  // nobody signed it
  EXPECT_EQ(run({"trust", archive_of(key)}), 0);
  EXPECT_EQ(run({"trust"}), 0);
  EXPECT_THAT(printed_, HasSubstr(key.public_key().to_text() + "  from "));
}

}  // namespace
}  // namespace hologram::cli
