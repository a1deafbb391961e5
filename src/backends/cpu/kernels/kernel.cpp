#include "backends/cpu/kernels/kernel.h"

#include "backends/cpu/kernels/arena.h"
#include "backends/cpu/kernels/widened.h"

namespace hologram::kernels {

Result<size_t> normalise_axis(int64_t axis, size_t rank) {
  const int64_t limit = static_cast<int64_t>(rank);
  if (axis < -limit || axis >= limit)
    return fail(ErrorCode::out_of_range, "axis {} of a tensor of rank {}", axis, rank);
  return static_cast<size_t>(axis < 0 ? axis + limit : axis);
}

Result<size_t> KernelContext::axis(AttributeName name, int64_t fallback, size_t rank) const {
  return normalise_axis(integer(name, fallback), rank);
}

Result<Dims> KernelContext::input_integers(size_t index) const {
  Dims dims;
  if (!has_input(index)) return dims;
  const Tensor& tensor = input(index);
  if (tensor.count() > static_cast<int64_t>(kMaxRank))
    return fail(ErrorCode::unsupported, "{} values where at most {} dimensions can be",
                tensor.count(), kMaxRank);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    if (tensor.dtype == DType::i64)
      dims.push_back(tensor.as<int64_t>()[i]);
    else if (tensor.dtype == DType::i32)
      dims.push_back(tensor.as<int32_t>()[i]);
    else
      return fail(ErrorCode::type_mismatch, "i32 or i64 expected, not {}", name_of(tensor.dtype));
  }
  return dims;
}

Result<Tensor> KernelContext::output(size_t index, const Dims& dims) {
  if (index >= outputs_.size())
    return fail(ErrorCode::internal, "kernel writes output {} of {}", index, outputs_.size());
  HOLOGRAM_CHECK(check_dims(dims));
  Result<Tensor> tensor = memory_.output(index, output_types_[index], dims);
  if (!tensor) return tensor;
  Value& output = outputs_[index];
  output.kind = Value::Kind::tensor;
  output.tensor = *tensor;
  output.sequence.reset();
  return tensor;
}

std::vector<Value>& KernelContext::sequence_output(size_t index) {
  auto list = memory_.sequence();
  outputs_[index] = Value();
  outputs_[index].kind = Value::Kind::sequence;
  outputs_[index].sequence = list;
  return *list;
}

Result<Tensor> KernelContext::element(DType dtype, const Dims& dims) {
  HOLOGRAM_CHECK(check_dims(dims));
  return memory_.element(dtype, dims);
}

Result<Value> KernelContext::element_copy(const Value& value) {
  const Tensor& from = value.tensor;
  HOLOGRAM_TRY(Tensor copy, element(from.dtype, from.dims));
  copy_elements(from, copy);
  return Value(std::move(copy));
}

Status KernelContext::reshape_output(size_t index, const Tensor& input, const Dims& dims) {
  HOLOGRAM_CHECK(check_dims(dims));
  if (dims.count() != input.count())
    return fail(ErrorCode::shape_mismatch, "{} elements of {} do not fill {}", input.count(),
                input.dims.to_string(), dims.to_string());
  HOLOGRAM_TRY(Tensor out, output(index, dims));
  copy_elements(input, out);
  return {};
}

Status run_kernel(const Kernel& kernel, KernelContext& context) {
  const Arena arena(context.memory());
  return kernel.widen_half && has_halves(context) ? run_widened(kernel, context)
                                                  : kernel.run(context);
}

}  // namespace hologram::kernels
