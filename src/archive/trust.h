// Trust: the user's own key, and whose native code may run here.
//
// All of it lies in one folder ($XDG_CONFIG_HOME/hologram, otherwise ~/.config/hologram):
//   signing.key    the user's secret key, readable by the user alone (0600)
//   trusted_keys   a public key and a comment a line; '#' begins a line that is only for people
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "archive/signature.h"

namespace hologram::archive {

struct TrustedKey {
  PublicKey key;
  std::string comment;
};

// Public keys whose signatures count. A plain value.
class TrustedKeys {
 public:
  TrustedKeys() = default;
  explicit TrustedKeys(std::vector<PublicKey> keys) : keys_(std::move(keys)) {}
  // The user's own key and those in trusted_keys. What cannot be read is logged and trusts nobody.
  static TrustedKeys of_user();

  bool has(const PublicKey& key) const;
  void add(const PublicKey& key) { keys_.push_back(key); }

 private:
  std::vector<PublicKey> keys_;
};

// One folder of keys; empty: the user's.
class KeyStore {
 public:
  explicit KeyStore(std::filesystem::path folder = {});

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path key_file() const { return folder_ / "signing.key"; }
  std::filesystem::path trust_file() const { return folder_ / "trusted_keys"; }

  // not_found where there is none; permission_denied where others could read it.
  Result<KeyPair> key() const;
  // already_exists where there is one.
  Result<KeyPair> create_key() const;

  Result<std::vector<TrustedKey>> trusted() const;
  // False where it was trusted already.
  Result<bool> trust(const PublicKey& key, std::string_view comment) const;
  // not_found where it is not in the file.
  Status remove(const PublicKey& key) const;

 private:
  Status write_trusted(const std::vector<TrustedKey>& keys) const;
  std::filesystem::path folder_;
};

}  // namespace hologram::archive
