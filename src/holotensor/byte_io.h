// Little-endian reading and writing of small structures. Reading past the end never happens: it
// marks the reader as failed and gives zeros.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace hologram::holotensor {

static_assert(std::endian::native == std::endian::little, "files are read as they lie");

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

class ByteWriter {
 public:
  explicit ByteWriter(std::vector<std::byte>& out) : out_(out) {}
  template <typename T>
  void put(T value) {
    const size_t at = out_.size();
    out_.resize(at + sizeof value);
    std::memcpy(out_.data() + at, &value, sizeof value);
  }
  void bytes(std::span<const std::byte> more) { out_.insert(out_.end(), more.begin(), more.end()); }
  void bytes(std::string_view text) { bytes(std::as_bytes(std::span(text))); }
  // Seven bits a byte, lowest first; the high bit says that more follow.
  void varint(uint64_t value) {
    while (value >= 0x80) {
      put(static_cast<uint8_t>(value | 0x80));
      value >>= 7;
    }
    put(static_cast<uint8_t>(value));
  }
  size_t size() const { return out_.size(); }

 private:
  std::vector<std::byte>& out_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <typename T>
  T get() {
    if (rest_.size() < sizeof(T)) return fail<T>();
    const T value = load<T>(rest_.data());
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }
  std::span<const std::byte> bytes(uint64_t count) {
    if (rest_.size() < count) return fail<std::span<const std::byte>>();
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const uint8_t next = get<uint8_t>();
      value |= static_cast<uint64_t>(next & 0x7f) << shift;
      if (next < 0x80) return value;
    }
    return fail<uint64_t>();
  }
  bool ok() const { return ok_; }
  // Everything was there, and nothing is left over.
  bool done() const { return ok_ && rest_.empty(); }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  template <typename T>
  T fail() {
    ok_ = false;
    rest_ = {};
    return T{};
  }
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace hologram::holotensor
