// Constant: a literal, or what literals give, computed with Python's meaning.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lang/ir.h"
#include "support/dtype.h"

namespace hologram::lang {

// Wide enough for every 64-bit value of either sign, and for sums and products of them.
__extension__ using Int128 = __int128;

struct Constant {
  bool is_float = false;
  Int128 integer = 0;
  double number = 0;

  double as_double() const { return is_float ? number : static_cast<double>(integer); }
};

std::string to_string(const Constant& constant);

// The text of a literal token; nothing when an integer is past 64 bits.
std::optional<Constant> parse_integer(std::string_view text);
Constant parse_float(const std::string& text);

// The value of `op` (a Python operator: + - * / // % ** << >> & | ^). On failure says why.
std::optional<Constant> fold(std::string_view op, const Constant& a, const Constant& b,
                             std::string& why);
// -1, 0 or 1; 2 when one is NaN.
int compare(const Constant& a, const Constant& b);

// Whether an integer constant is a value of an integer type. Floats take every constant.
bool fits(const Constant& constant, DType type);
// A literal of the IR; the constant must fit.
ir::Expr literal(const Constant& constant, DType type);
ir::Expr bool_literal(bool value);

}  // namespace hologram::lang
