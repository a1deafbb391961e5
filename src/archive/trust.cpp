#include "archive/trust.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "support/file.h"
#include "support/log.h"

namespace hologram::archive {
namespace {

namespace fs = std::filesystem;

fs::path user_folder() {
  const char* xdg = std::getenv("XDG_CONFIG_HOME");
  if (xdg && *xdg) return fs::path(xdg) / "hologram";
  const char* home = std::getenv("HOME");
  return home && *home ? fs::path(home) / ".config" / "hologram" : fs::path();
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Nobody but the user can ever read it: it is made with these rights, not given them later.
Status write_secret(const fs::path& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0)
    return fail(errno == EEXIST ? ErrorCode::already_exists : ErrorCode::io_error,
                "cannot write {}: {}", path.string(), std::strerror(errno));
  const bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (::close(file) == 0 && written) return {};
  ::unlink(path.c_str());
  return fail(ErrorCode::io_error, "cannot write {}", path.string());
}

}  // namespace

bool TrustedKeys::has(const PublicKey& key) const {
  return std::ranges::find(keys_, key) != keys_.end();
}

TrustedKeys TrustedKeys::of_user() {
  TrustedKeys keys;
  const KeyStore store;
  if (store.folder().empty()) return keys;
  if (is_there(store.key_file())) {
    if (const auto own = store.key())
      keys.add(own->public_key());
    else
      log::warn("{}", own.error().to_string());
  }
  if (const auto others = store.trusted())
    for (const TrustedKey& other : *others) keys.add(other.key);
  else
    log::warn("{}", others.error().to_string());
  return keys;
}

KeyStore::KeyStore(fs::path folder) : folder_(folder.empty() ? user_folder() : std::move(folder)) {}

Result<KeyPair> KeyStore::key() const {
  struct stat status;
  if (folder_.empty() || ::stat(key_file().c_str(), &status) != 0)
    return fail(ErrorCode::not_found, "there is no key in {}; 'hologram key' makes one",
                folder_.string());
  if ((status.st_mode & 077) != 0)
    return fail(ErrorCode::permission_denied,
                "{} can be read by others: make it the user's alone (chmod 600), or remove it and "
                "let 'hologram key' make another",
                key_file().string());
  HOLOGRAM_TRY(const std::string text, read_text_file(key_file()));
  return in_context(KeyPair::parse_secret(trimmed(text)), [&] { return key_file().string(); });
}

Result<KeyPair> KeyStore::create_key() const {
  if (folder_.empty())
    return fail(ErrorCode::not_found, "neither XDG_CONFIG_HOME nor HOME names a folder for keys");
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error)
    return fail(ErrorCode::io_error, "cannot make {}: {}", folder_.string(), error.message());
  HOLOGRAM_TRY(KeyPair pair, KeyPair::generate());
  HOLOGRAM_CHECK(write_secret(key_file(), pair.secret_text() + "\n"));
  return pair;
}

Result<std::vector<TrustedKey>> KeyStore::trusted() const {
  std::vector<TrustedKey> keys;
  if (folder_.empty() || !is_there(trust_file())) return keys;
  HOLOGRAM_TRY(const std::string text, read_text_file(trust_file()));
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = trimmed(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const size_t space = std::min(line.find_first_of(" \t"), line.size());
    auto key = PublicKey::parse(line.substr(0, space));
    if (!key)
      return fail(std::move(key).error(), fmt::format("{}:{}", trust_file().string(), number));
    keys.push_back({*key, std::string(trimmed(line.substr(space)))});
  }
  return keys;
}

Status KeyStore::write_trusted(const std::vector<TrustedKey>& keys) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error)
    return fail(ErrorCode::io_error, "cannot make {}: {}", folder_.string(), error.message());
  std::string text = "# Whose native code runs on this machine: see 'hologram trust --help'.\n";
  for (const TrustedKey& t : keys)
    text += t.key.to_text() + (t.comment.empty() ? "" : " " + t.comment) + "\n";
  return write_file(trust_file(), text);
}

Result<bool> KeyStore::trust(const PublicKey& key, std::string_view comment) const {
  HOLOGRAM_TRY(std::vector<TrustedKey> keys, trusted());
  for (const TrustedKey& t : keys)
    if (t.key == key) return false;
  std::string line(comment);
  std::ranges::replace(line, '\n', ' ');
  keys.push_back({key, std::move(line)});
  HOLOGRAM_CHECK(write_trusted(keys));
  return true;
}

Status KeyStore::remove(const PublicKey& key) const {
  HOLOGRAM_TRY(std::vector<TrustedKey> keys, trusted());
  if (std::erase_if(keys, [&](const TrustedKey& t) { return t.key == key; }) == 0)
    return fail(ErrorCode::not_found, "{} is not in {}", key.to_text(), trust_file().string());
  return write_trusted(keys);
}

}  // namespace hologram::archive
