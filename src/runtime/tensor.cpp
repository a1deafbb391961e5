#include "runtime/tensor.h"

#include <bitset>
#include <cstring>

#include "runtime/layout.h"

namespace hologram::runtime {

Result<Tensor> Tensor::over(std::shared_ptr<Storage> storage, DType type, const Dims& dims,
                            int64_t offset) {
  return over(std::move(storage), type, dims, contiguous_strides(dims), offset);
}

Result<Tensor> Tensor::over(std::shared_ptr<Storage> storage, DType type, const Dims& dims,
                            const Dims& strides, int64_t offset) {
  if (!storage) return fail(ErrorCode::invalid_argument, "a tensor needs storage");
  if (dims.too_many() || strides.too_many())
    return fail(ErrorCode::unsupported, "a tensor has at most {} dimensions", kMaxRank);
  const auto size = static_cast<int64_t>(size_of(type));
  if (size == 0)
    return fail(ErrorCode::unsupported,
                "a tensor of {}: its elements are no whole number of bytes; unpack them first",
                name_of(type));
  const std::optional<int64_t> count = runtime::element_count(dims);
  if (!count)
    return fail(ErrorCode::invalid_argument,
                "a tensor of shape {}: dimensions must not be negative "
                "nor their product pass 2^63",
                dims.to_string());
  if (strides.size() != dims.size())
    return fail(ErrorCode::invalid_argument, "{} dimensions but {} strides", dims.size(),
                strides.size());
  if (*count != 0) {
    // The first and last element touched; strides of either sign.
    int64_t low = offset, high = offset;
    bool fits = true;
    for (size_t i = 0; i < dims.size(); ++i) {
      int64_t reach;
      fits &= !__builtin_mul_overflow(dims[i] - 1, strides[i], &reach);
      fits &= !__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
      if (!fits) break;
    }
    const auto elements = static_cast<int64_t>(storage->size() / static_cast<uint64_t>(size));
    if (!fits || low < 0 || high >= elements)
      return fail(ErrorCode::out_of_range,
                  "a tensor {}{} with strides {} at offset {} reaches outside its storage of {} "
                  "elements",
                  name_of(type), dims.to_string(), strides.to_string(), offset, elements);
    if (reinterpret_cast<uintptr_t>(storage->address()) % static_cast<uint64_t>(size) != 0)
      return fail(ErrorCode::invalid_argument, "storage at {} is not aligned to {} elements",
                  fmt::ptr(storage->address()), name_of(type));
  }
  Tensor tensor;
  tensor.type_ = type;
  tensor.dims_ = dims;
  tensor.strides_ = strides;
  tensor.address_ =
      storage->address() ? storage->address() + (*count ? offset * size : 0) : nullptr;
  tensor.backend_ = storage->backend().get();
  tensor.writable_ = storage->writable();
  tensor.storage_ = std::move(storage);
  tensor.settle();
  return tensor;
}

void Tensor::settle() {
  count_ = *runtime::element_count(dims_);
  bytes_ = static_cast<uint64_t>(count_) * size_of(type_);
  contiguous_ = true;
  int64_t expected = 1;
  for (size_t i = dims_.size(); i-- > 0;) {
    if (dims_[i] == 1) continue;  // its stride is never used
    contiguous_ &= strides_[i] == expected;
    expected *= dims_[i];
  }
  contiguous_ |= count_ == 0;
}

Tensor Tensor::seen_as(const Dims& dims, const Dims& strides, int64_t by) const {
  Tensor other = *this;
  other.dims_ = dims;
  other.strides_ = strides;
  other.settle();
  if (other.count_ != 0)
    other.address_ = static_cast<std::byte*>(address_) + by * static_cast<int64_t>(size_of(type_));
  return other;
}

int64_t Tensor::offset() const {
  if (!storage_) return 0;
  return (static_cast<std::byte*>(address_) - storage_->address()) /
         static_cast<int64_t>(size_of(type_));
}

std::string Tensor::to_string() const { return std::string(name_of(type_)) + dims_.to_string(); }

Result<size_t> Tensor::axis_of(int64_t axis) const {
  const auto rank = static_cast<int64_t>(dims_.size());
  if (axis < -rank || axis >= rank)
    return fail(ErrorCode::out_of_range, "there is no axis {} in {}", axis, to_string());
  return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

// --- Views
// -----------------------------------------------------------------------------------------

Result<Tensor> Tensor::reshape(const Dims& wanted) const {
  Dims dims = wanted;
  std::optional<size_t> free_axis;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != -1) continue;
    if (free_axis)
      return fail(ErrorCode::invalid_argument,
                  "cannot reshape {} to {}: only one dimension may be -1", to_string(),
                  wanted.to_string());
    free_axis = i;
    dims[i] = 1;
  }
  const std::optional<int64_t> rest = runtime::element_count(dims);
  bool fits = rest.has_value() && !dims.too_many();
  if (fits && free_axis) {
    fits = *rest != 0 && count_ % *rest == 0;
    if (fits) dims[*free_axis] = count_ / *rest;
  } else if (fits) {
    fits = *rest == count_;
  }
  if (!fits)
    return fail(ErrorCode::shape_mismatch, "cannot reshape {} of {} elements to {}", to_string(),
                count_, wanted.to_string());
  if (contiguous_) return seen_as(dims, contiguous_strides(dims));
  if (const auto strides = reshaped_strides(dims_, strides_, dims)) return seen_as(dims, *strides);
  HOLOGRAM_TRY(const Tensor copy, clone());
  return copy.seen_as(dims, contiguous_strides(dims));
}

Result<Tensor> Tensor::transpose(int64_t axis_a, int64_t axis_b) const {
  HOLOGRAM_TRY(const size_t a, axis_of(axis_a));
  HOLOGRAM_TRY(const size_t b, axis_of(axis_b));
  Dims dims = dims_, strides = strides_;
  std::swap(dims[a], dims[b]);
  std::swap(strides[a], strides[b]);
  return seen_as(dims, strides);
}

Result<Tensor> Tensor::permute(std::span<const int64_t> order) const {
  if (order.size() != rank())
    return fail(ErrorCode::invalid_argument, "a permutation of {} axes for {}", order.size(),
                to_string());
  std::bitset<kMaxRank> seen;
  Dims dims(rank(), 0), strides(rank(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    HOLOGRAM_TRY(const size_t axis, axis_of(order[i]));
    if (seen.test(axis))
      return fail(ErrorCode::invalid_argument, "axis {} appears twice in a permutation of {}",
                  order[i], to_string());
    seen.set(axis);
    dims[i] = dims_[axis];
    strides[i] = strides_[axis];
  }
  return seen_as(dims, strides);
}

Result<Tensor> Tensor::slice(int64_t axis, int64_t begin, int64_t end, int64_t step) const {
  HOLOGRAM_TRY(const size_t at, axis_of(axis));
  const int64_t size = dims_[at];
  if (step == 0) return fail(ErrorCode::invalid_argument, "a slice with a step of 0");
  if (begin < 0) begin += size;
  if (end < 0) end += size;
  // A forward slice lies within [0, size]; a backward one starts on an element and may end at -1,
  // just before the first.
  const bool good = step > 0 ? begin >= 0 && begin <= size && end >= 0 && end <= size
                             : begin >= 0 && begin < size && end >= -1 && end < size;
  if (!good)
    return fail(ErrorCode::out_of_range, "slice {}:{}:{} of axis {} of {}", begin, end, step, axis,
                to_string());
  const int64_t distance = step > 0 ? end - begin : begin - end;
  // Steps beyond the axis take one element; the clamp keeps the negation of INT64_MIN away.
  const int64_t stride = step > 0 ? step : -std::max(step, -size - 1);
  Dims dims = dims_, strides = strides_;
  dims[at] = distance <= 0 ? 0 : (distance - 1) / stride + 1;
  if (dims[at] > 1) strides[at] *= step;
  return seen_as(dims, strides, begin * strides_[at]);
}

Result<Tensor> Tensor::narrow(int64_t axis, int64_t start, int64_t length) const {
  HOLOGRAM_TRY(const size_t at, axis_of(axis));
  if (start < 0) start += dims_[at];
  if (start < 0 || length < 0 || start > dims_[at] || length > dims_[at] - start)
    return fail(ErrorCode::out_of_range, "elements {} to {} + {} of axis {} of {}", start, start,
                length, axis, to_string());
  Dims dims = dims_;
  dims[at] = length;
  return seen_as(dims, strides_, start * strides_[at]);
}

Result<Tensor> Tensor::select(int64_t axis, int64_t index) const {
  HOLOGRAM_TRY(const size_t at, axis_of(axis));
  const int64_t from_start = index < 0 ? index + dims_[at] : index;
  if (from_start < 0 || from_start >= dims_[at])
    return fail(ErrorCode::out_of_range, "index {} along axis {} of {}", index, axis, to_string());
  Dims dims = dims_, strides = strides_;
  dims.erase(at);
  strides.erase(at);
  return seen_as(dims, strides, from_start * strides_[at]);
}

Result<Tensor> Tensor::squeeze(int64_t axis) const {
  HOLOGRAM_TRY(const size_t at, axis_of(axis));
  if (dims_[at] != 1)
    return fail(ErrorCode::shape_mismatch, "axis {} of {} is not 1 and cannot be squeezed", axis,
                to_string());
  return select(axis, 0);
}

Result<Tensor> Tensor::unsqueeze(int64_t axis) const {
  const auto rank = static_cast<int64_t>(dims_.size());
  if (axis < -rank - 1 || axis > rank)
    return fail(ErrorCode::out_of_range, "cannot insert axis {} into {}", axis, to_string());
  if (dims_.size() == kMaxRank)
    return fail(ErrorCode::unsupported, "a tensor has at most {} dimensions", kMaxRank);
  const auto at = static_cast<size_t>(axis < 0 ? axis + rank + 1 : axis);
  Dims dims = dims_, strides = strides_;
  dims.insert(at, 1);
  strides.insert(at, at < dims_.size() ? dims_[at] * strides_[at] : 1);
  return seen_as(dims, strides);
}

Result<Tensor> Tensor::broadcast_to(const Dims& dims) const {
  bool fits = dims.size() >= rank() && !dims.too_many() && runtime::element_count(dims).has_value();
  Dims strides(dims.size(), 0);
  for (size_t i = 0; fits && i < rank(); ++i) {
    const size_t at = dims.size() - rank() + i;
    if (dims_[i] == dims[at])
      strides[at] = strides_[i];
    else
      fits = dims_[i] == 1;
  }
  if (!fits)
    return fail(ErrorCode::shape_mismatch, "{} does not broadcast to {}", to_string(),
                dims.to_string());
  return seen_as(dims, strides);
}

Result<Tensor> Tensor::contiguous() const {
  if (contiguous_ && storage_) return *this;
  return clone();
}

Result<Tensor> Tensor::clone() const {
  if (!storage_) return fail(ErrorCode::invalid_argument, "a tensor without storage");
  const auto& backend = storage_->backend();
  HOLOGRAM_TRY(auto memory, backend->allocate(static_cast<uint64_t>(count_) * size_of(type_)));
  HOLOGRAM_TRY(Tensor copy,
               over(std::make_shared<Storage>(backend, std::move(memory)), type_, dims_));
  HOLOGRAM_CHECK(copy_elements(*this, copy));
  return copy;
}

// --- Elements
// --------------------------------------------------------------------------------------

Status Tensor::check_type(DType type) const {
  if (!storage_) return fail(ErrorCode::invalid_argument, "a tensor without storage");
  if (type != type_)
    return fail(ErrorCode::type_mismatch, "{} read or written as {}", to_string(), name_of(type));
  return {};
}

Status Tensor::check_view(DType type, bool write) const {
  HOLOGRAM_CHECK(check_type(type));
  if (!storage_->host_memory())
    return fail(ErrorCode::unsupported, "{} lies on backend '{}', not in host memory; copy it",
                to_string(), storage_->backend()->capabilities().backend);
  if (!contiguous_)
    return fail(ErrorCode::invalid_argument,
                "{} with strides {} is not contiguous; call contiguous() first", to_string(),
                strides_.to_string());
  if (write && !storage_->writable())
    return fail(ErrorCode::invalid_argument, "{} is read-only; view it as const", to_string());
  return {};
}

Status Tensor::read_bytes(std::span<std::byte> to) const {
  const uint64_t bytes = static_cast<uint64_t>(count_) * size_of(type_);
  if (to.size() != bytes)
    return fail(ErrorCode::shape_mismatch, "{} has {} bytes; {} were asked for", to_string(), bytes,
                to.size());
  HOLOGRAM_TRY(const Tensor from, contiguous());
  if (bytes == 0) return {};
  return from.storage_->backend()->read(from.storage_->memory(),
                                        static_cast<uint64_t>(from.offset()) * size_of(type_), to);
}

Status Tensor::write_bytes(std::span<const std::byte> from) const {
  if (!storage_) return fail(ErrorCode::invalid_argument, "a tensor without storage");
  const uint64_t bytes = static_cast<uint64_t>(count_) * size_of(type_);
  if (from.size() != bytes)
    return fail(ErrorCode::shape_mismatch, "{} has {} bytes; {} were given", to_string(), bytes,
                from.size());
  if (!storage_->writable())
    return fail(ErrorCode::invalid_argument, "{} is read-only", to_string());
  if (bytes == 0) return {};
  const auto& backend = storage_->backend();
  if (contiguous_)
    return backend->write(storage_->memory(), static_cast<uint64_t>(offset()) * size_of(type_),
                          from);
  HOLOGRAM_TRY(auto memory, backend->allocate(bytes, backends::Lifetime::short_lived));
  HOLOGRAM_TRY(const Tensor staged,
               over(std::make_shared<Storage>(backend, std::move(memory)), type_, dims_));
  HOLOGRAM_CHECK(staged.write_bytes(from));
  return copy_elements(staged, *this);
}

}  // namespace hologram::runtime
