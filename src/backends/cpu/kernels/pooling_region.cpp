// MaxUnpool puts maxima back where they came from; MaxRoiPool pools regions of an image.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/pooling.h"
#include "backends/cpu/kernels/window.h"

namespace hologram::kernels {

// The indices count the elements of the pooled tensor, whose size follows from the attributes. A
// larger output_shape leaves zeros at the end of each axis.
Status max_unpool(KernelContext& c) {
  const Tensor &x = c.input(0), &indices = c.input(1);
  const size_t rank = x.dims.rank();
  const auto size = c.integers("kernel_shape");
  if (rank < 3 || !(indices.dims == x.dims) || size.size() != rank - 2)
    return fail(ErrorCode::shape_mismatch, "input {}, indices {} and a kernel of {} axes",
                x.dims.to_string(), indices.dims.to_string(), size.size());
  HOLOGRAM_TRY(const Window w, make_transposed_window(c, spatial_dims(x.dims), Dims(size)));
  Dims pooled = {x.dims[0], x.dims[1]};
  for (int64_t d : w.input) pooled.push_back(d);
  Dims dims = pooled;
  if (c.has_input(2)) {
    HOLOGRAM_TRY(dims, c.input_integers(2));
    bool fits = dims.rank() == rank;
    for (size_t axis = 0; fits && axis < rank; ++axis) fits = dims[axis] >= pooled[axis];
    if (!fits)
      return fail(ErrorCode::shape_mismatch, "output_shape {} is smaller than the unpooled {}",
                  dims.to_string(), pooled.to_string());
  }
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  const Dims strides = dims.strides();
  const int64_t *at = indices.as<int64_t>(), count = x.count(), limit = pooled.count();
  return dispatch_float(x.dtype, [&]<typename T>() -> Status {
    std::fill_n(y.as<T>(), y.count(), T(0));
    for (int64_t i = 0; i < count; ++i) {
      if (at[i] < 0 || at[i] >= limit)
        return fail(ErrorCode::out_of_range, "index {} into {} elements", at[i], limit);
      int64_t place = 0;
      for (int64_t rest = at[i], axis = static_cast<int64_t>(rank); axis-- > 0;
           rest /= pooled[axis])
        place += rest % pooled[axis] * strides[axis];
      y.as<T>()[place] = x.as<T>()[i];
    }
    return {};
  });
}

Status max_roi_pool(KernelContext& c) {
  const Tensor &x = c.input(0), &rois = c.input(1);
  const auto pooled = c.integers("pooled_shape");
  if (x.dims.rank() != 4 || rois.dims.rank() != 2 || rois.dims[1] != 5 || pooled.size() != 2 ||
      pooled[0] < 1 || pooled[1] < 1)
    return fail(ErrorCode::shape_mismatch,
                "input {}, regions {} and a pooled_shape of {}; [N, C, H, W], [R, 5] and two "
                "positive sizes expected",
                x.dims.to_string(), rois.dims.to_string(), pooled.size());
  const int64_t channels = x.dims[1], height = x.dims[2], width = x.dims[3];
  const double scale = c.number("spatial_scale", 1);
  HOLOGRAM_TRY(Tensor y, c.output(0, {rois.dims[0], channels, pooled[0], pooled[1]}));
  return dispatch_float(x.dtype, [&]<typename T>() -> Status {
    for (int64_t i = 0; i < rois.dims[0]; ++i) {
      const T image = rois.as<T>()[i * 5];
      if (!(image >= 0 && image < static_cast<T>(x.dims[0])))
        return fail(ErrorCode::out_of_range, "region {} is in image {} of {}", i,
                    static_cast<double>(image), x.dims[0]);
      for (int64_t k = 1; k < 5; ++k)
        if (!(std::abs(rois.as<T>()[i * 5 + k]) * std::abs(scale) < 1e9))
          return fail(ErrorCode::out_of_range, "coordinate {} of region {}",
                      static_cast<double>(rois.as<T>()[i * 5 + k]), i);
    }
    c.threads().parallel_for(rois.dims[0] * channels, 1, [&](size_t begin, size_t end) {
      for (size_t item = begin; item < end; ++item) {
        const T* roi = rois.as<T>() + static_cast<int64_t>(item) / channels * 5;
        const T* plane = x.as<T>() + (static_cast<int64_t>(roi[0]) * channels +
                                      static_cast<int64_t>(item) % channels) *
                                         height * width;
        T* out = y.as<T>() + static_cast<int64_t>(item) * pooled[0] * pooled[1];
        auto corner = [&](int k) { return std::llround(static_cast<double>(roi[k]) * scale); };
        const int64_t x1 = corner(1), y1 = corner(2);
        const double bin_h = static_cast<double>(std::max<int64_t>(corner(4) - y1 + 1, 1)) /
                             static_cast<double>(pooled[0]);
        const double bin_w = static_cast<double>(std::max<int64_t>(corner(3) - x1 + 1, 1)) /
                             static_cast<double>(pooled[1]);
        auto low = [](int64_t bin, double size, int64_t start, int64_t limit) {
          const auto at = static_cast<int64_t>(std::floor(static_cast<double>(bin) * size)) + start;
          return std::clamp<int64_t>(at, 0, limit);
        };
        auto high = [](int64_t bin, double size, int64_t start, int64_t limit) {
          const auto at =
              static_cast<int64_t>(std::ceil(static_cast<double>(bin + 1) * size)) + start;
          return std::clamp<int64_t>(at, 0, limit);
        };
        for (int64_t ph = 0; ph < pooled[0]; ++ph)
          for (int64_t pw = 0; pw < pooled[1]; ++pw) {
            const int64_t top = low(ph, bin_h, y1, height), bottom = high(ph, bin_h, y1, height);
            const int64_t left = low(pw, bin_w, x1, width), right = high(pw, bin_w, x1, width);
            // A bin without pixels is 0.
            T best = top < bottom && left < right ? -std::numeric_limits<T>::infinity() : T(0);
            for (int64_t h = top; h < bottom; ++h)
              for (int64_t v = left; v < right; ++v) best = std::max(best, plane[h * width + v]);
            *out++ = best;
          }
      }
    });
    return {};
  });
}

}  // namespace hologram::kernels
