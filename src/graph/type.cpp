#include "graph/type.h"

#include "graph/dim.h"

namespace hologram::graph {

std::string ValueType::to_string() const {
  switch (kind) {
    case Kind::unknown:
      return "?";
    case Kind::tensor:
      return std::string(name_of(dtype)) + (shape ? shape->to_string() : "[...]");
    case Kind::sequence:
      return "seq(" + element->to_string() + ")";
    case Kind::optional:
      return "optional(" + element->to_string() + ")";
  }
  return "?";
}

bool same_types(const ValueType& a, const ValueType& b) {
  if (a.kind != b.kind) return false;
  if (a.is_tensor()) return a.dtype == b.dtype;
  return !a.element || same_types(*a.element, *b.element);
}

std::optional<ValueType> common_type(const ValueType& a, const ValueType& b) {
  if (a.kind != b.kind) return std::nullopt;
  if (!a.is_tensor()) {
    auto element = common_type(*a.element, *b.element);
    if (!element) return std::nullopt;
    return a.kind == ValueType::Kind::sequence ? ValueType::sequence(*element)
                                               : ValueType::optional(*element);
  }
  if (a.dtype != b.dtype) return std::nullopt;
  ValueType type = ValueType::tensor(a.dtype);
  if (!a.shape || !b.shape || a.shape->rank() != b.shape->rank()) return type;
  std::vector<Dim> dims;
  for (size_t i = 0; i < a.shape->rank(); ++i)
    dims.push_back((*a.shape)[i] == (*b.shape)[i] ? (*a.shape)[i] : unknown_dim());
  type.shape = Shape(std::move(dims));
  return type;
}

}  // namespace hologram::graph
