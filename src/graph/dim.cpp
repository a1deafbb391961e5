#include "graph/dim.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <numeric>

namespace hologram::graph {
namespace {

// Longer expressions are not worth keeping apart.
constexpr size_t kLongest = 240;

Dim combine(std::string_view op, const Dim& a, const Dim& b) {
  if (is_unknown(a) || is_unknown(b)) return unknown_dim();
  std::string x = a.to_string(), y = b.to_string();
  if (op != "-" && op != "/") {
    // Symbols first, numbers last; then by name.
    const bool swap = a.is_symbol() == b.is_symbol() ? y < x : b.is_symbol();
    if (swap) std::swap(x, y);
  }
  std::string text = "(" + x + std::string(op) + y + ")";
  if (text.size() > kLongest) return unknown_dim();
  return Dim(std::move(text));
}

bool is(const Dim& dim, int64_t value) { return !dim.is_symbol() && dim.value() == value; }
bool numbers(const Dim& a, const Dim& b) { return !a.is_symbol() && !b.is_symbol(); }

// The smallest integer has no positive of its own type.
bool divides(int64_t a, int64_t b) {
  return b != 0 && !(b == -1 && a == std::numeric_limits<int64_t>::min());
}
int64_t floor_div(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}

// "(x*12)" by '*' is x and 12; nothing where the whole is no such expression of a positive number.
struct Operand {
  Dim of;
  int64_t number;
};
std::optional<Operand> split(const Dim& dim, char op) {
  if (!dim.is_symbol()) return std::nullopt;
  const std::string& text = dim.symbol();
  const size_t at = text.find_last_not_of("0123456789", text.size() - 2);
  if (text.size() < 5 || text.front() != '(' || text.back() != ')' || at < 2 || text[at] != op)
    return std::nullopt;
  const std::string_view of = std::string_view(text).substr(1, at - 1);
  int depth = 0;  // the operation joins the whole of what stands before it
  for (char c : of)
    if ((depth += c == '(' ? 1 : c == ')' ? -1 : 0) < 0) return std::nullopt;
  int64_t number = 0;
  const char *first = text.data() + at + 1, *last = text.data() + text.size() - 1;
  const auto [end, error] = std::from_chars(first, last, number);
  if (depth != 0 || error != std::errc() || end != last || number <= 0) return std::nullopt;
  return Operand{Dim(std::string(of)), number};
}
Operand as_multiple(const Dim& dim) { return split(dim, '*').value_or(Operand{dim, 1}); }

// What a product is made of: symbols by name, and one number.
struct Factors {
  std::vector<std::string> symbols;
  int64_t number = 1;
};

// Takes "((a*b)*12)" apart into a, b and 12; what is no product is one factor. False where the
// numbers together do not fit.
bool collect(std::string_view text, Factors& factors) {
  int64_t number = 0;
  const char *first = text.data(), *last = first + text.size();
  if (const auto [end, error] = std::from_chars(first, last, number);
      error == std::errc() && end == last)
    return !__builtin_mul_overflow(factors.number, number, &factors.number);
  int depth = 0;
  // A model's own name may be anything; combine() writes nothing as long.
  for (size_t i = 0; i < text.size() && text.size() <= kLongest && text.back() == ')'; ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0) break;  // brackets that do not enclose the whole, or its end
    if (depth == 1 && text[i] == '*' && i > 1 && i + 2 < text.size())
      return collect(text.substr(1, i - 1), factors) &&
             collect(text.substr(i + 1, text.size() - i - 2), factors);
  }
  factors.symbols.emplace_back(text);
  return true;
}
std::optional<Factors> factors_of(std::initializer_list<const Dim*> dims) {
  Factors factors;
  for (const Dim* dim : dims)
    if (is_unknown(*dim) || !collect(dim->to_string(), factors)) return std::nullopt;
  std::sort(factors.symbols.begin(), factors.symbols.end());
  return factors;
}

// In one form for every order of the same factors.
Dim multiply(const Factors& factors) {
  if (factors.symbols.empty()) return factors.number;
  Dim result = Dim(factors.symbols[0]);
  for (size_t i = 1; i < factors.symbols.size() && !is_unknown(result); ++i) {
    std::string text = "(" + result.symbol() + "*" + factors.symbols[i] + ")";
    result = text.size() > kLongest ? unknown_dim() : Dim(std::move(text));
  }
  return factors.number == 1 ? result : combine("*", result, factors.number);
}

// Takes away what a dividend and its divisor have in common; whether there was something.
bool cancel(Factors& a, Factors& b) {
  std::vector<std::string> left_of_a, left_of_b;
  std::set_difference(a.symbols.begin(), a.symbols.end(), b.symbols.begin(), b.symbols.end(),
                      std::back_inserter(left_of_a));
  std::set_difference(b.symbols.begin(), b.symbols.end(), a.symbols.begin(), a.symbols.end(),
                      std::back_inserter(left_of_b));
  const int64_t common = std::gcd(a.number, b.number);
  if (common <= 1 && left_of_a.size() == a.symbols.size()) return false;
  a.symbols = std::move(left_of_a);
  b.symbols = std::move(left_of_b);
  a.number /= common;
  b.number /= common;
  return true;
}

// Sums stay far from the ends of 64 bits.
constexpr int64_t kLargestTerm = int64_t{1} << 40;

// `a` plus a number other than 0. Sizes of convolutions come out in one form, "((x+7)/8)", so that
// equal ones are equal: (x+2)-3 is x-1, and x/2+1 is (x+2)/2.
Dim add_number(const Dim& a, int64_t number) {
  if (const auto quotient = split(a, '/');
      quotient && quotient->number < kLargestTerm / std::abs(number))
    return (quotient->of + Dim(number * quotient->number)) / Dim(quotient->number);
  const auto more = split(a, '+'), less = split(a, '-');
  if (more && more->number < kLargestTerm) return more->of + Dim(more->number + number);
  if (less && less->number < kLargestTerm) return less->of + Dim(number - less->number);
  return number > 0 ? combine("+", a, number) : combine("-", a, -number);
}
bool is_term(const Dim& dim) {
  return !dim.is_symbol() && dim.value() < kLargestTerm && dim.value() > -kLargestTerm;
}

struct Parser {
  std::string_view text;
  const SymbolBindings& bindings;
  size_t groups = 0;

  std::optional<int64_t> value() {
    if (text.empty()) return std::nullopt;
    if (text[0] == '(') {
      // A model's own name may be anything; combine() writes nothing as deep.
      if (++groups > kLongest) return std::nullopt;
      text.remove_prefix(1);
      const auto a = value();
      if (!a || text.empty()) return std::nullopt;
      const char op = text[0];
      text.remove_prefix(1);
      const auto b = value();
      if (!b || text.empty() || text[0] != ')') return std::nullopt;
      text.remove_prefix(1);
      int64_t result = 0;
      switch (op) {
        case '+':
          return __builtin_add_overflow(*a, *b, &result) ? std::nullopt : std::optional(result);
        case '-':
          return __builtin_sub_overflow(*a, *b, &result) ? std::nullopt : std::optional(result);
        case '*':
          return __builtin_mul_overflow(*a, *b, &result) ? std::nullopt : std::optional(result);
        case '<':
          return std::min(*a, *b);
        case '>':
          return std::max(*a, *b);
        case '/':
          return divides(*a, *b) ? std::optional(floor_div(*a, *b)) : std::nullopt;
      }
      return std::nullopt;
    }
    size_t length = text[0] == '-' ? 1 : 0;
    while (length < text.size() && std::string_view("()+-*/<>").find(text[length]) == text.npos)
      ++length;
    const std::string_view word = text.substr(0, length);
    text.remove_prefix(length);
    int64_t number;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error == std::errc() && end == word.data() + word.size()) return number;
    auto found = bindings.find(word);
    return found == bindings.end() ? std::nullopt : std::optional(found->second);
  }
};

}  // namespace

Dim unknown_dim() { return Dim(std::string("?")); }
bool is_unknown(const Dim& dim) { return dim.is_symbol() && dim.symbol() == "?"; }
bool equal_dims(const Dim& a, const Dim& b) { return !is_unknown(a) && a == b; }
bool equal_shapes(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (size_t i = 0; i < a.rank(); ++i)
    if (!equal_dims(a[i], b[i])) return false;
  return true;
}

// What does not fit 64 bits is unknown: the kernel refuses it when it sees the numbers.
Dim operator+(const Dim& a, const Dim& b) {
  if (numbers(a, b)) {
    int64_t result;
    return __builtin_add_overflow(a.value(), b.value(), &result) ? unknown_dim() : Dim(result);
  }
  if (is(a, 0)) return b;
  if (is(b, 0)) return a;
  if (is_unknown(a) || is_unknown(b)) return unknown_dim();
  if (is_term(a)) return add_number(b, a.value());
  if (is_term(b)) return add_number(a, b.value());
  return combine("+", a, b);
}
Dim operator-(const Dim& a, const Dim& b) {
  if (numbers(a, b)) {
    int64_t result;
    return __builtin_sub_overflow(a.value(), b.value(), &result) ? unknown_dim() : Dim(result);
  }
  if (is(b, 0)) return a;
  if (equal_dims(a, b)) return 0;
  if (is_unknown(a) || is_unknown(b)) return unknown_dim();
  if (is_term(b)) return add_number(a, -b.value());
  return combine("-", a, b);
}
Dim operator*(const Dim& a, const Dim& b) {
  if (numbers(a, b)) {
    int64_t result;
    return __builtin_mul_overflow(a.value(), b.value(), &result) ? unknown_dim() : Dim(result);
  }
  if (is(a, 0) || is(b, 0)) return 0;
  if (is(a, 1)) return b;
  if (is(b, 1)) return a;
  if (const auto factors = factors_of({&a, &b}); factors && factors->number > 0)
    return multiply(*factors);
  return combine("*", a, b);
}
Dim operator/(const Dim& a, const Dim& b) {
  if (numbers(a, b))
    return divides(a.value(), b.value()) ? Dim(floor_div(a.value(), b.value())) : unknown_dim();
  if (is(b, 1)) return a;
  if (equal_dims(a, b)) return 1;
  // The rest of a reshape, "((batch*seq)*64)/(batch*64)", is seq: a divisor of 0 has no quotient.
  if (b.is_symbol()) {
    auto dividend = factors_of({&a}), divisor = factors_of({&b});
    if (dividend && divisor && dividend->number > 0 && divisor->number > 0 &&
        cancel(*dividend, *divisor))
      return multiply(*dividend) / multiply(*divisor);
  }
  if (!b.is_symbol() && b.value() > 0 && !is_unknown(a)) {
    const Operand multiple = as_multiple(a);
    if (multiple.number % b.value() == 0) return multiple.of * (multiple.number / b.value());
    // Rounding down twice is rounding down once.
    if (const auto quotient = split(a, '/');
        quotient && is_term(b) && quotient->number < kLargestTerm / b.value())
      return combine("/", quotient->of, quotient->number * b.value());
  }
  return combine("/", a, b);
}
Dim ceil_div(const Dim& a, const Dim& b) { return (a + (b - 1)) / b; }
Dim smaller(const Dim& a, const Dim& b) {
  if (numbers(a, b)) return std::min(a.value(), b.value());
  if (equal_dims(a, b)) return a;
  return combine("<", a, b);
}
Dim larger(const Dim& a, const Dim& b) {
  if (numbers(a, b)) return std::max(a.value(), b.value());
  if (equal_dims(a, b)) return a;
  // Sizes are never negative, and only a difference of them can be.
  if (is(b, 0) && !is_unknown(a) && a.symbol().find('-') == std::string::npos) return a;
  return combine(">", a, b);
}
Dim product(std::span<const Dim> dims) {
  Dim result = 1;
  for (const Dim& dim : dims) result = result * dim;
  return result;
}

// Whether `b` is "(a<n)", the smaller of `a` and a number from 1 on. Where the two broadcast, the
// result is `a`.
bool is_smaller_of(const Dim& b, const Dim& a) {
  const std::string start = "(" + a.symbol() + "<";
  const std::string_view text = b.symbol();
  if (!text.starts_with(start) || !text.ends_with(")")) return false;
  const std::string_view number = text.substr(start.size(), text.size() - start.size() - 1);
  return !number.empty() && number != "0" &&
         number.find_first_not_of("0123456789") == std::string_view::npos;
}

Result<Dim> broadcast_dim(const Dim& a, const Dim& b) {
  if (is(a, 1)) return b;
  if (is(b, 1)) return a;
  if (equal_dims(a, b)) return a;
  if (numbers(a, b))
    return fail(ErrorCode::shape_mismatch, "dimensions {} and {} do not broadcast", a.value(),
                b.value());
  if (!a.is_symbol()) return a;
  if (!b.is_symbol()) return b;
  if (is_smaller_of(b, a)) return a;
  if (is_smaller_of(a, b)) return b;
  return unknown_dim();
}

Result<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  std::vector<Dim> dims = longer.dims();
  const size_t shift = longer.rank() - shorter.rank();
  for (size_t i = 0; i < shorter.rank(); ++i) {
    auto dim = broadcast_dim(longer[i + shift], shorter[i]);
    if (!dim)
      return fail(ErrorCode::shape_mismatch, "shapes {} and {} do not broadcast", a.to_string(),
                  b.to_string());
    dims[i + shift] = *dim;
  }
  return Shape(std::move(dims));
}

std::optional<int64_t> evaluate(const Dim& dim, const SymbolBindings& bindings) {
  if (!dim.is_symbol()) return dim.value();
  if (auto found = bindings.find(dim.symbol()); found != bindings.end()) return found->second;
  Parser parser{dim.symbol(), bindings};
  auto value = parser.value();
  return value && parser.text.empty() ? value : std::nullopt;
}

}  // namespace hologram::graph
