// Config: defaults < hologram.toml < .env < environment HOLOGRAM_* < call.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/log.h"
#include "support/result.h"

namespace hologram {

struct Config {
  std::string backend = "cpu";                   // HOLOGRAM_BACKEND: cpu, null, cuda, webgpu
  int device_id = 0;                             // HOLOGRAM_DEVICE_ID
  uint64_t max_buffer_size = uint64_t{1} << 40;  // HOLOGRAM_MAX_BUFFER_SIZE, bytes; "4GiB" works
  uint64_t buffer_pool_size = 96 * 12288;        // HOLOGRAM_BUFFER_POOL_SIZE, bytes
  unsigned num_threads = 0;                      // HOLOGRAM_NUM_THREADS; 0: one a physical core
  uint64_t timeout_ms = 0;                       // HOLOGRAM_TIMEOUT_MS; 0: none
  log::Level log_level = log::Level::warn;       // HOLOGRAM_LOG_LEVEL
  std::string log_file;                          // HOLOGRAM_LOG_FILE; empty: standard error
  bool profiling = false;                        // HOLOGRAM_PROFILING
  bool enable_simd = true;                       // HOLOGRAM_ENABLE_SIMD
  bool enable_cache = true;                      // HOLOGRAM_ENABLE_CACHE
  std::string profile;  // HOLOGRAM_PROFILE: dev, prod or test; adds hologram.<profile>.toml
  int debug = 0;        // HOLOGRAM_DEBUG: 0..4, what the compiler prints

  // Where each key was set: "default", "hologram.toml:3", ".env:1", "environment", "call".
  std::map<std::string, std::string, std::less<>> origin;
};

// Where configuration is looked for. The defaults of the fields are the real places; tests give
// their own.
struct ConfigSources {
  std::filesystem::path working_folder = ".";
  std::filesystem::path user_folder;  // empty: $XDG_CONFIG_HOME or ~/.config
  std::optional<std::map<std::string, std::string>> environment;  // empty: the process's
  std::vector<std::pair<std::string, std::string>> call;          // key, value; strongest
};

// An unknown key or a bad value is an error that names file and line (or the variable).
Result<Config> load_config(const ConfigSources& sources = {});

// The process's configuration, loaded once from the real places. When they are in error the
// defaults are used and the error is logged; programs call load_config() first and report it.
const Config& process_config();

// Every key with its environment name, type, default and meaning, for `hologram config` and docs.
struct ConfigKey {
  std::string_view name, environment, type, meaning;
};
std::vector<ConfigKey> config_keys();
// The value of a key of config_keys(), as it would be written in hologram.toml without quotes.
std::string value_text(const Config& config, std::string_view key);

}  // namespace hologram
