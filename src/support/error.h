// support: values, memory, files, threads, configuration. Everything else stands on this layer.
//
// Error: what went wrong, and where it passed through on its way up.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hologram {

// The code says who can mend it. Everything but `internal` is caused by what a caller, a file or
// the machine gave us; `internal` is a defect of Hologram itself.
enum class ErrorCode {
  invalid_argument,    // a value that no call of this kind accepts
  type_mismatch,       // the wrong element type, or types that do not go together
  shape_mismatch,      // shapes that do not go together
  out_of_range,        // an index or a size past its end
  not_found,           // a file, name, kernel or parameter that is not there
  already_exists,      // a name that is taken
  unsupported,         // understood, but not something Hologram does; says what it does do
  parse_error,         // text that does not follow its grammar; has line and column
  verify_error,        // a program that breaks a rule of the ISA or the graph
  corrupt,             // a file whose bytes contradict themselves
  io_error,            // the operating system refused
  resource_exhausted,  // memory, disk or device limits
  permission_denied,   // for instance code signed by a key that is not trusted
  cancelled,           // asked to stop
  timeout,             // took longer than allowed
  trap,                // a running program did something it must not (division by zero, ...)
  internal,            // a defect of Hologram
};

std::string_view name_of(ErrorCode code);
constexpr bool is_user_error(ErrorCode code) { return code != ErrorCode::internal; }

// One pointer: most results are good ones, and what returns a Result carries this with it. One that
// was moved from may only be destroyed or assigned to.
class Error {
 public:
  [[gnu::cold]] Error(ErrorCode code, std::string message);
  [[gnu::cold]] static Error formatted(ErrorCode code, fmt::string_view format,
                                       fmt::format_args arguments);
  [[gnu::cold]] Error(const Error& other);
  Error(Error&& other) noexcept : parts_(std::exchange(other.parts_, nullptr)) {}
  Error& operator=(Error other) noexcept {
    std::swap(parts_, other.parts_);
    return *this;
  }
  ~Error() {
    if (parts_) destroy();
  }

  ErrorCode code() const { return parts_->code; }
  // What went wrong, without the places.
  const std::string& message() const { return parts_->message; }
  // The places it passed through, innermost first: "node 'conv1'", "model.onnx".
  const std::vector<std::string>& context() const { return parts_->context; }

  // Adds the next place outwards.
  [[gnu::cold]] Error& add_context(std::string place) &;
  Error&& with_context(std::string place) && {
    add_context(std::move(place));
    return std::move(*this);
  }

  // "model.onnx: node 'conv1': message [code]": outermost place first.
  std::string to_string() const;

 private:
  struct Parts {
    ErrorCode code;
    std::string message;
    std::vector<std::string> context;
  };
  [[gnu::cold]] void destroy();

  Parts* parts_;
};

}  // namespace hologram
