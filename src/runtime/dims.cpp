#include "runtime/dims.h"

namespace hologram::runtime {

Result<Dims> Dims::from(const Shape& shape) {
  HOLOGRAM_TRY(const std::vector<int64_t> values, shape.to_vector());
  Dims dims{std::span(values)};
  if (dims.too_many())
    return fail(ErrorCode::unsupported, "a tensor of {} dimensions; at most {} are supported",
                values.size(), kMaxRank);
  return dims;
}

void Dims::insert(size_t at, int64_t value) {
  if (size_ == kMaxRank) {
    too_many_ = true;
    return;
  }
  std::copy_backward(values_.begin() + at, values_.begin() + size_, values_.begin() + size_ + 1);
  values_[at] = value;
  ++size_;
}

void Dims::erase(size_t at) {
  std::copy(values_.begin() + at + 1, values_.begin() + size_, values_.begin() + at);
  --size_;
}

std::string Dims::to_string() const { return fmt::format("[{}]", fmt::join(begin(), end(), ", ")); }

std::optional<int64_t> element_count(const Dims& dims) {
  // A zero anywhere makes the count zero, however large the others are.
  int64_t count = 1;
  for (int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) count = 0;
  }
  for (int64_t dim : dims)
    if (__builtin_mul_overflow(count, dim, &count)) return std::nullopt;
  return count;
}

Dims contiguous_strides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(dims[i], 1);
  return strides;
}

Result<Dims> broadcast_dims(const Dims& a, const Dims& b) {
  Dims result(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < result.size(); ++i) {
    // i counts from the right.
    const int64_t left = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t right = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (left != right && left != 1 && right != 1)
      return fail(ErrorCode::shape_mismatch, "shapes {} and {} do not broadcast: {} against {}",
                  a.to_string(), b.to_string(), left, right);
    result[result.size() - 1 - i] = left == 1 ? right : left;
  }
  return result;
}

}  // namespace hologram::runtime
