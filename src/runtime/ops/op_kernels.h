// OpKernels: the kernels that ops launch, loaded from the bundle on first use and kept.
//
// One table a backend, shared by the executors on it. Safe from any thread; after the first use of
// a kernel, finding it is one load.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "backends/backend.h"
#include "runtime/programs/op_table.h"
#include "runtime/programs/row_table.h"
#include "support/result.h"

namespace hologram::runtime {

class OpKernels {
 public:
  explicit OpKernels(std::shared_ptr<backends::Backend> backend) : backend_(std::move(backend)) {}

  // Any kernel of the bundle. not_found names it.
  Result<const backends::Kernel*> find(std::string_view name);

  // A kernel and its direct entry side by side: one look-up, one cache line.
  struct alignas(32) Slot {
    std::atomic<const backends::Kernel*> kernel = nullptr;  // set last
    backends::DirectEntry direct;
  };
  // For the paths that count nanoseconds: the slot if its kernel was loaded before, else null.
  const Slot* loaded(ElementwiseOp op, Variant variant, DType type) const {
    const auto code = static_cast<size_t>(type);
    if (code >= kTypes) return nullptr;
    const Slot& slot = programs_[static_cast<size_t>(op)][static_cast<size_t>(variant)][code];
    return slot.kernel.load(std::memory_order_acquire) ? &slot : nullptr;
  }
  // unsupported, with the types there are, where the op has no kernel for the type.
  Result<const backends::Kernel*> elementwise(ElementwiseOp op, Variant variant, DType type) {
    if (const Slot* slot = loaded(op, variant, type))
      return slot->kernel.load(std::memory_order_relaxed);
    return load_elementwise(op, variant, type);
  }

  // Of the ops over rows: null where the kernel was not loaded before.
  const backends::Kernel* loaded(RowOp op, DType element, DType result) const {
    if (element > DType::f64 || result > DType::f64) return nullptr;
    return rows_[place(op, element, result)].load(std::memory_order_acquire);
  }
  // unsupported where the op has no kernel for the types.
  Result<const backends::Kernel*> rows(RowOp op, DType element, DType result) {
    if (const backends::Kernel* kernel = loaded(op, element, result)) return kernel;
    return load_rows(op, element, result);
  }
  // The library's own form, for one row of f32, where it was loaded before and can be launched
  // directly (backends/direct_block.h); else null.
  const Slot* loaded_flat(RowOp op) const {
    const Slot& slot = flat_rows_[static_cast<size_t>(op)];
    return slot.kernel.load(std::memory_order_acquire) ? &slot : nullptr;
  }
  Status load_flat(RowOp op);

 private:
  static constexpr size_t kTypes = static_cast<size_t>(DType::f64) + 1;

  Result<const backends::Kernel*> load_elementwise(ElementwiseOp op, Variant variant, DType type);
  Result<const backends::Kernel*> load_rows(RowOp op, DType element, DType result);

  using KernelSlot = std::atomic<const backends::Kernel*>;
  static size_t place(RowOp op, DType element, DType result) {
    return (static_cast<size_t>(op) * kTypes + static_cast<size_t>(element)) * kTypes +
           static_cast<size_t>(result);
  }

  // Declared first: kernels go before it.
  std::shared_ptr<backends::Backend> backend_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<backends::Kernel>, std::less<>> loaded_;
  Slot programs_[kElementwiseOpCount][kVariants][kTypes];
  KernelSlot rows_[kRowOpCount * kTypes * kTypes] = {};
  Slot flat_rows_[kRowOpCount];
};

}  // namespace hologram::runtime
