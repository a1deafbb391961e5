// Squeeze and excitation of a blocked image (conv.h) in one step: the mean of each channel, two
// products by matrices with their activations, and the image times what comes out.
//
// Every pixel of a channel is multiplied by the same number, so an error of it is the same for all
// of them, and the sums of the layers that follow keep it. Between the image and the product all is
// f64, and the gates are two f32 each.
//
// Rules of gemm.h hold: borrowed pointers, caller's scratch, the same bits for every thread count
// and batch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/dense/epilogue.h"
#include "support/thread_pool.h"

namespace hologram::backends::dense {

struct Gate {
  struct Layer {
    const float* weights = nullptr;    // of a 1 x 1 convolution of blocked images, packed
    const float* bias_rest = nullptr;  // what rounding took from the bias, or null
    // Bias, activation and post alone.
    Epilogue epilogue;
  };
  size_t batch = 1, pixels = 0, channels = 0, hidden = 0;
  const float* x = nullptr;                  // [batch][blocks of channels][pixels][16]
  const uint16_t* x_bf16 = nullptr;          // instead of x
  Layer squeeze, excite;                     // channels -> hidden -> channels
  bool plus_one = false;                     // y = x + x * gate
  Activation activation = Activation::none;  // of the product
  float first = 0.0f, second = 0.0f;
  float* y = nullptr;  // as x; may be x
  uint16_t* y_bf16 = nullptr;
};

// Of a layer.
bool is_gate_activation(Activation activation);

// Of the packed weights of a layer.
size_t gate_weight_bytes(size_t inputs, size_t outputs);
size_t gate_scratch_bytes(const Gate& gate);
void gate(const Gate& gate, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
