#include "compiler/expressions.h"

#include <algorithm>
#include <charconv>

#include "archive/expression.h"
#include "graph/dim.h"

namespace hologram::compiler {
namespace {

using archive::Operation;

// Dimensions of graph/dim.h are shorter; names in a model may be of any length.
constexpr size_t kLongest = 1024;

std::optional<Operation> operation_of(char symbol) {
  switch (symbol) {
    case '+':
      return Operation::add;
    case '-':
      return Operation::subtract;
    case '*':
      return Operation::multiply;
    case '/':
      return Operation::divide;
    case '<':
      return Operation::smaller;
    case '>':
      return Operation::larger;
    default:
      return std::nullopt;
  }
}

// Up to the parenthesis that closes the first one; empty where there is none.
std::string_view parenthesised(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0) return text.substr(0, i + 1);
  }
  return {};
}

}  // namespace

int32_t Expressions::add(Operation operation, int64_t value, uint32_t a, uint32_t b) {
  const auto next = static_cast<int32_t>(model_.expressions.size());
  auto [found, fresh] = known_.try_emplace(std::tuple(operation, value, a, b), next);
  if (fresh) model_.expressions.emplace_back(value, a, b, operation);
  return found->second;
}

std::optional<int64_t> Expressions::number(int32_t expression) const {
  const archive::Expression& e = model_.expressions[static_cast<size_t>(expression)];
  if (e.operation() != Operation::number) return std::nullopt;
  return e.value();
}

int32_t Expressions::input_dim(const Dim& dim) {
  if (!dim.is_symbol()) return add(Operation::number, dim.value());
  if (graph::is_unknown(dim)) return kNone;
  auto [found, fresh] =
      symbols_.try_emplace(dim.symbol(), static_cast<uint32_t>(model_.symbols.size()));
  if (fresh) model_.symbols.push_back(dim.symbol());
  return add(Operation::symbol, 0, found->second);
}

int32_t Expressions::parse(std::string_view& text) {
  if (text.empty()) return kNone;
  size_t length = text[0] == '(' ? parenthesised(text).size() : text[0] == '-' ? 1 : 0;
  if (text[0] != '(')
    while (length < text.size() && std::string_view("()+-*/<>").find(text[length]) == text.npos)
      ++length;
  const std::string_view word = text.substr(0, length);
  // A model's own name may look like an expression: a name comes first.
  if (auto found = symbols_.find(word); found != symbols_.end()) {
    text.remove_prefix(length);
    return add(Operation::symbol, 0, found->second);
  }
  if (text[0] == '(') {
    if (word.empty()) return kNone;
    text.remove_prefix(1);
    const int32_t a = parse(text);
    if (a == kNone || text.empty()) return kNone;
    const auto operation = operation_of(text[0]);
    if (!operation) return kNone;
    text.remove_prefix(1);
    const int32_t b = parse(text);
    if (b == kNone || text.empty() || text[0] != ')') return kNone;
    text.remove_prefix(1);
    if (const auto x = number(a), y = number(b); x && y) {
      const int64_t value = archive::apply(*operation, *x, *y);
      return value == archive::kUndefined ? kNone : add(Operation::number, value);
    }
    return add(*operation, 0, static_cast<uint32_t>(a), static_cast<uint32_t>(b));
  }
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || error != std::errc() || end != word.data() + word.size()) return kNone;
  text.remove_prefix(length);
  return add(Operation::number, value);
}

int32_t Expressions::dim(const Dim& dim) {
  if (!dim.is_symbol()) return add(Operation::number, dim.value());
  if (dim.symbol().size() > kLongest) return kNone;
  std::string_view text = dim.symbol();
  if (auto found = symbols_.find(text); found != symbols_.end())
    return add(Operation::symbol, 0, found->second);
  const int32_t result = parse(text);
  return text.empty() ? result : kNone;
}

int32_t Expressions::elements(const Shape& shape) {
  int32_t product = add(Operation::number, 1);
  for (const Dim& d : shape) {
    const int32_t factor = dim(d);
    if (factor == kNone) return kNone;
    const auto x = number(product), y = number(factor);
    if (x && y) {
      const int64_t value = archive::apply(Operation::multiply, *x, *y);
      if (value == archive::kUndefined) return kNone;
      product = add(Operation::number, value);
    } else if (y == 1) {
      continue;
    } else if (x == 1) {
      product = factor;
    } else {
      product = add(Operation::multiply, 0, static_cast<uint32_t>(product),
                    static_cast<uint32_t>(factor));
    }
  }
  return product;
}

int64_t Expressions::estimate(int32_t expression, int64_t size) const {
  const archive::Expression& e = model_.expressions[static_cast<size_t>(expression)];
  if (e.operation() == Operation::number) return e.value();
  if (e.operation() == Operation::symbol) return size;
  const int64_t value = archive::apply(e.operation(), estimate(static_cast<int32_t>(e.a()), size),
                                       estimate(static_cast<int32_t>(e.b()), size));
  return std::max<int64_t>(value, 0);
}

}  // namespace hologram::compiler
