#include "runtime/session/control_state.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/cpu/kernels/kernel.h"

namespace hologram::runtime {

using kernels::Dims;
using kernels::Tensor;
using kernels::Value;

namespace {

// Nobody but the pool holds it.
template <typename T>
bool is_free(const std::shared_ptr<T>& block) {
  return block.use_count() == 1;
}

}  // namespace

Result<Tensor> empty_strings(const std::shared_ptr<std::vector<std::string>>& list,
                             const Dims& dims) {
  const auto count = static_cast<size_t>(dims.count());
  if (list->size() < count) {
    HOLOGRAM_CHECK(kernels::check_strings(dims.count()));
    list->reserve(count);
    list->resize(count);
  }
  for (size_t i = 0; i < count; ++i) (*list)[i].clear();
  Tensor tensor{DType::string, dims};
  tensor.data = list->empty() ? kernels::no_elements() : reinterpret_cast<std::byte*>(list->data());
  tensor.owner = list;
  return tensor;
}

// Always the first: in every run the same strings then find room for what they held in the last.
Result<Tensor> BlockPool::take_strings(const Dims& dims) {
  const auto free = std::ranges::find_if(strings_, is_free<std::vector<std::string>>);
  if (free != strings_.end()) return empty_strings(*free, dims);
  return empty_strings(strings_.emplace_back(std::make_shared<std::vector<std::string>>()), dims);
}

std::shared_ptr<std::vector<Value>> BlockPool::list() {
  std::shared_ptr<std::vector<Value>> first;
  for (auto& list : lists_) {
    if (!is_free(list)) continue;
    list->clear();
    if (!first) first = list;
  }
  if (!first) first = lists_.emplace_back(std::make_shared<std::vector<Value>>());
  return first;
}

void BlockPool::clear() {
  for (auto& list : lists_)
    if (is_free(list)) list->clear();
}

// Four sizes between a power of two and the next.
BlockPool::Blocks& BlockPool::blocks_of(size_t bytes) {
  const size_t size = align_up(bytes, std::max(kAlignment, std::bit_floor(bytes) / 4));
  const auto found = std::ranges::find(blocks_, size, &Blocks::size);
  return found != blocks_.end() ? *found : blocks_.emplace_back(size);
}

Result<Tensor> BlockPool::take(DType dtype, const Dims& dims) {
  if (dtype == DType::string) return take_strings(dims);
  Tensor tensor{dtype, dims};
  Blocks& blocks = blocks_of(std::max<size_t>(tensor.bytes(), 1));
  const size_t count = blocks.all.size();
  size_t at = count;
  for (size_t i = 0; i < count && at == count; ++i)
    if (const size_t place = (blocks.next + i) % count; is_free(blocks.all[place])) at = place;
  if (at == count) {
    HOLOGRAM_TRY(AlignedBytes fresh, AlignedBytes::allocate(blocks.size));
    blocks.all.push_back(std::make_shared<AlignedBytes>(std::move(fresh)));
  }
  blocks.next = at + 1;
  tensor.data = blocks.all[at]->data();
  tensor.owner = blocks.all[at];
  return tensor;
}

Result<Value> BlockPool::copy(const Value& value) {
  if (value.is_sequence()) return value;
  if (!value.is_tensor()) return Value();
  HOLOGRAM_TRY(Tensor tensor, take(value.tensor.dtype, value.tensor.dims));
  kernels::copy_elements(value.tensor, tensor);
  return Value(std::move(tensor));
}

void Stack::clear() { count_ = 0; }

Tensor Stack::part(size_t index) const {
  Tensor tensor{dtype_, dims_};
  const void* first =
      dtype_ == DType::string ? static_cast<const void*>(strings_.data()) : bytes_.data();
  tensor.data = static_cast<std::byte*>(const_cast<void*>(first)) + index * tensor.bytes();
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
    const size_t size = value.tensor.strings().size();
    const size_t needed = (count_ + 1) * size;
    if (strings_.capacity() < needed)  // it doubles
      HOLOGRAM_CHECK(kernels::check_strings(static_cast<int64_t>(2 * needed)));
    if (strings_.size() < needed) strings_.resize(needed);
    kernels::copy_elements(value.tensor, part(count_));
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
  HOLOGRAM_CHECK(kernels::check_dims(dims));
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
  sequences.clear();
  pool.clear();
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
