#include "backends/cpu/kernels/widened.h"

#include <array>

#include "backends/cpu/kernels/convert.h"
#include "backends/cpu/kernels/converted_memory.h"

namespace hologram::kernels {
namespace {

constexpr size_t kMaxOperands = 32;

bool is_half(DType type) { return type == DType::f16 || type == DType::bf16; }

}  // namespace

bool has_halves(const KernelContext& context) {
  bool half = false;
  for (size_t i = 0; i < context.input_count(); ++i)
    half |= context.has_input(i) && context.input_value(i).is_tensor() &&
            is_half(context.input(i).dtype);
  for (size_t i = 0; i < context.output_count(); ++i) half |= is_half(context.output_type(i));
  return half;
}

Status run_widened(const Kernel& kernel, KernelContext& context) {
  std::array<Value, kMaxOperands> wide_inputs, outputs;
  std::array<const Value*, kMaxOperands> inputs;
  std::array<DType, kMaxOperands> types;
  if (context.input_count() > kMaxOperands || context.output_count() > kMaxOperands)
    return fail(ErrorCode::unsupported, "more than {} half-precision operands", kMaxOperands);
  for (size_t i = 0; i < context.input_count(); ++i) {
    inputs[i] = &context.input_value(i);
    if (!inputs[i]->is_tensor() || !is_half(inputs[i]->tensor.dtype)) continue;
    const Tensor& narrow = context.input(i);
    Tensor wide{DType::f32, narrow.dims};
    HOLOGRAM_TRY(wide.data, context.memory().scratch(wide.bytes()));
    convert_half_to_float(narrow, wide);
    wide_inputs[i] = Value(std::move(wide));
    inputs[i] = &wide_inputs[i];
  }
  for (size_t i = 0; i < context.output_count(); ++i)
    types[i] = is_half(context.output_type(i)) ? DType::f32 : context.output_type(i);
  ConvertedMemory memory(context);
  KernelContext inner(
      {inputs.data(), context.input_count()}, {outputs.data(), context.output_count()},
      {types.data(), context.output_count()}, context.attributes(), memory, context.threads());
  HOLOGRAM_CHECK(kernel.run(inner));
  for (size_t i = 0; i < context.output_count(); ++i) {
    if (!is_half(context.output_type(i)) || !outputs[i].is_tensor()) continue;
    HOLOGRAM_TRY(Tensor narrow, context.output(i, outputs[i].tensor.dims));
    convert_float_to_half(outputs[i].tensor, narrow);
  }
  return {};
}

}  // namespace hologram::kernels
