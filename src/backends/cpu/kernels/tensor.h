// Tensor, Value: what flows between the steps of a plan, and what a graph's constants are.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/kernels/dims.h"
#include "support/dtype.h"
#include "support/result.h"

namespace hologram::kernels {

// A dense row-major tensor: a view, and perhaps a share in the memory it looks at. Copying a
// Tensor never copies elements. Without an owner the memory belongs to someone who outlives the
// tensor (an arena, a map, the caller). Elements of a string tensor are std::string objects.
struct Tensor {
  DType dtype = DType::f32;
  Dims dims;
  std::byte* data = nullptr;
  std::shared_ptr<const void> owner;

  int64_t count() const { return dims.count(); }
  uint64_t bytes() const {
    return dtype == DType::string ? count() * sizeof(std::string) : bytes_for(dtype, count());
  }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
  template <typename T>
  std::span<T> span() const {
    return {reinterpret_cast<T*>(data), static_cast<size_t>(count())};
  }
  std::span<std::string> strings() const { return span<std::string>(); }

  // Owned memory, 64-byte aligned, uninitialised (strings: empty).
  static Result<Tensor> allocate(DType dtype, const Dims& dims);
  static Result<Tensor> from_strings(const Dims& dims, std::vector<std::string> strings);
  template <typename T>
  static Result<Tensor> from(const Dims& dims, std::span<const T> elements) {
    HOLOGRAM_TRY(Tensor tensor, allocate(dtype_of<T>(), dims));
    std::copy(elements.begin(), elements.end(), tensor.as<T>());
    return tensor;
  }
  // Owned memory with the same elements.
  Result<Tensor> clone() const;
};

// Refuses dimensions that no tensor can have.
Status check_dims(const Dims& dims);
// Refuses more strings than there is memory for: a vector has no way to say it.
Status check_strings(int64_t count);

// Where a tensor without elements lies: nothing is read or written there, but kernels may compute
// places from it, which they may not from nullptr.
std::byte* no_elements();

// Every element of `from` into `to`, of the same type and count; nothing where they share memory.
// Strings keep the memory that they have grown to.
void copy_elements(const Tensor& from, const Tensor& to);

// A tensor, a sequence of values, or nothing: an optional that is empty. An optional that holds
// something is that something, since the plan knows the static types.
struct Value {
  enum class Kind : uint8_t { none, tensor, sequence };
  Kind kind = Kind::none;
  Tensor tensor;
  std::shared_ptr<const std::vector<Value>> sequence;

  Value() {}  // and not the compiler's, which would clear what is set anyway
  Value(Tensor t) : kind(Kind::tensor), tensor(std::move(t)) {}
  explicit Value(std::vector<Value> elements)
      : kind(Kind::sequence),
        sequence(std::make_shared<const std::vector<Value>>(std::move(elements))) {}

  bool is_tensor() const { return kind == Kind::tensor; }
  bool is_sequence() const { return kind == Kind::sequence; }
  // A value that owns all of its memory.
  Result<Value> clone() const;
};

}  // namespace hologram::kernels
