#include "runtime/session/control_state.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/kernel.h"

namespace hologram::runtime {

using kernels::Dims;
using kernels::Tensor;
using kernels::Value;

Result<Tensor> BlockPool::take(DType dtype, const Dims& dims) {
  if (dtype == DType::string) return Tensor::allocate(dtype, dims);
  Tensor tensor{dtype, dims};
  const size_t bytes = std::max<size_t>(tensor.bytes(), 1);
  const auto is_free = [](const auto& block) { return block.use_count() == 1; };
  auto give = [&](size_t index) {
    next_ = index + 1;
    tensor.data = blocks_[index]->data();
    tensor.owner = blocks_[index];
    return std::move(tensor);
  };
  size_t small = blocks_.size();  // a free block that would have to grow
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const size_t at = (next_ + i) % blocks_.size();
    if (!is_free(blocks_[at])) continue;
    if (blocks_[at]->size() >= bytes) return give(at);
    small = at;
  }
  HOLOGRAM_TRY(AlignedBytes fresh, AlignedBytes::allocate(bytes));
  if (small == blocks_.size()) blocks_.emplace_back();
  blocks_[small] = std::make_shared<AlignedBytes>(std::move(fresh));
  return give(small);
}

Result<Value> BlockPool::copy(const Value& value) {
  if (value.is_sequence()) return value;
  if (!value.is_tensor() || value.tensor.dtype == DType::string) return value.clone();
  HOLOGRAM_TRY(Tensor tensor, take(value.tensor.dtype, value.tensor.dims));
  if (tensor.bytes() > 0) std::memcpy(tensor.data, value.tensor.data, tensor.bytes());
  return Value(std::move(tensor));
}

void Stack::clear() {
  count_ = 0;
  strings_.clear();
}

Tensor Stack::part(size_t index) const {
  if (dtype_ == DType::string) return strings_[index];
  Tensor tensor{dtype_, dims_};
  tensor.data = const_cast<std::byte*>(bytes_.data()) + index * tensor.bytes();
  return tensor;
}

Status Stack::add(const Value& value) {
  if (!value.is_tensor() ||
      (count_ > 0 && (!(value.tensor.dims == dims_) || value.tensor.dtype != dtype_)))
    return fail(ErrorCode::shape_mismatch, "scan outputs of different shapes");
  HOLOGRAM_CHECK(check_addressable(value.tensor.dtype));
  dtype_ = value.tensor.dtype;
  dims_ = value.tensor.dims;
  if (dtype_ == DType::string) {
    HOLOGRAM_TRY(Value copy, value.clone());
    strings_.push_back(std::move(copy.tensor));
  } else {
    const size_t size = value.tensor.bytes(), used = count_ * size;
    if (bytes_.size() < used + size) {
      HOLOGRAM_TRY(AlignedBytes larger, AlignedBytes::allocate(std::max(2 * used, used + size)));
      if (used > 0) std::memcpy(larger.data(), bytes_.data(), used);
      bytes_ = std::move(larger);
    }
    if (size > 0) std::memcpy(bytes_.data() + used, value.tensor.data, size);
  }
  ++count_;
  return {};
}

Result<Tensor> Stack::finish(const Form& form, Allocate allocate) const {
  Dims dims = count_ == 0 ? form.empty : dims_;
  if (dims.rank() == kernels::kMaxRank)
    return fail(ErrorCode::unsupported, "a scan output of rank {}", dims.rank() + 1);
  HOLOGRAM_CHECK(check_addressable(form.dtype));
  HOLOGRAM_TRY(const size_t axis, kernels::normalise_axis(form.axis, dims.rank() + 1));
  const size_t length = std::max(form.length, count_);
  const int64_t outer = dims.product(0, axis), run = dims.product(axis, dims.rank());
  dims.insert(axis, static_cast<int64_t>(length));
  HOLOGRAM_TRY(Tensor result, allocate(form.dtype, dims));
  if (length > count_ && form.dtype != DType::string && result.bytes() > 0)
    std::memset(result.data, 0, result.bytes());
  for (size_t i = 0; i < count_; ++i) {
    const size_t place = form.reversed ? count_ - 1 - i : i;
    copy_rows(part(i), 0, run, result, static_cast<int64_t>(place) * run,
              static_cast<int64_t>(length) * run, outer, run);
  }
  return result;
}

void ControlState::clear() {
  carried.clear();
  scanned.clear();
  for (auto* stacks : {&collected, &batches})
    for (Stack& stack : *stacks) stack.clear();
  for (auto& sequence : sequences)
    if (sequence.use_count() == 1) sequence->clear();
}

void ControlState::begin(std::vector<Stack>& stacks, size_t count) {
  if (stacks.size() != count) stacks.resize(count);
  for (Stack& stack : stacks) stack.clear();
}

void copy_rows(const Tensor& from, int64_t from_at, int64_t from_step, const Tensor& to,
               int64_t to_at, int64_t to_step, int64_t rows, int64_t run) {
  if (run == 0) return;
  const int64_t size = from.dtype == DType::string ? 0 : size_of(from.dtype);
  for (int64_t row = 0; row < rows; ++row, from_at += from_step, to_at += to_step) {
    if (size == 0)
      std::copy_n(from.as<std::string>() + from_at, run, to.as<std::string>() + to_at);
    else
      std::memcpy(to.data + to_at * size, from.data + from_at * size, run * size);
  }
}

Status check_addressable(DType dtype) {
  if (dtype == DType::string || size_of(dtype) > 0) return {};
  return fail(ErrorCode::unsupported, "scan inputs and outputs of type {}", name_of(dtype));
}

}  // namespace hologram::runtime
