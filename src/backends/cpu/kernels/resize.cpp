// Resize. Nearest moves elements; linear and cubic are weighted sums along one axis after another,
// which is the same as the sum over all axes at once.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/resize_plan.h"
#include "backends/cpu/kernels/saturate.h"

namespace hologram::kernels {
namespace {

// out[o][i][...] of one axis: rows of `inner` elements, weighted.
template <typename A>
struct Pass {
  int64_t outer, in, out, inner, taps;
  const int64_t* indices;
  const A* weights;
  A extrapolation;

  void run(const A* x, A* y, ThreadPool& threads) const {
    const int64_t work = std::max<int64_t>(1, inner * taps);
    threads.parallel_for(outer * out, std::max<int64_t>(1, 16384 / work),
                         [&](size_t begin, size_t end) {
                           for (size_t row = begin; row < end; ++row) {
                             const int64_t at = static_cast<int64_t>(row) % out;
                             const A* from = x + static_cast<int64_t>(row) / out * in * inner;
                             combine(from, at, y + static_cast<int64_t>(row) * inner);
                           }
                         });
  }

 private:
  void combine(const A* from, int64_t at, A* to) const {
    const int64_t* index = indices + at * taps;
    const A* weight = weights + at * taps;
    if (*index < 0) {
      std::fill_n(to, inner, extrapolation);
    } else if (inner == 1) {
      A sum = 0;
      for (int64_t t = 0; t < taps; ++t) sum += weight[t] * from[index[t]];
      *to = sum;
    } else {
      const A* first = from + index[0] * inner;
      for (int64_t i = 0; i < inner; ++i) to[i] = weight[0] * first[i];
      for (int64_t t = 1; t < taps; ++t) {
        const A w = weight[t], *next = from + index[t] * inner;
        if (w == 0) continue;
        for (int64_t i = 0; i < inner; ++i) to[i] += w * next[i];
      }
    }
  }
};

// Resizes `x`, of `width` numbers an element, axis by axis; the last pass writes to `y`.
template <typename A>
Status resize_weighted(KernelContext& c, const ResizeMode& mode, const ResizeAxes& axes,
                       int64_t width, const A* x, A* y) {
  Dims dims = c.input(0).dims;
  size_t left = 0;
  for (size_t i = 0; i < dims.rank(); ++i) left += axes.axis[i].resized() || mode.crops();
  if (left == 0) std::copy_n(x, dims.count() * width, y);
  for (size_t i = dims.rank(); i-- > 0;) {
    const ResizeAxis& axis = axes.axis[i];
    if (!axis.resized() && !mode.crops()) continue;
    const int64_t taps = tap_count(mode, axis), outer = dims.product(0, i);
    const int64_t inner = dims.product(i + 1, dims.rank()) * width;
    HOLOGRAM_TRY(auto indices, c.scratch<int64_t>(axis.out * taps));
    HOLOGRAM_TRY(auto exact, c.scratch<double>(axis.out * taps));
    HOLOGRAM_TRY(auto weights, c.scratch<A>(axis.out * taps));
    weighted_taps(mode, axis, taps, indices.data(), exact.data());
    std::ranges::transform(exact, weights.begin(), [](double w) { return static_cast<A>(w); });
    A* to = y;
    if (--left > 0) {
      HOLOGRAM_TRY(auto buffer, c.scratch<A>(outer * axis.out * inner));
      to = buffer.data();
    }
    Pass<A>{outer, axis.in,        axis.out,       inner,
            taps,  indices.data(), weights.data(), static_cast<A>(mode.extrapolation)}
        .run(x, to, c.threads());
    dims[i] = axis.out;
    x = to;
  }
  return {};
}

// The bytes of the element that stands for everything outside.
struct OutsideElement {
  std::byte bytes[16] = {};

  OutsideElement(DType type, double value) {
    if (type == DType::string) return;
    const DType part = type == DType::boolean      ? DType::u8
                       : type == DType::complex64  ? DType::f32
                       : type == DType::complex128 ? DType::f64
                                                   : type;
    (void)dispatch_number(part, [&]<typename N>() -> Status {
      const N number = saturated<N>(value);
      std::memcpy(bytes, &number, sizeof number);
      return {};
    });
  }
  template <typename T>
  T as() const {
    T element{};
    if constexpr (!std::is_same_v<T, std::string>) std::memcpy(&element, bytes, sizeof element);
    return element;
  }
};

// How often each element of a row is repeated, where that is all that happens to it; otherwise 0.
int64_t repeats_of(const ResizeAxis& axis, const int64_t* table) {
  if (axis.in < 1 || axis.out % axis.in != 0) return 0;
  const int64_t times = axis.out / axis.in;
  for (int64_t i = 0; i < axis.out; ++i)
    if (table[i] != i / times) return 0;
  return times;
}

template <int64_t kTimes, typename T>
void repeat(const T* from, int64_t count, T* to) {
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < kTimes; ++j) to[i * kTimes + j] = from[i];
}

template <typename T>
Status resize_nearest(KernelContext& c, const ResizeMode& mode, const ResizeAxes& axes,
                      const Tensor& y) {
  const Tensor& x = c.input(0);
  const size_t rank = x.dims.rank();
  const Dims strides = x.dims.strides();
  const int64_t* tables[kMaxRank];
  for (size_t i = 0; i < rank; ++i) {
    HOLOGRAM_TRY(auto table, c.scratch<int64_t>(axes.axis[i].out));
    nearest_indices(mode, axes.axis[i], table.data());
    tables[i] = table.data();
  }
  const T outside = OutsideElement(x.dtype, mode.extrapolation).as<T>();
  const int64_t length = rank == 0 ? 1 : axes.output.back();
  const bool whole = rank == 0 || (!axes.axis[rank - 1].resized() && !mode.crops());
  const int64_t times = whole ? 1 : repeats_of(axes.axis[rank - 1], tables[rank - 1]);
  c.threads().parallel_for(
      y.count() / length, std::max<int64_t>(1, 16384 / length), [&](size_t begin, size_t end) {
        int64_t before = -1;  // where the last row came from
        for (size_t row = begin; row < end; ++row) {
          int64_t offset = 0, rest = static_cast<int64_t>(row);
          bool inside = true;
          for (size_t i = rank > 0 ? rank - 1 : 0; i-- > 0; rest /= axes.output[i]) {
            const int64_t at = tables[i][rest % axes.output[i]];
            inside &= at >= 0;
            offset += at * strides[i];
          }
          T* to = y.as<T>() + static_cast<int64_t>(row) * length;
          const T* from = x.as<T>() + (inside ? offset : 0);
          if (!inside)
            std::fill_n(to, length, outside);
          else if (whole)
            std::copy_n(from, length, to);
          else if (offset == before)
            std::copy_n(to - length, length, to);
          else if (times == 2)
            repeat<2>(from, length / 2, to);
          else if (times == 4)
            repeat<4>(from, length / 4, to);
          else if (times == 8)
            repeat<8>(from, length / 8, to);
          else
            for (int64_t i = 0; i < length; ++i) {
              const int64_t at = tables[rank - 1][i];
              to[i] = at < 0 ? outside : from[at];
            }
          before = inside ? offset : -1;
        }
      });
  return {};
}

Status run(KernelContext& c, const ResizeMode& mode, const ResizeAxes& axes) {
  const Tensor& x = c.input(0);
  HOLOGRAM_TRY(Tensor y, c.output(0, axes.output));
  if (y.count() == 0) return {};
  if (mode.kind == ResizeMode::Kind::nearest)
    return dispatch_size(x.dtype,
                         [&]<typename T>() { return resize_nearest<T>(c, mode, axes, y); });
  switch (x.dtype) {
    case DType::f32:
      return resize_weighted(c, mode, axes, 1, x.as<float>(), y.as<float>());
    case DType::f64:
      return resize_weighted(c, mode, axes, 1, x.as<double>(), y.as<double>());
    case DType::complex64:
      return resize_weighted(c, mode, axes, 2, x.as<float>(), y.as<float>());
    case DType::complex128:
      return resize_weighted(c, mode, axes, 2, x.as<double>(), y.as<double>());
    case DType::string:
      return fail(ErrorCode::unsupported, "strings have no weighted sum; supported: mode nearest");
    default:
      break;
  }
  const DType type = x.dtype == DType::boolean ? DType::u8 : x.dtype;
  return dispatch_integer(type, [&]<typename T>() -> Status {
    HOLOGRAM_TRY(auto in, c.scratch<double>(x.count()));
    HOLOGRAM_TRY(auto out, c.scratch<double>(y.count()));
    std::copy_n(x.as<T>(), x.count(), in.data());
    HOLOGRAM_CHECK(resize_weighted<double>(c, mode, axes, 1, in.data(), out.data()));
    for (int64_t i = 0; i < y.count(); ++i)
      y.as<T>()[i] = x.dtype == DType::boolean ? static_cast<T>(out[i] != 0) : saturated<T>(out[i]);
    return {};
  });
}

Status resize(KernelContext& c) {
  HOLOGRAM_TRY(const ResizeMode mode, ResizeMode::of(c));
  HOLOGRAM_TRY(const ResizeAxes axes, resize_axes(c, mode));
  return run(c, mode, axes);
}

Status resize_before_11(KernelContext& c) {
  HOLOGRAM_TRY(const ResizeMode mode, ResizeMode::before_11(c));
  HOLOGRAM_TRY(const ResizeAxes axes, scaled_axes(c));
  return run(c, mode, axes);
}

constexpr Kernel kKernels[] = {
    {"Resize", resize, true},
    {"ResizeBefore11", resize_before_11, true},
};

}  // namespace

std::span<const Kernel> resize_kernels() { return kKernels; }

}  // namespace hologram::kernels
