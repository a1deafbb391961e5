// Pools over all spatial axes at once: one number from each plane.
#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/pooling.h"

namespace hologram::kernels {
namespace {

// y[plane] = f(x, pixels)
template <typename F>
Status for_each_plane(KernelContext& c, const F& f) {
  const Tensor& x = c.input(0);
  const size_t rank = x.dims.rank();
  if (rank < 3)
    return fail(ErrorCode::shape_mismatch, "input {}; batch, channels and spatial axes expected",
                x.dims.to_string());
  Dims dims = Dims::filled(rank, 1);
  dims[0] = x.dims[0];
  dims[1] = x.dims[1];
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  const int64_t pixels = x.dims.product(2, rank);
  if (pixels == 0 && y.count() > 0)
    return fail(ErrorCode::shape_mismatch, "input {} has planes without elements",
                x.dims.to_string());
  return dispatch_float(x.dtype, [&]<typename T>() -> Status {
    c.threads().parallel_for(y.count(), std::max<int64_t>(1, 16384 / std::max<int64_t>(1, pixels)),
                             [&](size_t begin, size_t end) {
                               for (size_t i = begin; i < end; ++i)
                                 y.as<T>()[i] = f(x.as<T>() + i * pixels, pixels);
                             });
    return {};
  });
}

// The sum of g(x) over a plane, in double: the error does not grow with the plane. Eight partial
// sums, in an order that depends on nothing but the plane's size.
template <typename T, typename G>
double sum(const T* x, int64_t n, const G& g) {
  constexpr int kLanes = 8;
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += g(static_cast<double>(x[i + lane]));
  for (int lane = 0; i < n; ++i, ++lane) lanes[lane] += g(static_cast<double>(x[i]));
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

}  // namespace

Status global_average_pool(KernelContext& c) {
  return for_each_plane(c, []<typename T>(const T* x, int64_t n) {
    return static_cast<T>(sum(x, n, [](double v) { return v; }) / static_cast<double>(n));
  });
}

Status global_max_pool(KernelContext& c) {
  return for_each_plane(c, []<typename T>(const T* x, int64_t n) {
    T best = x[0];
    for (int64_t i = 1; i < n; ++i) best = x[i] > best || x[i] != x[i] ? x[i] : best;
    return best;
  });
}

Status global_lp_pool(KernelContext& c) {
  const int64_t p = c.integer("p", 2);
  if (p < 1) return fail(ErrorCode::invalid_argument, "p is {}; at least 1 expected", p);
  return for_each_plane(c, [p]<typename T>(const T* x, int64_t n) {
    if (p == 1) return static_cast<T>(sum(x, n, [](double v) { return std::abs(v); }));
    if (p == 2) return static_cast<T>(std::sqrt(sum(x, n, [](double v) { return v * v; })));
    const double power = static_cast<double>(p);
    return static_cast<T>(
        std::pow(sum(x, n, [=](double v) { return std::pow(std::abs(v), power); }), 1 / power));
  });
}

}  // namespace hologram::kernels
