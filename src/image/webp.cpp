#include <webp/decode.h>

#include "image/formats.h"

namespace hologram::image {

Result<Image> decode_webp(std::span<const std::byte> file) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(file.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(bytes, file.size(), &features) != VP8_STATUS_OK || features.has_animation)
    return fail(ErrorCode::corrupt, "not a readable WebP, or one that moves");
  HOLOGRAM_TRY(Image image, blank(static_cast<uint64_t>(features.width),
                                  static_cast<uint64_t>(features.height)));
  const size_t pixels = image.rgb.size() / 3;
  if (!features.has_alpha) {
    if (WebPDecodeRGBInto(bytes, file.size(), image.rgb.data(), image.rgb.size(), 3 * image.width))
      return image;
    return fail(ErrorCode::corrupt, "not a readable WebP");
  }
  std::vector<uint8_t> rgba(4 * pixels);
  if (!WebPDecodeRGBAInto(bytes, file.size(), rgba.data(), rgba.size(), 4 * image.width))
    return fail(ErrorCode::corrupt, "not a readable WebP");
  flatten(rgba, image);
  return image;
}

}  // namespace hologram::image
