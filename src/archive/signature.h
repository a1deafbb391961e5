// Ed25519 signatures (libsodium): who vouches for native code.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "support/result.h"

namespace hologram::archive {

struct PublicKey {
  std::array<std::byte, 32> bytes{};

  // "ed25519:" and 64 hexadecimal digits.
  std::string to_text() const;
  static Result<PublicKey> parse(std::string_view text);
  bool operator==(const PublicKey&) const = default;
};

using Signature = std::array<std::byte, 64>;

// A secret and what belongs to it. The secret is wiped from memory with the pair.
class KeyPair {
 public:
  // A new one, from the system's random numbers; resource_exhausted where it has none.
  static Result<KeyPair> generate();
  // "ed25519-secret:" and 64 hexadecimal digits: the seed, from which the pair follows.
  static Result<KeyPair> parse_secret(std::string_view text);
  std::string secret_text() const;

  const PublicKey& public_key() const { return public_; }
  // `context` keeps signatures for one purpose from being taken for another's.
  Signature sign(std::string_view context, std::span<const std::byte> bytes) const;

  KeyPair(const KeyPair&) = default;
  KeyPair& operator=(const KeyPair&) = default;
  ~KeyPair();

 private:
  KeyPair() = default;
  PublicKey public_;
  std::array<std::byte, 64> secret_{};
};

bool verify(const PublicKey& key, std::string_view context, std::span<const std::byte> bytes,
            const Signature& signature);

// BLAKE2b-256: what stands for bytes where someone may have chosen them.
std::array<std::byte, 32> secure_hash(std::span<const std::byte> bytes);

}  // namespace hologram::archive
