#include "support/config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/file.h"

namespace hologram {
namespace {

namespace fs = std::filesystem;

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() : folder_(fs::temp_directory_path() / fmt::format("hologram-config-{}", getpid())) {
    fs::create_directories(folder_ / "user" / "hologram");
    sources_.working_folder = folder_;
    sources_.user_folder = folder_ / "user";
    sources_.environment.emplace();
  }
  ~ConfigTest() override { fs::remove_all(folder_); }
  void write(const char* name, std::string_view text) {
    ASSERT_TRUE(write_file(folder_ / name, text));
  }
  fs::path folder_;
  ConfigSources sources_;
};

TEST_F(ConfigTest, EachSourceIsStrongerThanTheOneBefore) {
  EXPECT_EQ(load_config(sources_)->num_threads, 0u);
  EXPECT_EQ(load_config(sources_)->origin.at("num_threads"), "default");
  write("user/hologram/config.toml", "num_threads = 1\nbackend = \"null\"\n");
  EXPECT_EQ(load_config(sources_)->num_threads, 1u);
  write("hologram.toml", "# comment\nnum_threads = 2\n");
  EXPECT_EQ(load_config(sources_)->num_threads, 2u);
  EXPECT_EQ(load_config(sources_)->backend, "null") << "what the nearer file leaves open stays";
  EXPECT_TRUE(load_config(sources_)->origin.at("num_threads").ends_with("hologram.toml:2"));
  write("hologram.dev.toml", "num_threads = 3\n");
  EXPECT_EQ(load_config(sources_)->num_threads, 2u);
  write(".env", "# my settings\nOTHER=1\nexport HOLOGRAM_PROFILE=dev\n");
  EXPECT_EQ(load_config(sources_)->num_threads, 3u);
  write(".env", "HOLOGRAM_PROFILE=dev\nHOLOGRAM_NUM_THREADS='4'\n");
  EXPECT_EQ(load_config(sources_)->num_threads, 4u);
  sources_.environment = {{"HOLOGRAM_NUM_THREADS", "5"}, {"PATH", "/bin"}};
  EXPECT_EQ(load_config(sources_)->num_threads, 5u);
  EXPECT_EQ(load_config(sources_)->origin.at("num_threads"), "environment");
  sources_.call = {{"num_threads", "6"}};
  EXPECT_EQ(load_config(sources_)->num_threads, 6u);
}

// The test command's own variables must not make every program of the project complain.
TEST_F(ConfigTest, VariablesOfTheToolsAreNotKeys) {
  sources_.environment.reset();
  for (const char* name :
       {"HOLOGRAM_MODELS", "HOLOGRAM_FUZZ_SECONDS", "HOLOGRAM_ONNX_SUITES", "HOLOGRAM_ORT_LIB"})
    setenv(name, "x", 1);
  const auto config = load_config(sources_);
  EXPECT_TRUE(config) << config.error().to_string();
  for (const char* name :
       {"HOLOGRAM_MODELS", "HOLOGRAM_FUZZ_SECONDS", "HOLOGRAM_ONNX_SUITES", "HOLOGRAM_ORT_LIB"})
    unsetenv(name);
}

TEST_F(ConfigTest, ReadsEveryKey) {
  write(
      "hologram.toml",
      "backend = 'cuda'\ndevice_id = 1\nmax_buffer_size = '4GiB'\nbuffer_pool_size = 4096\n"
      "num_threads = 2\ntimeout_ms = 10\nlog_level = 'debug'\nlog_file = 'x.log'\n"
      "profiling = true\nenable_simd = false\nenable_cache = false\nprofile = 'test'\ndebug = 3\n");
  const Config config = load_config(sources_).value();
  EXPECT_EQ(config.backend, "cuda");
  EXPECT_EQ(config.max_buffer_size, uint64_t{4} << 30);
  EXPECT_EQ(config.log_level, log::Level::debug);
  EXPECT_TRUE(config.profiling);
  EXPECT_FALSE(config.enable_simd);
  EXPECT_EQ(config.debug, 3);
  for (const ConfigKey& key : config_keys()) {
    EXPECT_NE(config.origin.find(key.name)->second, "default") << key.name;
    EXPECT_FALSE(value_text(config, key.name).empty()) << key.name;
  }
}

}  // namespace
}  // namespace hologram
