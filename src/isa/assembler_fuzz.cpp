// Any text: an error with a line and a column, or a program that survives both forms.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "isa/binary.h"
#include "isa/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hologram::isa;
  const auto program = assemble({reinterpret_cast<const char*>(data), size});
  if (!program) {
    const char first = program.error().message()[0];
    if (first < '1' || first > '9') std::abort();
    return 0;
  }
  const auto again = assemble(disassemble(*program));
  if (!again || *again != *program) std::abort();
  const auto decoded = decode(encode(*program));
  if (!decoded || *decoded != *program) std::abort();
  return 0;
}
