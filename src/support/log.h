// Logging: one line a message to standard error or a file; silent below the configured level.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string_view>

#include "support/result.h"

namespace hologram::log {

enum class Level { trace, debug, info, warn, error, off };

std::string_view name_of(Level level);
std::optional<Level> level_from_name(std::string_view name);

Level level();
void set_level(Level level);
// Appends to `path` from now on; an empty path means standard error again.
Status set_file(const std::filesystem::path& path);
// One complete line; safe from any thread.
void write(Level level, std::string_view message);

template <typename... Args>
void message(Level at, fmt::format_string<Args...> format, Args&&... args) {
  if (at >= level()) write(at, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  message(Level::debug, format, std::forward<Args>(args)...);
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  message(Level::info, format, std::forward<Args>(args)...);
}
template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  message(Level::warn, format, std::forward<Args>(args)...);
}
template <typename... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  message(Level::error, format, std::forward<Args>(args)...);
}

}  // namespace hologram::log
