#include "lang/lexer.h"

#include <array>

namespace hologram::lang {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_name_start(c) || is_digit(c); }

// Longest first, so that the first match is the right one.
constexpr std::array<std::string_view, 47> kOperators = {
    "**=", "//=", "<<=", ">>=", "...", "**", "//", "<<", ">>", "<=", ">=", "==",
    "!=",  "->",  "+=",  "-=",  "*=",  "/=", "%=", "&=", "|=", "^=", "@=", ":=",
    "+",   "-",   "*",   "/",   "%",   "@",  "&",  "|",  "^",  "~",  "<",  ">",
    "(",   ")",   "[",   "]",   "{",   "}",  ",",  ":",  ".",  ";",  "="};

class Lexer {
 public:
  Lexer(std::string_view source, Diagnostics& diagnostics)
      : source_(source), diagnostics_(diagnostics) {}

  std::vector<Token> run() {
    if (source_.starts_with("\xef\xbb\xbf")) position_ = line_start_ = 3;
    while (position_ < source_.size()) {
      if (at_line_start_ && depth_ == 0 && !read_indentation()) continue;
      read_token();
    }
    if (!tokens_.empty() && tokens_.back().kind != TokenKind::newline) push(TokenKind::newline, "");
    for (; indents_.size() > 1; indents_.pop_back()) push(TokenKind::dedent, "");
    push(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const {
    return position_ + ahead < source_.size() ? source_[position_ + ahead] : '\0';
  }
  Position here() const { return place(position_); }
  Position place(size_t offset) const {
    return {line_, static_cast<uint32_t>(offset - line_start_ + 1)};
  }
  void push(TokenKind kind, std::string text) {
    tokens_.push_back({kind, std::move(text), here()});
  }
  void next_line() {
    ++line_;
    line_start_ = position_;
  }

  // The white space that opens a line. False: the line is blank and has been skipped.
  bool read_indentation() {
    // As Python does: by tabs of eight columns and of one, which must say the same.
    uint32_t width = 0, narrow = 0;
    bool tab = false, space = false;
    for (;; ++position_) {
      if (peek() == ' ') {
        ++width;
        ++narrow;
        space = true;
      } else if (peek() == '\t') {
        width = (width / 8 + 1) * 8;
        ++narrow;
        tab = true;
      } else {
        break;
      }
    }
    if (peek() == '\r' && peek(1) == '\n') ++position_;
    if (peek() == '#') skip_comment();
    if (position_ >= source_.size()) return false;
    if (peek() == '\n') {
      ++position_;
      next_line();
      return false;
    }
    at_line_start_ = false;
    if (tab && space)
      diagnostics_.add(here(), "the indentation mixes tabs and spaces", "use four spaces a level");
    if (width > indents_.back()) {
      if (narrow <= narrow_indents_.back()) inconsistent_tabs();
      indents_.push_back(width);
      narrow_indents_.push_back(narrow);
      push(TokenKind::indent, "");
    } else if (width < indents_.back()) {
      // A line between two levels stays in the inner one: the outermost level is always 0.
      while (width < indents_.back() && width <= indents_[indents_.size() - 2]) {
        indents_.pop_back();
        narrow_indents_.pop_back();
        push(TokenKind::dedent, "");
      }
      if (width != indents_.back()) {
        diagnostics_.add(here(), "this indentation matches no enclosing block",
                         "align the line with the block it belongs to");
        indents_.back() = width;
        narrow_indents_.back() = narrow;
      }
    }
    if (narrow != narrow_indents_.back()) {
      inconsistent_tabs();
      narrow_indents_.back() = narrow;
    }
    return true;
  }

  void inconsistent_tabs() {
    diagnostics_.add(here(), "tabs and spaces are mixed: this line's level is not clear",
                     "use four spaces a level throughout");
  }

  void skip_comment() {
    while (position_ < source_.size() && peek() != '\n') ++position_;
  }

  void read_token() {
    const char c = peek();
    if (c == ' ' || c == '\t' || c == '\f' || c == '\r') {
      ++position_;
    } else if (c == '#') {
      skip_comment();
    } else if (c == '\n') {
      if (depth_ == 0) {
        push(TokenKind::newline, "");
        at_line_start_ = true;
      }
      ++position_;
      next_line();
    } else if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      position_ += peek(1) == '\n' ? 2 : 3;
      next_line();
    } else if (is_name_start(c)) {
      read_name();
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      read_number();
    } else if (c == '"' || c == '\'') {
      read_string(position_, "");
    } else {
      read_operator();
    }
  }

  void read_name() {
    const size_t begin = position_;
    while (is_name(peek())) ++position_;
    std::string text(source_.substr(begin, position_ - begin));
    if ((peek() == '"' || peek() == '\'') && text.size() <= 2) {
      std::string prefix;
      for (char c : text) prefix += static_cast<char>(c | 0x20);
      if (prefix.find_first_not_of("rbfu") == std::string::npos) return read_string(begin, prefix);
    }
    tokens_.push_back({TokenKind::name, std::move(text), place(begin)});
  }

  void read_number() {
    const size_t begin = position_;
    bool floating = false;
    const char marker = static_cast<char>(peek(1) | 0x20);
    if (peek() == '0' && (marker == 'x' || marker == 'o' || marker == 'b')) {
      position_ += 2;
      while (is_name(peek())) ++position_;
    } else {
      while (is_digit(peek()) || peek() == '_') ++position_;
      if (peek() == '.') {
        floating = true;
        ++position_;
        while (is_digit(peek()) || peek() == '_') ++position_;
      }
      if ((peek() == 'e' || peek() == 'E') &&
          (is_digit(peek(1)) || ((peek(1) == '+' || peek(1) == '-') && is_digit(peek(2))))) {
        floating = true;
        position_ += 2;
        while (is_digit(peek()) || peek() == '_') ++position_;
      }
      if (peek() == 'j' || peek() == 'J') {
        diagnostics_.add(place(begin), "complex numbers are not supported",
                         "keep the real and the imaginary part in two variables");
        ++position_;
      } else if (is_name_start(peek())) {
        diagnostics_.add(here(), fmt::format("'{}' cannot follow a number", peek()),
                         "a literal takes its type from its use or from a cast: f32(0.5)");
        while (is_name(peek())) ++position_;
        tokens_.push_back({TokenKind::integer, "0", place(begin)});
        return;
      }
    }
    std::string text;
    for (char c : source_.substr(begin, position_ - begin))
      if (c != '_') text += c;
    if (!floating && !valid_integer(text)) {
      diagnostics_.add(place(begin), fmt::format("'{}' is not a number", text),
                       text[0] == '0' ? "octal numbers are written 0o17" : "");
      text.assign(1, '0');  // GCC 12 warns of an overlap in = "0"
    }
    tokens_.push_back(
        {floating ? TokenKind::floating : TokenKind::integer, std::move(text), place(begin)});
  }

  static bool valid_integer(const std::string& text) {
    const char marker = text.size() > 1 ? static_cast<char>(text[1] | 0x20) : '\0';
    std::string_view digits = "0123456789";
    size_t from = 0;
    if (text[0] == '0' && (marker == 'x' || marker == 'o' || marker == 'b')) {
      digits = marker == 'x' ? "0123456789abcdefABCDEF" : marker == 'o' ? "01234567" : "01";
      from = 2;
    } else if (text[0] == '0' && text.find_first_not_of('0') != std::string::npos) {
      return false;  // 017: an error in Python 3, octal in C
    }
    return text.size() > from && text.find_first_not_of(digits, from) == std::string::npos;
  }

  void read_string(size_t begin, std::string prefix) {
    const Position at = place(begin);
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    position_ += triple ? 3 : 1;
    const size_t content = position_;
    for (;;) {
      if (position_ >= source_.size() || (!triple && peek() == '\n')) {
        diagnostics_.add(at, "this string is not closed",
                         triple ? "end it with the same three quotes" : "end it on its line");
        tokens_.push_back({TokenKind::string, "", at, std::move(prefix)});
        return;
      }
      if (peek() == '\\') {
        ++position_;
      } else if (peek() == quote && (!triple || (peek(1) == quote && peek(2) == quote))) {
        break;
      }
      const bool line_end = peek() == '\n';
      ++position_;
      if (line_end) next_line();
    }
    std::string text(source_.substr(content, position_ - content));
    position_ += triple ? 3 : 1;
    tokens_.push_back({TokenKind::string, std::move(text), at, std::move(prefix)});
  }

  void read_operator() {
    for (std::string_view op : kOperators) {
      if (!source_.substr(position_).starts_with(op)) continue;
      if (op == "(" || op == "[" || op == "{") ++depth_;
      if ((op == ")" || op == "]" || op == "}") && depth_ > 0) --depth_;
      push(TokenKind::op, std::string(op));
      position_ += op.size();
      return;
    }
    const unsigned char c = static_cast<unsigned char>(peek());
    if (c >= 0x80) {
      diagnostics_.add(here(), "only ASCII may stand outside comments and doc strings",
                       "name it with letters a-z, digits and _");
      push(TokenKind::name, "_");  // most likely a name: the parser goes on
      while (static_cast<unsigned char>(peek()) >= 0x80 || is_name(peek())) ++position_;
    } else {
      diagnostics_.add(here(),
                       c == '\\'  ? std::string("a \\ must be the last character of its line")
                       : c < 0x20 ? fmt::format("unexpected byte 0x{:02x}", c)
                                  : fmt::format("unexpected character '{}'", static_cast<char>(c)),
                       c == '!'   ? "write not x"
                       : c == '?' ? "write a if condition else b"
                                  : "");
      // The parser stumbles over it at the same place, which says nothing new.
      push(TokenKind::op, std::string(1, static_cast<char>(c)));
      ++position_;
    }
  }

  std::string_view source_;
  Diagnostics& diagnostics_;
  std::vector<Token> tokens_;
  std::vector<uint32_t> indents_ = {0};
  std::vector<uint32_t> narrow_indents_ = {0};
  size_t position_ = 0;
  size_t line_start_ = 0;
  uint32_t line_ = 1;
  uint32_t depth_ = 0;
  bool at_line_start_ = true;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source, Diagnostics& diagnostics) {
  return Lexer(source, diagnostics).run();
}

}  // namespace hologram::lang
