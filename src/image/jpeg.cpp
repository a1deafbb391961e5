#include <turbojpeg.h>

#include <memory>

#include "image/formats.h"

namespace hologram::image {

Result<Image> decode_jpeg(std::span<const std::byte> file) {
  const std::unique_ptr<void, int (*)(tjhandle)> decoder(tjInitDecompress(), tjDestroy);
  const auto* bytes = reinterpret_cast<const unsigned char*>(file.data());
  int width = 0, height = 0, sampling = 0, colours = 0;
  if (tjDecompressHeader3(decoder.get(), bytes, file.size(), &width, &height, &sampling,
                          &colours) != 0)
    return fail(ErrorCode::corrupt, "not a readable JPEG: {}", tjGetErrorStr2(decoder.get()));
  HOLOGRAM_TRY(Image image, blank(static_cast<uint64_t>(width), static_cast<uint64_t>(height)));
  // Warnings (a file cut short, bad markers) leave a picture.
  if (tjDecompress2(decoder.get(), bytes, file.size(), image.rgb.data(), width, 0, height, TJPF_RGB,
                    TJFLAG_ACCURATEDCT) != 0 &&
      tjGetErrorCode(decoder.get()) == TJERR_FATAL)
    return fail(ErrorCode::corrupt, "not a readable JPEG: {}", tjGetErrorStr2(decoder.get()));
  return image;
}

}  // namespace hologram::image
