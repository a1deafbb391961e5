#include "wav.h"

#include <cstring>
#include <string_view>

#include "support/file.h"

namespace speech {
namespace {

template <typename T>
T number(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

bool is(std::span<const std::byte> bytes, size_t at, std::string_view tag) {
  return std::memcmp(bytes.data() + at, tag.data(), tag.size()) == 0;
}

}  // namespace

hologram::Result<std::vector<float>> read_wav(const std::filesystem::path& path) {
  using hologram::ErrorCode;
  HOLOGRAM_TRY(const hologram::FileMap file, hologram::FileMap::open(path));
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() < 12 || !is(bytes, 0, "RIFF") || !is(bytes, 8, "WAVE"))
    return hologram::fail(ErrorCode::corrupt, "'{}' is no .wav file", path.string());
  bool known = false;
  for (size_t at = 12; at + 8 <= bytes.size();) {
    const size_t size = number<uint32_t>(bytes, at + 4), body = at + 8;
    const size_t present = std::min(size, bytes.size() - body);
    if (is(bytes, at, "fmt ") && present >= 16) {
      known = number<uint16_t>(bytes, body) == 1 && number<uint16_t>(bytes, body + 2) == 1 &&
              number<uint32_t>(bytes, body + 4) == 16000 &&
              number<uint16_t>(bytes, body + 14) == 16;
    } else if (is(bytes, at, "data") && known) {
      std::vector<float> samples(present / 2);
      for (size_t i = 0; i < samples.size(); ++i)
        samples[i] = static_cast<float>(number<int16_t>(bytes, body + 2 * i)) / 32768;
      return samples;
    }
    at = body + present + present % 2;
  }
  return hologram::fail(ErrorCode::unsupported,
                        "'{}' is not 16-bit, one channel, 16 kHz: sox IN -r 16000 -c 1 -b 16 OUT",
                        path.string());
}

}  // namespace speech
