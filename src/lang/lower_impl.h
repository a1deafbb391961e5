// The lowering's inside. Private to lower_*.cpp.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "isa/builder.h"
#include "lang/diagnostic.h"
#include "lang/intrinsics.h"
#include "lang/ir.h"

namespace hologram::lang {

using isa::Opcode;
using isa::Register;

class Lowering {
 public:
  // What each array parameter is used for, by its index.
  using Uses = std::vector<std::pair<bool, bool>>;  // read, written

  Lowering(const ir::Kernel& kernel, const Uses* known);
  void run();
  const Uses& uses() const { return uses_; }
  Result<isa::Program> finish() { return builder_.finish(); }
  // The statement that an instruction came from.
  Position place_of(size_t instruction) const;

 private:
  struct ArrayRef {
    bool is_shared = false;
    isa::Builder::Array global = {};
    isa::Builder::Shared local = {};
    DType type = DType::f32;
    size_t parameter = 0;                // of a global one
    std::vector<Register> extents = {};  // of a global one, rank 2 and above
    std::vector<uint32_t> sizes = {};    // of a shared one
  };
  // The names of one function while its body is written.
  struct Scope {
    std::map<std::string, Register> registers;
    std::map<std::string, ArrayRef> arrays;
    std::set<std::string> fixed;     // names with one assignment, their `let`
    std::set<std::string> counters;  // loop variables that can be the ISA's counter itself
    // A helper's return: where the value goes, and how to leave.
    bool is_helper = false;
    std::optional<Register> result;
    std::optional<Register> returned;  // set when a return leaves from inside loops
    int loops = 0;
  };

  // Statements (lower_statements.cpp).
  void block(const std::vector<ir::Stmt>& list);
  // A helper's statements from `from` on, `rest` behind them: an `if` that returns takes what
  // follows into its other branch, so that no jump is needed.
  void tail(std::vector<const ir::Stmt*> list);
  void statement(const ir::Stmt& s);
  void assign(const ir::Stmt& s);
  void for_loop(const ir::Stmt& s);
  void while_loop(const ir::Stmt& s);
  void return_(const ir::Stmt& s);
  void after_loop(const ir::Stmt& s);
  void parallel_map(const ir::Stmt& s);
  void parallel_reduce(const ir::Stmt& s);
  Register count_u64(const ir::Expr& e);
  Register variable(const std::string& name, DType type);
  void mark(const ir::Stmt& s);

  // Expressions (lower_expressions.cpp).
  Register expression(const ir::Expr& e);
  Register literal(const ir::Expr& e);
  Register unary(const ir::Expr& e);
  Register binary(const ir::Expr& e);
  Register logical(const ir::Expr& e);
  Register if_expr(const ir::Expr& e);
  Register call(const ir::Expr& e);
  Register id(const Intrinsic& f, int axis);
  Register atomic(const Intrinsic& f, const ir::Expr& e);
  std::optional<Register> helper(const ir::Function& f, const std::vector<Register>& scalars,
                                 const std::vector<const ArrayRef*>& arrays);
  std::optional<Register> call_helper(const ir::Expr& e);
  // A function of the kernel or an intrinsic, on values: for parallel_map.
  Register apply(const std::string& function, const std::vector<Register>& args);
  const ir::Function* find_function(const std::string& name) const;

  // Arithmetic with Python's meaning (lower_arithmetic.cpp).
  Register floor_div(Register a, Register b, const ir::Expr& divisor);
  Register mod(Register a, Register b, const ir::Expr& divisor);
  Register float_mod(Register a, Register b);
  Register float_floor_div(Register a, Register b);
  Register shift(ir::BinaryOp op, Register a, Register by, const ir::Expr& amount);
  Register power(const ir::Expr& e);
  Register integer_power(Register base, Register exponent);
  Register power_of(Register base, uint64_t exponent);
  // Whether a remainder of truncation and its divisor have different signs.
  Register needs_step(Register remainder, Register divisor);

  // Memory.
  const ArrayRef& array(const std::string& name) const { return scope().arrays.at(name); }
  Register offset(const ArrayRef& array, const ir::Expr* indices, size_t count);
  Register extent(const ArrayRef& array, uint32_t axis);
  Register load(const ArrayRef& array, Register index);
  void store(const ArrayRef& array, Register index, Register value);

  Register zero(DType type) { return builder_.bits(type, 0); }
  Register constant(DType type, int64_t value);
  Scope& scope() { return scopes_.back(); }
  const Scope& scope() const { return scopes_.back(); }

  const ir::Kernel& kernel_;
  isa::Builder builder_;
  const Uses* known_;
  Uses uses_;
  std::vector<Scope> scopes_;
  std::vector<std::pair<size_t, Position>> places_;
};

// Whether `e` may be evaluated although its value is not needed: cheap, no memory, no trap.
// Loads that `done` has already made count as free.
bool is_free(const ir::Expr& e, const ir::Expr* done = nullptr);
bool contains_return(const ir::Stmt& s);
// The loop variables of a body that nothing but their own loops assigns.
std::set<std::string> plain_counters(const std::vector<ir::Stmt>& body,
                                     const std::vector<ir::Param>& params);
std::set<std::string> fixed_names(const std::vector<ir::Stmt>& body);
bool assigns(const std::vector<ir::Stmt>& body, const std::string& name);

}  // namespace hologram::lang
