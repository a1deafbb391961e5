// Tensor: a typed, strided view of storage. Cheap to copy: copies and views share the storage.
//
// Views (reshape where strides allow, transpose, permute, slice, narrow, select, broadcast_to, ...)
// cost no memory and see each other's writes. Strides count elements and may be zero (broadcast) or
// negative (reversed). A tensor is a value: reading it from several threads is safe, and so is
// writing to parts that do not overlap.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "runtime/dims.h"
#include "runtime/storage.h"
#include "support/dtype.h"
#include "support/result.h"

namespace hologram::runtime {

class alignas(64) Tensor {
 public:
  // No elements and no storage; every function that needs either refuses it.
  Tensor() = default;
  // Element (i, j, ...) lies at offset + i * strides[0] + j * strides[1] ... elements. Refuses what
  // would reach outside the storage, a misaligned address, and types without whole bytes.
  static Result<Tensor> over(std::shared_ptr<Storage> storage, DType type, const Dims& dims,
                             const Dims& strides, int64_t offset = 0);
  // Row-major without gaps.
  static Result<Tensor> over(std::shared_ptr<Storage> storage, DType type, const Dims& dims,
                             int64_t offset = 0);

  DType type() const { return type_; }
  size_t rank() const { return dims_.size(); }
  const Dims& dims() const { return dims_; }
  int64_t dim(size_t axis) const { return dims_[axis]; }
  const Dims& strides() const { return strides_; }
  int64_t element_count() const { return count_; }
  // Row-major without gaps.
  bool is_contiguous() const { return contiguous_; }
  bool has_storage() const { return storage_ != nullptr; }
  bool writable() const { return writable_; }
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  // Where it lies; null without storage.
  const backends::Backend* backend() const { return backend_; }
  // Of its elements, without gaps.
  uint64_t byte_count() const { return bytes_; }
  // Of element (0, 0, ...), on the backend.
  void* address() const { return address_; }
  int64_t offset() const;
  // "f32[2, 3]"
  std::string to_string() const;

  // --- Views; negative axes and indices count from the end
  // ----------------------------------------- One dimension may be -1. A view where strides allow
  // it, else a contiguous copy.
  Result<Tensor> reshape(const Dims& dims) const;
  Result<Tensor> transpose(int64_t axis_a = -2, int64_t axis_b = -1) const;
  // Axis i of the result is axis order[i].
  Result<Tensor> permute(std::span<const int64_t> order) const;
  Result<Tensor> permute(std::initializer_list<int64_t> order) const {
    return permute(std::span(order.begin(), order.size()));
  }
  // Elements begin, begin + step, ... before end (after it for a negative step). Out of range is
  // refused, not clamped. For a negative step, end = -size - 1 means "to the first element".
  Result<Tensor> slice(int64_t axis, int64_t begin, int64_t end, int64_t step = 1) const;
  Result<Tensor> narrow(int64_t axis, int64_t start, int64_t length) const;
  // One index along an axis; the axis is gone.
  Result<Tensor> select(int64_t axis, int64_t index) const;
  Result<Tensor> squeeze(int64_t axis) const;
  Result<Tensor> unsqueeze(int64_t axis) const;
  // NumPy's rule; the new or stretched axes have stride 0.
  Result<Tensor> broadcast_to(const Dims& dims) const;
  // Itself where it is contiguous, else a contiguous copy.
  Result<Tensor> contiguous() const;
  // Always a copy, contiguous.
  Result<Tensor> clone() const;

  // --- Elements
  // ------------------------------------------------------------------------------------ The
  // elements in place, without copying: contiguous tensors in host memory only.
  template <typename T>
  Result<std::span<T>> view() const {
    HOLOGRAM_CHECK(check_view(dtype_of<std::remove_const_t<T>>(), !std::is_const_v<T>));
    return std::span<T>(static_cast<T*>(address_), static_cast<size_t>(count_));
  }
  // A copy in row-major order, from any backend and with any strides.
  template <typename T>
  Result<std::vector<T>> to_vector() const {
    HOLOGRAM_CHECK(check_type(dtype_of<T>()));
    std::vector<T> values(static_cast<size_t>(count_));
    HOLOGRAM_CHECK(read_bytes(std::as_writable_bytes(std::span(values))));
    return values;
  }
  // Row-major elements into this tensor; as many as it has.
  template <typename T>
  Status copy_from(std::span<const T> values) const {
    HOLOGRAM_CHECK(check_type(dtype_of<T>()));
    return write_bytes(std::as_bytes(values));
  }
  Status read_bytes(std::span<std::byte> to) const;
  Status write_bytes(std::span<const std::byte> from) const;

 private:
  Status check_type(DType type) const;
  Status check_view(DType type, bool write) const;
  Result<size_t> axis_of(int64_t axis) const;
  // The same storage seen otherwise; `by` elements further on.
  Tensor seen_as(const Dims& dims, const Dims& strides, int64_t by = 0) const;
  void settle();

  // What the fast paths of ops look at, up to the number of dimensions, is one cache line.
  std::shared_ptr<Storage> storage_;
  const backends::Backend* backend_ = nullptr;
  void* address_ = nullptr;
  int64_t count_ = 0;
  uint64_t bytes_ = 0;
  DType type_ = DType::f32;
  bool contiguous_ = true;
  bool writable_ = false;
  Dims dims_{0};
  Dims strides_{1};
};

// Elements of `from` into `to`: same type and shape, on the same backend; they may overlap.
Status copy_elements(const Tensor& from, const Tensor& to);

}  // namespace hologram::runtime
