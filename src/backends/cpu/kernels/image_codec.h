// How the operator ImageDecoder gets pictures in formats the runtime does not know: from a function
// that the program registers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "support/result.h"

namespace hologram::kernels {

struct DecodedImage {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> rgb;  // rows from the top
};

// The error `unsupported` is passed on; any other makes an empty image, as the standard says.
using ImageCodec = Result<DecodedImage> (*)(std::span<const uint8_t> file);

// For the whole process; safe from any thread. nullptr takes it back.
void set_image_decoder(ImageCodec codec);

}  // namespace hologram::kernels
