// Any text as JSON IR: an error that names its place, or a kernel that is written and read back
// the same.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "lang/compile.h"
#include "lang/json/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hologram;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto kernel = lang::compile_json(text);
  if (!kernel) {
    const ErrorCode code = kernel.error().code();
    if (code == ErrorCode::parse_error || code == ErrorCode::verify_error) return 0;
    std::fprintf(stderr, "%s\n", kernel.error().to_string().c_str());
    std::abort();
  }
  const auto again = lang::read_json(lang::write_json(kernel->ir));
  if (!again || lang::write_json(*again) != lang::write_json(kernel->ir)) std::abort();
  return 0;
}
