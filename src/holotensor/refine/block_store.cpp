// What the chunks decoded so far say, as elements.
#include <algorithm>
#include <bit>
#include <cstring>

#include "holotensor/refine/block.h"
#include "holotensor/refine/block_format.h"
#include "holotensor/refine/byte_kernels.h"

namespace hologram::holotensor::refine {

// Bits of any width out of the tail.
class Block::TailReader {
 public:
  explicit TailReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // At most 23 bits. False, and nothing is taken, when there are fewer.
  bool take(unsigned count, uint32_t& out) {
    if (bytes_.size() * 8 - at_ < count) return false;
    // A 32-bit load holds them from any bit.
    uint32_t bits = 0;
    const size_t byte = at_ / 8;
    if (byte + 4 <= bytes_.size())
      std::memcpy(&bits, bytes_.data() + byte, 4);
    else
      std::memcpy(&bits, bytes_.data() + byte, bytes_.size() - byte);
    out = (bits >> (at_ % 8)) & ((1u << count) - 1);
    at_ += count;
    return true;
  }

  bool done() const { return bytes_.size() == (at_ + 7) / 8; }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

namespace {

std::unexpected<Error> too_short() { return fail(ErrorCode::corrupt, "a tail that is too short"); }

}  // namespace

uint64_t Block::late(unsigned word) const {
  const uint64_t live = masked_ ? live_[word] : ~uint64_t{0};
  return live & ~excepted_[word] & ~significant(kExtraPlanes)[word];
}

// Adds what planes left out: missing bits of small elements, and low bytes.
Status Block::complete_group(unsigned group, TailReader& tail, size_t& low_byte,
                             const uint32_t* magnitude, float* carriers) const {
  const NumberFormat& format = model_->format;
  const Window window = model_->window(classes_[group]);
  auto* bits = reinterpret_cast<uint32_t*>(carriers);
  for (unsigned w = 0; w < kGroupWords; ++w) {
    const unsigned word = group * kGroupWords + w;
    for (uint64_t rest = late(word); rest != 0; rest &= rest - 1) {
      const unsigned at = w * 64 + static_cast<unsigned>(std::countr_zero(rest));
      const unsigned count =
          magnitude[at] == 0 ? magnitude_bits(format) : missing_bits(window, magnitude[at]);
      uint32_t low;
      if (!tail.take(count, low)) return too_short();
      const uint32_t sign = bits[at] & 0x80000000;
      float value;
      if (magnitude[at] == 0) {
        const uint32_t raw = low << format.low_bits;
        HOLOGRAM_CHECK(to_f32(format.dtype, std::as_bytes(std::span(&raw, 1)).first(format.bytes),
                              {&value, 1}));
      } else {
        const Scale scale(window.unit() - static_cast<int>(count));
        value = static_cast<float>(magnitude[at] << count | low) * scale.first * scale.second;
      }
      bits[at] = std::bit_cast<uint32_t>(value) | sign;
    }
    if (low_bytes_.empty()) continue;
    const uint64_t live = masked_ ? live_[word] : ~uint64_t{0};
    if (live == ~uint64_t{0}) {
      for (unsigned i = 0; i < 64; ++i)
        bits[w * 64 + i] |= static_cast<uint32_t>(low_bytes_[low_byte + i]);
      low_byte += 64;
    } else {
      for (uint64_t rest = live; rest != 0; rest &= rest - 1)
        bits[w * 64 + static_cast<unsigned>(std::countr_zero(rest))] |=
            static_cast<uint32_t>(low_bytes_[low_byte++]);
    }
  }
  return {};
}

// The same for fp8 codes.
Status Block::complete_codes(unsigned group, TailReader& tail, std::byte* codes) const {
  const SmallFloat small = small_float_of(model_->format.dtype);
  const Window window = model_->window(classes_[group]);
  for (unsigned w = 0; w < kGroupWords; ++w) {
    const unsigned word = group * kGroupWords + w;
    for (uint64_t rest = late(word); rest != 0; rest &= rest - 1) {
      const auto bit = static_cast<unsigned>(std::countr_zero(rest));
      uint32_t magnitude = 0;
      for (unsigned i = kExtraPlanes + 1; i < window.planes; ++i)
        magnitude = magnitude << 1 | (planes_[i * stride_ + word] >> bit & 1);
      const unsigned count = magnitude == 0 ? 7 : missing_bits(window, magnitude);
      uint32_t low;
      if (!tail.take(count, low)) return too_short();
      if (magnitude != 0)
        low = small_float_magnitude(small, magnitude << count | low,
                                    window.unit() - static_cast<int>(count));
      const auto sign = static_cast<uint32_t>(negative_[word] >> bit & 1) << 7;
      codes[w * 64 + bit] = static_cast<std::byte>(low | sign);
    }
  }
  return {};
}

// Every bit of elements of one byte, in their own type.
Status Block::store_codes(std::span<std::byte> out) const {
  const NumberFormat& format = model_->format;
  TailReader tail(tail_bits_);
  for (unsigned g = 0; g < groups_; ++g) {
    const unsigned c = classes_[g], first = g * kGroupWords, count = group_elements(g);
    std::byte buffer[kGroup];
    std::byte* const to = out.data() + size_t{g} * kGroup;
    std::byte* const codes = count == kGroup ? to : buffer;
    if (c == kEmptyClass) {
      std::memset(to, 0, count);
      continue;
    }
    const Window window = model_->window(c);
    const uint64_t* planes = planes_.data() + first;
    const uint64_t* negative = negative_.data() + first;
    if (format.integer) {
      integer_codes(planes, stride_, window.planes, negative, format.dtype == DType::u8 ? 0x80 : 0,
                    codes);
    } else {
      small_float_codes(small_float_of(format.dtype), window, planes, stride_, negative, codes);
      HOLOGRAM_CHECK(complete_codes(g, tail, codes));
    }
    if (codes == buffer) std::memcpy(to, buffer, count);
  }
  if (!tail.done()) return fail(ErrorCode::corrupt, "a tail that is too long");
  return {};
}

Status Block::store_carriers_of_groups(DType type, std::span<std::byte> out) const {
  const NumberFormat& format = model_->format;
  const bool exact = layers_ > model_->plane_layers;
  const size_t width = size_of(type);
  TailReader tail(tail_bits_);
  size_t low_byte = 0;
  uint32_t magnitude[kGroup];
  float carriers[kGroup];
  for (unsigned g = 0; g < groups_; ++g) {
    const unsigned c = classes_[g], first = g * kGroupWords;
    const unsigned depth = model_->depth(c, layers_);
    if (depth > 0)
      group_of_planes(planes_.data() + first, stride_, model_->window(c).planes, depth, magnitude);
    if (c == kEmptyClass) {
      std::fill(carriers, carriers + kGroup, format.offset);
    } else if (exact && !format.integer) {
      exact_carriers(model_->window(c), magnitude, negative_.data() + first, carriers);
      if (has_zeros_)
        for (unsigned w = 0; w < kGroupWords; ++w)
          for (uint64_t rest = zeros_[first + w]; rest != 0; rest &= rest - 1)
            carriers[w * 64 + static_cast<unsigned>(std::countr_zero(rest))] = 0.0f;
      HOLOGRAM_CHECK(complete_group(g, tail, low_byte, magnitude, carriers));
    } else {
      approximate_group(*model_, c, layers_, magnitude, negative_.data() + first,
                        has_zeros_ ? live_.data() + first : nullptr, carriers);
    }
    store_carriers(format, carriers, type, group_elements(g),
                   out.data() + size_t{g} * kGroup * width);
  }
  if (exact && !tail.done()) return fail(ErrorCode::corrupt, "a tail that is too long");
  return {};
}

Status Block::store(DType type, std::span<std::byte> out) const {
  const NumberFormat& format = model_->format;
  const size_t width = size_of(type);
  const bool exact = layers_ > model_->plane_layers;
  HOLOGRAM_CHECK(exact && format.bytes == 1 && type == format.dtype
                     ? store_codes(out)
                     : store_carriers_of_groups(type, out));
  for (const Exception& exception : exceptions_) {
    std::byte* to = out.data() + exception.position * width;
    if (type == format.dtype) {
      std::memcpy(to, &exception.bits, width);
      continue;
    }
    float value;
    std::byte element[4];
    std::memcpy(element, &exception.bits, 4);
    HOLOGRAM_CHECK(to_f32(format.dtype, {element, format.bytes}, {&value, 1}));
    HOLOGRAM_CHECK(from_f32({&value, 1}, type, {to, width}));
  }
  return {};
}

}  // namespace hologram::holotensor::refine
