#include "backends/cpu/kernels/tensor.h"

#include <cstring>
#include <new>

#include "support/aligned.h"

namespace hologram::kernels {

Status check_dims(const Dims& dims) {
  if (dims.are_possible()) return {};
  if (std::ranges::any_of(dims, [](int64_t dim) { return dim < 0; }))
    return fail(ErrorCode::shape_mismatch, "negative dimension in {}", dims.to_string());
  return fail(ErrorCode::resource_exhausted, "a tensor of shape {} is too large", dims.to_string());
}

Status check_strings(int64_t count) {
  constexpr int64_t kMost = 1 << 27;
  std::unique_ptr<std::byte[]> probe;
  if (count <= kMost)
    probe.reset(new (std::nothrow) std::byte[static_cast<size_t>(count) * sizeof(std::string)]);
  if (probe) return {};
  return fail(ErrorCode::resource_exhausted, "a tensor of {} strings is too large", count);
}

Result<Tensor> Tensor::allocate(DType dtype, const Dims& dims) {
  HOLOGRAM_CHECK(check_dims(dims));
  Tensor tensor{dtype, dims};
  const auto count = static_cast<uint64_t>(dims.count());
  if (dtype == DType::string) {
    HOLOGRAM_CHECK(check_strings(dims.count()));
    return from_strings(dims, std::vector<std::string>(count));
  }
  HOLOGRAM_TRY(AlignedBytes bytes,
               AlignedBytes::allocate(std::max<size_t>(1, bytes_for(dtype, count))));
  auto owner = std::make_shared<AlignedBytes>(std::move(bytes));
  tensor.data = owner->data();
  tensor.owner = std::move(owner);
  return tensor;
}

std::byte* no_elements() {
  alignas(kAlignment) static std::byte memory[kAlignment];
  return memory;
}

Result<Tensor> Tensor::from_strings(const Dims& dims, std::vector<std::string> strings) {
  if (static_cast<int64_t>(strings.size()) != dims.count())
    return fail(ErrorCode::shape_mismatch, "{} strings do not fill {}", strings.size(),
                dims.to_string());
  auto owner = std::make_shared<std::vector<std::string>>(std::move(strings));
  Tensor tensor{DType::string, dims};
  tensor.data = owner->empty() ? no_elements() : reinterpret_cast<std::byte*>(owner->data());
  tensor.owner = std::move(owner);
  return tensor;
}

Result<Tensor> Tensor::clone() const {
  HOLOGRAM_TRY(Tensor copy, allocate(dtype, dims));
  copy_elements(*this, copy);
  return copy;
}

void copy_elements(const Tensor& from, const Tensor& to) {
  if (from.data == to.data) return;
  if (from.dtype == DType::string)
    std::copy_n(from.as<std::string>(), from.count(), to.as<std::string>());
  else if (from.bytes() > 0)
    std::memcpy(to.data, from.data, from.bytes());
}

Result<Value> Value::clone() const {
  if (kind == Kind::none) return Value();
  if (kind == Kind::tensor) {
    HOLOGRAM_TRY(Tensor copy, tensor.clone());
    return Value(std::move(copy));
  }
  std::vector<Value> elements;
  for (const Value& element : *sequence) {
    HOLOGRAM_TRY(Value copy, element.clone());
    elements.push_back(std::move(copy));
  }
  return Value(std::move(elements));
}

}  // namespace hologram::kernels
