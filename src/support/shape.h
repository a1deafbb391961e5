// Shape: the dimensions of a tensor; each a number or a named symbol.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace hologram {

// One dimension: a non-negative number, or a symbol such as "batch" bound later.
class Dim {
 public:
  Dim(int64_t value) : value_(value) {}
  explicit Dim(std::string symbol) : value_(-1), symbol_(std::move(symbol)) {}

  bool is_symbol() const { return !symbol_.empty(); }
  // Only for numbers.
  int64_t value() const { return value_; }
  // Only for symbols.
  const std::string& symbol() const { return symbol_; }
  std::string to_string() const { return is_symbol() ? symbol_ : std::to_string(value_); }
  bool operator==(const Dim&) const = default;

 private:
  int64_t value_;
  std::string symbol_;
};

using SymbolBindings = std::map<std::string, int64_t, std::less<>>;

class Shape {
 public:
  Shape() = default;  // a scalar
  Shape(std::initializer_list<int64_t> dims) : dims_(dims.begin(), dims.end()) {}
  explicit Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}
  explicit Shape(std::span<const int64_t> dims) : dims_(dims.begin(), dims.end()) {}

  size_t rank() const { return dims_.size(); }
  const Dim& operator[](size_t axis) const { return dims_[axis]; }
  Dim& operator[](size_t axis) { return dims_[axis]; }
  const std::vector<Dim>& dims() const { return dims_; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }

  bool is_static() const;
  // Number of elements; fails on symbols, negative dimensions and overflow.
  Result<uint64_t> element_count() const;
  // The dimensions as numbers; fails on symbols.
  Result<std::vector<int64_t>> to_vector() const;
  // Replaces symbols by their values; fails on one that has none.
  Result<Shape> bind(const SymbolBindings& bindings) const;

  // "[batch, 3, 224, 224]"
  std::string to_string() const;
  // The reverse of to_string(); brackets optional.
  static Result<Shape> parse(std::string_view text);

  bool operator==(const Shape&) const = default;

 private:
  std::vector<Dim> dims_;
};

// NumPy's rule: aligned at the right; 1 stretches. Symbols are equal only to themselves.
Result<Shape> broadcast(const Shape& a, const Shape& b);

}  // namespace hologram
