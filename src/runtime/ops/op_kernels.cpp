#include "runtime/ops/op_kernels.h"

#include "runtime/embedded_bundle.h"

namespace hologram::runtime {

Result<const backends::Kernel*> OpKernels::find(std::string_view name) {
  std::lock_guard lock(mutex_);
  if (const auto at = loaded_.find(name); at != loaded_.end()) return at->second.get();
  const KernelBundle& bundle = embedded_bundle();
  const std::optional<size_t> index = bundle.find(name);
  if (!index)
    return fail(ErrorCode::not_found, "there is no standard kernel '{}' among the {} of this build",
                name, bundle.size());
  HOLOGRAM_TRY(isa::Program program, bundle.program(*index));
  HOLOGRAM_TRY(auto kernel, backend_->load(std::move(program), bundle.native(*index)));
  return loaded_.emplace(name, std::move(kernel)).first->second.get();
}

Result<const backends::Kernel*> OpKernels::load_elementwise(ElementwiseOp op, Variant variant,
                                                            DType type) {
  if (!has_program(op, variant, type))
    return fail(ErrorCode::unsupported, "{} of {} is not supported; it takes {}", info(op).name,
                name_of(type), describe(info(op).types));
  HOLOGRAM_TRY(const backends::Kernel* kernel, find(program_name(op, variant, type)));
  Slot& slot =
      programs_[static_cast<size_t>(op)][static_cast<size_t>(variant)][static_cast<size_t>(type)];
  std::lock_guard lock(mutex_);
  if (!slot.kernel.load(std::memory_order_relaxed)) {
    slot.direct = kernel->direct();
    slot.kernel.store(kernel, std::memory_order_release);
  }
  return kernel;
}

Result<const backends::Kernel*> OpKernels::load_rows(RowOp op, DType element, DType result) {
  if (!has_row_program(op, element, result))
    return fail(ErrorCode::unsupported, "{} of {} is not supported; it takes {}", info(op).name,
                name_of(element),
                describe(op < RowOp::softmax ? TypeSet::numbers : TypeSet::floats));
  HOLOGRAM_TRY(const backends::Kernel* kernel, find(row_program_name(op, element, result)));
  rows_[place(op, element, result)].store(kernel, std::memory_order_release);
  return kernel;
}

Status OpKernels::load_flat(RowOp op) {
  if (loaded_flat(op)) return {};
  HOLOGRAM_TRY(const backends::Kernel* kernel, find(info(op).kernel));
  if (!kernel->direct().entry) return {};
  Slot& slot = flat_rows_[static_cast<size_t>(op)];
  std::lock_guard lock(mutex_);
  if (slot.kernel.load(std::memory_order_relaxed)) return {};
  slot.direct = kernel->direct();
  slot.kernel.store(kernel, std::memory_order_release);
  return {};
}

}  // namespace hologram::runtime
