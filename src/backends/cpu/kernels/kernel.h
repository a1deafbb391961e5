// Kernel: one built-in tensor kernel, and everything it may ask of its surroundings.
//
// A kernel works out the shape of each output from its inputs and attributes and asks the context
// for memory of that shape: planned memory where the compiler knew the shape, pooled memory where
// it did not. So the same kernel serves static, symbolic and data-dependent shapes, and folds
// constants in the compiler. A kernel checks what the types of the operator table cannot: shapes,
// ranges, contents. It keeps no state and may run on many threads at once.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "backends/cpu/kernels/attribute.h"
#include "backends/cpu/kernels/dims.h"
#include "backends/cpu/kernels/tensor.h"
#include "support/result.h"
#include "support/thread_pool.h"

namespace hologram::kernels {

// Where outputs and scratch come from; implemented by whoever runs kernels.
// Nothing of it is in a source file: its type is known where there is RTTI and where there is not.
class KernelMemory {
 public:
  virtual ~KernelMemory() = default;
  // Memory for output `index`. The tensor is valid until the runner says otherwise.
  virtual Result<Tensor> output(size_t index, DType dtype, const Dims& dims) = 0;
  // Bytes, 64-byte aligned, valid until the kernel returns.
  virtual Result<std::byte*> scratch(size_t bytes) = 0;
  // An empty list that becomes a sequence. Asked for before its elements: what earlier lists held
  // and nobody uses any more may serve for them.
  virtual std::shared_ptr<std::vector<Value>> sequence() {
    return std::make_shared<std::vector<Value>>();
  }
  // Memory for an element of a sequence, claimed by every sequence that holds it.
  virtual Result<Tensor> element(DType dtype, const Dims& dims) {
    return Tensor::allocate(dtype, dims);
  }
};

class KernelContext {
 public:
  KernelContext(std::span<const Value* const> inputs, std::span<Value> outputs,
                std::span<const DType> output_types, const Attributes& attributes,
                KernelMemory& memory, ThreadPool& threads)
      : inputs_(inputs),
        outputs_(outputs),
        output_types_(output_types),
        attributes_(attributes),
        memory_(memory),
        threads_(threads) {}

  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return output_types_.size(); }
  // False for an optional input left out.
  bool has_input(size_t index) const {
    return index < inputs_.size() && inputs_[index]->kind != Value::Kind::none;
  }
  // The tensor at `index`; only where has_input() or the operator table requires the input.
  const Tensor& input(size_t index) const { return inputs_[index]->tensor; }
  const Value& input_value(size_t index) const { return *inputs_[index]; }
  // The integers of a small i32 or i64 tensor (axes, shapes, repeats); empty when absent.
  Result<Dims> input_integers(size_t index) const;

  // The element type the operator table gave to the output.
  DType output_type(size_t index) const { return output_types_[index]; }
  // False for a trailing output that the node leaves out; do not ask for its memory then.
  bool wants_output(size_t index) const { return index < output_types_.size(); }
  // Memory for an output, of the type the operator table gave it.
  Result<Tensor> output(size_t index, const Dims& dims);
  // Sequences and optionals, and tensors that share an input's memory (see reshape_output).
  void set_output(size_t index, Value value) { outputs_[index] = std::move(value); }
  // Output `index` becomes a sequence, empty at first. Its elements are made by element() or are
  // those of other sequences.
  std::vector<Value>& sequence_output(size_t index);
  Result<Tensor> element(DType dtype, const Dims& dims);
  // An element with the same content as `value`, a tensor.
  Result<Value> element_copy(const Value& value);
  // Output `index` becomes the input's elements under another shape (Reshape, Identity, ...).
  Status reshape_output(size_t index, const Tensor& input, const Dims& dims);

  const Attributes& attributes() const { return attributes_; }
  int64_t integer(AttributeName name, int64_t fallback = 0) const {
    return attributes_.integer(name, fallback);
  }
  double number(AttributeName name, double fallback = 0) const {
    return attributes_.number(name, fallback);
  }
  std::string_view text(AttributeName name, std::string_view fallback = {}) const {
    return attributes_.text(name, fallback);
  }
  std::span<const int64_t> integers(AttributeName name) const { return attributes_.integers(name); }
  // The attribute `name` as an axis of a tensor of `rank` dimensions, negative counting from the
  // end; out_of_range otherwise.
  Result<size_t> axis(AttributeName name, int64_t fallback, size_t rank) const;

  // Typed scratch memory, uninitialised, valid until the kernel returns.
  template <typename T>
  Result<std::span<T>> scratch(size_t count) {
    // Also what was negative: the product below would wrap.
    if (count > kMostElements)
      return fail(ErrorCode::resource_exhausted, "scratch memory for {} elements", count);
    HOLOGRAM_TRY(std::byte * bytes, memory_.scratch(count * sizeof(T)));
    return std::span<T>(reinterpret_cast<T*>(bytes), count);
  }
  ThreadPool& threads() const { return threads_; }
  KernelMemory& memory() const { return memory_; }

 private:
  std::span<const Value* const> inputs_;
  std::span<Value> outputs_;
  std::span<const DType> output_types_;
  const Attributes& attributes_;
  KernelMemory& memory_;
  ThreadPool& threads_;
};

using KernelFunction = Status (*)(KernelContext&);

struct Kernel {
  std::string_view name;
  KernelFunction run;
  // f16 and bf16 inputs arrive as f32, and f32 results leave as f16 or bf16: the kernel is
  // written for f32 (and f64) alone and rounds once.
  bool widen_half = false;
};

// nullptr when there is none of that name.
const Kernel* find_kernel(std::string_view name);
std::span<const Kernel* const> all_kernels();

// Runs a kernel; everything that runs one comes through here (it widens half types).
Status run_kernel(const Kernel& kernel, KernelContext& context);

// An axis given by a user: negative counts from the end.
Result<size_t> normalise_axis(int64_t axis, size_t rank);

}  // namespace hologram::kernels
