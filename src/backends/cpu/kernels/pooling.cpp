// Pools that slide: MaxPool, AveragePool, LpPool, over any number of spatial axes.
//
// Each tap of the kernel is applied to a whole row of results at a time, so the inner loops run
// along memory. f32 over one or two axes without indices is left to the dense kernels.
#include "backends/cpu/kernels/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"

namespace hologram::kernels {

backends::dense::Pool dense_pool(const KernelContext& c, const Window& w, int64_t batch,
                                 int64_t channels) {
  const size_t rank = w.input.rank();
  auto at = [&](const Dims& dims, size_t axis, int64_t missing) {
    return static_cast<size_t>(axis + rank < 2 ? missing : dims[axis + rank - 2]);
  };
  return {.batch = static_cast<size_t>(batch),
          .channels = static_cast<size_t>(channels),
          .in_height = at(w.input, 0, 1),
          .in_width = at(w.input, 1, 1),
          .out_height = at(w.output, 0, 1),
          .out_width = at(w.output, 1, 1),
          .kernel_height = at(w.size, 0, 1),
          .kernel_width = at(w.size, 1, 1),
          .stride_height = at(w.stride, 0, 1),
          .stride_width = at(w.stride, 1, 1),
          .pad_top = at(w.pad_begin, 0, 0),
          .pad_left = at(w.pad_begin, 1, 0),
          .pad_bottom = at(w.pad_end, 0, 0),
          .pad_right = at(w.pad_end, 1, 0),
          .dilation_height = at(w.dilation, 0, 1),
          .dilation_width = at(w.dilation, 1, 1),
          .include_pad = c.integer("count_include_pad") != 0};
}

namespace {

Result<Window> pool_window(const KernelContext& c) {
  const Dims& x = c.input(0).dims;
  const auto size = c.integers("kernel_shape");
  if (x.rank() < 3 || size.size() != x.rank() - 2)
    return fail(ErrorCode::shape_mismatch, "kernel_shape of {} axes for an input {}", size.size(),
                x.to_string());
  return make_window(c, spatial_dims(x), Dims(size), c.integer("ceil_mode") != 0);
}

Dims pooled_dims(const Dims& x, const Window& w) {
  Dims dims = {x[0], x[1]};
  for (int64_t d : w.output) dims.push_back(d);
  return dims;
}

// Calls f(plane, row) for every row of every plane's results.
template <typename F>
void for_each_row(KernelContext& c, const Window& w, int64_t planes, const F& f) {
  const int64_t rows = w.rows(),
                work = std::max<int64_t>(1, Dims{w.row_length(), w.size.count()}.count());
  c.threads().parallel_for(planes * rows, std::max<int64_t>(1, 16384 / work),
                           [&](size_t begin, size_t end) {
                             for (size_t i = begin; i < end; ++i)
                               f(static_cast<int64_t>(i) / rows, static_cast<int64_t>(i) % rows);
                           });
}

bool pool_dense(KernelContext& c, const Window& w, const Tensor& x, const Tensor& y,
                backends::dense::PoolKind kind) {
  const size_t rank = w.input.rank();
  if (x.dtype != DType::f32 || rank > 2) return false;
  backends::dense::Pool pool = dense_pool(c, w, x.dims[0], x.dims[1]);
  pool.kind = kind;
  pool.x = x.as<float>();
  pool.y = y.as<float>();
  backends::dense::pool(pool, c.threads());
  return true;
}

template <typename Body>
Status dispatch_pooled(DType type, Body&& body) {
  switch (type) {
    case DType::i8:
      return body.template operator()<int8_t>();
    case DType::u8:
      return body.template operator()<uint8_t>();
    default:
      return dispatch_float(type, body);
  }
}

template <typename T>
constexpr T kLowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                           : std::numeric_limits<T>::lowest();

// A NaN is larger than everything, and stays.
template <typename T>
bool exceeds(T a, T b) {
  return a > b || (a != a && b == b);
}

// The number of an element within its plane when the first axis moves fastest.
int64_t column_major(int64_t index, const Dims& dims) {
  int64_t at[kMaxRank], result = 0;
  for (size_t axis = dims.rank(); axis-- > 0; index /= dims[axis]) at[axis] = index % dims[axis];
  for (size_t axis = dims.rank(); axis-- > 0;) result = result * dims[axis] + at[axis];
  return result;
}

template <typename T>
void max_rows(KernelContext& c, const Window& w, const Tensor& x, const Tensor& y,
              int64_t* indices) {
  const int64_t pixels = w.input.count(), length = w.row_length(), stride = w.stride.back();
  const bool columns = c.integer("storage_order") == 1;
  for_each_row(c, w, x.dims[0] * x.dims[1], [&](int64_t plane, int64_t row) {
    const T* in = x.as<T>() + plane * pixels;
    const int64_t at = (plane * w.rows() + row) * length;
    T* best = y.as<T>() + at;
    std::fill_n(best, length, kLowest<T>);
    if (!indices) {
      for_each_run(w, row, [&](const TapRun& r) {
        for (int64_t i = r.first; i < r.last; ++i) {
          const T v = in[r.offset + i * stride];
          best[i] = exceeds(v, best[i]) ? v : best[i];
        }
      });
      return;
    }
    int64_t* where = indices + at;
    std::fill_n(where, length, int64_t{-1});
    for_each_run(w, row, [&](const TapRun& r) {
      for (int64_t i = r.first; i < r.last; ++i) {
        const T v = in[r.offset + i * stride];
        const bool better = where[i] < 0 || exceeds(v, best[i]);
        best[i] = better ? v : best[i];
        where[i] = better ? r.offset + i * stride : where[i];
      }
    });
    for (int64_t i = 0; i < length; ++i)
      if (where[i] >= 0)
        where[i] = plane * pixels + (columns ? column_major(where[i], w.input) : where[i]);
  });
}

Status max_pool(KernelContext& c) {
  const Tensor& x = c.input(0);
  HOLOGRAM_TRY(const Window w, pool_window(c));
  HOLOGRAM_TRY(Tensor y, c.output(0, pooled_dims(x.dims, w)));
  int64_t* indices = nullptr;
  if (c.wants_output(1)) {
    HOLOGRAM_TRY(Tensor i, c.output(1, y.dims));
    indices = i.as<int64_t>();
  }
  if (y.count() == 0) return {};
  if (!indices && pool_dense(c, w, x, y, backends::dense::PoolKind::max)) return {};
  return dispatch_pooled(x.dtype, [&]<typename T>() -> Status {
    max_rows<T>(c, w, x, y, indices);
    return {};
  });
}

// How many taps of a window at output position `at` of an axis are inside the input, or inside the
// padded input.
int64_t taps_inside(const Window& w, size_t axis, int64_t at, bool padded) {
  const int64_t start = at * w.stride[axis] - w.pad_begin[axis], step = w.dilation[axis];
  const int64_t from = padded ? -w.pad_begin[axis] : 0;
  const int64_t to = w.input[axis] + (padded ? w.pad_end[axis] : 0);
  const int64_t first = start >= from ? 0 : (from - start + step - 1) / step;
  const int64_t last = start >= to ? 0 : std::min(w.size[axis], (to - start + step - 1) / step);
  return std::max<int64_t>(0, last - first);
}

Status average_pool(KernelContext& c) {
  const Tensor& x = c.input(0);
  HOLOGRAM_TRY(const Window w, pool_window(c));
  HOLOGRAM_TRY(Tensor y, c.output(0, pooled_dims(x.dims, w)));
  if (y.count() == 0) return {};
  if (pool_dense(c, w, x, y, backends::dense::PoolKind::average)) return {};
  const bool padded = c.integer("count_include_pad") != 0;
  const size_t last = w.input.rank() - 1;
  const int64_t pixels = w.input.count(), length = w.row_length(), stride = w.stride.back();
  return dispatch_float(x.dtype, [&]<typename T>() -> Status {
    for_each_row(c, w, x.dims[0] * x.dims[1], [&](int64_t plane, int64_t row) {
      const T* in = x.as<T>() + plane * pixels;
      T* sum = y.as<T>() + (plane * w.rows() + row) * length;
      std::fill_n(sum, length, T(0));
      for_each_run(w, row, [&](const TapRun& r) {
        for (int64_t i = r.first; i < r.last; ++i) sum[i] += in[r.offset + i * stride];
      });
      double outer = 1;  // the product of large windows leaves 64 bits
      for (size_t axis = last; axis-- > 0; row /= w.output[axis])
        outer *= static_cast<double>(taps_inside(w, axis, row % w.output[axis], padded));
      for (int64_t i = 0; i < length; ++i) {
        const double count = outer * static_cast<double>(taps_inside(w, last, i, padded));
        sum[i] = count > 0 ? sum[i] / static_cast<T>(count) : T(0);
      }
    });
    return {};
  });
}

Status lp_pool(KernelContext& c) {
  const Tensor& x = c.input(0);
  HOLOGRAM_TRY(const Window w, pool_window(c));
  const int64_t p = c.integer("p", 2);
  if (p < 1) return fail(ErrorCode::invalid_argument, "p is {}; at least 1 expected", p);
  HOLOGRAM_TRY(Tensor y, c.output(0, pooled_dims(x.dims, w)));
  if (y.count() == 0) return {};
  const int64_t pixels = w.input.count(), length = w.row_length(), stride = w.stride.back();
  return dispatch_float(x.dtype, [&]<typename T>() -> Status {
    const T power = static_cast<T>(p);
    for_each_row(c, w, x.dims[0] * x.dims[1], [&](int64_t plane, int64_t row) {
      const T* in = x.as<T>() + plane * pixels;
      T* sum = y.as<T>() + (plane * w.rows() + row) * length;
      std::fill_n(sum, length, T(0));
      for_each_run(w, row, [&](const TapRun& r) {
        for (int64_t i = r.first; i < r.last; ++i) {
          const T v = std::abs(in[r.offset + i * stride]);
          sum[i] += p == 1 ? v : p == 2 ? v * v : std::pow(v, power);
        }
      });
      for (int64_t i = 0; i < length; ++i)
        sum[i] = p == 1 ? sum[i] : p == 2 ? std::sqrt(sum[i]) : std::pow(sum[i], T(1) / power);
    });
    return {};
  });
}

constexpr Kernel kKernels[] = {
    {"AveragePool", average_pool, true},
    {"GlobalAveragePool", global_average_pool, true},
    {"GlobalLpPool", global_lp_pool, true},
    {"GlobalMaxPool", global_max_pool, true},
    {"LpPool", lp_pool, true},
    {"MaxPool", max_pool, true},
    {"MaxRoiPool", max_roi_pool, true},
    {"MaxUnpool", max_unpool, true},
};

}  // namespace

std::span<const Kernel> pooling_kernels() { return kKernels; }

}  // namespace hologram::kernels
