#include <algorithm>
#include <array>
#include <utility>

#include "lang/parser_impl.h"

namespace hologram::lang {

using ast::Expr;
using Kind = ast::Expr::Kind;

namespace {

constexpr int kMaximumNesting = 150;
// Levels of one expression's tree, and links of a chain such as a + b + c, which is a tree as deep.
// The IR has at most two levels for one, and takes 500 (validate.cpp).
constexpr size_t kDeepest = 140;

// The IR has chains, arguments of min() and the like one inside the other.
size_t depth_of(const Expr& e) {
  size_t deepest = 0;
  for (const Expr& child : e.children) deepest = std::max(deepest, depth_of(child));
  return deepest + std::max<size_t>(1, e.children.size() > 2 ? e.children.size() : 0);
}

constexpr std::array<std::string_view, 35> kKeywords = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

// Loosest first.
constexpr std::array<std::array<std::string_view, 5>, 6> kLevels = {
    {{"|"}, {"^"}, {"&"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "//", "%", "@"}}};

}  // namespace

bool is_keyword(std::string_view text) { return contains(kKeywords, text); }

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::newline:
      return "the end of the line";
    case TokenKind::indent:
      return "an indented block";
    case TokenKind::dedent:
      return "the end of the block";
    case TokenKind::end:
      return "the end of the file";
    case TokenKind::string:
      return "a string";
    default:
      return fmt::format("'{}'", token.text);
  }
}

Parser::Nesting::Nesting(Parser& p) : parser(p) {
  if (++parser.depth_ > kMaximumNesting) {
    --parser.depth_;  // the destructor does not run
    parser.reject(parser.peek().at, "this is nested too deeply",
                  "split the expression with variables");
  }
}

void Parser::check_length(size_t links) {
  if (links > kDeepest) reject(peek().at, "this expression is too long", "split it with variables");
}

Expr Parser::expression() {
  const bool outermost = std::exchange(in_expression_, true);
  struct Leave {
    ~Leave() { in_expression = !outermost; }
    bool& in_expression;
    bool outermost;
  } leave{in_expression_, outermost};
  const Position at = peek().at;
  Expr whole = conditional();
  if (outermost && depth_of(whole) > kDeepest)
    reject(at, "this is nested too deeply", "split the expression with variables");
  return whole;
}

Expr Parser::conditional() {
  Nesting nesting(*this);
  if (peek().is("lambda"))
    reject(peek().at, "lambda is not supported", "write a function with @inline above it");
  if (peek().is("yield")) reject(peek().at, "yield is not supported", "store into an array");
  if (peek().is("*") || peek().is("**"))
    reject(peek().at, "unpacking with * is not supported", "write the values one by one");
  Expr value = or_expression();
  if (peek().is(":="))
    reject(peek().at, "the walrus operator := is not supported", "assign on a line of its own");
  if (!peek().is("if")) return value;
  take();
  Expr condition = or_expression();
  expect("else", "a conditional expression");
  Expr other = expression();
  const Position at = value.at;
  return {Kind::conditional, at, "", {std::move(condition), std::move(value), std::move(other)}};
}

Expr Parser::or_expression() {
  Expr first = and_expression();
  if (!peek().is("or")) return first;
  Expr all{Kind::logical, first.at, "or", {}};
  all.children.push_back(std::move(first));
  while (accept("or")) {
    check_length(all.children.size());
    all.children.push_back(and_expression());
  }
  return all;
}

Expr Parser::and_expression() {
  Expr first = not_expression();
  if (!peek().is("and")) return first;
  Expr all{Kind::logical, first.at, "and", {}};
  all.children.push_back(std::move(first));
  while (accept("and")) {
    check_length(all.children.size());
    all.children.push_back(not_expression());
  }
  return all;
}

Expr Parser::not_expression() {
  Nesting nesting(*this);
  if (!peek().is("not")) return comparison();
  const Position at = take().at;
  return {Kind::unary, at, "not", {not_expression()}};
}

Expr Parser::comparison() {
  Expr first = binary(0);
  Expr chain{Kind::comparison, first.at, "", {}};
  chain.children.push_back(std::move(first));
  for (;;) {
    const Token& token = peek();
    if (token.is("in") || (token.is("not") && peek(1).is("in")))
      reject(token.at, "the operator in is not supported", "compare with each value");
    if (token.is("is"))
      reject(token.at, "the operator is is not supported", "compare with == or !=");
    constexpr std::array<std::string_view, 6> kComparisons = {"<", ">", "<=", ">=", "==", "!="};
    if (token.kind != TokenKind::op || !contains(kComparisons, token.text)) break;
    check_length(chain.children.size());
    chain.operators.push_back(take().text);
    chain.children.push_back(binary(0));
  }
  if (chain.operators.empty()) return std::move(chain.children[0]);
  return chain;
}

Expr Parser::binary(int level) {
  if (level == static_cast<int>(kLevels.size())) return unary();
  Expr left = binary(level + 1);
  for (size_t links = 0;; ++links) {
    check_length(links);
    const Token& token = peek();
    if (token.kind != TokenKind::op || token.text.empty() || !contains(kLevels[level], token.text))
      return left;
    if (token.text == "@")
      reject(token.at, "the matrix product @ is not supported", "write the loops");
    const Token op = take();
    Expr right = binary(level + 1);
    const Position at = left.at;
    left = {Kind::binary, at, op.text, {std::move(left), std::move(right)}, {}, op.at};
  }
}

Expr Parser::unary() {
  Nesting nesting(*this);
  const Token& token = peek();
  if (token.is("-") || token.is("+") || token.is("~")) {
    Token op = take();
    return {Kind::unary, op.at, op.text, {unary()}};
  }
  return power();
}

Expr Parser::power() {
  Expr base = postfix();
  if (!peek().is("**")) return base;
  const Position mark = take().at;
  Expr exponent = unary();  // binds to the right, and tighter than a minus on its left
  const Position at = base.at;
  return {Kind::binary, at, "**", {std::move(base), std::move(exponent)}, {}, mark};
}

Expr Parser::postfix() {
  if (peek().is("await")) reject(peek().at, "await is not supported", "kernels run to their end");
  Expr value = atom();
  for (size_t links = 0;; ++links) {
    check_length(links);
    if (peek().is("(")) {
      value = call(std::move(value));
    } else if (peek().is("[")) {
      value = subscript(std::move(value));
    } else if (accept(".")) {
      const Token name = expect_name("an attribute's name");
      value = {Kind::attribute, value.at, name.text, {std::move(value)}};
    } else {
      return value;
    }
  }
}

Expr Parser::call(Expr callee) {
  const Position open = take().at;
  if (callee.kind == Kind::attribute)
    reject(callee.at, fmt::format("methods such as .{}() are not supported", callee.text),
           "call a function: exp(x), not math.exp(x)");
  if (callee.kind != Kind::name)
    reject(open, "only a function's name can be called", "call the function by its name");
  Expr result{Kind::call, callee.at, callee.text, {}};
  while (!peek().is(")")) {
    if (peek().kind == TokenKind::name && peek(1).is("="))
      reject(peek().at, "keyword arguments are not supported", "pass the arguments by position");
    check_length(result.children.size());
    result.children.push_back(expression());
    if (peek().is("for") || peek().is("async"))
      reject(peek().at, "comprehensions are not supported", "write a for loop");
    if (!accept(",")) break;
  }
  expect(")", "the arguments of a call");
  return result;
}

Expr Parser::subscript(Expr base) {
  take();
  Expr result{Kind::subscript, base.at, "", {}};
  result.children.push_back(std::move(base));
  const auto slice = [&] {
    if (peek().is(":"))
      reject(peek().at, "slices are not supported", "index one element, in a loop");
  };
  for (;;) {
    slice();
    if (peek().is("]")) {
      if (result.children.size() == 1) reject(peek().at, "the index is missing", "write a[i]");
      break;
    }
    result.children.push_back(expression());
    slice();
    if (!accept(",")) break;
  }
  expect("]", "an index");
  return result;
}

Expr Parser::atom() {
  const Token token = peek();
  switch (token.kind) {
    case TokenKind::integer:
      take();
      return {Kind::integer, token.at, token.text};
    case TokenKind::floating:
      take();
      return {Kind::floating, token.at, token.text};
    case TokenKind::string:
      if (token.prefix.find('f') != std::string::npos)
        reject(token.at, "f-strings are not supported", "kernels compute numbers only");
      reject(token.at, "strings are not supported except as doc strings",
             "kernels compute numbers only");
    case TokenKind::name:
      if (token.text == "True" || token.text == "False") {
        take();
        return {Kind::boolean, token.at, token.text};
      }
      if (token.text == "None")
        reject(token.at, "None is not supported", "use a number that means nothing here");
      if (token.text == "lambda")
        reject(token.at, "lambda is not supported", "write a function with @inline above it");
      if (token.text == "yield") reject(token.at, "yield is not supported", "store into an array");
      if (is_keyword(token.text)) break;
      take();
      return {Kind::name, token.at, token.text};
    case TokenKind::op:
      if (token.text == "(") {
        take();
        if (peek().is(")")) reject(token.at, "tuples are not supported", "write the values apart");
        Expr inner = expression();
        if (peek().is(",")) reject(peek().at, "tuples are not supported", "write the values apart");
        if (peek().is("for") || peek().is("async"))
          reject(peek().at, "generator expressions are not supported", "write a for loop");
        expect(")", "a parenthesis");
        inner.at = token.at;
        // A parenthesised comparison is one operand, not a link of a chain.
        return inner;
      }
      if (token.text == "[") {
        take();
        if (!peek().is("]")) {
          expression();
          if (peek().is("for") || peek().is("async"))
            reject(token.at, "list comprehensions are not supported", "write a for loop");
        }
        reject(token.at, "lists are not supported", "use a DeviceArray or shared(T, n)");
      }
      if (token.text == "{")
        reject(token.at, "dictionaries and sets are not supported",
               "use a DeviceArray or shared(T, n)");
      if (token.text == "...") reject(token.at, "... is not supported", "write pass");
      break;
    default:
      break;
  }
  // Habits from C.
  const auto before = [&](size_t back) {
    return back <= position_ ? tokens_[position_ - back] : token;
  };
  std::string hint;
  if (token.is("&") && before(1).is("&")) hint = "write and, not &&";
  if (token.is("|") && before(1).is("|")) hint = "write or, not ||";
  for (const char* sign : {"+", "-"})
    if (before(1).is(sign) && before(2).is(sign)) hint = fmt::format("write x {}= 1", sign);
  reject(token.at, fmt::format("expected an expression, found {}", describe(token)), hint);
}

}  // namespace hologram::lang
