// Configurations that must be refused: where, with which code, in which words.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/config.h"
#include "support/file.h"

namespace hologram {
namespace {

namespace fs = std::filesystem;

struct Refused {
  const char* file;  // hologram.toml, .env, or a variable's name
  const char* content;
  ErrorCode code;
  const char* place;  // how the error begins, after the folder
  const char* message;
};

const Refused kRefused[] = {
    {"hologram.toml", "num_thread = 2", ErrorCode::invalid_argument, "hologram.toml:1",
     "unknown key 'num_thread'; the keys are backend,"},
    {"hologram.toml", "\n\nnum_threads = -1", ErrorCode::invalid_argument,
     "hologram.toml:3: num_threads", "'-1' is not a whole number from 0 to 4096"},
    {"hologram.toml", "num_threads = 1.5", ErrorCode::invalid_argument, "hologram.toml:1",
     "'num_threads' must be a string, a whole number or a boolean"},
    {"hologram.toml", "backend = 'tpu'", ErrorCode::invalid_argument, "hologram.toml:1: backend",
     "'tpu' is not one of cpu, null, cuda, webgpu"},
    {"hologram.toml", "max_buffer_size = '4 parsecs'", ErrorCode::invalid_argument,
     "hologram.toml:1: max_buffer_size", "is not a size: write bytes, or a number with KiB"},
    {"hologram.toml", "max_buffer_size = '99999999999TiB'", ErrorCode::invalid_argument,
     "hologram.toml:1: max_buffer_size", "is not a size"},
    {"hologram.toml", "profiling = 'maybe'", ErrorCode::invalid_argument,
     "hologram.toml:1: profiling", "'maybe' is neither true nor false"},
    {"hologram.toml", "log_level = 'loud'", ErrorCode::invalid_argument,
     "hologram.toml:1: log_level", "'loud' is not one of trace,"},
    {"hologram.toml", "debug = 5", ErrorCode::invalid_argument, "hologram.toml:1: debug",
     "'5' is not a whole number from 0 to 4"},
    {"hologram.toml", "[cpu]\nthreads = 1", ErrorCode::invalid_argument, "hologram.toml:1",
     "unknown key 'cpu'"},
    {"hologram.toml", "num_threads = ", ErrorCode::parse_error, "hologram.toml:1:", ""},
    {"hologram.toml", "a = 1\na = 2", ErrorCode::parse_error, "hologram.toml:2:", ""},
    {".env", "HOLOGRAM_TREADS=1", ErrorCode::invalid_argument, ".env:1",
     "unknown variable 'HOLOGRAM_TREADS'; the variables are HOLOGRAM_BACKEND"},
    {".env", "A=1\nnonsense", ErrorCode::parse_error, ".env:2", "'nonsense' is not NAME=value"},
    {".env", "# x\nHOLOGRAM_PROFILE=staging", ErrorCode::invalid_argument, ".env:2: profile",
     "'staging' is not one of dev, prod, test"},
    {"HOLOGRAM_DEVICE_ID", "two", ErrorCode::invalid_argument, "environment: device_id",
     "'two' is not a whole number from 0 to 1023"},
    {"HOLOGRAM_TIMEOUT_MS", "10ms", ErrorCode::invalid_argument, "environment: timeout_ms",
     "'10ms' is not a whole number"},
};

TEST(ConfigErrors, NameFileLineAndRemedy) {
  const fs::path folder =
      fs::temp_directory_path() / fmt::format("hologram-config-error-{}", getpid());
  for (const Refused& c : kRefused) {
    fs::remove_all(folder);
    fs::create_directories(folder);
    ConfigSources sources{
        .working_folder = folder, .user_folder = folder, .environment = {{}}, .call = {}};
    std::string place = c.place;
    if (std::string_view(c.file).starts_with("HOLOGRAM_")) {
      (*sources.environment)[c.file] = c.content;
    } else {
      ASSERT_TRUE(write_file(folder / c.file, std::string_view(c.content)));
      place = (folder / place).string();
    }
    const Result<Config> config = load_config(sources);
    ASSERT_FALSE(config) << c.content;
    EXPECT_EQ(config.error().code(), c.code) << c.content;
    EXPECT_TRUE(config.error().to_string().starts_with(place))
        << config.error().to_string() << "\nexpected " << place;
    EXPECT_NE(config.error().message().find(c.message), std::string::npos)
        << config.error().to_string();
  }
  fs::remove_all(folder);
}

TEST(ConfigErrors, CallsAreCheckedToo) {
  const Result<Config> config = load_config({.working_folder = "/nonexistent",
                                             .user_folder = "/nonexistent",
                                             .environment = {{}},
                                             .call = {{"colour", "red"}}});
  ASSERT_FALSE(config);
  EXPECT_TRUE(config.error().to_string().starts_with("call: unknown key 'colour'"))
      << config.error().to_string();
}

}  // namespace
}  // namespace hologram
