// ConvertedMemory: for a kernel that runs on converted operands. Outputs that it makes in another
// type than the step's become scratch, from where they are converted; the rest goes to the step's
// own memory.
#pragma once

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

class ConvertedMemory : public KernelMemory {
 public:
  explicit ConvertedMemory(KernelContext& step) : step_(step) {}
  Result<Tensor> output(size_t index, DType dtype, const Dims& dims) override {
    if (dtype == step_.output_type(index)) return step_.output(index, dims);
    Tensor tensor{dtype, dims};
    HOLOGRAM_TRY(tensor.data, step_.memory().scratch(tensor.bytes()));
    return tensor;
  }
  Result<std::byte*> scratch(size_t bytes) override { return step_.memory().scratch(bytes); }
  std::shared_ptr<std::vector<Value>> sequence() override { return step_.memory().sequence(); }
  Result<Tensor> element(DType dtype, const Dims& dims) override {
    return step_.memory().element(dtype, dims);
  }

 private:
  KernelContext& step_;
};

}  // namespace hologram::kernels
