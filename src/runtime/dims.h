// runtime: Executor, Buffer, Tensor and the ops: programs and whole-tensor work, now, on buffers.
//
// Dims: the dimensions or the strides of a tensor, kept in place so that views never allocate.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

#include "support/result.h"
#include "support/shape.h"

namespace hologram::runtime {

inline constexpr size_t kMaxRank = 16;

class Dims {
 public:
  Dims() {}  // of none; the values stay unset
  Dims(std::initializer_list<int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  // Only the first kMaxRank are kept; what takes dimensions from outside calls from() instead.
  explicit Dims(std::span<const int64_t> values) : size_(std::min(values.size(), kMaxRank)) {
    std::copy_n(values.begin(), size_, values_.begin());
    too_many_ = values.size() > kMaxRank;
  }
  Dims(size_t size, int64_t value) : size_(std::min(size, kMaxRank)) {
    std::fill_n(values_.begin(), size_, value);
    too_many_ = size > kMaxRank;
  }
  // Only the values there are: copies touch no more memory than they must.
  Dims(const Dims& other) : size_(other.size_), too_many_(other.too_many_) {
    std::copy_n(other.values_.begin(), size_, values_.begin());
  }
  Dims& operator=(const Dims& other) {
    size_ = other.size_;
    too_many_ = other.too_many_;
    std::copy_n(other.values_.begin(), size_, values_.begin());
    return *this;
  }
  // Fails on symbols and on more than kMaxRank dimensions.
  static Result<Dims> from(const Shape& shape);
  Shape to_shape() const { return Shape(span()); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Whether it was made from more than kMaxRank values; tensors refuse it.
  bool too_many() const { return too_many_; }
  int64_t operator[](size_t i) const { return values_[i]; }
  int64_t& operator[](size_t i) { return values_[i]; }
  const int64_t* begin() const { return values_.data(); }
  const int64_t* end() const { return values_.data() + size_; }
  std::span<const int64_t> span() const { return {begin(), size_}; }
  // At most kMaxRank in all.
  void push_back(int64_t value) { insert(size_, value); }
  void insert(size_t at, int64_t value);
  void erase(size_t at);

  bool operator==(const Dims& other) const {
    // A loop of its own: ranks are small, and a call to compare memory would cost more.
    if (size_ != other.size_) return false;
    for (size_t i = 0; i < size_; ++i)
      if (values_[i] != other.values_[i]) return false;
    return true;
  }
  // "[2, 3]"
  std::string to_string() const;

 private:
  uint32_t size_ = 0;
  bool too_many_ = false;
  std::array<int64_t, kMaxRank> values_;
};

// The product; empty on a negative dimension or where it does not fit 63 bits.
std::optional<int64_t> element_count(const Dims& dims);
// Strides, in elements, of a row-major tensor without gaps.
Dims contiguous_strides(const Dims& dims);
// NumPy's rule: aligned at the right; 1 stretches. shape_mismatch names both.
Result<Dims> broadcast_dims(const Dims& a, const Dims& b);

}  // namespace hologram::runtime
