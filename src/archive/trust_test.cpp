#include "archive/trust.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/file.h"

namespace hologram::archive {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Trust : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("hologram-trust-" + std::to_string(getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST_F(Trust, SignaturesHoldForTheirBytesKeyAndContextOnly) {
  const KeyPair key = *KeyPair::generate(), other = *KeyPair::generate();
  const Signature signature = key.sign("context", bytes("hello"));
  EXPECT_TRUE(verify(key.public_key(), "context", bytes("hello"), signature));
  EXPECT_FALSE(verify(key.public_key(), "context", bytes("hellO"), signature));
  EXPECT_FALSE(verify(key.public_key(), "contexth", bytes("ello"), signature));
  EXPECT_FALSE(verify(other.public_key(), "context", bytes("hello"), signature));
  for (size_t i = 0; i < signature.size(); ++i) {
    Signature bad = signature;
    bad[i] ^= std::byte{1};
    EXPECT_FALSE(verify(key.public_key(), "context", bytes("hello"), bad)) << i;
  }
}

TEST_F(Trust, KeysGoThroughText) {
  const KeyPair key = *KeyPair::generate();
  EXPECT_EQ(*PublicKey::parse(key.public_key().to_text()), key.public_key());
  const auto again = KeyPair::parse_secret(key.secret_text());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->public_key(), key.public_key());
  EXPECT_EQ(again->sign("c", bytes("x")), key.sign("c", bytes("x")));
  for (const char* text : {"", "ed25519:", "ed25519:12", "rsa:00"}) {
    EXPECT_FALSE(PublicKey::parse(text)) << text;
    EXPECT_FALSE(KeyPair::parse_secret(text)) << text;
  }
  EXPECT_FALSE(PublicKey::parse(key.public_key().to_text() + "0"));
  EXPECT_FALSE(PublicKey::parse("ed25519:" + std::string(63, '0') + "g"));
}

TEST_F(Trust, TheSecretIsTheUsersAlone) {
  const KeyStore store(folder_);
  EXPECT_EQ(store.key().error().code(), ErrorCode::not_found);
  const auto made = store.create_key();
  ASSERT_TRUE(made) << made.error().to_string();
  struct stat status;
  ASSERT_EQ(::stat(store.key_file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(store.key()->public_key(), made->public_key());
  EXPECT_EQ(store.create_key().error().code(), ErrorCode::already_exists);
  ::chmod(store.key_file().c_str(), 0644);
  const auto open = store.key();
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().code(), ErrorCode::permission_denied);
  EXPECT_THAT(open.error().to_string(), HasSubstr("chmod 600"));
}

TEST_F(Trust, KeysAreAddedOnceAndRemoved) {
  const KeyStore store(folder_);
  const PublicKey a = KeyPair::generate()->public_key(), b = KeyPair::generate()->public_key();
  EXPECT_TRUE(store.trusted()->empty());
  EXPECT_TRUE(*store.trust(a, "the build server\nand more"));
  EXPECT_TRUE(*store.trust(b, ""));
  EXPECT_FALSE(*store.trust(a, ""));
  ASSERT_EQ(store.trusted()->size(), 2u);
  EXPECT_EQ(store.trusted()->at(0).comment, "the build server and more");
  EXPECT_TRUE(store.remove(a));
  EXPECT_EQ(store.remove(a).error().code(), ErrorCode::not_found);
  ASSERT_EQ(store.trusted()->size(), 1u);
  EXPECT_EQ(store.trusted()->at(0).key, b);
}

TEST_F(Trust, ADamagedListTrustsNobody) {
  const KeyStore store(folder_);
  ASSERT_TRUE(*store.trust(KeyPair::generate()->public_key(), ""));
  ASSERT_TRUE(write_file(store.trust_file(), std::string_view("# fine\ned25519:zz\n")));
  const auto keys = store.trusted();
  ASSERT_FALSE(keys);
  EXPECT_THAT(keys.error().to_string(), HasSubstr("trusted_keys:2"));
  const std::string before = std::getenv("XDG_CONFIG_HOME") ? std::getenv("XDG_CONFIG_HOME") : "";
  fs::create_directories(folder_ / "hologram");
  fs::copy_file(store.trust_file(), folder_ / "hologram" / "trusted_keys");
  ::setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
  EXPECT_FALSE(TrustedKeys::of_user().has(PublicKey{}));
  if (before.empty())
    ::unsetenv("XDG_CONFIG_HOME");
  else
    ::setenv("XDG_CONFIG_HOME", before.c_str(), 1);
}

TEST_F(Trust, OnesOwnKeyIsTrusted) {
  ::setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
  const auto own = KeyStore().create_key();
  ASSERT_TRUE(own) << own.error().to_string();
  const PublicKey other = KeyPair::generate()->public_key();
  EXPECT_TRUE(TrustedKeys::of_user().has(own->public_key()));
  EXPECT_FALSE(TrustedKeys::of_user().has(other));
  ASSERT_TRUE(KeyStore().trust(other, "a friend"));
  EXPECT_TRUE(TrustedKeys::of_user().has(other));
  ::unsetenv("XDG_CONFIG_HOME");
}

}  // namespace
}  // namespace hologram::archive
