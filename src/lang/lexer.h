// Lexer: Python's tokens, with INDENT and DEDENT.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lang/diagnostic.h"

namespace hologram::lang {

enum class TokenKind {
  name,     // identifiers and keywords: a keyword is a name the parser knows
  integer,  // text without underscores, with its 0x, 0o or 0b
  floating,
  string,   // text is what stands between the quotes, uninterpreted
  op,       // operators and delimiters
  newline,  // the end of a logical line
  indent,
  dedent,
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;
  Position at;
  std::string prefix = {};  // strings: r, b, f, ... in lower case

  bool is(std::string_view op_or_name) const {
    return (kind == TokenKind::op || kind == TokenKind::name) && text == op_or_name;
  }
};

// Never fails: what cannot be a token is reported and skipped. Always ends with newline, the open
// dedents and `end`.
std::vector<Token> tokenize(std::string_view source, Diagnostics& diagnostics);

}  // namespace hologram::lang
