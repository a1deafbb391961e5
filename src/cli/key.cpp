// `hologram key` and `hologram trust`: who signs native code, and whose runs here.
#include <memory>

#include "archive/archive.h"
#include "archive/code_section.h"
#include "archive/trust.h"
#include "cli/command.h"

namespace hologram::cli {
namespace {

using archive::KeyStore;
using archive::PublicKey;

Status show_key() {
  const KeyStore store;
  auto key = store.key();
  if (!key && key.error().code() == ErrorCode::not_found) {
    key = store.create_key();
    if (key) fmt::print(stderr, "a new key, in {}\n", store.key_file().string());
  }
  HOLOGRAM_CHECK(key);
  fmt::print("{}\n", key->public_key().to_text());
  return {};
}

struct TrustArguments {
  std::string key, comment;
  bool list = false, remove = false;
};

// A key as text, or the one that signed an archive.
Result<PublicKey> key_of(const std::string& text) {
  if (text.starts_with("ed25519:")) return PublicKey::parse(text);
  HOLOGRAM_TRY(const archive::Archive archive, archive::Archive::open(text));
  for (const auto section : archive.code()) {
    HOLOGRAM_TRY(const auto code,
                 in_context(archive::CodeSection::open(section), [&] { return text; }));
    if (!code.is_genuine())
      return fail(ErrorCode::permission_denied, "{}: the signature of its native code is forged",
                  text);
    return code.signer();
  }
  return fail(ErrorCode::not_found, "{}: the archive has no native code that someone signed", text);
}

Status list_trusted(const KeyStore& store) {
  if (const auto own = store.key())
    fmt::print("{}  your own key\n", own->public_key().to_text());
  else if (own.error().code() != ErrorCode::not_found)
    return std::unexpected(own.error());
  HOLOGRAM_TRY(const auto keys, store.trusted());
  for (const archive::TrustedKey& k : keys) fmt::print("{}  {}\n", k.key.to_text(), k.comment);
  return {};
}

Status trust(const TrustArguments& arguments) {
  const KeyStore store;
  if (arguments.key.empty()) return list_trusted(store);
  HOLOGRAM_TRY(const PublicKey key, key_of(arguments.key));
  if (arguments.remove) {
    HOLOGRAM_CHECK(store.remove(key));
    fmt::print("{} is no longer trusted\n", key.to_text());
    return {};
  }
  const std::string comment = arguments.comment.empty() && !arguments.key.starts_with("ed25519:")
                                  ? "from " + arguments.key
                                  : arguments.comment;
  HOLOGRAM_TRY(const bool fresh, store.trust(key, comment));
  fmt::print("{} is {}trusted: native code that it signed will run on this machine\n",
             key.to_text(), fresh ? "" : "already ");
  return arguments.list ? list_trusted(store) : Status();
}

}  // namespace

void add_key(Commands& commands) {
  commands.add("key", "Show your public key; makes a key pair where there is none",
               "  hologram key\n  hologram key > alice.pub      # for others to trust", show_key);
}

void add_trust(Commands& commands) {
  auto arguments = std::make_shared<TrustArguments>();
  CLI::App* command =
      commands.add("trust", "Choose whose native code may run here; without a key, show whose does",
                   "  hologram trust ed25519:3f0c...  --comment \"build server\"\n"
                   "  hologram trust model.holo      # whoever signed this archive\n"
                   "  hologram trust --remove ed25519:3f0c...",
                   [arguments] { return trust(*arguments); });
  command->add_option("key", arguments->key, "A public key, or an archive that its owner signed");
  command->add_option("--comment", arguments->comment, "Whose key it is, for you to remember");
  command->add_flag("--list", arguments->list, "Show every key that is trusted");
  command->add_flag("--remove", arguments->remove, "Stop trusting the key");
}

}  // namespace hologram::cli
