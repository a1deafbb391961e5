// Bytes as an ONNX model: read, resolved, optimised, planned and written. Whatever they are, the
// answer is an archive or an error.
#include <cstring>

#include "archive/archive.h"
#include "compiler/compile.h"
#include "onnx/model.h"
#include "sanitizer_options.h"
#include "support/aligned.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hologram;
  auto memory = AlignedBytes::allocate(size + 1);
  if (!memory) return 0;
  if (size > 0) std::memcpy(memory->data(), data, size);
  auto owner = std::make_shared<AlignedBytes>(*std::move(memory));
  auto graph = onnx::read_model({owner->data(), size}, owner);
  if (!graph) return 0;
  const auto archive = compiler::compile(*std::move(graph));
  if (!archive) return 0;
  // What the compiler writes, the reader takes.
  auto copy = AlignedBytes::allocate(archive->size());
  if (!copy) return 0;
  std::memcpy(copy->data(), archive->data(), archive->size());
  auto held = std::make_shared<AlignedBytes>(*std::move(copy));
  if (const auto opened = archive::Archive::open(held->bytes(), held); !opened) {
    fmt::print(stderr, "the compiler wrote an archive that is refused: {}\n",
               opened.error().to_string());
    __builtin_trap();
  }
  return 0;
}
