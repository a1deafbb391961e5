// The parser's inside: recursive descent over the tokens. Private to parser_*.cpp.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "lang/ast.h"
#include "lang/lexer.h"

namespace hologram::lang {

// Thrown after a report, caught at the next statement: the rest of the line says nothing more.
struct SyntaxStop {};

class Parser {
 public:
  Parser(std::vector<Token> tokens, Diagnostics& diagnostics)
      : tokens_(std::move(tokens)), diagnostics_(diagnostics) {}

  ast::Module module();

 private:
  // Tokens.
  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(position_ + ahead, tokens_.size() - 1)];
  }
  Token take() {
    Token token = peek();
    if (position_ + 1 < tokens_.size()) ++position_;
    return token;
  }
  bool accept(std::string_view text) {
    if (!peek().is(text)) return false;
    take();
    return true;
  }
  Token expect(std::string_view text, std::string_view where);
  Token expect_name(std::string_view what);
  [[noreturn]] void reject(Position at, std::string message, std::string hint = {});

  // Statements (parser_statements.cpp).
  void module_statement(ast::Module& module);
  void import_statement(ast::Module& module);
  void kernel_import(ast::Module& module);
  void function(ast::Module& module);
  ast::Parameter parameter();
  // The block after a colon; its doc string, when it opens with one, goes to `doc`.
  std::vector<ast::Stmt> block(std::string_view owner, std::string* doc = nullptr);
  void statement(std::vector<ast::Stmt>& out);
  void simple_statements(std::vector<ast::Stmt>& out);
  ast::Stmt simple_statement();
  ast::Stmt assignment_or_expression();
  ast::Stmt if_statement();
  ast::Stmt for_statement();
  ast::Stmt while_statement();
  void reject_loop_else();
  // Reports a statement that Python has and the language does not. False: it is not one.
  bool unsupported_statement();
  bool is_match_statement() const;
  void end_of_statement();
  // Recovery: to the start of the next statement of this block.
  void skip_line();
  void skip_block();

  // Expressions (parser_expressions.cpp).
  ast::Expr expression();
  ast::Expr conditional();
  // Rejects a chain of too many links, which is a tree as deep.
  void check_length(size_t links);
  ast::Expr or_expression();
  ast::Expr and_expression();
  ast::Expr not_expression();
  ast::Expr comparison();
  ast::Expr binary(int level);
  ast::Expr unary();
  ast::Expr power();
  ast::Expr postfix();
  ast::Expr call(ast::Expr callee);
  ast::Expr subscript(ast::Expr base);
  ast::Expr atom();

  // Guards the machine's stack against a source made of brackets.
  struct Nesting {
    explicit Nesting(Parser& parser);
    ~Nesting() { --parser.depth_; }
    Parser& parser;
  };

  std::vector<Token> tokens_;
  Diagnostics& diagnostics_;
  size_t position_ = 0;
  int depth_ = 0;
  bool in_expression_ = false;
};

template <typename List>
constexpr bool contains(const List& list, std::string_view text) {
  return std::ranges::find(list, text) != std::ranges::end(list);
}

bool is_keyword(std::string_view text);
// How a token is called in a message: "'+'", "the end of the line".
std::string describe(const Token& token);

}  // namespace hologram::lang
