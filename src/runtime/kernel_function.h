// KernelFunction: a kernel that knows its arguments and its launch, for Executor::run.
//
// What a front end makes of a kernel's source (hologram::compile_kernel); plain data, independent
// of any backend. A handle: copies share the kernels loaded so far, one a backend, and keep those
// backends alive. Safe from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "backends/argument.h"
#include "isa/launch.h"
#include "isa/native_code.h"
#include "isa/program.h"
#include "runtime/buffer.h"
#include "runtime/bundle/kernel_bundle.h"
#include "runtime/dims.h"
#include "runtime/tensor.h"
#include "support/result.h"

namespace hologram::runtime {

// One argument of Executor::run: an array with its shape, or a scalar; by position, or by name
// where it has one. Arrays are borrowed for the call.
struct KernelArgument {
  backends::Argument argument;
  Dims dims;                 // arrays
  std::string problem = {};  // why it cannot be used, found while it was made

  template <typename T>
  KernelArgument(Buffer<T>& buffer)
      : argument(buffer.output()), dims{static_cast<int64_t>(buffer.size())} {}
  template <typename T>
  KernelArgument(const Buffer<T>& buffer)
      : argument(buffer.input()), dims{static_cast<int64_t>(buffer.size())} {}
  // Contiguous tensors; a view has to be made so first.
  KernelArgument(const Tensor& tensor);
  // Host memory, for backends that use it in place.
  template <typename T>
  KernelArgument(std::span<T> elements)
      : argument(backends::Argument::array(elements)),
        dims{static_cast<int64_t>(elements.size())} {}
  template <typename T>
  requires std::is_arithmetic_v<T> KernelArgument(T value)
      : argument(backends::Argument::scalar(value)) {}
  KernelArgument(Half value) : argument(backends::Argument::scalar(value)) {}
  KernelArgument(BFloat16 value) : argument(backends::Argument::scalar(value)) {}
  // Anything a launch takes; arrays have one dimension.
  KernelArgument(const backends::Argument& a) : argument(a), dims{static_cast<int64_t>(a.length)} {}
  // An array on the backend, of any type and shape.
  KernelArgument(DType type, const void* address, const Dims& shape, bool writable);
};

// run(kernel, named("a", buffer), named("n", 3u)): the name must be a parameter's; it must live
// until run() returns.
inline KernelArgument named(std::string_view name, KernelArgument argument) {
  argument.argument.name = name;
  return argument;
}

class KernelFunction {
 public:
  struct Parts {
    isa::Program program;
    std::vector<isa::NativeCode> native;
    // The source's own parameters come first in the program: dimensions of each, 0 for a scalar.
    // An array of two or more brings its extents as u64 parameters behind them, in order.
    std::vector<uint32_t> ranks;
    // Writes the threads along x, y and z and the block's sizes to its parameter `launch__`, which
    // stands behind the source's own; nothing: the kernel runs as one thread.
    std::optional<isa::Program> launch;
  };
  KernelFunction() = default;  // runs nothing: invalid_argument
  static Result<KernelFunction> create(Parts parts);
  // A kernel of a bundle with its launch (NAME_launch); not_found otherwise. `with_native`: use the
  // bundle's machine code, for bundles that are trusted.
  static Result<KernelFunction> from_bundle(const KernelBundle& bundle, std::string_view name,
                                            bool with_native);
  static Result<Parts> parts_of(const KernelBundle& bundle, std::string_view name,
                                bool with_native);

  const isa::Program& program() const;
  std::string_view name() const;
  // Of the source's own parameters, which come first in the program.
  size_t parameter_count() const;
  // "vector_add(a: f32[], b: f32[], c: f32[], n: u32)"
  std::string signature() const;

  // Executor::run does this. `shape` null: what the kernel's launch says.
  Status run(const std::shared_ptr<backends::Backend>& backend, const isa::LaunchShape* shape,
             std::span<const KernelArgument> arguments) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hologram::runtime
