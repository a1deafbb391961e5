#include "support/config.h"

#include <charconv>
#include <cstdlib>
#include <functional>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include "support/file.h"

extern "C" char** environ;

namespace hologram {
namespace {

namespace fs = std::filesystem;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

template <typename Integer>
Status parse_integer(std::string_view text, Integer low, Integer high, Integer& out) {
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    return fail(ErrorCode::invalid_argument, "'{}' is not a whole number from {} to {}", text, low,
                high);
  out = value;
  return {};
}

// "4096", "64KiB", "4GiB".
Status parse_bytes(std::string_view text, uint64_t& out) {
  struct Unit {
    std::string_view suffix;
    int shift;
  };
  std::string_view digits = text;
  int shift = 0;
  for (const Unit unit : {Unit{"kib", 10}, Unit{"mib", 20}, Unit{"gib", 30}, Unit{"tib", 40}}) {
    if (lower(text).ends_with(unit.suffix)) {
      digits = text.substr(0, text.size() - 3);
      shift = unit.shift;
    }
  }
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  uint64_t value = 0;
  if (!parse_integer<uint64_t>(digits, 0, UINT64_MAX >> shift, value))
    return fail(ErrorCode::invalid_argument,
                "'{}' is not a size: write bytes, or a number with KiB, MiB, GiB or TiB", text);
  out = value << shift;
  return {};
}

Status parse_bool(std::string_view text, bool& out) {
  const std::string value = lower(text);
  if (value == "1" || value == "true" || value == "on" || value == "yes")
    return out = true, Status();
  if (value == "0" || value == "false" || value == "off" || value == "no")
    return out = false, Status();
  return fail(ErrorCode::invalid_argument, "'{}' is neither true nor false", text);
}

Status parse_choice(std::string_view text, std::initializer_list<std::string_view> choices,
                    std::string& out) {
  const std::string value = lower(text);
  std::string listed;
  for (std::string_view choice : choices) {
    if (choice == value) return out = value, Status();
    listed += (listed.empty() ? "" : ", ") + std::string(choice);
  }
  return fail(ErrorCode::invalid_argument, "'{}' is not one of {}", text, listed);
}

struct Key {
  ConfigKey about;
  Status (*set)(Config&, std::string_view);
};

// The one table of keys; names as in hologram.toml.
constexpr Key kKeys[] = {
    {{"backend", "HOLOGRAM_BACKEND", "name", "Where programs run: cpu, null, cuda or webgpu"},
     [](Config& c, std::string_view v) {
       return parse_choice(v, {"cpu", "null", "cuda", "webgpu"}, c.backend);
     }},
    {{"device_id", "HOLOGRAM_DEVICE_ID", "integer", "Which device of that backend"},
     [](Config& c, std::string_view v) { return parse_integer(v, 0, 1023, c.device_id); }},
    {{"max_buffer_size", "HOLOGRAM_MAX_BUFFER_SIZE", "size", "Largest single buffer"},
     [](Config& c, std::string_view v) { return parse_bytes(v, c.max_buffer_size); }},
    {{"buffer_pool_size", "HOLOGRAM_BUFFER_POOL_SIZE", "size",
      "Memory kept for short-lived buffers"},
     [](Config& c, std::string_view v) { return parse_bytes(v, c.buffer_pool_size); }},
    {{"num_threads", "HOLOGRAM_NUM_THREADS", "integer", "Threads; 0 means one a physical core"},
     [](Config& c, std::string_view v) { return parse_integer(v, 0u, 4096u, c.num_threads); }},
    {{"timeout_ms", "HOLOGRAM_TIMEOUT_MS", "integer",
      "Longest run in milliseconds; 0 means no limit"},
     [](Config& c, std::string_view v) {
       return parse_integer<uint64_t>(v, 0, UINT64_MAX / 1000000, c.timeout_ms);
     }},
    {{"log_level", "HOLOGRAM_LOG_LEVEL", "name", "trace, debug, info, warn, error or off"},
     [](Config& c, std::string_view v) -> Status {
       std::string name;
       HOLOGRAM_CHECK(parse_choice(v, {"trace", "debug", "info", "warn", "error", "off"}, name));
       c.log_level = *log::level_from_name(name);
       return {};
     }},
    {{"log_file", "HOLOGRAM_LOG_FILE", "path", "Where the log goes; empty means standard error"},
     [](Config& c, std::string_view v) { return c.log_file = v, Status(); }},
    {{"profiling", "HOLOGRAM_PROFILING", "switch", "Time every step"},
     [](Config& c, std::string_view v) { return parse_bool(v, c.profiling); }},
    {{"enable_simd", "HOLOGRAM_ENABLE_SIMD", "switch",
      "Use vector instructions above the baseline"},
     [](Config& c, std::string_view v) { return parse_bool(v, c.enable_simd); }},
    {{"enable_cache", "HOLOGRAM_ENABLE_CACHE", "switch", "Keep compiled results for the next time"},
     [](Config& c, std::string_view v) { return parse_bool(v, c.enable_cache); }},
    {{"profile", "HOLOGRAM_PROFILE", "name",
      "dev, prod or test: also reads hologram.<profile>.toml"},
     [](Config& c, std::string_view v) {
       return v.empty() ? (c.profile.clear(), Status())
                        : parse_choice(v, {"dev", "prod", "test"}, c.profile);
     }},
    {{"debug", "HOLOGRAM_DEBUG", "integer",
      "0 to 4: how much of each compilation stage is printed"},
     [](Config& c, std::string_view v) { return parse_integer(v, 0, 4, c.debug); }},
};

const Key* find_key(std::string_view name) {
  for (const Key& key : kKeys)
    if (key.about.name == name) return &key;
  return nullptr;
}

std::string all_names(bool environment) {
  std::string text;
  for (const Key& key : kKeys)
    text += (text.empty() ? "" : ", ") +
            std::string(environment ? key.about.environment : key.about.name);
  return text;
}

Status set(Config& config, std::string_view name, std::string_view value,
           const std::string& origin) {
  const Key* key = find_key(name);
  if (!key) {
    return fail(Error(ErrorCode::invalid_argument,
                      fmt::format("unknown key '{}'; the keys are {}", name, all_names(false))),
                origin);
  }
  if (Status status = key->set(config, value); !status)
    return fail(std::move(status).error().with_context(std::string(name)), origin);
  config.origin.insert_or_assign(std::string(name), origin);
  return {};
}

Status apply_toml(Config& config, const fs::path& path) {
  if (!fs::exists(path)) return {};
  HOLOGRAM_TRY(const std::string text, read_text_file(path));
  toml::parse_result parsed = toml::parse(text, path.string());
  if (!parsed) {
    const auto& error = parsed.error();
    return fail(Error(ErrorCode::parse_error, std::string(error.description())),
                fmt::format("{}:{}:{}", path.string(), error.source().begin.line,
                            error.source().begin.column));
  }
  for (const auto& [name, node] : parsed.table()) {
    const std::string origin = fmt::format("{}:{}", path.string(), name.source().begin.line);
    std::string value;
    if (const auto* text_value = node.as_string()) {
      value = text_value->get();
    } else if (const auto* integer = node.as_integer()) {
      value = std::to_string(integer->get());
    } else if (const auto* boolean = node.as_boolean()) {
      value = boolean->get() ? "true" : "false";
    } else if (find_key(name.str())) {
      return fail(
          Error(ErrorCode::invalid_argument,
                fmt::format("'{}' must be a string, a whole number or a boolean", name.str())),
          origin);
    }
    HOLOGRAM_CHECK(set(config, name.str(), value, origin));
  }
  return {};
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

// A .env file belongs to the whole application, so names without our prefix are passed over; a
// HOLOGRAM_ name that does not exist is a mistake.
Status apply_variable(Config& config, std::string_view name, std::string_view value,
                      const std::string& origin) {
  for (const Key& key : kKeys)
    if (key.about.environment == name) return set(config, key.about.name, value, origin);
  return fail(
      Error(ErrorCode::invalid_argument,
            fmt::format("unknown variable '{}'; the variables are {}", name, all_names(true))),
      origin);
}

Result<std::map<std::string, std::pair<std::string, int>>> read_dotenv(const fs::path& path) {
  std::map<std::string, std::pair<std::string, int>> variables;
  if (!fs::exists(path)) return variables;
  HOLOGRAM_TRY(const std::string text, read_text_file(path));
  int number = 0;
  for (size_t start = 0; start < text.size();) {
    const size_t stop = std::min(text.find('\n', start), text.size());
    std::string_view line = trim(std::string_view(text).substr(start, stop - start));
    start = stop + 1;
    ++number;
    if (line.empty() || line.front() == '#') continue;
    if (line.starts_with("export ")) line = trim(line.substr(7));
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return fail(Error(ErrorCode::parse_error, fmt::format("'{}' is not NAME=value", line)),
                  fmt::format("{}:{}", path.string(), number));
    std::string_view value = trim(line.substr(equals + 1));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
        value.back() == value.front())
      value = value.substr(1, value.size() - 2);
    variables[std::string(trim(line.substr(0, equals)))] = {std::string(value), number};
  }
  return variables;
}

// Variables of the test harnesses and tools around the library: theirs, not configuration keys.
bool is_foreign(std::string_view name) {
  return !name.starts_with("HOLOGRAM_") || name == "HOLOGRAM_ONNX_SUITES" ||
         name == "HOLOGRAM_ORT_LIB" || name == "HOLOGRAM_MODELS" || name == "HOLOGRAM_FUZZ_SECONDS";
}

std::map<std::string, std::string> process_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    if (const size_t equals = text.find('='); equals != std::string_view::npos)
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

fs::path user_config_folder(const std::map<std::string, std::string>& environment) {
  const auto get = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  if (const std::string xdg = get("XDG_CONFIG_HOME"); !xdg.empty()) return xdg;
  if (const std::string home = get("HOME"); !home.empty()) return fs::path(home) / ".config";
  return {};
}

}  // namespace

Result<Config> load_config(const ConfigSources& sources) {
  Config config;
  for (const Key& key : kKeys) config.origin.emplace(key.about.name, "default");
  const std::map<std::string, std::string> environment =
      sources.environment ? *sources.environment : process_environment();
  const fs::path& here = sources.working_folder;
  HOLOGRAM_TRY(const auto dotenv, read_dotenv(here / ".env"));

  // The profile decides which files are read, so it is found first, by the same order of strength.
  for (const auto& [key, value] : sources.call)
    if (key == "profile") HOLOGRAM_CHECK(set(config, key, value, "call"));
  if (config.profile.empty()) {
    if (const auto found = environment.find("HOLOGRAM_PROFILE"); found != environment.end()) {
      HOLOGRAM_CHECK(set(config, "profile", found->second, "environment"));
    } else if (const auto line = dotenv.find("HOLOGRAM_PROFILE"); line != dotenv.end()) {
      HOLOGRAM_CHECK(set(config, "profile", line->second.first,
                         fmt::format("{}:{}", (here / ".env").string(), line->second.second)));
    }
  }

  // The working folder is stronger than the user's folder.
  const fs::path user =
      sources.user_folder.empty() ? user_config_folder(environment) : sources.user_folder;
  if (!user.empty()) HOLOGRAM_CHECK(apply_toml(config, user / "hologram" / "config.toml"));
  const std::string profile = config.profile;
  HOLOGRAM_CHECK(apply_toml(config, here / "hologram.toml"));
  const std::string chosen = profile.empty() ? config.profile : profile;
  if (!chosen.empty())
    HOLOGRAM_CHECK(apply_toml(config, here / fmt::format("hologram.{}.toml", chosen)));

  for (const auto& [name, entry] : dotenv)
    if (!is_foreign(name))
      HOLOGRAM_CHECK(apply_variable(config, name, entry.first,
                                    fmt::format("{}:{}", (here / ".env").string(), entry.second)));
  for (const auto& [name, value] : environment)
    if (!is_foreign(name)) HOLOGRAM_CHECK(apply_variable(config, name, value, "environment"));
  for (const auto& [name, value] : sources.call) HOLOGRAM_CHECK(set(config, name, value, "call"));
  return config;
}

const Config& process_config() {
  static const Config config = [] {
    Result<Config> loaded = load_config();
    if (!loaded) {
      log::error("configuration ignored: {}", loaded.error().to_string());
      return Config();
    }
    log::set_level(loaded->log_level);
    if (Status status = log::set_file(loaded->log_file); !status)
      log::error("{}", status.error().to_string());
    return *std::move(loaded);
  }();
  return config;
}

std::vector<ConfigKey> config_keys() {
  std::vector<ConfigKey> keys;
  for (const Key& key : kKeys) keys.push_back(key.about);
  return keys;
}

std::string value_text(const Config& config, std::string_view key) {
  const auto text = [](bool value) { return value ? "true" : "false"; };
  if (key == "backend") return config.backend;
  if (key == "device_id") return std::to_string(config.device_id);
  if (key == "max_buffer_size") return std::to_string(config.max_buffer_size);
  if (key == "buffer_pool_size") return std::to_string(config.buffer_pool_size);
  if (key == "num_threads") return std::to_string(config.num_threads);
  if (key == "timeout_ms") return std::to_string(config.timeout_ms);
  if (key == "log_level") return std::string(log::name_of(config.log_level));
  if (key == "log_file") return config.log_file;
  if (key == "profiling") return text(config.profiling);
  if (key == "enable_simd") return text(config.enable_simd);
  if (key == "enable_cache") return text(config.enable_cache);
  if (key == "profile") return config.profile;
  if (key == "debug") return std::to_string(config.debug);
  return "";
}

}  // namespace hologram
