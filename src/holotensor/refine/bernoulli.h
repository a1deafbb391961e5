// Bernoulli coding: bits that are one with a fixed probability, eight to a symbol, by interleaved
// rANS.
//
// A table is fixed by one byte (the level of the probability), so that a stream carries no table,
// and a step decodes eight bits. Eight 31-bit states with 16-bit renormalisation; 12-bit
// frequencies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hologram::holotensor::refine {

// Levels of P(bit = 1), even steps of its logit; and the ways of storing that need no coder.
inline constexpr unsigned kLevels = 63;
inline constexpr uint8_t kAllZeros = 253;
inline constexpr uint8_t kAllOnes = 254;
inline constexpr uint8_t kRaw = 255;
inline bool is_coded(uint8_t level) { return level < kLevels; }
inline bool is_level(uint8_t level) { return level < kLevels || level >= kAllZeros; }

// The best level for `ones` of `bits`, and the bits it costs.
struct LevelChoice {
  uint8_t level = kRaw;
  double cost = 0;
};
LevelChoice choose_level(uint64_t ones, uint64_t bits);

inline constexpr unsigned kLanes = 8;
// Streams are whole multiples of the lanes: bytes of `bits` bits, padded.
inline size_t padded_bytes(uint64_t bits) { return (bits + 63) / 64 * 8; }

// What goes into one section, in the order it is read back.
struct CodedStream {
  std::span<const std::byte> bytes;  // size is a multiple of kLanes
  uint8_t level = 0;                 // is_coded()
};
// Appends the section to `out`; nothing for no streams. `scratch` is kept between calls.
void encode_section(std::span<const CodedStream> streams, std::vector<uint16_t>& scratch,
                    std::vector<std::byte>& out);

// Reads a section's streams in order. Never reads outside `section`; what a damaged section gives
// is noise, which finished() reports.
class SectionDecoder {
 public:
  explicit SectionDecoder(std::span<const std::byte> section);
  // out.size() is a multiple of kLanes.
  void decode(uint8_t level, std::span<std::byte> out);
  // Everything was consumed and the states are back where the encoder began.
  bool finished() const;

 private:
  uint32_t state_[kLanes] = {};
  const std::byte* next_ = nullptr;
  const std::byte* end_ = nullptr;
  bool empty_ = true;
  bool overrun_ = false;
};

}  // namespace hologram::holotensor::refine
