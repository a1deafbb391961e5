#include <algorithm>
#include <bit>
#include <cstring>

#include "holotensor/fragment.h"
#include "holotensor/refine/block_format.h"
#include "holotensor/refine/block_streams.h"
#include "holotensor/refine/small_float.h"

namespace hologram::holotensor::refine {
namespace {

// States that a coded section always has: what it must save to be worth having.
constexpr double kSectionBits = 8.0 * (kLanes * 4 + 4);

// Collects bits of any width.
class BitWriter {
 public:
  void put(uint32_t bits, unsigned count) {
    pending_ |= static_cast<uint64_t>(bits) << fill_;
    fill_ += count;
    while (fill_ >= 8) {
      bytes_.push_back(static_cast<std::byte>(pending_));
      pending_ >>= 8;
      fill_ -= 8;
    }
  }
  const std::vector<std::byte>& finish() {
    if (fill_ > 0) bytes_.push_back(static_cast<std::byte>(pending_));
    return bytes_;
  }

 private:
  std::vector<std::byte> bytes_;
  uint64_t pending_ = 0;
  unsigned fill_ = 0;
};

uint32_t element_bits(std::span<const std::byte> source, unsigned bytes, size_t index) {
  uint32_t bits = 0;
  std::memcpy(&bits, source.data() + index * bytes, bytes);
  return bits;
}

// One finite float's carrier: few are asked for.
float carrier_of(const NumberFormat& format, uint32_t bits) {
  if (format.dtype == DType::f32) return std::bit_cast<float>(bits);
  if (format.dtype == DType::bf16) return std::bit_cast<float>(bits << 16);
  if (format.dtype == DType::f16) return f16_to_f32(static_cast<uint16_t>(bits));
  return small_float_value(small_float_of(format.dtype), bits);
}

}  // namespace

void Block::split(std::span<const std::byte> source, std::span<const uint8_t> classes) {
  source_ = source;
  set_classes(classes);
  const NumberFormat& format = model_->format;
  uint64_t zeros = 0;
  GroupSplit group;
  float carriers[kGroup];
  for (unsigned g = 0; g < groups_; ++g) {
    const unsigned first = g * kGroupWords;
    if (classes_[g] == kEmptyClass) {
      std::fill_n(zeros_.begin() + first, kGroupWords, 0);
      continue;
    }
    const Window window = model_->window(classes_[g]);
    const std::byte* from = source.data() + size_t{g} * kGroup * format.bytes;
    load_carriers(format, from, group_elements(g), carriers);
    split_group(format, window, carriers, group);
    planes_of_group(group.magnitude, window.planes, planes_.data() + first, stride_);
    for (unsigned w = 0; w < kGroupWords; ++w) {
      negative_[first + w] = group.negative[w];
      zeros_[first + w] = group.zero[w];
      zeros += static_cast<uint64_t>(std::popcount(group.zero[w]));
      for (uint64_t rest = group.exception[w]; rest != 0; rest &= rest - 1) {
        const unsigned at = (first + w) * 64 + static_cast<unsigned>(std::countr_zero(rest));
        add_exception({at, element_bits(source, format.bytes, at)});
      }
    }
  }
  // Marking zeros costs their entropy once and saves a dozen bits for each.
  zeros -= std::min<uint64_t>(zeros, uint64_t{words_} * 64 - elements_);  // the padding
  set_live(!format.integer && zeros > elements_ / 256);
}

void Block::encode_head(StreamWriter& writer) {
  const bool one =
      std::all_of(classes_.begin(), classes_.end(), [&](uint8_t c) { return c == classes_[0]; });
  auto out = writer.head();
  out.put(static_cast<uint8_t>((has_zeros_ ? kHasZeros : 0) | (one ? 0 : kManyClasses) |
                               (exceptions_.empty() ? 0 : kHasExceptions)));
  if (one) {
    out.put(classes_[0]);
  } else {
    const Compressed packed = compress(std::as_bytes(std::span(classes_)));
    out.varint(packed.bytes.size());
    out.put(static_cast<uint8_t>(packed.codec));
    out.bytes(packed.bytes);
  }
  if (!exceptions_.empty()) {
    out.varint(exceptions_.size());
    uint32_t before = 0;
    for (const Exception& exception : exceptions_) {
      out.varint(exception.position - before);
      out.bytes(std::as_bytes(std::span(&exception.bits, 1)).first(model_->format.bytes));
      before = exception.position;
    }
  }
  if (!has_zeros_) return;
  const size_t words = words_;
  BitSink sink = writer.sink(words);
  uint64_t* begin = sink.out;
  for (const ClassState& state : states_)
    for (const Range range : state.ranges)
      bit_kernels().split(zeros_.data(), {}, range.begin, range.end, true, &sink);
  const LevelChoice choice = choose_level(sink.ones, sink.bits);
  writer.add(begin, sink, choice.level);
}

void Block::encode(unsigned layer, std::vector<std::byte>& out) {
  if (layer == model_->plane_layers) return encode_tail(out);
  StreamWriter writer(scratch_, buffers_);
  if (layer == 0) encode_head(writer);
  for (unsigned c = 0; c < states_.size() && c <= layer; ++c) {
    ClassState& state = states_[c];
    const unsigned i = layer - c;
    if (state.ranges.empty() || i >= model_->window(c).planes) continue;
    const auto split_all = [&](const uint64_t* bits, const PlaneMasks& masks, bool flat,
                               BitSink* sinks) {
      for (const Range range : state.ranges)
        bit_kernels().split(bits, masks, range.begin, range.end, flat, sinks);
    };
    // A chunk too small to repay a coder's states is stored raw, and so is one of a small type that
    // saves little: there each coded bit is a large share of the time.
    const double least = model_->format.bytes == 1 ? 0.03 : 0.0;
    const auto settle = [&](LevelChoice choice, uint64_t bits) {
      if (is_coded(choice.level) && static_cast<double>(bits) - choice.cost <
                                        kSectionBits + least * static_cast<double>(bits))
        return LevelChoice{kRaw, static_cast<double>(bits)};
      return choice;
    };
    if (i == 0) {
      BitSink sink = writer.sink(state.words);
      uint64_t* begin = sink.out;
      split_all(negative_.data(), {.live = masks(0).live}, true, &sink);
      writer.add(begin, sink, settle(choose_level(sink.ones, sink.bits), sink.bits).level);
    }
    uint64_t ones_of_plane = 0;
    for (const Range range : state.ranges)
      ones_of_plane += bit_kernels().count(plane(i), range.begin, range.end);
    if (ones_of_plane == 0) {  // below the smallest number of the type, most often
      writer.head().put(uint8_t{0});
      writer.head().put(kAllZeros);
      update_significance(state, i);
      continue;
    }
    const bool may_split = i >= 1 && i <= kExtraPlanes + 1 && !state.always_flat;
    BitSink sinks[kContexts];
    uint64_t* begins[kContexts];
    bool flat = true;
    if (may_split) {
      for (unsigned k = 0; k < kContexts; ++k)
        begins[k] = (sinks[k] = writer.sink(state.words)).out;
      split_all(plane(i), masks(i), false, sinks);
      uint64_t ones = 0, bits = 0;
      double cost = 0;
      LevelChoice choices[kContexts];
      for (unsigned k = 0; k < kContexts; ++k) {
        ones += sinks[k].ones;
        bits += sinks[k].bits;
        choices[k] = settle(choose_level(sinks[k].ones, sinks[k].bits), sinks[k].bits);
        cost += choices[k].cost + 8;
      }
      const LevelChoice together = settle(choose_level(ones, bits), bits);
      flat = cost > 0.99 * together.cost;
      state.always_flat = flat && together.level == kRaw && i >= 3;
      if (!flat) {
        writer.head().put(uint8_t{1});
        for (unsigned k = 0; k < kContexts; ++k) writer.add(begins[k], sinks[k], choices[k].level);
      }
    }
    if (flat) {
      writer.head().put(uint8_t{0});
      // A context's room is as large as the class: the flat stream takes the first.
      if (!may_split) begins[0] = writer.sink(state.words).out;
      sinks[0] = BitSink{.out = begins[0]};
      split_all(plane(i), masks(i), true, sinks);
      const LevelChoice choice = settle(choose_level(sinks[0].ones, sinks[0].bits), sinks[0].bits);
      writer.add(begins[0], sinks[0], choice.level);
    }
    update_significance(state, i);
  }
  writer.finish(out);
}

void Block::encode_tail(std::vector<std::byte>& out) const {
  const NumberFormat& format = model_->format;
  BitWriter bits;
  std::vector<std::byte> low;
  bool low_needed = false;
  if (!format.integer) {
    const uint32_t kept = 0x7fffffffu & ~((1u << format.low_bits) - 1);
    for (unsigned g = 0; g < groups_; ++g) {
      if (classes_[g] == kEmptyClass) continue;
      const Window window = model_->window(classes_[g]);
      const Scale scale(-window.unit());
      const size_t start = size_t{g} * kGroup;
      for (unsigned w = 0; w < kGroupWords; ++w) {
        const unsigned word = g * kGroupWords + w;
        const uint64_t live = masked_ ? live_[word] : ~uint64_t{0};
        for (uint64_t rest = live & ~excepted_[word] & ~significant(kExtraPlanes)[word]; rest != 0;
             rest &= rest - 1) {
          const size_t at = start + w * 64 + static_cast<unsigned>(std::countr_zero(rest));
          const uint32_t raw = element_bits(source_, format.bytes, at);
          // As split_group() has it; few elements come here.
          const float carrier = carrier_of(format, raw);
          const float whole = std::bit_cast<float>(std::bit_cast<uint32_t>(carrier) & kept);
          const auto magnitude = static_cast<uint32_t>(whole * scale.first * scale.second);
          if (magnitude == 0) {
            bits.put((raw & ((1u << (format.bytes * 8 - 1)) - 1)) >> format.low_bits,
                     magnitude_bits(format));
          } else {
            const unsigned missing = missing_bits(window, magnitude);
            bits.put(significand(carrier, format) & ((1u << missing) - 1), missing);
          }
        }
        if (format.low_bits == 0) continue;
        for (uint64_t rest = live; rest != 0; rest &= rest - 1) {
          const size_t at = start + w * 64 + static_cast<unsigned>(std::countr_zero(rest));
          low.push_back(source_[at * format.bytes]);
          low_needed |= low.back() != std::byte{0};
        }
      }
    }
  }
  ByteWriter writer(out);
  const auto& tail = bits.finish();
  writer.varint(tail.size());
  writer.bytes(tail);
  if (format.low_bits == 0) return;
  if (!low_needed) return writer.put(uint8_t{kLowZero});
  // Noise does not shrink: a sample decides.
  const size_t sample = std::min<size_t>(low.size(), 4096);
  const bool shrinks = compress(std::span(low).first(sample), 1).bytes.size() < sample * 97 / 100;
  const Compressed packed = shrinks ? compress(low) : Compressed{};
  if (packed.codec == Codec::none) {
    writer.put(uint8_t{kLowRaw});
    writer.bytes(low);
  } else {
    writer.put(static_cast<uint8_t>(static_cast<uint8_t>(packed.codec) + kLowRaw));
    writer.bytes(packed.bytes);
  }
}

}  // namespace hologram::holotensor::refine
