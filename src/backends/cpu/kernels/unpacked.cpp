#include "backends/cpu/kernels/unpacked.h"

#include "backends/cpu/kernels/convert.h"
#include "backends/cpu/kernels/converted_memory.h"

namespace hologram::kernels {
namespace {

// As many T as there are operands. A kernel does not allocate: only a Concat or Split of very many
// tensors leaves the stack.
template <typename T>
class Few {
 public:
  explicit Few(size_t count) : many_(count > kFew ? count : 0), count_(count) {}
  T& operator[](size_t index) { return span()[index]; }
  std::span<T> span() { return {many_.empty() ? few_ : many_.data(), count_}; }

 private:
  static constexpr size_t kFew = 16;
  T few_[kFew];
  std::vector<T> many_;
  size_t count_;
};

}  // namespace

Status run_unpacked(KernelFunction kernel, KernelContext& context) {
  const size_t input_count = context.input_count(), output_count = context.output_count();
  bool any = false;
  for (size_t i = 0; i < input_count; ++i)
    any |= context.input_value(i).is_tensor() && is_packed(context.input(i).dtype);
  for (size_t i = 0; i < output_count; ++i) any |= is_packed(context.output_type(i));
  if (!any) return kernel(context);

  Few<Value> whole(input_count), outputs(output_count);
  Few<const Value*> inputs(input_count);
  Few<DType> types(output_count);
  for (size_t i = 0; i < input_count; ++i) {
    inputs[i] = &context.input_value(i);
    if (!inputs[i]->is_tensor() || !is_packed(inputs[i]->tensor.dtype)) continue;
    const Tensor& packed = context.input(i);
    Tensor bytes{DType::u8, packed.dims};
    HOLOGRAM_TRY(bytes.data, context.memory().scratch(bytes.bytes()));
    unpack_sub_byte(packed.dtype, packed.data, packed.count(), bytes.as<uint8_t>());
    whole[i] = Value(std::move(bytes));
    inputs[i] = &whole[i];
  }
  for (size_t i = 0; i < output_count; ++i)
    types[i] = is_packed(context.output_type(i)) ? DType::u8 : context.output_type(i);
  ConvertedMemory memory(context);
  KernelContext inner(inputs.span(), outputs.span(), types.span(), context.attributes(), memory,
                      context.threads());
  HOLOGRAM_CHECK(kernel(inner));
  for (size_t i = 0; i < output_count; ++i) {
    if (!is_packed(context.output_type(i)) || !outputs[i].is_tensor()) continue;
    const Tensor& bytes = outputs[i].tensor;
    HOLOGRAM_TRY(Tensor packed, context.output(i, bytes.dims));
    pack_sub_byte(packed.dtype, bytes.as<uint8_t>(), bytes.count(), packed.data);
  }
  return {};
}

}  // namespace hologram::kernels
