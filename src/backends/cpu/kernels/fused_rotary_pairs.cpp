// hologram.RotaryPairs: rotary embedding of neighbouring elements.
#include <algorithm>

#include "backends/cpu/kernels/fused.h"

namespace hologram::kernels {

// X [batch, heads, rows, size], tables [1, 1, rows, depth], depth even and at most size: elements
// 2i and 2i + 1 below depth turn together, the others are passed on.
Status fused_rotary_pairs(KernelContext& c) {
  const Tensor &x = c.input(0), &cos = c.input(1), &sin = c.input(2);
  if (x.dims.rank() != 4 || cos.dims.rank() != 4 || !(sin.dims == cos.dims) ||
      cos.dims.back() % 2 != 0 || cos.dims.back() > x.dims.back() || cos.dims[2] != x.dims[2] ||
      cos.dims[0] != 1 || cos.dims[1] != 1)
    return fail(ErrorCode::shape_mismatch, "{} turned by {} and {}", x.dims.to_string(),
                cos.dims.to_string(), sin.dims.to_string());
  HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
  const int64_t rows = x.dims[2], size = x.dims[3], depth = cos.dims[3];
  const int64_t lines = x.dims[0] * x.dims[1] * rows;
  c.threads().parallel_for(
      lines, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, size)),
      [&](size_t begin, size_t end) {
        for (int64_t line = begin; line < static_cast<int64_t>(end); ++line) {
          const float* __restrict from = x.as<float>() + line * size;
          const float* __restrict cosines = cos.as<float>() + line % rows * depth;
          const float* __restrict sines = sin.as<float>() + line % rows * depth;
          float* __restrict to = y.as<float>() + line * size;
          for (int64_t i = 0; i < depth; i += 2) {
            to[i] = from[i] * cosines[i] - from[i + 1] * sines[i];
            to[i + 1] = from[i + 1] * cosines[i + 1] + from[i] * sines[i + 1];
          }
          for (int64_t i = depth; i < size; ++i) to[i] = from[i];
        }
      });
  return {};
}

}  // namespace hologram::kernels
