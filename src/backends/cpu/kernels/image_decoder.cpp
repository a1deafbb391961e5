// ImageDecoder for formats that store pixels as they are: BMP, PNM, TIFF without compression. The
// compressed ones need libraries that a runtime does not carry: a program may register them
// (image_codec.h); otherwise they are refused by name.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

#include "backends/cpu/kernels/image.h"
#include "backends/cpu/kernels/image_codec.h"

namespace hologram::kernels {
namespace {

constexpr int64_t kLargest = 1 << 20;  // of a side

// Where the pixels of an image lie in its bytes. Everything is checked before it is made.
struct Picture {
  int64_t width = 0, height = 0;
  int64_t channels = 3;  // 1: grey
  bool blue_first = false;
  bool bottom_up = false;
  int64_t pixel = 3, row = 0;  // bytes from one to the next
  const uint8_t* data = nullptr;
};

class Bytes {
 public:
  explicit Bytes(std::span<const uint8_t> bytes, bool big = false) : bytes_(bytes), big_(big) {}
  size_t size() const { return bytes_.size(); }
  bool starts_with(std::string_view text) const {
    return bytes_.size() >= text.size() &&
           std::memcmp(bytes_.data(), text.data(), text.size()) == 0;
  }
  // 0 outside: what follows is then found to be impossible.
  uint64_t number(uint64_t at, unsigned count) const {
    uint64_t value = 0;
    for (unsigned i = 0; i < count; ++i) value |= byte(at + i) << 8 * (big_ ? count - 1 - i : i);
    return value;
  }
  uint64_t byte(uint64_t at) const { return at < bytes_.size() ? bytes_[at] : 0; }
  // The picture's pixels at `at`; nothing if they do not fit.
  std::optional<Picture> pixels(Picture p, uint64_t at) const {
    if (p.width < 1 || p.height < 1 || p.width > kLargest || p.height > kLargest) return {};
    const auto need = static_cast<uint64_t>((p.height - 1) * p.row + p.width * p.pixel);
    if (at > bytes_.size() || need > bytes_.size() - at) return {};
    p.data = bytes_.data() + at;
    return p;
  }

 private:
  std::span<const uint8_t> bytes_;
  bool big_;
};

std::optional<Picture> read_bmp(const Bytes& b) {
  const int64_t height = static_cast<int32_t>(b.number(22, 4));
  Picture p{.width = static_cast<int32_t>(b.number(18, 4)),
            .height = std::abs(height),
            .blue_first = true,
            .bottom_up = height > 0};
  const uint64_t bits = b.number(28, 2), compression = b.number(30, 4);
  if (b.number(14, 4) < 40 || (bits != 24 && bits != 32) || compression != 0) return {};
  p.pixel = static_cast<int64_t>(bits / 8);
  p.row = (p.width * p.pixel + 3) / 4 * 4;
  return b.pixels(p, b.number(10, 4));
}

// P5 and P6: binary grey and colour, a byte a value.
std::optional<Picture> read_pnm(const Bytes& b) {
  uint64_t at = 2;
  auto next = [&]() -> int64_t {
    for (;; ++at) {
      const uint64_t c = b.byte(at);
      if (c == '#')
        while (at < b.size() && b.byte(at) != '\n') ++at;
      else if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
        break;
    }
    int64_t value = 0;
    for (; b.byte(at) >= '0' && b.byte(at) <= '9' && value <= kLargest; ++at)
      value = value * 10 + static_cast<int64_t>(b.byte(at) - '0');
    return value;
  };
  Picture p{.channels = b.byte(1) == '6' ? 3 : 1};
  p.width = next();
  p.height = next();
  if (next() != 255) return {};
  p.pixel = p.channels;
  p.row = p.width * p.pixel;
  return b.pixels(p, at + 1);
}

// One strip, or strips without gaps between them, of 8-bit grey, RGB or RGBA pixels.
std::optional<Picture> read_tiff(const Bytes& b) {
  const uint64_t directory = b.number(4, 4), entries = b.number(directory, 2);
  Picture p;
  uint64_t samples = 1, strips = 0, rows = 0, count = 0, compression = 1, photometric = 1;
  uint64_t planar = 1, bits = 8;
  unsigned width = 4;  // of a strip's offset
  for (uint64_t i = 0; i < entries; ++i) {
    const uint64_t at = directory + 2 + 12 * i, type = b.number(at + 2, 2);
    const uint64_t number = b.number(at + 4, 4), size = type == 3 ? 2 : type == 4 ? 4 : 1;
    // A value of at most four bytes is in the entry, a longer one elsewhere.
    const uint64_t place = number * size <= 4 ? at + 8 : b.number(at + 8, 4);
    const uint64_t value = b.number(place, static_cast<unsigned>(size));
    switch (b.number(at, 2)) {
      case 256:
        p.width = static_cast<int64_t>(value);
        break;
      case 257:
        p.height = static_cast<int64_t>(value);
        break;
      case 258:
        bits = value;
        break;
      case 259:
        compression = value;
        break;
      case 262:
        photometric = value;
        break;
      case 273:
        count = number;
        strips = place;
        width = static_cast<unsigned>(size);
        break;
      case 277:
        samples = value;
        break;
      case 278:
        rows = value;
        break;
      case 284:
        planar = value;
        break;
      default:
        break;
    }
  }
  const bool grey = photometric == 1 && samples == 1, colour = photometric == 2 && samples >= 3;
  if (compression != 1 || bits != 8 || planar != 1 || !(grey || colour) || samples > 4) return {};
  p.channels = grey ? 1 : 3;
  p.pixel = static_cast<int64_t>(samples);
  p.row = p.width * p.pixel;
  const uint64_t first = b.number(strips, width);
  if (count == 0 || count > b.size()) return {};
  for (uint64_t k = 1; k < count; ++k)
    if (b.number(strips + k * width, width) != first + k * rows * static_cast<uint64_t>(p.row))
      return {};
  return b.pixels(p, first);
}

std::atomic<ImageCodec> g_codec = nullptr;

// The formats known here; nothing for another one, or where something is wrong.
std::optional<Picture> read_plain(std::span<const uint8_t> stream) {
  const Bytes bytes(stream);
  if (bytes.starts_with("BM")) return read_bmp(bytes);
  if (bytes.starts_with("P5") || bytes.starts_with("P6")) return read_pnm(bytes);
  if (bytes.starts_with(std::string_view("II*\0", 4))) return read_tiff(bytes);
  if (bytes.starts_with(std::string_view("MM\0*", 4))) return read_tiff(Bytes(stream, true));
  return {};
}

bool is_plain(std::span<const uint8_t> stream) {
  const Bytes bytes(stream);
  return bytes.starts_with("BM") || bytes.starts_with("P5") || bytes.starts_with("P6");
}

}  // namespace

void set_image_decoder(ImageCodec codec) { g_codec.store(codec); }

Status image_decoder(KernelContext& c) {
  const Tensor& x = c.input(0);
  const auto format = c.text("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale")
    return fail(ErrorCode::invalid_argument, "pixel_format '{}'; supported: RGB, BGR, Grayscale",
                format);
  const std::span<const uint8_t> stream(x.as<uint8_t>(), static_cast<size_t>(x.count()));
  std::optional<Picture> picture = read_plain(stream);
  DecodedImage decoded;
  if (!picture && !is_plain(stream)) {
    const ImageCodec codec = g_codec.load();
    if (!codec)
      return fail(ErrorCode::unsupported,
                  "an image of another format; supported: BMP, PGM, PPM and TIFF without "
                  "compression (others where the program registers a decoder, as hologram does)");
    auto result = codec(stream);
    if (!result && result.error().code() == ErrorCode::unsupported)
      return std::unexpected(std::move(result).error());
    if (result) {
      decoded = *std::move(result);
      picture = Picture{.width = decoded.width,
                        .height = decoded.height,
                        .row = 3 * decoded.width,
                        .data = decoded.rgb.data()};
    }
  }
  const bool grey = format == "Grayscale";
  // The standard: what cannot be decoded is an empty image.
  if (!picture) picture = Picture{};
  const Picture& p = *picture;
  HOLOGRAM_TRY(Tensor y, c.output(0, {p.height, p.width, grey ? 1 : 3}));
  uint8_t* out = y.as<uint8_t>();
  for (int64_t row = 0; row < p.height; ++row) {
    const uint8_t* line = p.data + (p.bottom_up ? p.height - 1 - row : row) * p.row;
    for (int64_t i = 0; i < p.width; ++i, line += p.pixel) {
      const uint8_t first = line[0], second = p.channels == 1 ? first : line[1];
      const uint8_t third = p.channels == 1 ? first : line[2];
      const unsigned red = p.blue_first ? third : first, blue = p.blue_first ? first : third;
      if (grey) {
        // ITU-R 601, rounded.
        *out++ = static_cast<uint8_t>((red * 299 + second * 587u + blue * 114 + 500) / 1000);
        continue;
      }
      *out++ = static_cast<uint8_t>(format == "RGB" ? red : blue);
      *out++ = second;
      *out++ = static_cast<uint8_t>(format == "RGB" ? blue : red);
    }
  }
  return {};
}

}  // namespace hologram::kernels
