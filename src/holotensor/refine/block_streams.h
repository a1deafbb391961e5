// The streams of a chunk: collected while encoding, handed out while decoding.
#pragma once

#include <vector>

#include "holotensor/byte_io.h"
#include "holotensor/refine/block.h"

namespace hologram::holotensor::refine {

// Levels go to `head`; streams to a coded or a raw section in the order they were added.
class Block::StreamWriter {
 public:
  // `bits` has room for all streams of one chunk; `buffers` are kept from one to the next.
  StreamWriter(std::vector<uint64_t>& bits, EncodeBuffers& buffers)
      : next_(bits.data()), buffers_(buffers) {}

  ByteWriter head() { return ByteWriter(head_); }

  // A sink for at most `words` words.
  BitSink sink(size_t words) {
    BitSink made{.out = next_};
    next_ += words + 1;
    return made;
  }

  // `begin` is where the sink began. Writes the level and keeps the stream.
  void add(uint64_t* begin, BitSink& sink, uint8_t level) {
    sink.finish();
    head().put(level);
    auto bytes = std::as_bytes(std::span(begin, (sink.bits + 63) / 64));
    if (is_coded(level)) coded_.push_back({bytes, level});
    if (level == kRaw) raw_.push_back(bytes.first((sink.bits + 7) / 8));
  }

  void finish(std::vector<std::byte>& out) {
    buffers_.section.clear();
    encode_section(coded_, buffers_.words, buffers_.section);
    ByteWriter writer(out);
    writer.varint(buffers_.section.size());
    writer.bytes(head_);
    writer.bytes(buffers_.section);
    for (const auto raw : raw_) writer.bytes(raw);
  }

 private:
  uint64_t* next_;
  EncodeBuffers& buffers_;
  std::vector<std::byte> head_;
  std::vector<CodedStream> coded_;
  std::vector<std::span<const std::byte>> raw_;
};

// The levels of a chunk stand before its streams, so a chunk is read in two steps: levels, then
// streams.
class Block::StreamReader {
 public:
  StreamReader(std::span<const std::byte> chunk, std::vector<uint64_t>& scratch)
      : head_(chunk), section_({}), scratch_(scratch) {
    section_size_ = head_.varint();
  }

  ByteReader& head() { return head_; }

  // All levels have been read.
  Status open_streams() {
    const auto section = head_.bytes(section_size_);
    if (!head_.ok()) return fail(ErrorCode::corrupt, "a chunk that ends inside its streams");
    section_ = SectionDecoder(section);
    raw_ = head_.rest();
    return {};
  }

  // A tap on the next stream of `bits` bits. Buffers are reused after reset_buffers().
  Result<BitTap> tap(uint8_t level, uint64_t bits) {
    const size_t padded = padded_bytes(bits);
    if (level == kRaw) {
      const size_t size = (bits + 7) / 8;
      if (raw_.size() < size) return fail(ErrorCode::corrupt, "a chunk that ends inside a stream");
      const auto bytes = raw_.first(size);
      raw_ = raw_.subspan(size);
      // Taps read up to 16 bytes past the end: only the chunk's last bytes need a copy.
      if (raw_.size() >= 16) return BitTap{bytes.data()};
      std::byte* buffer = take(padded);
      if (size > 0) std::memcpy(buffer, bytes.data(), size);
      return BitTap{buffer};
    }
    std::byte* buffer = take(padded);
    if (is_coded(level))
      section_.decode(level, {buffer, padded});
    else
      std::memset(buffer, level == kAllOnes ? 0xff : 0, padded);
    return BitTap{buffer};
  }

  void reset_buffers() { used_ = 0; }

  Status finish() const {
    if (!raw_.empty() || !section_.finished())
      return fail(ErrorCode::corrupt, "a chunk whose streams do not fit its planes");
    return {};
  }

 private:
  std::byte* take(size_t padded) {
    auto* buffer = reinterpret_cast<std::byte*>(scratch_.data() + used_);
    used_ += padded / 8 + 2;
    return buffer;
  }

  ByteReader head_;
  uint64_t section_size_ = 0;
  SectionDecoder section_;
  std::span<const std::byte> raw_;
  std::vector<uint64_t>& scratch_;
  size_t used_ = 0;
};

}  // namespace hologram::holotensor::refine
