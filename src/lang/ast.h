// The syntax tree of a kernel source: what was written, before any type is known.
#pragma once

#include <string>
#include <vector>

#include "lang/diagnostic.h"

namespace hologram::lang::ast {

struct Expr {
  enum class Kind {
    invalid,      // already reported
    name,         // text
    integer,      // text
    floating,     // text
    boolean,      // text: True or False
    unary,        // text: + - ~ not; children[0]
    binary,       // text: the operator; children[0], children[1]
    comparison,   // operators[i] stands between children[i] and children[i + 1]
    logical,      // text: and, or; two or more children
    conditional,  // children: condition, then, else
    call,         // text: the function; children: the arguments
    subscript,    // children: the subscripted, then the indices
    attribute,    // children[0], text: the attribute
  };
  Kind kind = Kind::invalid;
  Position at;
  std::string text = {};
  std::vector<Expr> children = {};
  std::vector<std::string> operators = {};
  Position mark = {};  // binary: where the operator stands
};

struct Stmt {
  enum class Kind {
    assign,     // target = value
    annotated,  // target: annotation [= value]
    augmented,  // target op= value, op without the =
    expression,
    if_,     // value: the condition; body; orelse
    for_,    // target; value: the call of range; body
    while_,  // value; body
    break_,
    continue_,
    return_,  // has_value, value
    pass,
  };
  Kind kind = Kind::pass;
  Position at;
  Expr target = {};
  Expr annotation = {};
  Expr value = {};
  bool has_value = false;
  std::string op = {};
  std::vector<Stmt> body = {};
  std::vector<Stmt> orelse = {};
};

struct Parameter {
  std::string name;
  Position at;
  Expr annotation;
};

struct Function {
  std::string name;
  Position at;  // of the name
  bool is_inline = false;
  std::vector<Parameter> parameters = {};
  bool has_result = false;
  Expr result = {};
  std::string doc = {};
  std::vector<Stmt> body = {};
};

// from ..folder.file import name as other: a kernel of another file, under a name of its own.
struct Import {
  Position at;
  std::string file;  // relative to the importing file's folder: "../folder/file.py"
  std::string name;
  std::string as;  // `name` where it keeps it
};

struct Module {
  std::vector<Import> imports;
  std::string doc;
  std::vector<Stmt> constants;  // assign or annotated, target a name
  std::vector<Function> functions;
};

}  // namespace hologram::lang::ast
