// Any bytes as a safetensors file: an error or a file whose tensors can be read.
#include "holotensor/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hologram::holotensor;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto reader = SafetensorsReader::open(memory_source(SharedBytes::borrowed(bytes)));
  if (!reader) return 0;
  for (const SafetensorsEntry& entry : reader->tensors()) {
    if (!reader->read(entry)) __builtin_trap();
  }
  return 0;
}
