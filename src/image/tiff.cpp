#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "image/formats.h"

namespace hologram::image {
namespace {

// A file in memory, as libtiff reads it.
struct Source {
  std::span<const std::byte> bytes;
  uint64_t at = 0;
};

tmsize_t read(thandle_t handle, void* to, tmsize_t size) {
  auto* s = static_cast<Source*>(handle);
  const uint64_t left = s->at < s->bytes.size() ? s->bytes.size() - s->at : 0;
  const uint64_t count =
      std::min<uint64_t>(left, static_cast<uint64_t>(std::max<tmsize_t>(size, 0)));
  if (count > 0) std::memcpy(to, s->bytes.data() + s->at, count);
  s->at += count;
  return static_cast<tmsize_t>(count);
}
tmsize_t write(thandle_t, void*, tmsize_t) { return 0; }
toff_t seek(thandle_t handle, toff_t offset, int whence) {
  auto* s = static_cast<Source*>(handle);
  s->at = whence == SEEK_SET   ? offset
          : whence == SEEK_CUR ? s->at + offset
                               : s->bytes.size() + offset;
  return s->at;
}
int close(thandle_t) { return 0; }
toff_t size_of_file(thandle_t handle) { return static_cast<Source*>(handle)->bytes.size(); }
int no_map(thandle_t, void**, toff_t*) { return 0; }
void no_unmap(thandle_t, void*, toff_t) {}

}  // namespace

Result<Image> decode_tiff(std::span<const std::byte> file) {
  TIFFSetErrorHandler(nullptr);
  TIFFSetWarningHandler(nullptr);
  Source source{file};
  const std::unique_ptr<TIFF, void (*)(TIFF*)> tiff(
      TIFFClientOpen("memory", "r", &source, read, write, seek, close, size_of_file, no_map,
                     no_unmap),
      [](TIFF* t) {
        if (t) TIFFClose(t);
      });
  uint32_t width = 0, height = 0;
  if (!tiff || !TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) ||
      !TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height))
    return fail(ErrorCode::corrupt, "not a readable TIFF");
  HOLOGRAM_TRY(Image image, blank(width, height));
  std::vector<uint32_t> pixels(image.rgb.size() / 3);
  if (!TIFFReadRGBAImageOriented(tiff.get(), width, height, pixels.data(), ORIENTATION_TOPLEFT, 1))
    return fail(ErrorCode::corrupt, "not a readable TIFF");
  std::vector<uint8_t> rgba(4 * pixels.size());
  for (size_t i = 0; i < pixels.size(); ++i) {
    rgba[4 * i] = TIFFGetR(pixels[i]);
    rgba[4 * i + 1] = TIFFGetG(pixels[i]);
    rgba[4 * i + 2] = TIFFGetB(pixels[i]);
    rgba[4 * i + 3] = TIFFGetA(pixels[i]);
  }
  flatten(rgba, image);
  return image;
}

}  // namespace hologram::image
