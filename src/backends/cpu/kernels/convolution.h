// Convolutions that have files of their own, and what they share.
#pragma once

#include "backends/cpu/dense/conv.h"
#include "backends/cpu/kernels/window.h"

namespace hologram::kernels {

// What a dense convolution in f32 of one or two spatial axes needs to know. `in` is read and `out`
// written; `w` gives kernel, strides, dilations and pads.
backends::dense::ConvShape dense_conv_shape(const Window& w, const Dims& in, const Dims& out,
                                            int64_t groups);

// Whether its memory can be counted: attributes may ask for windows that reach far beyond an image,
// which the dense kernels copy with all its pads.
bool fits_dense_conv(const Window& w, int64_t channels);

// Whether the bias, if there is one, has a value for each of `channels`.
Status check_bias(const KernelContext& c, size_t input, int64_t channels);
// Whether kernel_shape, if given, is the size of the weights.
Status check_kernel_shape(const KernelContext& c, const Dims& weights);

Status conv_transpose(KernelContext& c);
Status deform_conv(KernelContext& c);
Status col2im(KernelContext& c);
Status causal_conv_with_state(KernelContext& c);

}  // namespace hologram::kernels
