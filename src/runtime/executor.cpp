#include "runtime/executor.h"

#include "backends/registry.h"
#include "runtime/embedded_bundle.h"
#include "runtime/ops/op_kernels.h"

namespace hologram::runtime {

Result<Executor> Executor::create(const Config& config) {
  HOLOGRAM_TRY(auto backend, backends::create_backend(config));
  return Executor(std::shared_ptr<backends::Backend>(std::move(backend)));
}

Executor::Executor(std::shared_ptr<backends::Backend> backend)
    : backend_(std::move(backend)), op_kernels_(std::make_shared<OpKernels>(backend_)) {}

Result<std::shared_ptr<Storage>> Executor::allocate_storage(DType type, uint64_t count,
                                                            Lifetime lifetime) const {
  const uint64_t size = size_of(type);
  if (size == 0)
    return fail(ErrorCode::unsupported, "memory for {}: its elements are no whole number of bytes",
                name_of(type));
  if (count > ~uint64_t{0} / size)
    return fail(ErrorCode::resource_exhausted, "{} elements of {} are more than memory can address",
                count, name_of(type));
  HOLOGRAM_TRY(auto memory, backend_->allocate(count * size, lifetime));
  return std::make_shared<Storage>(backend_, std::move(memory));
}

Result<Tensor> Executor::empty(DType type, const Dims& dims, Lifetime lifetime) const {
  const std::optional<int64_t> count = element_count(dims);
  if (!count)
    return fail(ErrorCode::invalid_argument,
                "a tensor of shape {}: dimensions must not be negative nor their product pass 2^63",
                dims.to_string());
  HOLOGRAM_TRY(auto storage, allocate_storage(type, static_cast<uint64_t>(*count), lifetime));
  return Tensor::over(std::move(storage), type, dims);
}

Result<Tensor> Executor::borrow_bytes(DType type, const void* address, uint64_t count,
                                      bool writable, const Dims& dims) const {
  if (!backend_->capabilities().host_memory)
    return fail(ErrorCode::unsupported, "backend '{}' cannot use host memory in place; copy it",
                backend_->capabilities().backend);
  auto storage = std::make_shared<Storage>(backend_, const_cast<void*>(address),
                                           count * size_of(type), writable, nullptr, nullptr);
  return Tensor::over(std::move(storage), type, dims);
}

Result<KernelRef> Executor::load(isa::Program program,
                                 std::span<const isa::NativeCode> native) const {
  HOLOGRAM_TRY(auto kernel, backend_->load(std::move(program), native));
  return KernelRef(kernel.release(), [backend = backend_](const Kernel* gone) { delete gone; });
}

Result<KernelRef> Executor::standard_kernel(std::string_view name) const {
  HOLOGRAM_TRY(const Kernel* kernel, op_kernels_->find(name));
  return KernelRef(op_kernels_, kernel);
}

Result<KernelFunction> Executor::standard_function(std::string_view name) const {
  return KernelFunction::from_bundle(embedded_bundle(), name, true);
}

}  // namespace hologram::runtime
