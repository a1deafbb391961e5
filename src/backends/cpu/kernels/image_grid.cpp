// AffineGrid makes positions, GridSample reads an image at them. Any number of spatial axes.
#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/image.h"
#include "backends/cpu/kernels/saturate.h"
#include "backends/cpu/kernels/window.h"

namespace hologram::kernels {

Status affine_grid(KernelContext& c) {
  const Tensor& theta = c.input(0);
  HOLOGRAM_TRY(const Dims size, c.input_integers(1));
  const size_t rank = size.rank() < 2 ? 0 : size.rank() - 2;
  if ((rank != 2 && rank != 3) || std::ranges::any_of(size, [](int64_t d) { return d < 0; }))
    return fail(ErrorCode::shape_mismatch, "size {}; [N, C, H, W] or [N, C, D, H, W] expected",
                size.to_string());
  const int64_t n = static_cast<int64_t>(rank);
  if (!(theta.dims == Dims{size[0], n, n + 1}))
    return fail(ErrorCode::shape_mismatch, "theta {}; [{}, {}, {}] expected",
                theta.dims.to_string(), size[0], n, n + 1);
  Dims dims = {size[0]};
  for (size_t axis = 0; axis < rank; ++axis) dims.push_back(size[axis + 2]);
  const int64_t positions = dims.product(1, rank + 1);
  dims.push_back(n);
  const bool align = c.integer("align_corners") != 0;
  HOLOGRAM_TRY(Tensor grid, c.output(0, dims));
  // Position i of an axis of `length`, from -1 to 1.
  auto place = [&](int64_t i, int64_t length) {
    const double at = static_cast<double>(i), count = static_cast<double>(length);
    if (align) return length > 1 ? 2 * at / (count - 1) - 1 : -1.0;
    return (2 * at + 1) / count - 1;
  };
  return dispatch_float(theta.dtype, [&]<typename T>() -> Status {
    c.threads().parallel_for(size[0] * positions, 1024, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const int64_t image = static_cast<int64_t>(i) / positions;
        // The innermost axis comes first in a position, and 1 last.
        double x[4];
        int64_t rest = static_cast<int64_t>(i) % positions;
        for (size_t k = 0; k < rank; ++k) {
          const int64_t length = size[rank + 1 - k];
          x[k] = place(rest % length, length);
          rest /= length;
        }
        x[rank] = 1;
        const T* matrix = theta.as<T>() + image * n * (n + 1);
        for (size_t row = 0; row < rank; ++row) {
          double sum = 0;
          for (size_t k = 0; k <= rank; ++k)
            sum += static_cast<double>(matrix[row * (rank + 1) + k]) * x[k];
          grid.as<T>()[i * rank + row] = static_cast<T>(sum);
        }
      }
    });
    return {};
  });
}

namespace {

enum class Mode { linear, nearest, cubic };
enum class Padding { zeros, border, reflection };

struct Sampler {
  Mode mode;
  Padding padding;
  bool align;
  Dims dims, strides;

  // Reflected at the centres of the outermost elements (align) or at their outer edges.
  double reflect(double x, int64_t length) const {
    const double low = align ? 0 : -0.5;
    const double range = static_cast<double>(length) - (align ? 1 : 0);
    if (!(range > 0)) return low;
    double away = std::fmod(std::abs(x - low), 2 * range);
    if (away > range) away = 2 * range - away;
    return low + away;
  }

  // An index that may lie outside; -1 for one that reads zero.
  int64_t index(int64_t i, int64_t length) const {
    if (i >= 0 && i < length) return i;
    if (padding == Padding::zeros) return -1;
    if (padding == Padding::border) return std::clamp<int64_t>(i, 0, length - 1);
    const auto inside = static_cast<int64_t>(reflect(static_cast<double>(i), length));
    return std::clamp<int64_t>(inside, 0, length - 1);
  }

  // What an axis reads: `count` elements with weights.
  struct Taps {
    int count = 0;
    int64_t at[4];
    double weight[4];
  };

  Taps taps(double normal, int64_t length) const {
    const double count = static_cast<double>(length);
    double x = align ? (normal + 1) / 2 * (count - 1) : ((normal + 1) * count - 1) / 2;
    if (mode == Mode::nearest) x = std::nearbyint(x);  // to even
    const double low = align ? 0 : -0.5, high = count - (align ? 1 : 0.5);
    if (!(x >= low && x <= high)) {
      if (padding == Padding::border) x = x > 0 ? std::min(x, count - 1) : 0;
      if (padding == Padding::reflection) x = std::isfinite(x) ? reflect(x, length) : 0;
      // Far outside is outside; and conversions to integers stay defined.
      x = x != x ? -1e9 : std::clamp(x, -1e9, count + 1e9);
    }
    Taps t;
    if (mode == Mode::nearest) {
      t.count = 1;
      t.at[0] = index(static_cast<int64_t>(x), length);
      t.weight[0] = 1;
      return t;
    }
    const double floor = std::floor(x), f = x - floor;
    const int64_t base = static_cast<int64_t>(floor);
    if (mode == Mode::linear) {
      t.count = 2;
      t.weight[0] = 1 - f;
      t.weight[1] = f;
      for (int k = 0; k < 2; ++k) t.at[k] = index(base + k, length);
    } else {
      constexpr double kA = -0.75;
      auto near = [](double v) { return ((kA + 2) * v - (kA + 3)) * v * v + 1; };
      auto far = [](double v) { return ((kA * v - 5 * kA) * v + 8 * kA) * v - 4 * kA; };
      t.count = 4;
      t.weight[0] = far(f + 1);
      t.weight[1] = near(f);
      t.weight[2] = near(1 - f);
      t.weight[3] = far(2 - f);
      for (int k = 0; k < 4; ++k) t.at[k] = index(base + k - 1, length);
    }
    return t;
  }

  // The weighted sum over axes `axis` and later of one number of each element; `width` numbers an
  // element (complex: 2).
  template <typename T>
  double sum(const T* data, const Taps* axes, size_t axis, int64_t width) const {
    if (axis == dims.rank()) return static_cast<double>(*data);
    double total = 0;
    for (int k = 0; k < axes[axis].count; ++k)
      if (axes[axis].at[k] >= 0 && axes[axis].weight[k] != 0)
        total += axes[axis].weight[k] *
                 sum(data + axes[axis].at[k] * strides[axis] * width, axes, axis + 1, width);
    return total;
  }
};

Result<Sampler> make_sampler(const KernelContext& c, const Dims& dims) {
  Sampler s{.dims = dims, .strides = dims.strides()};
  const auto mode = c.text("mode", "linear"), padding = c.text("padding_mode", "zeros");
  if (mode == "linear" || mode == "nearest" || mode == "cubic")
    s.mode = mode == "linear" ? Mode::linear : mode == "nearest" ? Mode::nearest : Mode::cubic;
  else
    return fail(ErrorCode::invalid_argument, "mode '{}'; supported: linear, nearest, cubic", mode);
  if (padding == "zeros" || padding == "border" || padding == "reflection")
    s.padding = padding == "zeros"    ? Padding::zeros
                : padding == "border" ? Padding::border
                                      : Padding::reflection;
  else
    return fail(ErrorCode::invalid_argument,
                "padding_mode '{}'; supported: zeros, border, reflection", padding);
  s.align = c.integer("align_corners") != 0;
  return s;
}

// Calls f(image, position, taps) for every position of the grid.
template <typename G, typename F>
void for_each_position(KernelContext& c, const Sampler& s, int64_t images, int64_t positions,
                       const F& f) {
  const size_t rank = s.dims.rank();
  const G* grid = c.input(1).as<G>();
  c.threads().parallel_for(images * positions, 64, [&](size_t begin, size_t end) {
    Sampler::Taps taps[kMaxRank];
    for (size_t i = begin; i < end; ++i) {
      for (size_t axis = 0; axis < rank; ++axis)
        taps[axis] = s.taps(static_cast<double>(grid[i * rank + (rank - 1 - axis)]), s.dims[axis]);
      f(static_cast<int64_t>(i) / positions, static_cast<int64_t>(i) % positions, taps);
    }
  });
}

// `width` numbers of type T an element, summed in double.
template <typename T, bool kToBool = false>
Status sample_sums(KernelContext& c, const Sampler& s, const Tensor& y, int64_t width) {
  const Tensor& x = c.input(0);
  const int64_t channels = x.dims[1], pixels = s.dims.count();
  const int64_t positions = y.dims.product(2, y.dims.rank());
  return dispatch_float(c.input(1).dtype, [&]<typename G>() -> Status {
    for_each_position<G>(c, s, x.dims[0], positions,
                         [&](int64_t image, int64_t position, const Sampler::Taps* taps) {
                           for (int64_t k = image * channels; k < (image + 1) * channels; ++k)
                             for (int64_t part = 0; part < width; ++part) {
                               const double v =
                                   s.sum(x.as<T>() + k * pixels * width + part, taps, 0, width);
                               y.as<T>()[(k * positions + position) * width + part] =
                                   kToBool ? static_cast<T>(v != 0) : saturated<T>(v);
                             }
                         });
    return {};
  });
}

template <typename T>
Status sample_nearest(KernelContext& c, const Sampler& s, const Tensor& y) {
  const Tensor& x = c.input(0);
  const int64_t channels = x.dims[1], pixels = s.dims.count();
  const int64_t positions = y.dims.product(2, y.dims.rank());
  return dispatch_float(c.input(1).dtype, [&]<typename G>() -> Status {
    for_each_position<G>(c, s, x.dims[0], positions,
                         [&](int64_t image, int64_t position, const Sampler::Taps* taps) {
                           int64_t offset = 0;
                           bool inside = true;
                           for (size_t axis = 0; axis < s.dims.rank(); ++axis) {
                             inside &= taps[axis].at[0] >= 0;
                             offset += taps[axis].at[0] * s.strides[axis];
                           }
                           for (int64_t k = image * channels; k < (image + 1) * channels; ++k)
                             y.as<T>()[k * positions + position] =
                                 inside ? x.as<T>()[k * pixels + offset] : T{};
                         });
    return {};
  });
}

}  // namespace

Status grid_sample(KernelContext& c) {
  const Tensor &x = c.input(0), &grid = c.input(1);
  const size_t rank = x.dims.rank();
  if (rank < 3 || grid.dims.rank() != rank || grid.dims[0] != x.dims[0] ||
      grid.dims.back() != static_cast<int64_t>(rank - 2))
    return fail(ErrorCode::shape_mismatch,
                "input {} and grid {}; [N, C, D...] and [N, D..., number of D] expected",
                x.dims.to_string(), grid.dims.to_string());
  HOLOGRAM_TRY(const Sampler s, make_sampler(c, spatial_dims(x.dims)));
  Dims dims = {x.dims[0], x.dims[1]};
  for (size_t axis = 1; axis + 1 < rank; ++axis) dims.push_back(grid.dims[axis]);
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  if (y.count() == 0) return {};
  if (s.dims.count() == 0)
    return fail(ErrorCode::shape_mismatch, "an image {} without elements", x.dims.to_string());
  if (s.mode == Mode::nearest)
    return dispatch_size(x.dtype, [&]<typename T>() { return sample_nearest<T>(c, s, y); });
  switch (x.dtype) {
    case DType::boolean:
      return sample_sums<uint8_t, true>(c, s, y, 1);
    case DType::complex64:
      return sample_sums<float>(c, s, y, 2);
    case DType::complex128:
      return sample_sums<double>(c, s, y, 2);
    case DType::string:
      return fail(ErrorCode::unsupported, "strings have no weighted sum; supported: mode nearest");
    default:
      return dispatch_number(x.dtype, [&]<typename T>() { return sample_sums<T>(c, s, y, 1); });
  }
}

}  // namespace hologram::kernels
