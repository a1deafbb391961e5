// graph: tensor programs. Values, nodes, the operator table, inference and passes.
//
// ValueType: what is known of a value before a run.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "support/dtype.h"
#include "support/shape.h"

namespace hologram::graph {

// A tensor of known element type and perhaps known shape; or a sequence or optional of something.
struct ValueType {
  enum class Kind : uint8_t { unknown, tensor, sequence, optional };
  Kind kind = Kind::unknown;
  DType dtype = DType::f32;                  // tensors
  std::optional<Shape> shape;                // tensors; empty: not even the rank is known
  std::shared_ptr<const ValueType> element;  // sequences and optionals

  static ValueType tensor(DType dtype, std::optional<Shape> shape = std::nullopt) {
    return {Kind::tensor, dtype, std::move(shape), nullptr};
  }
  static ValueType sequence(ValueType element) {
    return {Kind::sequence, DType::f32, std::nullopt,
            std::make_shared<const ValueType>(std::move(element))};
  }
  static ValueType optional(ValueType element) {
    return {Kind::optional, DType::f32, std::nullopt,
            std::make_shared<const ValueType>(std::move(element))};
  }

  bool is_tensor() const { return kind == Kind::tensor; }
  bool is_known() const { return kind != Kind::unknown; }
  bool has_static_shape() const { return is_tensor() && shape && shape->is_static(); }
  // The element type of a tensor, or of the tensors inside a sequence or optional.
  DType innermost_dtype() const { return element ? element->innermost_dtype() : dtype; }
  // "f32[2, n]", "seq(i64[?])", "optional(f32)"
  std::string to_string() const;
};

// The same kinds and element types; shapes are not looked at.
bool same_types(const ValueType& a, const ValueType& b);
// What holds of both: dimensions that differ become unknown; nullopt where types differ.
std::optional<ValueType> common_type(const ValueType& a, const ValueType& b);

}  // namespace hologram::graph
