// Arithmetic on dimensions. Numbers are computed; symbols give a new symbol whose name is the
// expression in a canonical form, such as "(batch*seq)", so equal expressions are equal symbols.
// The name "?" is a dimension nothing is known about; it is equal to nothing, not even itself.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "support/shape.h"

namespace hologram::graph {

Dim unknown_dim();
bool is_unknown(const Dim& dim);
// Both known to be the same.
bool equal_dims(const Dim& a, const Dim& b);
bool equal_shapes(const Shape& a, const Shape& b);

Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
// Rounds down.
Dim operator/(const Dim& a, const Dim& b);
// Rounds up.
Dim ceil_div(const Dim& a, const Dim& b);
Dim product(std::span<const Dim> dims);
// The smaller, the larger; written "(a<b)" and "(a>b)".
Dim smaller(const Dim& a, const Dim& b);
Dim larger(const Dim& a, const Dim& b);

// NumPy's broadcasting; a symbol against another symbol or against a number other than 1 takes the
// number, or is unknown. Two different numbers, neither 1, fail.
Result<Dim> broadcast_dim(const Dim& a, const Dim& b);
Result<Shape> broadcast_shapes(const Shape& a, const Shape& b);

// The value of a dimension under bindings of its symbols; nullopt for unknown ones.
std::optional<int64_t> evaluate(const Dim& dim, const SymbolBindings& bindings);

}  // namespace hologram::graph
