// Lexer: the text form cut into tokens. A token borrows from the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hologram::isa {

enum class TokenKind : uint8_t {
  word,         // kernel, add.f32, x, inf
  reg,          // %name, without the %
  number,       // 1, -2.5e-3, 0x7f, -inf
  punctuation,  // one of ( ) [ ] : , =
  newline,
  end,
  unknown,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  uint32_t line = 1;
  uint32_t column = 1;  // in bytes, from 1

  bool is(std::string_view what) const {
    return (kind == TokenKind::word || kind == TokenKind::punctuation) && text == what;
  }
};

// "'add'", "%x", "the end of the line": for "expected ..., found ...".
std::string describe(const Token& token);

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  // A comment runs from ';' or '#' to the end of its line.
  Token next();

 private:
  char at(size_t offset) const { return offset < text_.size() ? text_[offset] : '\0'; }
  Token take(TokenKind kind, size_t length);
  size_t number_length() const;

  std::string_view text_;
  size_t position_ = 0;
  uint32_t line_ = 1;
  size_t line_start_ = 0;
};

}  // namespace hologram::isa
