// Any text as a kernel source: diagnostics with their places, or kernels that survive the JSON form
// and lower to the same programs again.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "lang/compile.h"
#include "lang/json/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hologram;
  const auto kernels = lang::compile_source({reinterpret_cast<const char*>(data), size}, "<k>");
  if (!kernels) {
    // Only what the user wrote can be wrong, and it has a place.
    if (kernels.error().code() == ErrorCode::parse_error &&
        kernels.error().message().starts_with("<k>:"))
      return 0;
    std::fprintf(stderr, "%s\n", kernels.error().to_string().c_str());
    std::abort();
  }
  for (const lang::CompiledKernel& kernel : *kernels) {
    const auto again = lang::compile_json(lang::write_json(kernel.ir));
    if (again && again->program == kernel.program && again->launch == kernel.launch) continue;
    if (!again) std::fprintf(stderr, "%s\n", again.error().to_string().c_str());
    std::abort();
  }
  return 0;
}
