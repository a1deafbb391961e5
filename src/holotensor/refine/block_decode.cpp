#include <algorithm>
#include <cstring>

#include "holotensor/fragment.h"
#include "holotensor/refine/block_format.h"
#include "holotensor/refine/block_streams.h"

namespace hologram::holotensor::refine {

Status Block::decode_head(StreamReader& reader) {
  ByteReader& in = reader.head();
  const uint8_t flags = in.get<uint8_t>();
  if (flags > (kHasZeros | kManyClasses | kHasExceptions))
    return fail(ErrorCode::corrupt, "a block with unknown flags {:#x}", flags);
  std::vector<uint8_t> classes(groups_);
  if (flags & kManyClasses) {
    const uint64_t size = in.varint();
    const auto codec = static_cast<Codec>(in.get<uint8_t>());
    HOLOGRAM_TRY(const auto raw, decompress(codec, in.bytes(size), groups_));
    if (raw.size() != groups_)
      return fail(ErrorCode::corrupt, "a block with {} classes", raw.size());
    std::memcpy(classes.data(), raw.data(), raw.size());
  } else {
    std::fill(classes.begin(), classes.end(), in.get<uint8_t>());
  }
  for (const uint8_t c : classes)
    if (c != kEmptyClass && (c > kMaxClass || model_->window(c).planes == 0 ||
                             c + model_->window(c).planes > model_->plane_layers))
      return fail(ErrorCode::corrupt, "a group of class {}", c);
  set_classes(classes);
  if (flags & kHasExceptions) {
    const uint64_t count = in.varint();
    if (count > elements_) return fail(ErrorCode::corrupt, "{} exceptions in a block", count);
    uint64_t position = 0;
    for (uint64_t i = 0; i < count; ++i) {
      position += in.varint();
      Exception exception;
      const auto bits = in.bytes(model_->format.bytes);
      if (!in.ok() || position >= elements_)
        return fail(ErrorCode::corrupt, "an exception outside its block");
      std::memcpy(&exception.bits, bits.data(), bits.size());
      exception.position = static_cast<uint32_t>(position);
      add_exception(exception);
    }
  }
  has_zeros_ = flags & kHasZeros;
  return {};
}

Status Block::decode(std::span<const std::byte> chunk) {
  if (layers_ == model_->plane_layers) {
    HOLOGRAM_CHECK(decode_tail(chunk));
    ++layers_;
    return {};
  }
  StreamReader reader(chunk, scratch_);
  uint8_t zero_level = kAllZeros;
  if (layers_ == 0) {
    HOLOGRAM_CHECK(decode_head(reader));
    if (has_zeros_) zero_level = reader.head().get<uint8_t>();
  }
  // All levels first, then the streams.
  struct Levels {
    unsigned scale_class, plane;
    bool flat;
    uint8_t sign, level[kContexts];
  };
  std::vector<Levels> all;
  bool known = is_level(zero_level);
  for (unsigned c = 0; c < states_.size() && c <= layers_; ++c) {
    const unsigned i = layers_ - c;
    if (states_[c].ranges.empty() || i >= model_->window(c).planes) continue;
    Levels levels{.scale_class = c, .plane = i, .flat = true, .sign = kRaw, .level = {}};
    if (i == 0) levels.sign = reader.head().get<uint8_t>();
    const uint8_t mode = reader.head().get<uint8_t>();
    levels.flat = mode == 0;
    known &= mode <= 1 && is_level(levels.sign) && (mode == 0 || (i >= 1 && i <= kExtraPlanes + 1));
    for (unsigned k = 0; k < (levels.flat ? 1 : kContexts); ++k) {
      levels.level[k] = reader.head().get<uint8_t>();
      known &= is_level(levels.level[k]);
    }
    all.push_back(levels);
  }
  if (!known || !reader.head().ok()) return fail(ErrorCode::corrupt, "a chunk with unknown levels");
  HOLOGRAM_CHECK(reader.open_streams());

  if (layers_ == 0) {
    if (has_zeros_) {
      uint64_t words = 0;
      for (const ClassState& state : states_) words += state.words;
      HOLOGRAM_TRY(BitTap tap, reader.tap(zero_level, words * 64));
      for (const ClassState& state : states_)
        for (const Range range : state.ranges)
          bit_kernels().merge(zeros_.data(), {}, range.begin, range.end, true, &tap);
      reader.reset_buffers();
    }
    set_live(has_zeros_);
  }
  const unsigned significant_bits = model_->format.significant;
  for (const Levels& levels : all) {
    ClassState& state = states_[levels.scale_class];
    const unsigned i = levels.plane;
    const auto count = [&](unsigned back) {
      return i >= back ? state.significant[i - back] : uint64_t{0};
    };
    if (i == 0) {
      HOLOGRAM_TRY(BitTap tap, reader.tap(levels.sign, state.live));
      for (const Range range : state.ranges)
        bit_kernels().merge(negative_.data(), {.live = masks(0).live}, range.begin, range.end, true,
                            &tap);
    }
    const uint64_t done = i >= significant_bits ? state.significant[i - significant_bits] : 0;
    if (levels.flat && levels.level[0] == kAllZeros) {
      // Planes below the smallest number of a type, most often.
      for (const Range range : state.ranges)
        std::fill(plane(i) + range.begin, plane(i) + range.end, 0);
      update_significance(state, i);
      reader.reset_buffers();
      continue;
    }
    BitTap taps[kContexts];
    if (levels.flat) {
      HOLOGRAM_TRY(taps[0], reader.tap(levels.level[0], state.live - done));
    } else {
      const uint64_t sizes[kContexts] = {state.live - count(1), count(1) - count(2),
                                         count(2) - count(3), count(3) - done};
      for (unsigned k = 0; k < kContexts; ++k) {
        HOLOGRAM_TRY(taps[k], reader.tap(levels.level[k], sizes[k]));
      }
    }
    for (const Range range : state.ranges)
      bit_kernels().merge(plane(i), masks(i), range.begin, range.end, levels.flat, taps);
    update_significance(state, i);
    reader.reset_buffers();
  }
  ++layers_;
  return reader.finish();
}

Status Block::decode_tail(std::span<const std::byte> chunk) {
  ByteReader in(chunk);
  tail_bits_ = in.bytes(in.varint());
  if (model_->format.low_bits > 0) {
    uint64_t live = 0;
    for (const ClassState& state : states_) live += state.live;
    const uint8_t form = in.get<uint8_t>();
    low_bytes_ = in.bytes(in.rest().size());
    if (form > kLowRaw) {
      HOLOGRAM_TRY(low_storage_, decompress(static_cast<Codec>(form - kLowRaw), low_bytes_, live));
      low_bytes_ = low_storage_;
    }
    if (low_bytes_.size() != (form == kLowZero ? 0 : live))
      return fail(ErrorCode::corrupt, "{} low bytes for {} elements", low_bytes_.size(), live);
  }
  if (!in.done()) return fail(ErrorCode::corrupt, "a tail of the wrong size");
  return {};
}

}  // namespace hologram::holotensor::refine
