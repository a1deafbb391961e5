#include "holotensor/packed.h"

#include <algorithm>

#include "holotensor/byte_io.h"
#include "holotensor/fragment.h"
#include "holotensor/values.h"

namespace hologram::holotensor {
namespace {

// What is done to the elements before they are compressed, in this order.
enum Transform : uint8_t {
  kTransposed = 2,  // the first dimension by all others, as a matrix
  kSigns = 4,       // the top bit of each element becomes 0; those bits follow, eight a byte
  kByteplanes = 1,  // the first byte of every element, then the second, ...
};
constexpr uint8_t kAllTransforms = kTransposed | kSigns | kByteplanes;

std::vector<std::byte> byteplanes(std::span<const std::byte> bytes, size_t width) {
  std::vector<std::byte> out(bytes.size());
  const size_t count = bytes.size() / width;
  for (size_t place = 0; place < width; ++place)
    for (size_t i = 0; i < count; ++i) out[place * count + i] = bytes[i * width + place];
  return out;
}

std::vector<std::byte> undo_byteplanes(std::span<const std::byte> planes, size_t width) {
  std::vector<std::byte> out(planes.size());
  const size_t count = planes.size() / width;
  for (size_t place = 0; place < width; ++place)
    for (size_t i = 0; i < count; ++i) out[i * width + place] = planes[place * count + i];
  return out;
}

std::vector<std::byte> transposed(std::span<const std::byte> bytes, size_t rows, size_t width) {
  std::vector<std::byte> out(bytes.size());
  const size_t columns = bytes.size() / width / rows;
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c)
      std::copy_n(&bytes[(r * columns + c) * width], width, &out[(c * rows + r) * width]);
  return out;
}

// Takes the signs off and returns them.
std::vector<std::byte> take_signs(std::span<std::byte> elements, size_t width) {
  const size_t count = elements.size() / width;
  std::vector<std::byte> signs((count + 7) / 8);
  for (size_t i = 0; i < count; ++i) {
    std::byte& top = elements[(i + 1) * width - 1];
    signs[i / 8] |= (top >> 7) << (i % 8);
    top &= std::byte{0x7f};
  }
  return signs;
}

void put_signs(std::span<std::byte> elements, size_t width, std::span<const std::byte> signs) {
  for (size_t i = 0; i < elements.size() / width; ++i)
    elements[(i + 1) * width - 1] |= (signs[i / 8] >> (i % 8) & std::byte{1}) << 7;
}

// A matrix that can be turned: its rows, or 0.
size_t rows_of(std::span<const int64_t> shape) {
  const bool matrix = shape.size() >= 2 && shape[0] > 1;
  return matrix ? static_cast<size_t>(shape[0]) : 0;
}

std::vector<std::byte> apply(uint8_t transform, const TensorView& tensor) {
  const size_t width = size_of(tensor.dtype);
  std::vector<std::byte> bytes(tensor.bytes.begin(), tensor.bytes.end()), signs;
  if (transform & kTransposed) bytes = transposed(bytes, rows_of(tensor.shape), width);
  if (transform & kSigns) signs = take_signs(bytes, width);
  if (transform & kByteplanes) bytes = byteplanes(bytes, width);
  bytes.insert(bytes.end(), signs.begin(), signs.end());
  return bytes;
}

// The reverse; false for bytes that cannot have come from it.
bool undo(uint8_t transform, const TensorInfo& info, std::vector<std::byte>& bytes) {
  const size_t width = size_of(info.dtype), size = info.source_bytes();
  const size_t sign_bytes = transform & kSigns ? (info.elements() + 7) / 8 : 0;
  if (bytes.size() != size + sign_bytes) return false;
  const std::vector<std::byte> signs(bytes.begin() + static_cast<ptrdiff_t>(size), bytes.end());
  bytes.resize(size);
  if (transform & kByteplanes) bytes = undo_byteplanes(bytes, width);
  if (transform & kSigns) put_signs(bytes, width, signs);
  if (transform & kTransposed && size > 0)
    bytes = transposed(bytes, info.elements() / rows_of(info.shape), width);
  return true;
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
    // Elements of less than a byte are never transformed.
    if (!in.ok() || transform > kAllTransforms || (transform != 0 && width == 0) ||
        (transform & kTransposed && rows_of(info_.shape) == 0))
      return fail(ErrorCode::corrupt, "a packed payload of an unknown form");
    const uint64_t size = info_.source_bytes();
    HOLOGRAM_TRY(auto bytes, decompress(codec, in.rest(), size + size / 8 + 1));
    if (!undo(transform, info_, bytes))
      return fail(ErrorCode::corrupt, "a packed payload of {} bytes for a tensor of {}",
                  bytes.size(), size);
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
};

}  // namespace

std::vector<std::byte> pack(const TensorView& tensor) {
  Compressed best = compress_strongly(tensor.bytes);
  uint8_t transform = 0;
  const auto offer = [&](int candidate) {
    Compressed packed = compress_strongly(apply(static_cast<uint8_t>(candidate), tensor));
    if (packed.bytes.size() >= best.bytes.size()) return;
    best = std::move(packed);
    transform = static_cast<uint8_t>(candidate);
  };
  // Tables of sines repeat up to their sign, along either axis; not worth the time in large
  // tensors.
  constexpr size_t kMostForAll = 4 << 20;
  const bool try_all = tensor.bytes.size() > 256 && tensor.bytes.size() <= kMostForAll;
  const bool can_turn = rows_of(tensor.shape) > 0 && !tensor.bytes.empty();
  if (size_of(tensor.dtype) > 1) {
    offer(kByteplanes);
    if (try_all && !is_integer(tensor.dtype)) offer(kSigns);
    if (try_all && !is_integer(tensor.dtype) && can_turn) offer(kTransposed | kSigns);
  }
  const std::byte head[] = {static_cast<std::byte>(transform), static_cast<std::byte>(best.codec)};
  best.bytes.insert(best.bytes.begin(), std::begin(head), std::end(head));
  return std::move(best.bytes);
}

const Scheme& packed_scheme() {
  static const PackedScheme scheme;
  return scheme;
}

Result<std::unique_ptr<SchemeDecoder>> packed_decoder(const TensorInfo& info) {
  if (info.fragment_count != 1)
    return fail(ErrorCode::corrupt, "a packed tensor of {} fragments", info.fragment_count);
  return std::make_unique<PackedDecoder>(info);
}

}  // namespace hologram::holotensor
