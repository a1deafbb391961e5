#include "lang/constant.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace hologram::lang {
namespace {

constexpr Int128 kLimit = Int128{1} << 100;  // leaves room to detect overflow by comparison

Constant integer(Int128 value) { return {false, value, 0}; }
Constant number(double value) { return {true, 0, value}; }

Int128 floor_div(Int128 a, Int128 b) {
  const Int128 q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

// Python's: the remainder has the divisor's sign, and (a // b) * b + a % b is a.
void float_div_mod(double a, double b, double& quotient, double& modulo) {
  modulo = std::fmod(a, b);
  double div = (a - modulo) / b;
  if (modulo != 0) {
    if ((b < 0) != (modulo < 0)) {
      modulo += b;
      div -= 1;
    }
  } else {
    modulo = std::copysign(0.0, b);
  }
  quotient = div == 0 ? std::copysign(0.0, a / b) : std::floor(div);
  if (div - quotient > 0.5) quotient += 1;
}

std::optional<Constant> fold_floats(std::string_view op, double a, double b, std::string& why) {
  if ((op == "/" || op == "//" || op == "%") && b == 0) {
    why = "division by zero";
    return std::nullopt;
  }
  if (op == "+") return number(a + b);
  if (op == "-") return number(a - b);
  if (op == "*") return number(a * b);
  if (op == "/") return number(a / b);
  if (op == "**") {
    const double value = std::pow(a, b);
    if (std::isnan(value) && !std::isnan(a) && !std::isnan(b)) {
      why = "a negative number has no real power with a fraction";
      return std::nullopt;
    }
    return number(value);
  }
  if (op == "//" || op == "%") {
    double quotient, modulo;
    float_div_mod(a, b, quotient, modulo);
    return number(op == "//" ? quotient : modulo);
  }
  why = fmt::format("{} is for integers", op);
  return std::nullopt;
}

}  // namespace

std::string to_string(const Constant& c) {
  if (c.is_float) return fmt::format("{}", c.number);
  Int128 value = c.integer < 0 ? -c.integer : c.integer;
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value != 0);
  return c.integer < 0 ? "-" + digits : digits;
}

std::optional<Constant> parse_integer(std::string_view text) {
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && text[1] > '9') {
    base = (text[1] | 0x20) == 'x' ? 16 : (text[1] | 0x20) == 'o' ? 8 : 2;
    text.remove_prefix(2);
  }
  Int128 value = 0;
  for (char c : text) {
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    value = value * base + digit;
    if (value > std::numeric_limits<uint64_t>::max()) return std::nullopt;
  }
  return integer(value);
}

Constant parse_float(const std::string& text) { return number(std::strtod(text.c_str(), nullptr)); }

std::optional<Constant> fold(std::string_view op, const Constant& a, const Constant& b,
                             std::string& why) {
  if (a.is_float || b.is_float) return fold_floats(op, a.as_double(), b.as_double(), why);
  const Int128 x = a.integer, y = b.integer;
  std::optional<Int128> value;
  if (op == "/") return fold_floats(op, a.as_double(), b.as_double(), why);
  if (op == "**" && y < 0) return fold_floats(op, a.as_double(), b.as_double(), why);
  if ((op == "//" || op == "%") && y == 0) {
    why = "division by zero";
    return std::nullopt;
  }
  if (op == "+") value = x + y;
  if (op == "-") value = x - y;
  if (op == "&") value = x & y;
  if (op == "|") value = x | y;
  if (op == "^") value = x ^ y;
  if (op == "//") value = floor_div(x, y);
  if (op == "%") value = x - floor_div(x, y) * y;
  if (op == ">>" || op == "<<") {
    if (y < 0) {
      why = "a shift by a negative number";
      return std::nullopt;
    }
    const int by = y > 100 ? 100 : static_cast<int>(y);
    if (op == ">>") value = x >> by;
    if (op == "<<" && (x == 0 || (by < 100 && x < (kLimit >> by) && -x < (kLimit >> by))))
      value = x * (Int128{1} << by);
  }
  Int128 product;
  if (op == "*" && !__builtin_mul_overflow(x, y, &product)) value = product;
  if (op == "**") {
    Int128 power = 1;
    bool small = true;
    const bool unit = x == 0 || x == 1 || x == -1;
    const Int128 count = unit && y > 2 ? 2 + y % 2 : y;
    for (Int128 i = 0; i < count && small; ++i)
      small = !__builtin_mul_overflow(power, x, &power) && power < kLimit && -power < kLimit;
    if (small) value = power;
  }
  if (!value || *value >= kLimit || -*value >= kLimit) {
    why = "the constant is too large";
    return std::nullopt;
  }
  return integer(*value);
}

int compare(const Constant& a, const Constant& b) {
  if (!a.is_float && !b.is_float) return a.integer < b.integer ? -1 : a.integer > b.integer ? 1 : 0;
  const double x = a.as_double(), y = b.as_double();
  if (std::isnan(x) || std::isnan(y)) return 2;
  return x < y ? -1 : x > y ? 1 : 0;
}

bool fits(const Constant& c, DType type) {
  if (is_float(type)) return true;
  if (c.is_float || type == DType::boolean) return false;
  const unsigned bits = bits_of(type);
  if (is_unsigned_integer(type)) return c.integer >= 0 && c.integer < (Int128{1} << bits);
  return c.integer >= -(Int128{1} << (bits - 1)) && c.integer < (Int128{1} << (bits - 1));
}

ir::Expr literal(const Constant& c, DType type) {
  ir::Expr e{ir::Expr::Kind::literal, type};
  if (is_float(type))
    e.number = c.as_double();
  else
    e.integer = static_cast<uint64_t>(c.integer);
  return e;
}

ir::Expr bool_literal(bool value) {
  ir::Expr e{ir::Expr::Kind::literal, DType::boolean};
  e.integer = value;
  return e;
}

}  // namespace hologram::lang
