// Kernels of the domain "hologram": what the compiler's passes make of several operators. Their
// kernel names start with "hologram." so that they never meet an operator of the standard.
//
// A tensor in the channel-blocked layout is [batch, blocks, one size a spatial axis, 16]; lanes of
// the last block beyond the channels are unspecified.
#pragma once

#include "backends/cpu/dense/conv.h"
#include "backends/cpu/dense/epilogue.h"
#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

// Rows or columns: products of two such sizes, in bytes, fit 64 bits.
inline constexpr int64_t kMostOfAMatrix = int64_t{1} << 28;

// The names that the attribute `activation` knows.
Result<backends::dense::Activation> activation_named(std::string_view name);

// The epilogue of a node: inputs `bias` and `residual` (which may be left out) and the attributes
// activation, activation_first, activation_second, post_scale, post_shift, post_low and
// residual_last. `channels` is the length of the bias, or half of it where what rounding took
// from the values follows them; `count` is that of the residual.
Result<backends::dense::Epilogue> read_epilogue(const KernelContext& c, size_t bias,
                                                size_t residual, int64_t channels, int64_t count);

// From blocked dimensions and the number of channels to plain ones, and back.
Dims plain_dims(const Dims& blocked, int64_t channels);
Dims blocked_dims(const Dims& plain);

Status fused_activation(KernelContext& c);
Status fused_sine(KernelContext& c);
Status fused_fourier(KernelContext& c);
Status fused_conv(KernelContext& c);
Status fused_matmul(KernelContext& c);
Status fused_conv_integer(KernelContext& c);
Status fused_matmul_integer(KernelContext& c);
Status fused_attention(KernelContext& c);
Status gather_packed(KernelContext& c);
Status fused_lstm(KernelContext& c);
Status fused_gru(KernelContext& c);
Status fused_rotary(KernelContext& c);
Status fused_rotary_pairs(KernelContext& c);
Status to_blocked(KernelContext& c);
Status from_blocked(KernelContext& c);
Status blocked_pool(KernelContext& c);
Status blocked_global_average(KernelContext& c);
Status blocked_scale(KernelContext& c);
Status blocked_spread(KernelContext& c);
Status fused_gate(KernelContext& c);

}  // namespace hologram::kernels
