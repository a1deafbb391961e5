// What the tests of the dense kernels share: seeded values, aligned scratch, every CPU level.
#pragma once

#include <hwy/targets.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/cpu/dense/conv.h"
#include "gtest/gtest.h"
#include "support/aligned.h"
#include "support/thread_pool.h"

namespace hologram::backends::dense {

inline std::vector<float> random_values(size_t count, uint32_t seed, float low = -1.0f,
                                        float high = 1.0f) {
  std::vector<float> values(count);
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  for (float& v : values) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    v = low + (high - low) * static_cast<float>(state >> 40) / static_cast<float>(1 << 24);
  }
  return values;
}

// Scratch filled with NaN, so that reading what was not written shows.
inline AlignedBytes poisoned_scratch(size_t bytes) {
  AlignedBytes scratch = AlignedBytes::allocate(bytes + kAlignment).value();
  for (std::byte& b : scratch.bytes()) b = std::byte{0xff};
  return scratch;
}

// The level that runs inside for_each_level. Elsewhere than on x86 only one is compiled.
inline int64_t level_in_use() {
#if HWY_ARCH_X86
  return hwy::SupportedTargets();
#else
  return HWY_STATIC_TARGET;
#endif
}
// Whether it rounds a product and a sum once.
inline bool is_fused() { return level_in_use() != HWY_SSE4 && level_in_use() != HWY_WASM; }

// Runs `body` once for each level this CPU has (AVX-512, AVX2, SSE4).
template <typename Body>
void for_each_level(const Body& body) {
#if HWY_ARCH_X86
  for (int64_t target : {HWY_AVX3, HWY_AVX2, HWY_SSE4}) {
    hwy::SetSupportedTargetsForTest(0);
    if ((hwy::SupportedTargets() & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    SCOPED_TRACE(hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
#else
  body();
#endif
}

// Two samples, square kernels, the same margins on all sides.
namespace conv_shapes {
inline ConvShape shape(size_t in, size_t out, size_t height, size_t width, size_t kernel,
                       size_t stride, size_t pad, size_t dilation = 1, size_t groups = 1) {
  ConvShape s;
  s.batch = 2;
  s.in_channels = in;
  s.out_channels = out;
  s.in_height = height;
  s.in_width = width;
  s.kernel_height = s.kernel_width = kernel;
  s.stride_height = s.stride_width = stride;
  s.pad_top = s.pad_left = pad;
  s.dilation_height = s.dilation_width = dilation;
  s.groups = groups;
  s.out_height = conv_output_size(height, 2 * pad, kernel, stride, dilation);
  s.out_width = conv_output_size(width, 2 * pad, kernel, stride, dilation);
  return s;
}
}  // namespace conv_shapes

}  // namespace hologram::backends::dense
