#include "archive/signature.h"

#include <sodium.h>

#include <algorithm>

namespace hologram::archive {
namespace {

constexpr std::string_view kPublicPrefix = "ed25519:", kSecretPrefix = "ed25519-secret:";
using Seed = std::array<std::byte, crypto_sign_SEEDBYTES>;
static_assert(crypto_sign_PUBLICKEYBYTES == 32 && crypto_sign_SECRETKEYBYTES == 64 &&
              crypto_sign_BYTES == 64);

// libsodium chooses its code once; it fails only where the system has no random numbers, and only
// generate() needs those.
bool initialise() {
  static const bool ready = sodium_init() >= 0;
  return ready;
}

unsigned char* raw(std::byte* p) { return reinterpret_cast<unsigned char*>(p); }
const unsigned char* raw(const std::byte* p) { return reinterpret_cast<const unsigned char*>(p); }

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text(bytes.size() * 2 + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), raw(bytes.data()), bytes.size());
  text.pop_back();
  return text;
}

bool from_hex(std::string_view text, std::span<std::byte> bytes) {
  size_t length = 0;
  const char* end = nullptr;
  return text.size() == bytes.size() * 2 &&
         sodium_hex2bin(raw(bytes.data()), bytes.size(), text.data(), text.size(), nullptr, &length,
                        &end) == 0 &&
         length == bytes.size() && end == text.data() + text.size();
}

// Ed25519ph: hashes in parts, so that nothing is copied to put the context before it.
crypto_sign_state hashed(std::string_view context, std::span<const std::byte> bytes) {
  initialise();
  crypto_sign_state state;
  crypto_sign_init(&state);
  const auto length = static_cast<unsigned char>(context.size());
  crypto_sign_update(&state, &length, 1);
  crypto_sign_update(&state, reinterpret_cast<const unsigned char*>(context.data()), length);
  crypto_sign_update(&state, raw(bytes.data()), bytes.size());
  return state;
}

}  // namespace

std::string PublicKey::to_text() const { return std::string(kPublicPrefix) + to_hex(bytes); }

Result<PublicKey> PublicKey::parse(std::string_view text) {
  PublicKey key;
  if (!text.starts_with(kPublicPrefix) || !from_hex(text.substr(kPublicPrefix.size()), key.bytes))
    return fail(ErrorCode::invalid_argument,
                "'{}' is no public key; one is 'ed25519:' and 64 hexadecimal digits", text);
  return key;
}

Result<KeyPair> KeyPair::generate() {
  if (!initialise())
    return fail(ErrorCode::resource_exhausted, "the system gives no random numbers for a key");
  KeyPair pair;
  crypto_sign_keypair(raw(pair.public_.bytes.data()), raw(pair.secret_.data()));
  return pair;
}

Result<KeyPair> KeyPair::parse_secret(std::string_view text) {
  initialise();
  Seed seed;
  if (!text.starts_with(kSecretPrefix) || !from_hex(text.substr(kSecretPrefix.size()), seed))
    return fail(ErrorCode::corrupt, "the file holds no secret key");  // never shows what it holds
  KeyPair pair;
  crypto_sign_seed_keypair(raw(pair.public_.bytes.data()), raw(pair.secret_.data()),
                           raw(seed.data()));
  sodium_memzero(seed.data(), seed.size());
  return pair;
}

std::string KeyPair::secret_text() const {
  Seed seed;
  crypto_sign_ed25519_sk_to_seed(raw(seed.data()), raw(secret_.data()));
  std::string text = std::string(kSecretPrefix) + to_hex(seed);
  sodium_memzero(seed.data(), seed.size());
  return text;
}

KeyPair::~KeyPair() { sodium_memzero(secret_.data(), secret_.size()); }

Signature KeyPair::sign(std::string_view context, std::span<const std::byte> bytes) const {
  crypto_sign_state state = hashed(context, bytes);
  Signature signature;
  crypto_sign_final_create(&state, raw(signature.data()), nullptr, raw(secret_.data()));
  return signature;
}

bool verify(const PublicKey& key, std::string_view context, std::span<const std::byte> bytes,
            const Signature& signature) {
  crypto_sign_state state = hashed(context, bytes);
  return crypto_sign_final_verify(&state, raw(signature.data()), raw(key.bytes.data())) == 0;
}

std::array<std::byte, 32> secure_hash(std::span<const std::byte> bytes) {
  initialise();
  std::array<std::byte, 32> hash;
  crypto_generichash(raw(hash.data()), hash.size(), raw(bytes.data()), bytes.size(), nullptr, 0);
  return hash;
}

}  // namespace hologram::archive
