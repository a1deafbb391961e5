#include "isa/lexer.h"

#include <fmt/format.h>

namespace hologram::isa {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

}  // namespace

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::reg:
      return fmt::format("%{}", token.text);
    case TokenKind::newline:
      return "the end of the line";
    case TokenKind::end:
      return "the end of the text";
    case TokenKind::unknown: {
      const auto byte = static_cast<unsigned char>(token.text[0]);
      if (byte < 0x20 || byte >= 0x7f) return fmt::format("the byte {:#04x}", byte);
      [[fallthrough]];
    }
    default:
      return fmt::format("'{}'", token.text);
  }
}

Token Lexer::take(TokenKind kind, size_t length) {
  Token token{kind, text_.substr(position_, length), line_,
              static_cast<uint32_t>(position_ - line_start_ + 1)};
  position_ += length;
  return token;
}

// A sign, then letters, digits and dots; a sign again after the e of a decimal exponent.
size_t Lexer::number_length() const {
  size_t end = position_ + (at(position_) == '-' || at(position_) == '+');
  const bool hexadecimal = at(end) == '0' && (at(end + 1) == 'x' || at(end + 1) == 'X');
  while (is_name(at(end)) || at(end) == '.') {
    const bool exponent = !hexadecimal && (at(end) == 'e' || at(end) == 'E');
    ++end;
    if (exponent && (at(end) == '-' || at(end) == '+') && is_digit(at(end + 1))) ++end;
  }
  return end - position_;
}

Token Lexer::next() {
  while (at(position_) == ' ' || at(position_) == '\t' || at(position_) == '\r') ++position_;
  if (at(position_) == ';' || at(position_) == '#')
    while (position_ < text_.size() && text_[position_] != '\n') ++position_;
  if (position_ >= text_.size()) return take(TokenKind::end, 0);
  const char c = text_[position_];
  if (c == '\n') {
    const Token token = take(TokenKind::newline, 1);
    ++line_;
    line_start_ = position_;
    return token;
  }
  if (c == '%' && is_name(at(position_ + 1))) {
    size_t length = 1;
    while (is_name(at(position_ + length))) ++length;
    Token token = take(TokenKind::reg, length);
    token.text.remove_prefix(1);
    return token;
  }
  if (is_digit(c) || c == '-' || c == '+') {
    const size_t length = number_length();
    return take(length == 1 && !is_digit(c) ? TokenKind::unknown : TokenKind::number, length);
  }
  if (is_name(c)) {
    size_t length = 1;
    while (is_name(at(position_ + length)) || at(position_ + length) == '.') ++length;
    return take(TokenKind::word, length);
  }
  const bool known = std::string_view("()[]:,=").find(c) != std::string_view::npos;
  return take(known ? TokenKind::punctuation : TokenKind::unknown, 1);
}

}  // namespace hologram::isa
