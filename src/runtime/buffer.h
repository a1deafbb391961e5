// Buffer<T>: typed memory on a backend. Movable; tensors made from it share and keep its memory.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "backends/argument.h"
#include "runtime/storage.h"
#include "runtime/tensor.h"
#include "support/dtype.h"
#include "support/result.h"

namespace hologram::runtime {

template <typename T>
class Buffer {
 public:
  Buffer() = default;  // of no elements
  explicit Buffer(std::shared_ptr<Storage> storage, uint64_t count)
      : storage_(std::move(storage)), count_(count) {}

  uint64_t size() const { return count_; }
  const std::shared_ptr<Storage>& storage() const { return storage_; }

  // Copies; `offset` counts elements. out_of_range past the end.
  Status copy_from(std::span<const T> values, uint64_t offset = 0) {
    HOLOGRAM_CHECK(check_range(offset, values.size()));
    if (values.empty()) return {};
    return storage_->backend()->write(storage_->memory(), offset * sizeof(T),
                                      std::as_bytes(values));
  }
  Status copy_to(std::span<T> values, uint64_t offset = 0) const {
    HOLOGRAM_CHECK(check_range(offset, values.size()));
    if (values.empty()) return {};
    return storage_->backend()->read(storage_->memory(), offset * sizeof(T),
                                     std::as_writable_bytes(values));
  }

  // The elements in place, without copying. unsupported on a backend whose memory is not the
  // host's.
  Result<std::span<T>> view() {
    HOLOGRAM_CHECK(check_host());
    return std::span<T>(data(), count_);
  }
  Result<std::span<const T>> view() const {
    HOLOGRAM_CHECK(check_host());
    return std::span<const T>(data(), count_);
  }

  // A tensor over the buffer's elements, from the first.
  Result<Tensor> tensor(const Dims& dims) const {
    return Tensor::over(storage_, dtype_of<T>(), dims);
  }
  Result<Tensor> tensor() const { return tensor({static_cast<int64_t>(count_)}); }

  // As an argument of a launch: read-only, or to be written.
  backends::Argument input(std::string_view name = {}) const {
    return backends::Argument::array_of(dtype_of<T>(), data(), count_, false, name);
  }
  backends::Argument output(std::string_view name = {}) {
    return backends::Argument::array_of(dtype_of<T>(), data(), count_, true, name);
  }

 private:
  T* data() const { return storage_ ? reinterpret_cast<T*>(storage_->address()) : nullptr; }
  Status check_host() const {
    if (!storage_ || storage_->host_memory()) return {};
    return fail(ErrorCode::unsupported,
                "a buffer of backend '{}' does not lie in host memory; use copy_to",
                storage_->backend()->capabilities().backend);
  }
  Status check_range(uint64_t offset, uint64_t count) const {
    if (offset <= count_ && count <= count_ - offset) return {};
    return fail(ErrorCode::out_of_range, "elements {} to {} + {} of a buffer of {}", offset, offset,
                count, count_);
  }

  std::shared_ptr<Storage> storage_;
  uint64_t count_ = 0;
};

}  // namespace hologram::runtime
