// StreamHash: hash64() of bytes that come in pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace hologram::holotensor {

class StreamHash {
 public:
  StreamHash();
  ~StreamHash();
  void add(std::span<const std::byte> bytes);
  uint64_t digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hologram::holotensor
