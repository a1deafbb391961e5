// The kernel table, family by family: each file of kernels lists its own.
#pragma once

#include <span>

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

std::span<const Kernel> attention_kernels();
std::span<const Kernel> cast_kernels();
std::span<const Kernel> comparison_kernels();
std::span<const Kernel> convolution_kernels();
std::span<const Kernel> fused_kernels();
std::span<const Kernel> generator_kernels();
std::span<const Kernel> image_kernels();
std::span<const Kernel> indexing_kernels();
std::span<const Kernel> linear_algebra_kernels();
std::span<const Kernel> loss_kernels();
std::span<const Kernel> machine_learning_kernels();
std::span<const Kernel> microsoft_kernels();
std::span<const Kernel> movement_kernels();
std::span<const Kernel> normalisation_kernels();
std::span<const Kernel> pooling_kernels();
std::span<const Kernel> quantisation_kernels();
std::span<const Kernel> random_kernels();
std::span<const Kernel> recurrent_kernels();
std::span<const Kernel> reduction_kernels();
std::span<const Kernel> resize_kernels();
std::span<const Kernel> sequence_kernels();
std::span<const Kernel> signal_kernels();
std::span<const Kernel> softmax_kernels();
std::span<const Kernel> sorting_kernels();
std::span<const Kernel> text_kernels();
std::span<const Kernel> training_kernels();

}  // namespace hologram::kernels
