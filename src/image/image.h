// image: pictures from their files, by the usual libraries. The runtime carries none of them: a
// program that wants the operator ImageDecoder to know more than plain pixels calls
// register_decoder().
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "support/result.h"

namespace hologram::image {

// Eight bits a channel, rows from the top, red-green-blue.
struct Image {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;
};

// PNG, JPEG, JPEG 2000, WebP or TIFF, told apart by their first bytes. Transparent pixels show
// white. `unsupported` for anything else, `corrupt` for what does not decode.
Result<Image> decode(std::span<const std::byte> file);
Result<Image> read_image(const std::filesystem::path& path);
Status write_png(const std::filesystem::path& path, const Image& image);

// Lets the operator ImageDecoder use decode(), in this process. Once, before models run.
void register_decoder();

}  // namespace hologram::image
