// Convolutions: each image is unrolled into columns, then multiplied.
#include <algorithm>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/gemm.h"
#include "backends/cpu/kernels/window.h"

namespace hologram::kernels {
namespace {

// One row a kernel position, one column an output position.
template <typename T>
void unroll(const T* channel, const Window& w, T* rows) {
  const size_t rank = w.input.rank();
  const int64_t positions = w.output.count(), taps = w.size.count();
  for (int64_t tap = 0; tap < taps; ++tap) {
    Dims at = Dims::filled(rank, 0);
    for (int64_t rest = tap, axis = rank; axis-- > 0; rest /= w.size[axis])
      at[axis] = rest % w.size[axis] * w.dilation[axis] - w.pad_begin[axis];
    Dims index = Dims::filled(rank, 0);
    for (int64_t position = 0; position < positions; ++position) {
      int64_t offset = 0;
      bool inside = true;
      for (size_t axis = 0; axis < rank; ++axis) {
        const int64_t p = at[axis] + index[axis] * w.stride[axis];
        inside &= p >= 0 && p < w.input[axis];
        offset = offset * w.input[axis] + p;
      }
      *rows++ = inside ? channel[offset] : T(0);
      for (size_t axis = rank; axis-- > 0;) {
        if (++index[axis] < w.output[axis]) break;
        index[axis] = 0;
      }
    }
  }
}

Status conv(KernelContext& c) {
  const Tensor &x = c.input(0), &weights = c.input(1);
  const size_t rank = x.dims.rank();
  const int64_t groups = c.integer("group", 1);
  if (rank < 3 || weights.dims.rank() != rank || groups < 1 || weights.dims[0] % groups != 0 ||
      weights.dims[1] * groups != x.dims[1])
    return fail(ErrorCode::shape_mismatch, "input {} and weights {} in {} groups",
                x.dims.to_string(), weights.dims.to_string(), groups);
  HOLOGRAM_TRY(const Window w, make_window(c, Dims(std::span(x.dims.begin() + 2, rank - 2)),
                                           Dims(std::span(weights.dims.begin() + 2, rank - 2))));
  Dims dims = {x.dims[0], weights.dims[0]};
  for (int64_t d : w.output) dims.push_back(d);
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  const int64_t channels = weights.dims[1], filters = weights.dims[0] / groups;
  const int64_t taps = w.size.count(), positions = w.output.count(), pixels = w.input.count();
  return dispatch_float(x.dtype, [&]<typename T>() -> Status {
    HOLOGRAM_TRY(auto columns, c.scratch<T>(channels * taps * positions));
    for (int64_t image = 0; image < x.dims[0]; ++image)
      for (int64_t group = 0; group < groups; ++group) {
        const T* in = x.as<T>() + (image * groups + group) * channels * pixels;
        T* out = y.as<T>() + (image * groups + group) * filters * positions;
        c.threads().parallel_for(channels, 1, [&](size_t begin, size_t end) {
          for (size_t k = begin; k < end; ++k)
            unroll(in + k * pixels, w, columns.data() + k * taps * positions);
        });
        if (c.has_input(2))
          for (int64_t f = 0; f < filters; ++f)
            std::fill_n(out + f * positions, positions, c.input(2).as<T>()[group * filters + f]);
        gemm<T>({.m = filters,
                 .n = positions,
                 .k = channels * taps,
                 .a = weights.as<T>() + group * filters * channels * taps,
                 .a_row = channels * taps,
                 .a_column = 1,
                 .b = columns.data(),
                 .b_row = positions,
                 .b_column = 1,
                 .c = out,
                 .c_row = positions,
                 .accumulate = c.has_input(2)},
                c.threads());
      }
    return {};
  });
}

constexpr Kernel kKernels[] = {
    {"Conv", conv, true},
};

}  // namespace

std::span<const Kernel> convolution_kernels() { return kKernels; }

}  // namespace hologram::kernels
