#include "support/error.h"

#include <ranges>

namespace hologram {

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid argument";
    case ErrorCode::type_mismatch:
      return "type mismatch";
    case ErrorCode::shape_mismatch:
      return "shape mismatch";
    case ErrorCode::out_of_range:
      return "out of range";
    case ErrorCode::not_found:
      return "not found";
    case ErrorCode::already_exists:
      return "already exists";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::parse_error:
      return "parse error";
    case ErrorCode::verify_error:
      return "verify error";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::io_error:
      return "input/output error";
    case ErrorCode::resource_exhausted:
      return "resource exhausted";
    case ErrorCode::permission_denied:
      return "permission denied";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::timeout:
      return "timeout";
    case ErrorCode::trap:
      return "trap";
    case ErrorCode::internal:
      return "internal error";
  }
  return "unknown error";
}

Error::Error(ErrorCode code, std::string message)
    : parts_(new Parts{code, std::move(message), {}}) {}

Error Error::formatted(ErrorCode code, fmt::string_view format, fmt::format_args arguments) {
  return Error(code, fmt::vformat(format, arguments));
}

Error::Error(const Error& other) : parts_(new Parts(*other.parts_)) {}

void Error::destroy() { delete parts_; }

Error& Error::add_context(std::string place) & {
  parts_->context.push_back(std::move(place));
  return *this;
}

std::string Error::to_string() const {
  std::string text;
  for (const std::string& place : context() | std::views::reverse) text += place + ": ";
  return text + message() + " [" + std::string(name_of(code())) + "]";
}

}  // namespace hologram
