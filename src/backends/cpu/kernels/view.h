// Kernels whose first output is their first input's elements under another shape or type of the
// same width: they end in KernelContext::reshape_output, which copies nothing where the output's
// memory is the input's. Plans give such outputs no memory of their own.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace hologram::kernels {

inline bool is_view_kernel(std::string_view name) {
  constexpr std::string_view kViews[] = {"BitCast", "Flatten", "Identity",
                                         "Reshape", "Squeeze", "Unsqueeze"};
  return std::find(std::begin(kViews), std::end(kViews), name) != std::end(kViews);
}

}  // namespace hologram::kernels
