// The kernel IR: what a front end hands over, in memory. Its text form is JSON (json/json.h),
// described by docs/json-ir.md.
//
// The IR is explicit: every literal and variable has a type, operands of an operator have the same
// type, conversions are `cast`s. A front end may leave Expr::type unset; validate() (validate.h)
// computes it. A variable is declared by `let` or `for`, before its first use in the text of its
// function, and lives to the end of the function.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/dtype.h"

namespace hologram::lang::ir {

inline constexpr int kVersion = 1;
inline constexpr uint32_t kMaximumRank = 8;

enum class BinaryOp : uint8_t {
  add,
  sub,
  mul,
  div,        // floats only
  floor_div,  // rounds down; integers and floats
  mod,        // has the sign of the divisor; integers and floats
  pow,        // floats; or an integer base with an unsigned exponent of the same type
  shl,
  shr,  // a shift by the width or more moves every bit out
  bit_and,
  bit_or,
  bit_xor,  // integers and bool
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or,  // bool; the right side is evaluated only when it decides
};
enum class UnaryOp : uint8_t { neg, bit_not, logical_not };

std::string_view name_of(BinaryOp op);
std::string_view name_of(UnaryOp op);
std::optional<BinaryOp> binary_op_from_name(std::string_view name);
std::optional<UnaryOp> unary_op_from_name(std::string_view name);
constexpr bool is_comparison(BinaryOp op) { return op >= BinaryOp::eq && op <= BinaryOp::ge; }

struct Expr {
  enum class Kind : uint8_t {
    literal,    // integer, or number for floats
    var,        // name: a scalar variable or parameter; as an argument also an array
    binary_op,  // args: left, right
    unary_op,   // args: value
    cast,       // args: value
    index,      // name: the array; args: one index a dimension
    call,       // name: an intrinsic (intrinsics.h) or a function of the kernel; args
    if_expr,    // args: condition, then, else
    shape,      // name: the array; integer: the axis. Type u64
  };
  Kind kind = Kind::literal;
  // Of the value; unset for arrays and calls without result. Given for literal and cast, computed
  // for the others.
  std::optional<DType> type = {};
  std::string name = {};
  BinaryOp binary = BinaryOp::add;
  UnaryOp unary = UnaryOp::neg;
  uint64_t integer = 0;  // two's complement for signed types; 0 or 1 for bool
  double number = 0;
  std::vector<Expr> args = {};

  bool operator==(const Expr&) const = default;
};

struct Stmt {
  enum class Kind : uint8_t {
    let,     // name, type, values: [initial value] or none
    shared,  // name, type, extents: memory of the block; kernels only, outside loops
    assign,  // target: var or index; values: [value]
    if_,     // values: [condition], body, orelse
    for_,    // name, type, values: [start, stop, step], body
    while_,  // values: [condition], body
    break_,
    continue_,
    return_,     // values: [value] in a function with a result, none elsewhere
    expression,  // values: [call]
    barrier,
    fence,
    parallel_map_unary,   // arrays: input, output; function; values: [count]
    parallel_map_binary,  // arrays: left, right, output; function; values: [count]
    parallel_reduce,      // arrays: input, output; function: add, mul, min, max; values: [count]
  };
  Kind kind = Kind::let;
  std::string name = {};
  DType type = DType::f32;
  std::vector<Expr> values = {};
  Expr target = {};
  std::vector<Stmt> body = {};
  std::vector<Stmt> orelse = {};
  std::vector<uint32_t> extents = {};
  std::vector<std::string> arrays = {};
  std::string function = {};
  // Where it stands in the source, for messages; 0 when there is none.
  uint32_t line = 0;
  uint32_t column = 0;

  bool operator==(const Stmt&) const = default;
};

struct Param {
  std::string name;
  DType type = DType::f32;
  uint32_t rank = 0;  // 0: a scalar; otherwise an array of that many dimensions

  bool is_array() const { return rank > 0; }
  bool operator==(const Param&) const = default;
};

// A helper: every call is replaced by its body. Not recursive.
struct Function {
  std::string name;
  std::vector<Param> params;
  std::optional<DType> result;
  std::vector<Stmt> body;

  bool operator==(const Function&) const = default;
};

// How many threads a kernel wants when its caller does not say: expressions over its scalar
// parameters and the shapes of its arrays, evaluated on the host.
struct Launch {
  std::vector<Expr> threads;  // 1 to 3
  std::array<uint32_t, 3> block = {256, 1, 1};

  bool operator==(const Launch&) const = default;
};

struct Kernel {
  std::string name;
  std::string doc;
  std::vector<Param> params;
  std::optional<Launch> launch;
  std::vector<Stmt> body;
  std::vector<Function> functions;  // those that the kernel reaches

  bool operator==(const Kernel&) const = default;
};

}  // namespace hologram::lang::ir
