#include "support/shape.h"

#include <charconv>

namespace hologram {

bool Shape::is_static() const {
  for (const Dim& dim : dims_)
    if (dim.is_symbol()) return false;
  return true;
}

Result<uint64_t> Shape::element_count() const {
  uint64_t count = 1;
  bool empty = false;
  for (const Dim& dim : dims_) {
    if (dim.is_symbol())
      return fail(ErrorCode::invalid_argument, "shape {} has the unbound symbol '{}'", to_string(),
                  dim.symbol());
    if (dim.value() < 0)
      return fail(ErrorCode::invalid_argument, "shape {} has a negative dimension", to_string());
    if (dim.value() == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, static_cast<uint64_t>(dim.value()), &count)) {
      return fail(ErrorCode::out_of_range, "shape {} has more elements than 64 bits count",
                  to_string());
    }
  }
  return empty ? 0 : count;
}

Result<std::vector<int64_t>> Shape::to_vector() const {
  std::vector<int64_t> values;
  values.reserve(dims_.size());
  for (const Dim& dim : dims_) {
    if (dim.is_symbol())
      return fail(ErrorCode::invalid_argument, "shape {} has the unbound symbol '{}'", to_string(),
                  dim.symbol());
    values.push_back(dim.value());
  }
  return values;
}

Result<Shape> Shape::bind(const SymbolBindings& bindings) const {
  Shape bound = *this;
  for (Dim& dim : bound.dims_) {
    if (!dim.is_symbol()) continue;
    const auto found = bindings.find(dim.symbol());
    if (found == bindings.end())
      return fail(ErrorCode::invalid_argument, "symbol '{}' of shape {} has no value", dim.symbol(),
                  to_string());
    if (found->second < 0)
      return fail(ErrorCode::invalid_argument, "symbol '{}' cannot be {}", dim.symbol(),
                  found->second);
    dim = Dim(found->second);
  }
  return bound;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (size_t i = 0; i < dims_.size(); ++i) text += (i ? ", " : "") + dims_[i].to_string();
  return text + "]";
}

Result<Shape> Shape::parse(std::string_view text) {
  const auto trim = [](std::string_view s) {
    while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
    while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
    return s;
  };
  std::string_view rest = trim(text);
  if (rest.starts_with('[') != rest.ends_with(']') || rest == "[")
    return fail(ErrorCode::parse_error, "shape '{}' has a bracket without its partner", text);
  if (rest.starts_with('[')) rest = trim(rest.substr(1, rest.size() - 2));
  Shape shape;
  if (rest.empty()) return shape;
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view item = trim(rest.substr(0, comma));
    if (item.empty())
      return fail(ErrorCode::parse_error, "shape '{}' has an empty dimension", text);
    if (item[0] == '-' || (item[0] >= '0' && item[0] <= '9')) {
      int64_t value = 0;
      const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), value);
      if (error != std::errc() || end != item.data() + item.size() || value < 0)
        return fail(ErrorCode::parse_error,
                    "'{}' in shape '{}' is not a dimension: write a number from 0 or a name", item,
                    text);
      shape.dims_.emplace_back(value);
    } else {
      shape.dims_.emplace_back(std::string(item));
    }
    if (comma == std::string_view::npos) return shape;
    rest = rest.substr(comma + 1);
  }
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.rank(), b.rank());
  std::vector<Dim> dims;
  dims.reserve(rank);
  for (size_t i = 0; i < rank; ++i) {
    const Dim one(1);
    const Dim& x = i + a.rank() < rank ? one : a[i + a.rank() - rank];
    const Dim& y = i + b.rank() < rank ? one : b[i + b.rank() - rank];
    if (x == y || y == one) {
      dims.push_back(x);
    } else if (x == one) {
      dims.push_back(y);
    } else {
      return fail(ErrorCode::shape_mismatch,
                  "shapes {} and {} do not broadcast: {} and {} differ and neither is 1",
                  a.to_string(), b.to_string(), x.to_string(), y.to_string());
    }
  }
  return Shape(std::move(dims));
}

}  // namespace hologram
