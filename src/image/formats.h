// One function a format; the caller has looked at the first bytes.
#pragma once

#include "image/image.h"

namespace hologram::image {

Result<Image> decode_png(std::span<const std::byte> file);
Result<Image> decode_jpeg(std::span<const std::byte> file);
Result<Image> decode_jpeg2000(std::span<const std::byte> file);
Result<Image> decode_webp(std::span<const std::byte> file);
Result<Image> decode_tiff(std::span<const std::byte> file);

// An image of that size, all black. Refuses those that would take more than 1 GiB, whatever a
// header says.
Result<Image> blank(uint64_t width, uint64_t height);
// Four channels over white.
void flatten(std::span<const uint8_t> rgba, Image& image);

}  // namespace hologram::image
