// DeformConv: every tap of every window reads where an offset sends it, by linear interpolation.
#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/convolution.h"
#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/gemm.h"

namespace hologram::kernels {
namespace {

// The value of a plane at a point; zero outside, fading over the last pixel.
template <typename T>
T sample(const T* plane, const Dims& dims, const T* point) {
  const size_t rank = dims.rank();
  int64_t base[kMaxRank];
  T fraction[kMaxRank];
  for (size_t axis = 0; axis < rank; ++axis) {
    if (!(point[axis] > T(-1) && point[axis] < static_cast<T>(dims[axis]))) return T(0);
    const T floor = std::floor(point[axis]);
    base[axis] = static_cast<int64_t>(floor);
    fraction[axis] = point[axis] - floor;
  }
  T sum = 0;
  for (uint64_t corner = 0; corner < (uint64_t{1} << rank); ++corner) {
    T weight = 1;
    int64_t offset = 0;
    bool inside = true;
    for (size_t axis = 0; axis < rank; ++axis) {
      const bool upper = (corner >> axis) & 1;
      const int64_t at = base[axis] + (upper ? 1 : 0);
      weight *= upper ? fraction[axis] : 1 - fraction[axis];
      inside &= at >= 0 && at < dims[axis];
      offset = offset * dims[axis] + at;
    }
    if (inside) sum += weight * plane[offset];
  }
  return sum;
}

// rows[tap][position] of one channel. offsets: [tap][axis][position]; mask: [tap][position].
template <typename T>
void unroll_deformed(const T* channel, const Window& w, const T* offsets, const T* mask, T* rows) {
  const size_t rank = w.input.rank();
  const int64_t taps = w.size.count(), positions = w.output.count();
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t position = 0; position < positions; ++position) {
      T point[kMaxRank];
      int64_t at = position, k = tap;
      for (size_t axis = rank; axis-- > 0; at /= w.output[axis], k /= w.size[axis])
        point[axis] =
            static_cast<T>(at % w.output[axis] * w.stride[axis] - w.pad_begin[axis] +
                           k % w.size[axis] * w.dilation[axis]) +
            offsets[(tap * static_cast<int64_t>(rank) + static_cast<int64_t>(axis)) * positions +
                    position];
      const T value = sample(channel, w.input, point);
      *rows++ = mask ? value * mask[tap * positions + position] : value;
    }
}

template <typename T>
Status run(KernelContext& c, const Window& w, int64_t groups, int64_t offset_groups,
           const Tensor& y) {
  const Tensor &x = c.input(0), &weights = c.input(1), &offset = c.input(2);
  const int64_t channels = weights.dims[1], filters = weights.dims[0] / groups;
  const int64_t taps = w.size.count(), positions = w.output.count(), pixels = w.input.count();
  const int64_t rank = static_cast<int64_t>(w.input.rank());
  const int64_t a_group = x.dims[1] / offset_groups;
  HOLOGRAM_TRY(auto columns, c.scratch<T>(channels * taps * positions));
  GemmScratch scratch;
  for (int64_t image = 0; image < x.dims[0]; ++image)
    for (int64_t group = 0; group < groups; ++group) {
      c.threads().parallel_for(channels, 1, [&](size_t begin, size_t end) {
        for (size_t k = begin; k < end; ++k) {
          const int64_t channel = group * channels + static_cast<int64_t>(k);
          const int64_t part = image * offset_groups + channel / a_group;
          unroll_deformed(x.as<T>() + (image * x.dims[1] + channel) * pixels, w,
                          offset.as<T>() + part * taps * rank * positions,
                          c.has_input(4) ? c.input(4).as<T>() + part * taps * positions : nullptr,
                          columns.data() + k * taps * positions);
        }
      });
      T* out = y.as<T>() + (image * groups + group) * filters * positions;
      for (int64_t f = 0; f < filters; ++f)
        std::fill_n(out + f * positions, positions,
                    c.has_input(3) ? c.input(3).as<T>()[group * filters + f] : T(0));
      HOLOGRAM_CHECK(gemm<T>({.m = filters,
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
                              .accumulate = true},
                             c, scratch));
    }
  return {};
}

}  // namespace

Status deform_conv(KernelContext& c) {
  const Tensor &x = c.input(0), &weights = c.input(1);
  const size_t rank = x.dims.rank();
  const int64_t groups = c.integer("group", 1), offset_groups = c.integer("offset_group", 1);
  if (rank < 3 || weights.dims.rank() != rank || groups < 1 || offset_groups < 1 ||
      weights.dims[0] % groups != 0 || x.dims[1] % groups != 0 ||
      weights.dims[1] != x.dims[1] / groups || x.dims[1] % offset_groups != 0 ||
      offset_groups > std::max<int64_t>(1, x.dims[1]))
    return fail(ErrorCode::shape_mismatch, "input {} and weights {} in {} groups, {} of offsets",
                x.dims.to_string(), weights.dims.to_string(), groups, offset_groups);
  HOLOGRAM_CHECK(check_kernel_shape(c, weights.dims));
  HOLOGRAM_CHECK(check_bias(c, 3, weights.dims[0]));
  HOLOGRAM_TRY(const Window w, make_window(c, spatial_dims(x.dims), spatial_dims(weights.dims)));
  Dims dims = {x.dims[0], weights.dims[0]};
  for (int64_t d : w.output) dims.push_back(d);
  Dims moved = dims;
  auto check = [&](size_t input, int64_t each) -> Status {
    if (!c.has_input(input)) return {};
    moved[1] = offset_groups * w.size.count() * each;
    if (!(c.input(input).dims == moved))
      return fail(ErrorCode::shape_mismatch, "{} {}; {} expected", input == 2 ? "offset" : "mask",
                  c.input(input).dims.to_string(), moved.to_string());
    return {};
  };
  HOLOGRAM_CHECK(check(2, static_cast<int64_t>(rank - 2)));
  HOLOGRAM_CHECK(check(4, 1));
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  if (y.count() == 0) return {};
  return dispatch_float(x.dtype,
                        [&]<typename T>() { return run<T>(c, w, groups, offset_groups, y); });
}

}  // namespace hologram::kernels
