#include "support/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>

namespace hologram::log {
namespace {

constexpr std::string_view kNames[] = {"trace", "debug", "info", "warn", "error", "off"};

std::atomic<Level> current_level = Level::warn;
std::mutex file_mutex;
std::FILE* file = nullptr;  // null: standard error

}  // namespace

std::string_view name_of(Level level) { return kNames[static_cast<int>(level)]; }

std::optional<Level> level_from_name(std::string_view name) {
  for (int i = 0; i < 6; ++i)
    if (kNames[i] == name) return static_cast<Level>(i);
  return std::nullopt;
}

Level level() { return current_level.load(std::memory_order_relaxed); }
void set_level(Level level) { current_level.store(level, std::memory_order_relaxed); }

Status set_file(const std::filesystem::path& path) {
  std::FILE* opened = nullptr;
  if (!path.empty()) {
    opened = std::fopen(path.c_str(), "ae");
    if (!opened)
      return fail(ErrorCode::io_error, "cannot write the log file '{}': {}", path.string(),
                  std::strerror(errno));
  }
  std::lock_guard lock(file_mutex);
  if (file) std::fclose(file);
  file = opened;
  return {};
}

void write(Level level, std::string_view message) {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm local;
  localtime_r(&seconds, &local);
  const std::string line =
      fmt::format("{:02}:{:02}:{:02}.{:03} {} {}\n", local.tm_hour, local.tm_min, local.tm_sec,
                  milliseconds, name_of(level), message);
  std::lock_guard lock(file_mutex);
  std::FILE* target = file ? file : stderr;
  std::fwrite(line.data(), 1, line.size(), target);
  std::fflush(target);
}

}  // namespace hologram::log
