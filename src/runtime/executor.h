// Executor: runs programs and ops now, on buffers and tensors of one backend.
//
// A handle: copies share the backend and the kernels loaded so far. Safe from any thread.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>

#include "backends/backend.h"
#include "runtime/buffer.h"
#include "runtime/kernel_function.h"
#include "runtime/tensor.h"
#include "support/config.h"
#include "support/result.h"

namespace hologram::runtime {

using backends::Argument;
using backends::Kernel;
using backends::LaunchShape;
using backends::Lifetime;
using backends::PreparedLaunch;
// A loaded program; keeps its backend alive.
using KernelRef = std::shared_ptr<const Kernel>;

class OpKernels;

// In one cache line, for the ops that count them.
class alignas(32) Executor {
 public:
  // On the backend that the configuration names, with its limits.
  static Result<Executor> create(const Config& config = process_config());
  // On a backend made by the caller.
  explicit Executor(std::shared_ptr<backends::Backend> backend);

  backends::Backend& backend() const { return *backend_; }
  const std::shared_ptr<backends::Backend>& shared_backend() const { return backend_; }

  // --- Memory: uninitialised, 64-byte aligned
  // -------------------------------------------------------
  template <typename T>
  Result<Buffer<T>> allocate(uint64_t count, Lifetime lifetime = Lifetime::lasting) const {
    HOLOGRAM_TRY(auto storage, allocate_storage(dtype_of<T>(), count, lifetime));
    return Buffer<T>(std::move(storage), count);
  }
  Result<Tensor> empty(DType type, const Dims& dims, Lifetime lifetime = Lifetime::lasting) const;
  // A tensor with these elements, row-major.
  template <typename T>
  Result<Tensor> tensor(std::span<const T> values, const Dims& dims) const {
    HOLOGRAM_TRY(const Tensor made, empty(dtype_of<T>(), dims));
    HOLOGRAM_CHECK(made.copy_from(values));
    return made;
  }
  template <typename T>
  Result<Tensor> tensor(std::initializer_list<T> values, const Dims& dims) const {
    return tensor(std::span<const T>(values.begin(), values.size()), dims);
  }
  // A tensor over memory the caller keeps alive, without copying; host backends only.
  template <typename T>
  Result<Tensor> borrow(std::span<T> values, const Dims& dims) const {
    return borrow_bytes(dtype_of<std::remove_const_t<T>>(), values.data(), values.size(),
                        !std::is_const_v<T>, dims);
  }

  // --- Programs
  // ------------------------------------------------------------------------------------- Checked
  // by the verifier; see Backend::load.
  Result<KernelRef> load(isa::Program program, std::span<const isa::NativeCode> native = {}) const;
  // A kernel of the standard library, precompiled; not_found with near names otherwise.
  Result<KernelRef> standard_kernel(std::string_view name) const;
  // The same as a function for run(): `run(*executor.standard_function("vector_add"), a, b, c, n)`.
  Result<KernelFunction> standard_function(std::string_view name) const;
  Status launch(const Kernel& kernel, const LaunchShape& shape,
                std::span<const Argument> arguments) const {
    return backend_->launch(kernel, shape, arguments);
  }
  Status launch(const Kernel& kernel, const LaunchShape& shape,
                std::initializer_list<Argument> arguments) const {
    return backend_->launch(kernel, shape, std::span(arguments.begin(), arguments.size()));
  }
  // A compiled kernel (hologram::compile_kernel) on buffers, tensors, host spans and scalars, by
  // position or by name (`named`). Names, types, shapes and counts are checked. As many threads as
  // the kernel's own launch() says.
  template <typename... Arguments>
  requires(std::is_constructible_v<KernelArgument, Arguments&&>&&...) Status
      run(const KernelFunction& kernel, Arguments&&... arguments)
  const {
    const std::array<KernelArgument, sizeof...(Arguments)> list = {
        KernelArgument(std::forward<Arguments>(arguments))...};
    return kernel.run(backend_, nullptr, list);
  }
  // The same over a grid of the caller's.
  template <typename... Arguments>
  requires(std::is_constructible_v<KernelArgument, Arguments&&>&&...) Status
      run(const KernelFunction& kernel, const LaunchShape& shape, Arguments&&... arguments)
  const {
    const std::array<KernelArgument, sizeof...(Arguments)> list = {
        KernelArgument(std::forward<Arguments>(arguments))...};
    return kernel.run(backend_, &shape, list);
  }

  // Checked once, run many times. The kernel must outlive the result.
  Result<std::unique_ptr<PreparedLaunch>> prepare(const Kernel& kernel, const LaunchShape& shape,
                                                  std::initializer_list<Argument> arguments) const {
    return backend_->prepare(kernel, shape, std::span(arguments.begin(), arguments.size()));
  }

  // The ops' kernels, loaded on first use.
  OpKernels& op_kernels() const { return *op_kernels_; }

 private:
  Result<std::shared_ptr<Storage>> allocate_storage(DType type, uint64_t count,
                                                    Lifetime lifetime) const;
  Result<Tensor> borrow_bytes(DType type, const void* address, uint64_t count, bool writable,
                              const Dims& dims) const;

  std::shared_ptr<backends::Backend> backend_;
  std::shared_ptr<OpKernels> op_kernels_;
};

}  // namespace hologram::runtime
