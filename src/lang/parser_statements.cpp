#include <algorithm>
#include <array>

#include "lang/parser.h"
#include "lang/parser_impl.h"

namespace hologram::lang {

using ast::Expr;
using ast::Stmt;

Token Parser::expect(std::string_view text, std::string_view where) {
  if (!peek().is(text))
    reject(peek().at, fmt::format("expected '{}' in {}, found {}", text, where, describe(peek())),
           text == ":" && peek().kind == TokenKind::newline ? "end the line with :" : "");
  return take();
}

Token Parser::expect_name(std::string_view what) {
  if (peek().kind != TokenKind::name || is_keyword(peek().text))
    reject(peek().at, fmt::format("expected {}, found {}", what, describe(peek())));
  return take();
}

void Parser::reject(Position at, std::string message, std::string hint) {
  diagnostics_.add(at, std::move(message), std::move(hint));
  throw SyntaxStop{};
}

void Parser::skip_line() {
  while (peek().kind != TokenKind::newline && peek().kind != TokenKind::end) {
    // A lost bracket can swallow lines: stop where a block begins or ends.
    if (peek().kind == TokenKind::indent || peek().kind == TokenKind::dedent) return;
    take();
  }
  if (peek().kind == TokenKind::newline) take();
  if (peek().kind == TokenKind::indent) skip_block();
}

void Parser::skip_block() {
  int open = 0;
  do {
    const TokenKind kind = take().kind;
    open += kind == TokenKind::indent ? 1 : kind == TokenKind::dedent ? -1 : 0;
  } while (open > 0 && peek().kind != TokenKind::end);
}

void Parser::end_of_statement() {
  if (peek().kind == TokenKind::newline || peek().kind == TokenKind::end) {
    take();
    return;
  }
  reject(peek().at, fmt::format("expected the end of the line, found {}", describe(peek())));
}

ast::Module Parser::module() {
  ast::Module module;
  if (peek().kind == TokenKind::string && peek().prefix.empty()) {
    module.doc = take().text;
    if (peek().kind == TokenKind::newline) take();
  }
  while (peek().kind != TokenKind::end) {
    try {
      module_statement(module);
    } catch (SyntaxStop) {
      skip_line();
    }
  }
  return module;
}

void Parser::module_statement(ast::Module& module) {
  const Token token = peek();
  if (token.kind == TokenKind::newline || token.kind == TokenKind::dedent) {
    take();
  } else if (token.kind == TokenKind::indent) {
    diagnostics_.add(token.at, "this line is indented but opens no block",
                     "remove the indentation");
    take();
  } else if (token.is("def") || token.is("@")) {
    function(module);
  } else if (token.is("from") || token.is("import")) {
    import_statement(module);
  } else if (token.is("pass")) {
    take();
    end_of_statement();
  } else if (unsupported_statement()) {
    // reported
  } else if (token.is("if") || token.is("for") || token.is("while") || token.is("return")) {
    reject(token.at, fmt::format("'{}' cannot stand outside a function", token.text),
           "a module holds constants and functions");
  } else {
    std::vector<Stmt> list;
    simple_statements(list);
    for (Stmt& s : list) {
      const bool constant = (s.kind == Stmt::Kind::assign || s.kind == Stmt::Kind::annotated) &&
                            s.target.kind == Expr::Kind::name && s.has_value;
      if (constant)
        module.constants.push_back(std::move(s));
      else
        diagnostics_.add(s.at, "only constants and functions can stand at module level",
                         "NAME = value, or def kernel(...):");
    }
  }
}

void Parser::kernel_import(ast::Module& module) {
  take();
  // One dot is this file's folder, each more the folder above.
  size_t dots = 0;
  for (; peek().is(".") || peek().is("..."); take()) dots += peek().text.size();
  std::string file;
  for (size_t i = 1; i < dots; ++i) file += "../";
  file += expect_name("a file to import from").text;
  while (accept(".")) file += "/" + expect_name("a file to import from").text;
  file += ".py";
  expect("import", "an import");
  if (peek().is("*"))
    reject(peek().at, "the kernels of another file are imported by name", "from .file import name");
  do {
    const Token name = expect_name("a kernel to import");
    const Token as = accept("as") ? expect_name("the kernel's name here") : name;
    module.imports.push_back({name.at, file, name.text, as.text});
  } while (accept(","));
  end_of_statement();
}

void Parser::import_statement(ast::Module& module) {
  if (peek(1).is(".") || peek(1).is("...")) return kernel_import(module);
  const Token keyword = take();
  const Token name = peek();
  constexpr std::string_view kHint = "from hologram_lang import *";
  if (keyword.is("import")) {
    if (name.text == "hologram_lang")
      reject(keyword.at, "import hologram_lang hides the names behind a prefix",
             std::string("write: ") + std::string(kHint));
    reject(keyword.at, fmt::format("import of '{}' is not supported", name.text),
           fmt::format("only this import is part of the language: {}", kHint));
  }
  if (name.text != "hologram_lang" || peek(1).is("."))
    reject(
        keyword.at, fmt::format("import from '{}' is not supported", name.text),
        fmt::format("write {}, or for a kernel of a file beside this one: from .file import name",
                    kHint));
  take();
  expect("import", "an import");
  const bool bracket = accept("(");
  if (!accept("*")) {
    do {
      if (bracket && peek().is(")")) break;
      expect_name("a name to import");
      if (peek().is("as"))
        reject(peek().at, "renaming an import is not supported", "use the name as it is");
    } while (accept(","));
  }
  if (bracket) expect(")", "an import");
  end_of_statement();
}

void Parser::function(ast::Module& module) {
  ast::Function f;
  while (peek().is("@")) {
    const Token at = take();
    const Token name = peek();
    if (name.kind == TokenKind::name && name.text == "inline" && !peek(1).is("(") &&
        !peek(1).is(".")) {
      f.is_inline = true;
      take();
    } else {
      diagnostics_.add(at.at, fmt::format("the decorator @{} is not supported", name.text),
                       "@inline marks a helper; a kernel has no decorator");
      while (peek().kind != TokenKind::newline && peek().kind != TokenKind::end) take();
    }
    end_of_statement();
  }
  if (peek().is("class") || peek().is("async")) {
    unsupported_statement();
    return;
  }
  expect("def", "a function");
  const Token name = expect_name("the function's name");
  f.name = name.text;
  f.at = name.at;
  expect("(", "a function's head");
  while (!peek().is(")")) {
    f.parameters.push_back(parameter());
    if (!accept(",")) break;
  }
  expect(")", "a function's head");
  if (accept("->")) {
    if (peek().is("None")) {
      take();
    } else {
      f.has_result = true;
      f.result = expression();
    }
  }
  f.body = block("def", &f.doc);
  module.functions.push_back(std::move(f));
}

ast::Parameter Parser::parameter() {
  const Token token = peek();
  if (token.is("*") || token.is("**"))
    reject(token.at,
           fmt::format("{}{} parameters are not supported", token.text,
                       token.text == "*" ? "args" : "kwargs"),
           "name each parameter and its type");
  if (token.is("/")) reject(token.at, "positional-only marks are not supported", "remove the /");
  const Token name = expect_name("a parameter's name");
  if (!peek().is(":")) {
    // Its type is what is missing; the rest of the function is read as if it were there.
    diagnostics_.add(name.at, fmt::format("parameter '{}' has no type", name.text),
                     fmt::format("{0}: DeviceArray[f32] or {0}: u32", name.text));
    if (peek().is("="))
      reject(peek().at, "default values are not supported", "pass every argument");
    return {name.text, name.at, {}};
  }
  take();
  Expr annotation = expression();
  if (peek().is("=")) reject(peek().at, "default values are not supported", "pass every argument");
  return {name.text, name.at, std::move(annotation)};
}

std::vector<Stmt> Parser::block(std::string_view owner, std::string* doc) {
  Nesting nesting(*this);
  expect(":", fmt::format("'{}'", owner));
  std::vector<Stmt> body;
  if (peek().kind != TokenKind::newline) {  // on the same line
    simple_statements(body);
    return body;
  }
  take();
  if (peek().kind != TokenKind::indent)
    reject(peek().at, fmt::format("the block of '{}' is missing", owner),
           "indent its lines by four spaces; an empty block is: pass");
  take();
  if (doc && peek().kind == TokenKind::string && peek().prefix.empty()) {
    *doc = take().text;
    if (peek().kind == TokenKind::newline) take();
  }
  while (peek().kind != TokenKind::dedent && peek().kind != TokenKind::end) {
    try {
      statement(body);
    } catch (SyntaxStop) {
      skip_line();
    }
  }
  if (peek().kind == TokenKind::dedent) take();
  return body;
}

void Parser::statement(std::vector<Stmt>& out) {
  const Token& token = peek();
  if (token.kind == TokenKind::indent) {
    diagnostics_.add(token.at, "this line is indented but opens no block",
                     "remove the indentation");
    // Its block is read as part of this one so that its own errors are reported too.
    take();
    while (peek().kind != TokenKind::dedent && peek().kind != TokenKind::end) {
      try {
        statement(out);
      } catch (SyntaxStop) {
        skip_line();
      }
    }
    if (peek().kind == TokenKind::dedent) take();
  } else if (token.is("if")) {
    out.push_back(if_statement());
  } else if (token.is("for")) {
    out.push_back(for_statement());
  } else if (token.is("while")) {
    out.push_back(while_statement());
  } else if (token.is("elif") || token.is("else")) {
    reject(token.at, fmt::format("'{}' without an if above it", token.text),
           "align it with its if");
  } else if (!unsupported_statement()) {
    simple_statements(out);
  }
}

void Parser::simple_statements(std::vector<Stmt>& out) {
  do {
    if (peek().kind == TokenKind::newline) break;  // a trailing semicolon
    out.push_back(simple_statement());
  } while (accept(";"));
  end_of_statement();
}

Stmt Parser::simple_statement() {
  const Token token = peek();
  const auto keyword = [&](Stmt::Kind kind) {
    take();
    return Stmt{kind, token.at};
  };
  if (token.is("pass")) return keyword(Stmt::Kind::pass);
  if (token.is("break")) return keyword(Stmt::Kind::break_);
  if (token.is("continue")) return keyword(Stmt::Kind::continue_);
  if (token.is("return")) {
    Stmt s = keyword(Stmt::Kind::return_);
    if (peek().kind != TokenKind::newline && !peek().is(";")) {
      s.has_value = true;
      s.value = expression();
      if (peek().is(","))
        reject(peek().at, "returning several values is not supported", "return one value");
    }
    return s;
  }
  if (token.kind == TokenKind::string && token.prefix.empty() && peek(1).kind == TokenKind::newline)
    reject(token.at, "a doc string must be the first line of its function",
           "write a comment: # ...");
  return assignment_or_expression();
}

Stmt Parser::assignment_or_expression() {
  Stmt s{Stmt::Kind::expression, peek().at};
  Expr first = expression();
  const Token token = peek();
  constexpr std::array<std::string_view, 13> kAugmented = {
      "+=", "-=", "*=", "/=", "//=", "%=", "**=", "<<=", ">>=", "&=", "|=", "^=", "@="};
  if (token.is(","))
    reject(token.at, "tuple assignment is not supported", "assign each variable on its own line");
  if (token.is(":")) {
    take();
    s.kind = Stmt::Kind::annotated;
    s.annotation = expression();
    if (accept("=")) {
      s.has_value = true;
      s.value = expression();
    }
  } else if (token.is("=")) {
    take();
    s.kind = Stmt::Kind::assign;
    s.has_value = true;
    s.value = expression();
    if (peek().is("="))
      reject(peek().at, "chained assignment is not supported",
             "assign each variable on its own line");
    if (peek().is(","))
      reject(peek().at, "tuple assignment is not supported",
             "assign each variable on its own line");
  } else if (token.kind == TokenKind::op && contains(kAugmented, token.text)) {
    take();
    if (token.text == "@=")
      reject(token.at, "the matrix product @= is not supported", "write the loops");
    s.kind = Stmt::Kind::augmented;
    s.op = token.text.substr(0, token.text.size() - 1);
    s.has_value = true;
    s.value = expression();
  } else {
    s.has_value = true;
    s.value = std::move(first);
    return s;
  }
  if (first.kind != Expr::Kind::name && first.kind != Expr::Kind::subscript)
    reject(first.at, "only a variable or an array's element can be assigned",
           "x = ..., or a[i] = ...");
  s.target = std::move(first);
  return s;
}

Stmt Parser::if_statement() {
  Nesting nesting(*this);  // an elif is an if inside the else
  Stmt s{Stmt::Kind::if_, take().at};
  s.value = expression();
  s.has_value = true;
  s.body = block("if");
  if (peek().is("elif")) {
    s.orelse.push_back(if_statement());
  } else if (peek().is("else")) {
    take();
    s.orelse = block("else");
  }
  return s;
}

Stmt Parser::for_statement() {
  Stmt s{Stmt::Kind::for_, take().at};
  const Token name = peek();
  if (name.is("(")) reject(name.at, "a for loop has one variable", "for i in range(n):");
  s.target = {Expr::Kind::name, name.at, expect_name("the loop's variable").text};
  if (peek().is(",")) reject(peek().at, "a for loop has one variable", "for i in range(n):");
  expect("in", "a for loop");
  s.value = expression();
  s.has_value = true;
  if (s.value.kind != Expr::Kind::call || s.value.text != "range")
    diagnostics_.add(s.value.at, "a for loop runs over range(...) only",
                     "for i in range(n): and index with i");
  s.body = block("for");
  reject_loop_else();
  return s;
}

Stmt Parser::while_statement() {
  Stmt s{Stmt::Kind::while_, take().at};
  s.value = expression();
  s.has_value = true;
  s.body = block("while");
  reject_loop_else();
  return s;
}

void Parser::reject_loop_else() {
  if (!peek().is("else")) return;
  diagnostics_.add(peek().at, "else after a loop is not supported",
                   "set a variable before break and test it after the loop");
  take();
  block("else");
}

bool Parser::is_match_statement() const {
  // `match` is an ordinary name except in front of a subject, a colon and an indented `case`.
  if (!peek().is("match") || peek(1).is("=") || peek(1).is("[") || peek(1).is(".")) return false;
  for (size_t i = 1; peek(i).kind != TokenKind::end; ++i)
    if (peek(i).kind == TokenKind::newline)
      return peek(i - 1).is(":") && peek(i + 1).kind == TokenKind::indent && peek(i + 2).is("case");
  return false;
}

bool Parser::unsupported_statement() {
  struct Entry {
    std::string_view keyword, message, hint;
  };
  constexpr std::array<Entry, 16> kUnsupported = {{
      {"class", "classes are not supported", "write functions; pass arrays and scalars"},
      {"try", "try is not supported", "test the condition before with if"},
      {"except", "except is not supported", "test the condition before with if"},
      {"finally", "finally is not supported", "write the statements after the others"},
      {"with", "with is not supported", "kernels hold no resources"},
      {"async", "async is not supported", "threads of the grid already run in parallel"},
      {"await", "await is not supported", "kernels run to their end"},
      {"global", "global is not supported", "module constants can be read without it"},
      {"nonlocal", "nonlocal is not supported", "pass the value as a parameter"},
      {"del", "del is not supported", "variables end with their function"},
      {"assert", "assert is not supported", "test with if and store an error code"},
      {"raise", "raise is not supported", "store an error code into an array"},
      {"yield", "yield is not supported", "store into an array"},
      {"import", "import inside a function is not supported", "import at the top of the file"},
      {"from", "import inside a function is not supported", "import at the top of the file"},
      {"def", "a function inside a function is not supported",
       "move it to the module and mark it @inline"},
  }};
  const Token token = peek();
  if (token.is("@")) {
    diagnostics_.add(token.at, "decorators inside a function are not supported",
                     "move the function to the module");
    skip_line();
    if (peek().is("def") || peek().is("class")) skip_line();
    return true;
  }
  if (is_match_statement()) {
    diagnostics_.add(token.at, "match is not supported", "write if, elif, else");
    skip_line();
    return true;
  }
  if (token.kind != TokenKind::name) return false;
  const auto entry = std::ranges::find(kUnsupported, token.text, &Entry::keyword);
  if (entry == kUnsupported.end()) return false;
  diagnostics_.add(token.at, std::string(entry->message), std::string(entry->hint));
  if (token.text == "try" || token.text == "with") {
    // What is inside is read, so that its own errors are reported too.
    while (peek().kind != TokenKind::newline && peek().kind != TokenKind::end) take();
    if (peek(1).kind == TokenKind::indent) {
      take();
      take();
      std::vector<Stmt> ignored;
      while (peek().kind != TokenKind::dedent && peek().kind != TokenKind::end) {
        try {
          statement(ignored);
        } catch (SyntaxStop) {
          skip_line();
        }
      }
      if (peek().kind == TokenKind::dedent) take();
    } else {
      skip_line();
    }
    while (peek().is("except") || peek().is("finally") || peek().is("else")) skip_line();
    return true;
  }
  skip_line();
  return true;
}

ast::Module parse(std::string_view source, Diagnostics& diagnostics) {
  return Parser(tokenize(source, diagnostics), diagnostics).module();
}

}  // namespace hologram::lang
