// Result<T>: a value or an Error. Libraries never throw across a public header and never abort.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include "support/error.h"

namespace hologram {

template <typename T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

// return fail(ErrorCode::not_found, "no parameter named '{}'", name);
template <typename... Args>
[[nodiscard]] std::unexpected<Error> fail(ErrorCode code, fmt::format_string<Args...> format,
                                          Args&&... args) {
  return std::unexpected(Error::formatted(code, format, fmt::make_format_args(args...)));
}

// return fail(std::move(error), "node 'conv1'");   adds a place and passes the error on
[[nodiscard]] inline std::unexpected<Error> fail(Error error, std::string place) {
  return std::unexpected(std::move(error).with_context(std::move(place)));
}

// Adds a place to a failed result; a good one passes through untouched. The place is built by a
// callable so that the good path formats nothing.
template <typename T, typename Place>
[[nodiscard]] Result<T> in_context(Result<T> result, Place&& place) {
  if (!result) result.error().add_context(place());
  return result;
}

}  // namespace hologram

#define HOLOGRAM_CONCAT_INNER(a, b) a##b
#define HOLOGRAM_CONCAT(a, b) HOLOGRAM_CONCAT_INNER(a, b)

// HOLOGRAM_TRY(auto file, FileMap::open(path));   returns the error from the enclosing function
#define HOLOGRAM_TRY(declaration, ...) \
  HOLOGRAM_TRY_INNER(HOLOGRAM_CONCAT(holo_try_, __LINE__), declaration, __VA_ARGS__)
#define HOLOGRAM_TRY_INNER(temporary, declaration, ...)                 \
  auto temporary = (__VA_ARGS__);                                       \
  if (!temporary) return std::unexpected(std::move(temporary).error()); \
  declaration = *std::move(temporary)

// HOLOGRAM_CHECK(verify(program));   for results whose value is not needed
#define HOLOGRAM_CHECK(...)                                  \
  do {                                                       \
    if (auto holo_check = (__VA_ARGS__); !holo_check)        \
      return std::unexpected(std::move(holo_check).error()); \
  } while (false)
