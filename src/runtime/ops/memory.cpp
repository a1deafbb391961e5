#include "runtime/ops/memory.h"

#include "runtime/ops/elementwise.h"

namespace hologram::runtime::ops {

Status copy(const Executor& executor, const Tensor& from, const Tensor& to) {
  HOLOGRAM_CHECK(check_input(executor, "copy", from));
  HOLOGRAM_TRY(const Tensor source,
               in_context(from.broadcast_to(to.dims()), [] { return "copy"; }));
  HOLOGRAM_CHECK(check_output(executor, "copy", to, from.type(), to.dims()));
  return copy_elements(source, to);
}

Status fill(const Executor& executor, const Tensor& out, Scalar value) {
  HOLOGRAM_CHECK(check_output(executor, "fill", out, out.type(), out.dims()));
  HOLOGRAM_TRY(const uint64_t bits, in_context(value.bits_as(out.type()), [] { return "fill"; }));
  if (out.element_count() == 0) return {};
  // Filled as words of the same size, whatever they mean.
  constexpr DType kWords[] = {DType::u8, DType::u16, DType::u32, DType::u64};
  for (const DType word : kWords) {
    if (size_of(word) != size_of(out.type())) continue;
    HOLOGRAM_TRY(const Tensor words,
                 Tensor::over(out.storage(), word, out.dims(), out.strides(), out.offset()));
    return run_elementwise(executor, ElementwiseOp::fill, {}, {&bits, 1}, words);
  }
  return fail(ErrorCode::unsupported, "fill of {}", out.to_string());
}

Result<Tensor> full(const Executor& executor, DType type, const Dims& dims, Scalar value) {
  HOLOGRAM_TRY(const Tensor out, executor.empty(type, dims));
  HOLOGRAM_CHECK(fill(executor, out, value));
  return out;
}

}  // namespace hologram::runtime::ops
