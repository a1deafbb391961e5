#include "image/image.h"

#include <cstring>
#include <string_view>

#include "backends/cpu/kernels/image_codec.h"
#include "image/formats.h"
#include "support/file.h"

namespace hologram::image {

Result<Image> blank(uint64_t width, uint64_t height) {
  constexpr uint64_t kMaxPixels = uint64_t{1} << 28, kMaxSide = uint64_t{1} << 24;
  if (width == 0 || height == 0 || width > kMaxSide || height > kMaxSide ||
      width * height > kMaxPixels)
    return fail(ErrorCode::unsupported, "a picture of {} x {} pixels is not read", width, height);
  Image image{static_cast<int>(width), static_cast<int>(height), {}};
  image.rgb.resize(3 * width * height);
  return image;
}

void flatten(std::span<const uint8_t> rgba, Image& image) {
  for (size_t i = 0; i < image.rgb.size(); ++i) {
    const unsigned alpha = rgba[i / 3 * 4 + 3], colour = rgba[i / 3 * 4 + i % 3];
    image.rgb[i] = static_cast<uint8_t>((colour * alpha + 255 * (255 - alpha) + 127) / 255);
  }
}

Result<Image> decode(std::span<const std::byte> file) {
  const auto starts = [&](std::string_view mark, size_t at = 0) {
    return file.size() > at + mark.size() &&
           std::memcmp(file.data() + at, mark.data(), mark.size()) == 0;
  };
  using namespace std::string_view_literals;
  if (starts("\x89PNG")) return decode_png(file);
  if (starts("\xff\xd8")) return decode_jpeg(file);
  if (starts("\0\0\0\x0cjP  "sv) || starts("\xff\x4f\xff\x51")) return decode_jpeg2000(file);
  if (starts("RIFF") && starts("WEBP", 8)) return decode_webp(file);
  if (starts("II*\0"sv) || starts("MM\0*"sv)) return decode_tiff(file);
  return fail(ErrorCode::unsupported, "a picture is a PNG, JPEG, JPEG 2000, WebP or TIFF file");
}

Result<Image> read_image(const std::filesystem::path& path) {
  HOLOGRAM_TRY(const FileMap file, FileMap::open(path));
  return in_context(decode(file.bytes()), [&] { return path.string(); });
}

void register_decoder() {
  kernels::set_image_decoder([](std::span<const uint8_t> bytes) -> Result<kernels::DecodedImage> {
    HOLOGRAM_TRY(Image image, decode(std::as_bytes(bytes)));
    return kernels::DecodedImage{image.width, image.height, std::move(image.rgb)};
  });
}

}  // namespace hologram::image
