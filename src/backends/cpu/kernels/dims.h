// kernels: the built-in tensor kernels of the CPU, and the values they work on.
//
// Dims: the dimensions of a tensor at run time. Numbers only, at most 16, never allocates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace hologram::kernels {

inline constexpr size_t kMaxRank = 16;
// Beyond any memory, and bytes and byte offsets of so many still fit 64 bits.
inline constexpr uint64_t kMostElements = uint64_t{1} << 48;
// Nothing bounds the other dimensions of a tensor without elements but this: kernels walk them.
inline constexpr uint64_t kMostWithoutElements = uint64_t{1} << 28;

class Dims {
 public:
  Dims() { clear_few(); }  // a scalar
  Dims(std::initializer_list<int64_t> dims) : Dims(std::span(dims.begin(), dims.size())) {}
  // More than kMaxRank dimensions are cut off; readers of models and archives refuse them first.
  explicit Dims(std::span<const int64_t> dims) : Dims() {
    rank_ = std::min(dims.size(), kMaxRank);
    for (size_t axis = 0; axis < rank_; ++axis) dims_[axis] = dims[axis];
  }
  // A run of a small model copies hundreds of these: what no axis uses stays where it is.
  Dims(const Dims& other) { copy(other); }
  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): copying itself changes nothing
  Dims& operator=(const Dims& other) {
    copy(other);
    return *this;
  }
  static Dims filled(size_t rank, int64_t value) {
    Dims dims;
    dims.rank_ = std::min(rank, kMaxRank);
    std::fill_n(dims.dims_, dims.rank_, value);
    return dims;
  }

  size_t rank() const { return rank_; }
  size_t size() const { return rank_; }
  int64_t operator[](size_t axis) const { return dims_[axis]; }
  int64_t& operator[](size_t axis) { return dims_[axis]; }
  int64_t back() const { return dims_[rank_ - 1]; }
  const int64_t* begin() const { return dims_; }
  const int64_t* end() const { return dims_ + rank_; }
  int64_t* begin() { return dims_; }
  int64_t* end() { return dims_ + rank_; }
  operator std::span<const int64_t>() const { return {dims_, rank_}; }
  void push_back(int64_t value) {
    if (rank_ < kMaxRank) dims_[rank_++] = value;
  }
  void insert(size_t axis, int64_t value) {
    if (rank_ == kMaxRank) return;
    std::copy_backward(dims_ + axis, dims_ + rank_, dims_ + rank_ + 1);
    dims_[axis] = value;
    ++rank_;
  }
  void erase(size_t axis) {
    std::copy(dims_ + axis + 1, dims_ + rank_, dims_ + axis);
    --rank_;
  }

  // Whether a tensor can have them: none negative, and those that are not 0 together at most
  // kMostElements, or kMostWithoutElements where one is 0. Then no product of some of them leaves
  // 64 bits; without elements they might.
  bool are_possible() const {
    uint64_t count = 1, most = kMostElements;
    for (const int64_t dim : *this) {
      if (dim == 0) most = kMostWithoutElements;
      if (dim < 0 || __builtin_mul_overflow(count, std::max<uint64_t>(dim, 1), &count) ||
          count > kMostElements)
        return false;
    }
    return count <= most;
  }

  // The product of dimensions [first, last); 1 for none.
  int64_t product(size_t first, size_t last) const {
    int64_t product = 1;
    for (size_t axis = first; axis < last; ++axis) product = times(product, dims_[axis]);
    return product;
  }
  int64_t count() const { return product(0, rank_); }

  // Row-major strides in elements.
  Dims strides() const {
    Dims strides = filled(rank_, 1);
    for (size_t axis = rank_; axis-- > 1;) strides[axis - 1] = times(strides[axis], dims_[axis]);
    return strides;
  }

  bool operator==(const Dims& other) const {
    return rank_ == other.rank_ && std::equal(begin(), end(), other.begin());
  }
  std::string to_string() const {
    std::string text = "[";
    for (size_t axis = 0; axis < rank_; ++axis)
      text += (axis ? ", " : "") + std::to_string(dims_[axis]);
    return text + "]";
  }

 private:
  // Dimensions that are not possible may be multiplied before they are refused.
  static int64_t times(int64_t a, int64_t b) {
    int64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
  }

  // The first few are copied whether they are used or not: that takes no loop.
  static constexpr size_t kFew = 4;
  void clear_few() {
    for (size_t axis = 0; axis < kFew; ++axis) dims_[axis] = 0;
  }
  void copy(const Dims& other) {
    rank_ = other.rank_;
    for (size_t axis = 0; axis < kFew; ++axis) dims_[axis] = other.dims_[axis];
    if (rank_ > kFew) [[unlikely]]
      for (size_t axis = kFew; axis < rank_; ++axis) dims_[axis] = other.dims_[axis];
  }

  size_t rank_ = 0;
  int64_t dims_[kMaxRank];
};

}  // namespace hologram::kernels
