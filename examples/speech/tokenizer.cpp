#include "tokenizer.h"

#include <charconv>
#include <string_view>

#include "support/file.h"

namespace speech {
namespace {

std::string from_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) break;  // the padding
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if ((held += 6) >= 8) bytes.push_back(static_cast<char>(bits >> (held -= 8)));
  }
  return bytes;
}

// "<0x0A>" is a byte.
bool is_byte(std::string_view word, char& byte) {
  int value = 0;
  if (word.size() != 6 || !word.starts_with("<0x") || word.back() != '>') return false;
  std::from_chars(word.data() + 3, word.data() + 5, value, 16);
  byte = static_cast<char>(value);
  return true;
}

}  // namespace

hologram::Result<Tokenizer> Tokenizer::open(const std::filesystem::path& path) {
  HOLOGRAM_TRY(const hologram::FileMap file, hologram::FileMap::open(path));
  const std::string_view source(reinterpret_cast<const char*>(file.bytes().data()), file.size());
  constexpr std::string_view kBegin = "llama_vocab_base64 = \"";
  const size_t begin = source.find(kBegin);
  if (begin == std::string_view::npos)
    return hologram::fail(hologram::ErrorCode::corrupt, "'{}' holds no vocabulary", path.string());
  const std::string_view rest = source.substr(begin + kBegin.size());
  const std::string lines = from_base64(rest.substr(0, rest.find('"')));
  Tokenizer tokenizer;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    tokenizer.words_.push_back(lines.substr(at, end - at));
    at = end + 1;
  }
  return tokenizer;
}

std::string Tokenizer::decode(std::span<const int64_t> tokens) const {
  constexpr int64_t kSpecial = 3;  // unknown, begin, end
  constexpr std::string_view kSpace = "\u2581";
  std::string text;
  for (const int64_t token : tokens) {
    if (token < kSpecial || static_cast<size_t>(token) >= words_.size()) continue;
    const std::string& word = words_[static_cast<size_t>(token)];
    if (char byte; is_byte(word, byte)) {
      text.push_back(byte);
      continue;
    }
    for (size_t at = 0; at < word.size();) {
      if (std::string_view(word).substr(at).starts_with(kSpace)) {
        text.push_back(' ');
        at += kSpace.size();
      } else {
        text.push_back(word[at++]);
      }
    }
  }
  return text.starts_with(' ') ? text.substr(1) : text;
}

}  // namespace speech
