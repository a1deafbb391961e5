#include "holotensor/packed.h"

#include <algorithm>

#include "holotensor/byte_io.h"
#include "holotensor/fragment.h"
#include "holotensor/values.h"

namespace hologram::holotensor {
namespace {

enum Transform : uint8_t { kNone = 0, kByteplanes = 1 };

std::vector<std::byte> byteplanes(std::span<const std::byte> bytes, size_t width) {
  std::vector<std::byte> out(bytes.size());
  const size_t count = bytes.size() / width;
  for (size_t place = 0; place < width; ++place)
    for (size_t i = 0; i < count; ++i) out[place * count + i] = bytes[i * width + place];
  return out;
}

void undo_byteplanes(std::span<const std::byte> planes, size_t width, std::span<std::byte> out) {
  const size_t count = planes.size() / width;
  for (size_t place = 0; place < width; ++place)
    for (size_t i = 0; i < count; ++i) out[i * width + place] = planes[place * count + i];
}

Compressed compress_strongly(std::span<const std::byte> bytes) {
  // Level 19 reads 3 MB a second: beyond a size it is not worth the wait.
  return compress(bytes, bytes.size() <= 64u << 20 ? 19 : 9);
}

class PackedDecoder final : public SchemeDecoder {
 public:
  explicit PackedDecoder(const TensorInfo& info) : info_(info) {}

  Status add(uint16_t, SharedBytes payload) override {
    ByteReader in(payload.view);
    const uint8_t transform = in.get<uint8_t>();
    const auto codec = static_cast<Codec>(in.get<uint8_t>());
    const size_t width = size_of(info_.dtype);
    if (!in.ok() || transform > kByteplanes || (transform == kByteplanes && width < 2))
      return fail(ErrorCode::corrupt, "a packed payload of an unknown form");
    HOLOGRAM_TRY(auto bytes, decompress(codec, in.rest(), info_.source_bytes()));
    if (bytes.size() != info_.source_bytes())
      return fail(ErrorCode::corrupt, "a packed payload of {} bytes for a tensor of {}",
                  bytes.size(), info_.source_bytes());
    if (transform == kByteplanes) {
      std::vector<std::byte> plain(bytes.size());
      undo_byteplanes(bytes, width, plain);
      bytes = std::move(plain);
    }
    bytes_ = std::move(bytes);
    complete_ = true;
    return {};
  }

  uint16_t usable() const override { return complete_ ? 1 : 0; }

  Status reconstruct(DType type, std::span<std::byte> out, ThreadPool&) const override {
    if (type == info_.dtype) {
      std::copy(bytes_.begin(), bytes_.end(), out.begin());
      return {};
    }
    std::vector<float> values(info_.elements());
    HOLOGRAM_CHECK(to_f32(info_.dtype, bytes_, values));
    return from_f32(values, type, out);
  }

 private:
  const TensorInfo& info_;
  std::vector<std::byte> bytes_;
  bool complete_ = false;
};

class PackedScheme final : public Scheme {
 public:
  SchemeId id() const override { return SchemeId::packed; }

  Result<SchemeOutput> encode(const TensorView& tensor, const EncoderOptions&,
                              ThreadPool&) const override {
    HOLOGRAM_CHECK(validate(tensor));
    SchemeOutput out;
    out.fragments.push_back(pack(tensor));
    ErrorSum zeros;
    if (converts_to_f32(tensor.dtype)) {
      std::vector<float> values(tensor.bytes.size() / size_of(tensor.dtype));
      HOLOGRAM_CHECK(to_f32(tensor.dtype, tensor.bytes, values));
      zeros.add(values, std::vector<float>(values.size()));
    }
    out.curve = {zeros.quality(false), Quality{.nmse = 0, .max_error = 0, .exact = true}};
    return out;
  }

  Result<std::unique_ptr<SchemeDecoder>> decoder(const TensorInfo& info) const override {
    if (info.fragment_count != 1)
      return fail(ErrorCode::corrupt, "a packed tensor of {} fragments", info.fragment_count);
    return std::make_unique<PackedDecoder>(info);
  }
};

}  // namespace

std::vector<std::byte> pack(const TensorView& tensor) {
  Compressed best = compress_strongly(tensor.bytes);
  Transform transform = kNone;
  if (const size_t width = size_of(tensor.dtype); width > 1) {
    Compressed planes = compress_strongly(byteplanes(tensor.bytes, width));
    if (planes.bytes.size() < best.bytes.size()) {
      best = std::move(planes);
      transform = kByteplanes;
    }
  }
  const std::byte head[] = {static_cast<std::byte>(transform), static_cast<std::byte>(best.codec)};
  best.bytes.insert(best.bytes.begin(), std::begin(head), std::end(head));
  return std::move(best.bytes);
}

const Scheme& packed_scheme() {
  static const PackedScheme scheme;
  return scheme;
}

}  // namespace hologram::holotensor
