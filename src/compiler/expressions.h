// Expressions: dimensions that depend on the inputs' shapes, as the archive stores them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "archive/archive.h"
#include "support/shape.h"

namespace hologram::compiler {

// Adds symbols and expressions to a model, each different one once.
class Expressions {
 public:
  static constexpr int32_t kNone = -1;

  explicit Expressions(archive::ModelT& model) : model_(model) {}

  // A dimension of an input of the outermost graph: a number or a symbol that is bound by it.
  int32_t input_dim(const Dim& dim);
  // A dimension of any value; kNone where it is more than arithmetic on the symbols known so far
  // (graph/dim.h writes it): then it depends on data.
  int32_t dim(const Dim& dim);
  // The number of elements of a shape.
  int32_t elements(const Shape& shape);

  // The value of an expression where every symbol is `size`; for choosing between plans.
  int64_t estimate(int32_t expression, int64_t size) const;

 private:
  int32_t add(archive::Operation operation, int64_t value, uint32_t a = 0, uint32_t b = 0);
  int32_t parse(std::string_view& text);
  std::optional<int64_t> number(int32_t expression) const;

  archive::ModelT& model_;
  std::map<std::string, uint32_t, std::less<>> symbols_;
  std::map<std::tuple<archive::Operation, int64_t, uint32_t, uint32_t>, int32_t> known_;
};

}  // namespace hologram::compiler
