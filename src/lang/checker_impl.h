// The checker's inside. Private to checker_*.cpp.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lang/ast.h"
#include "lang/constant.h"
#include "lang/diagnostic.h"
#include "lang/intrinsics.h"
#include "lang/ir.h"
#include "lang/types.h"

namespace hologram::lang {

// An expression with its type. A weak one has a constant, or two weak branches under a condition
// (the condition is expr): which type it takes is decided where it is used.
struct Value {
  Type type;
  Position at;
  ir::Expr expr = {};
  std::optional<Constant> constant = {};
  std::vector<Value> branches = {};

  bool valid() const { return type.kind != Type::Kind::invalid; }
};

struct Variable {
  std::string ir_name;
  Type type;
  Position at;  // where it got its type
  bool annotated = false;
  bool is_parameter = false;
};

// What is known on the path to a statement.
struct Flow {
  std::set<std::string> assigned;  // IR names that have a value on every path
  bool reachable = true;

  void join(const Flow& other);
};

struct Signature {
  const ast::Function* source = nullptr;
  std::vector<ir::Param> params;
  std::optional<DType> result;
  bool valid = true;
  // Filled while its body is checked.
  std::map<std::string, Position> calls;
  bool waits = false;  // has a barrier or a group reduction, itself or in what it calls
  ir::Function body;
};

class Checker {
 public:
  Checker(const ast::Module& module, Diagnostics& diagnostics)
      : module_(module), diagnostics_(diagnostics) {}
  std::vector<ir::Kernel> run();

 private:
  void report(Position at, std::string message, std::string hint = {}) {
    diagnostics_.add(at, std::move(message), std::move(hint));
  }

  // Module (checker_module.cpp).
  void read_constants();
  void read_signatures();
  Type annotation(const ast::Expr& e, bool arrays_too);
  void check_function(Signature& signature);
  void check_calls();
  void collect(const Signature& from, std::set<std::string>& seen, ir::Kernel& kernel);
  // Why a name cannot be given to a variable, parameter, function or constant; empty when it can.
  std::string taken(const std::string& name) const;

  // Statements (checker_statements.cpp).
  void statements(const std::vector<ast::Stmt>& list, std::vector<ir::Stmt>& out);
  void statement(const ast::Stmt& s, std::vector<ir::Stmt>& out);
  void assign(const ast::Stmt& s, std::vector<ir::Stmt>& out);
  void assign_variable(const ast::Expr& target, Value value, std::vector<ir::Stmt>& out);
  void assign_element(const ast::Expr& target, Value value, std::vector<ir::Stmt>& out);
  void declare(const ast::Stmt& s, std::vector<ir::Stmt>& out);
  void augmented(const ast::Stmt& s, std::vector<ir::Stmt>& out);
  void shared_array(const ast::Stmt& s, std::vector<ir::Stmt>& out);
  void if_statement(const ast::Stmt& s, std::vector<ir::Stmt>& out);
  void for_statement(const ast::Stmt& s, std::vector<ir::Stmt>& out);
  void while_statement(const ast::Stmt& s, std::vector<ir::Stmt>& out);
  void return_statement(const ast::Stmt& s, std::vector<ir::Stmt>& out);
  void expression_statement(const ast::Stmt& s, std::vector<ir::Stmt>& out);
  void launch_statement(const ast::Expr& call);
  // block() without launch(): as many threads as the block has.
  void launch_one_block();
  void parallel_map(const ast::Expr& call, std::vector<ir::Stmt>& out);
  void parallel_reduce(const ast::Expr& call, std::vector<ir::Stmt>& out);
  // A whole array given by its name; null when it is not one (reported).
  const Variable* array_argument(const ast::Expr& e);
  Value count_argument(const ast::Expr& e);
  void default_launch(const Value& count, bool one_block);

  // Expressions (checker_expressions.cpp).
  Value expression(const ast::Expr& e);
  Value name(const ast::Expr& e);
  Value unary(const ast::Expr& e);
  Value binary(std::string_view op, Value a, Value b, Position mark);
  Value division(std::string_view op, Value a, Value b, Position mark);
  Value shift(std::string_view op, Value a, Value b, Position mark);
  Value power(Value a, Value b, Position mark);
  Value comparison_chain(const ast::Expr& e);
  Value comparison(std::string_view op, Value a, Value b, Position mark);
  Value logical(const ast::Expr& e);
  Value conditional(const ast::Expr& e);
  Value mixed_literals(Position at);
  Value subscript(const ast::Expr& e);
  Value shape(const ast::Expr& array, const ast::Expr* axis, Position at);
  // The array's variable and one index expression a dimension; false when reported.
  bool element(const ast::Expr& e, const Variable*& array, std::vector<ir::Expr>& indices);
  ir::Expr index_value(Value v);
  Value condition(const ast::Expr& e, std::string_view where);
  // Applies `fn` to constants, below the branches of weak conditionals.
  Value distribute(Value a, Value b, const std::function<Value(const Value&, const Value&)>& fn);

  // Calls (checker_calls.cpp).
  Value call(const ast::Expr& e);
  Value cast(DType to, const ast::Expr& e);
  Value cast_value(DType to, Value v, const ast::Expr& e);
  Value intrinsic(const Intrinsic& f, bool f32_only, const ast::Expr& e);
  Value math(const Intrinsic& f, bool f32_only, const ast::Expr& e, std::vector<Value> args);
  Value number(const Intrinsic& f, const ast::Expr& e, std::vector<Value> args);
  Value minmax(const Intrinsic& f, Value a, Value b);
  Value atomic(const Intrinsic& f, const ast::Expr& e);
  Value helper(Signature& callee, const ast::Expr& e);
  // Reports a call in a module constant or an annotation.
  bool inside_function(const ast::Expr& call);
  bool arity(const ast::Expr& e, size_t least, size_t most);
  std::string suggestion(const std::string& name) const;

  // Conversions.
  Value invalid(Position at) const { return {{}, at}; }
  Value typed(DType type, ir::Expr expr, Position at) const;
  // As the type it has, or a literal's default (i32, f32).
  Value strong(Value v);
  // As `to`, by an implicit conversion; reports with `where` ("c[i]") when there is none.
  std::optional<ir::Expr> coerce(const Value& v, DType to, std::string_view where);
  // Both as the type they meet in; false when reported.
  bool unify(Value& a, Value& b, Position mark);
  static ir::Expr cast_expr(ir::Expr e, DType to);
  bool is_number(const Value& v, std::string_view what);

  const ast::Module& module_;
  Diagnostics& diagnostics_;
  std::map<std::string, Value> constants_;
  std::map<std::string, Signature> signatures_;

  // The function being checked.
  Signature* current_ = nullptr;
  bool in_kernel_ = false;
  std::map<std::string, Variable> variables_;
  std::set<std::string> ir_names_;
  Flow flow_;
  struct Loop {
    std::vector<Flow> breaks;
  };
  std::vector<Loop> loops_;
  int conditional_depth_ = 0;  // inside an operand that may not be evaluated
  int block_depth_ = 0;        // 0: the function's own level
  std::optional<ir::Launch> launch_;
  bool explicit_launch_ = false;
  bool block_given_ = false;
  bool body_began_ = false;
  std::vector<std::pair<std::string, Position>> conditional_calls_;
};

// Whether evaluating twice could be seen: calls of helpers, atomics, group reductions.
bool has_effects(const ir::Expr& e);
std::optional<DType> type_name(std::string_view name);

}  // namespace hologram::lang
