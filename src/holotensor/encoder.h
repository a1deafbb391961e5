// Encoder: a tensor into fragments.
#pragma once

#include <vector>

#include "holotensor/scheme.h"
#include "holotensor/tensor.h"
#include "support/function_ref.h"
#include "support/result.h"

namespace hologram::holotensor {

struct EncodedTensor {
  TensorInfo info;  // fragments[i].offset is 0 until a writer places it
  std::vector<std::vector<std::byte>> fragments;  // whole fragments, headers included
};

// Takes whole fragments, in their order.
using TakeFragment = FunctionRef<Status(std::vector<std::byte> fragment)>;

// Stateless after construction; encode() may be called from many threads at once.
class Encoder {
 public:
  explicit Encoder(EncoderOptions options = {}) : options_(std::move(options)) {}

  // Element types that `refine` does not take, and tensors that plain compression stores in fewer
  // bytes, are stored by `packed` when `refine` without a target was asked for.
  Result<EncodedTensor> encode(const TensorView& tensor) const;
  // The same a fragment at a time. With `refine`, memory holds the encoded blocks of the tensor
  // once and, where it is not there already, not the tensor itself.
  Result<TensorInfo> encode(const TensorView& tensor, TakeFragment take) const;

  const EncoderOptions& options() const { return options_; }

 private:
  EncoderOptions options_;
};

}  // namespace hologram::holotensor
