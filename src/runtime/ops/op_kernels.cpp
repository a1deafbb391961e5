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

Result<const backends::Builtin*> OpKernels::find_builtin(BuiltinOp op, DType type) {
  const std::string_view name = kBuiltinOpNames[static_cast<size_t>(op)];
  const backends::Builtin* found =
      backend_->find_builtin(std::string(name) + "_" + std::string(name_of(type)));
  if (!found)
    return fail(ErrorCode::unsupported, "{} of {} is not supported on backend '{}'", name,
                name_of(type), backend_->capabilities().backend);
  builtins_[static_cast<size_t>(op)][static_cast<size_t>(type)].store(found,
                                                                      std::memory_order_release);
  return found;
}

}  // namespace hologram::runtime
