#include <openjpeg.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "image/formats.h"

namespace hologram::image {
namespace {

struct Source {
  std::span<const std::byte> bytes;
  size_t at = 0;
};

OPJ_SIZE_T read(void* to, OPJ_SIZE_T size, void* user) {
  auto* s = static_cast<Source*>(user);
  const size_t count = std::min<size_t>(size, s->bytes.size() - s->at);
  if (count == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(to, s->bytes.data() + s->at, count);
  s->at += count;
  return count;
}
OPJ_OFF_T skip(OPJ_OFF_T count, void* user) {
  auto* s = static_cast<Source*>(user);
  if (count < 0) return -1;
  s->at += std::min<size_t>(static_cast<size_t>(count), s->bytes.size() - s->at);
  return count;
}
OPJ_BOOL seek(OPJ_OFF_T to, void* user) {
  auto* s = static_cast<Source*>(user);
  if (to < 0 || static_cast<size_t>(to) > s->bytes.size()) return OPJ_FALSE;
  s->at = static_cast<size_t>(to);
  return OPJ_TRUE;
}

// A component's sample as eight bits.
uint8_t sample(const opj_image_comp_t& c, size_t i) {
  const int64_t value = c.data[i] + (c.sgnd ? int64_t{1} << (c.prec - 1) : 0);
  const int64_t top = (int64_t{1} << c.prec) - 1;
  return static_cast<uint8_t>(std::clamp<int64_t>(c.prec == 8 ? value : value * 255 / top, 0, 255));
}

}  // namespace

Result<Image> decode_jpeg2000(std::span<const std::byte> file) {
  const auto broken = [] { return fail(ErrorCode::corrupt, "not a readable JPEG 2000"); };
  Source source{file};
  const std::unique_ptr<opj_stream_t, void (*)(opj_stream_t*)> stream(
      opj_stream_default_create(OPJ_TRUE), opj_stream_destroy);
  const bool boxed = file[0] == std::byte{0};
  const std::unique_ptr<opj_codec_t, void (*)(opj_codec_t*)> codec(
      opj_create_decompress(boxed ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K), opj_destroy_codec);
  if (!stream || !codec) return broken();
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), file.size());
  opj_stream_set_read_function(stream.get(), read);
  opj_stream_set_skip_function(stream.get(), skip);
  opj_stream_set_seek_function(stream.get(), seek);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* read_image = nullptr;
  const bool opened = opj_setup_decoder(codec.get(), &parameters) &&
                      opj_read_header(stream.get(), codec.get(), &read_image);
  const std::unique_ptr<opj_image_t, void (*)(opj_image_t*)> picture(read_image,
                                                                     [](opj_image_t* p) {
                                                                       if (p) opj_image_destroy(p);
                                                                     });
  if (!opened || picture->x1 < picture->x0 || picture->y1 < picture->y0) return broken();
  HOLOGRAM_TRY(Image image,
               blank(uint64_t{picture->x1} - picture->x0, uint64_t{picture->y1} - picture->y0));
  if (!opj_decode(codec.get(), stream.get(), picture.get())) return broken();
  const std::span components(picture->comps, picture->numcomps);
  if (components.empty()) return broken();
  const size_t pixels = image.rgb.size() / 3, used = components.size() >= 3 ? 3 : 1;
  for (const opj_image_comp_t& c : components.first(used))
    if (!c.data || size_t{c.w} * c.h != pixels || c.prec < 1 || c.prec > 16)
      return fail(ErrorCode::unsupported,
                  "a JPEG 2000 with components of {} x {} and {} bits; supported: whole ones, up "
                  "to 16 bits",
                  c.w, c.h, c.prec);
  if (picture->color_space == OPJ_CLRSPC_SYCC || picture->color_space == OPJ_CLRSPC_EYCC ||
      picture->color_space == OPJ_CLRSPC_CMYK)
    return fail(ErrorCode::unsupported, "a JPEG 2000 that is neither RGB nor grey");
  for (size_t i = 0; i < pixels; ++i)
    for (size_t channel = 0; channel < 3; ++channel)
      image.rgb[3 * i + channel] = sample(components[used == 3 ? channel : 0], i);
  return image;
}

}  // namespace hologram::image
