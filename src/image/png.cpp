#include <png.h>

#include <cstring>
#include <memory>

#include "image/formats.h"
#include "support/file.h"

namespace hologram::image {

Result<Image> decode_png(std::span<const std::byte> file) {
  png_image png;
  std::memset(&png, 0, sizeof(png));
  png.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_memory(&png, file.data(), file.size()))
    return fail(ErrorCode::corrupt, "not a readable PNG: {}", png.message);
  const std::unique_ptr<png_image, void (*)(png_image*)> guard(&png, png_image_free);
  HOLOGRAM_TRY(Image image, blank(png.width, png.height));
  png.format = PNG_FORMAT_RGB;
  const png_color white = {255, 255, 255};
  if (!png_image_finish_read(&png, &white, image.rgb.data(), 0, nullptr))
    return fail(ErrorCode::corrupt, "not a readable PNG: {}", png.message);
  return image;
}

Status write_png(const std::filesystem::path& path, const Image& image) {
  png_image png;
  std::memset(&png, 0, sizeof(png));
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::vector<std::byte> file(size);
  if (!png_image_write_to_memory(&png, file.data(), &size, 0, image.rgb.data(), 0, nullptr))
    return fail(ErrorCode::internal, "cannot write a PNG: {}", png.message);
  return write_file(path, std::span(file).first(size));
}

}  // namespace hologram::image
