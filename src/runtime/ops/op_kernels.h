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
#include "support/result.h"

namespace hologram::runtime {

// The built-in kernels that ops call, by the first part of their names ("sum" of "sum_f32").
enum class BuiltinOp : uint8_t {
  sum,
  mean,
  min,
  max,
  dot,
  matvec,
  gemm,
  softmax,
  cross_entropy,
  cross_entropy_class,
};
inline constexpr std::array<std::string_view, 10> kBuiltinOpNames = {
    "sum",    "mean", "min",     "max",           "dot",
    "matvec", "gemm", "softmax", "cross_entropy", "cross_entropy_class"};

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

  const backends::Builtin* loaded(BuiltinOp op, DType type) const {
    const auto code = static_cast<size_t>(type);
    if (code >= kTypes) return nullptr;
    return builtins_[static_cast<size_t>(op)][code].load(std::memory_order_acquire);
  }
  // unsupported where the backend has no such kernel for the type.
  Result<const backends::Builtin*> builtin(BuiltinOp op, DType type) {
    if (const backends::Builtin* found = loaded(op, type)) return found;
    return find_builtin(op, type);
  }

 private:
  static constexpr size_t kTypes = static_cast<size_t>(DType::f64) + 1;

  Result<const backends::Kernel*> load_elementwise(ElementwiseOp op, Variant variant, DType type);
  Result<const backends::Builtin*> find_builtin(BuiltinOp op, DType type);

  // Declared first: kernels go before it.
  std::shared_ptr<backends::Backend> backend_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<backends::Kernel>, std::less<>> loaded_;
  Slot programs_[kElementwiseOpCount][kVariants][kTypes];
  std::atomic<const backends::Builtin*> builtins_[kBuiltinOpNames.size()][kTypes] = {};
};

}  // namespace hologram::runtime
