// Running sums and products, the largest elements, and the distinct ones.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/wrapping.h"
#include "support/function_ref.h"

namespace hologram::kernels {
namespace {

template <bool product>
Status cumulative(KernelContext& c) {
  const Tensor& x = c.input(0);
  HOLOGRAM_TRY(const Dims given, c.input_integers(1));
  if (given.size() != 1)
    return fail(ErrorCode::shape_mismatch, "axis has {} values, one is needed", given.size());
  HOLOGRAM_TRY(const size_t axis, normalise_axis(given[0], x.dims.rank()));
  const bool exclusive = c.integer("exclusive") != 0, reverse = c.integer("reverse") != 0;
  const int64_t n = x.dims[axis], inner = x.dims.product(axis + 1, x.dims.rank());
  HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
  return dispatch_number(x.dtype, [&]<typename T>() -> Status {
    for (int64_t line = 0; line < (n == 0 ? 0 : x.count() / n); ++line) {
      const int64_t start = line / inner * n * inner + line % inner;
      T running = product ? T(1) : T(0);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = start + (reverse ? n - 1 - i : i) * inner;
        const T value = x.as<T>()[at];
        if (exclusive) y.as<T>()[at] = running;
        running = product ? wrapping_multiply(running, value) : wrapping_add(running, value);
        if (!exclusive) y.as<T>()[at] = running;
      }
    }
    return {};
  });
}

// Equal elements keep their order: the lower index comes first. NaN counts as the largest.
Status top_k(KernelContext& c) {
  const Tensor& x = c.input(0);
  HOLOGRAM_TRY(const size_t axis, c.axis("axis", -1, x.dims.rank()));
  HOLOGRAM_TRY(const Dims given, c.input_integers(1));
  if (given.size() != 1)
    return fail(ErrorCode::shape_mismatch, "K has {} values, one is needed", given.size());
  const int64_t k = given[0], n = x.dims[axis], inner = x.dims.product(axis + 1, x.dims.rank());
  if (k < 0 || k > n)
    return fail(ErrorCode::out_of_range, "K is {}; axis {} has {} elements", k, axis, n);
  const bool largest = c.integer("largest", 1) != 0;
  Dims dims = x.dims;
  dims[axis] = k;
  HOLOGRAM_TRY(Tensor values, c.output(0, dims));
  HOLOGRAM_TRY(Tensor indices, c.output(1, dims));
  if (values.count() == 0) return {};
  HOLOGRAM_TRY(const std::span<int64_t> order, c.scratch<int64_t>(static_cast<size_t>(n)));
  return dispatch_number(x.dtype, [&]<typename T>() -> Status {
    for (int64_t line = 0; line < (n == 0 ? 0 : x.count() / n); ++line) {
      const T* in = x.as<T>() + line / inner * n * inner + line % inner;
      std::iota(order.begin(), order.end(), 0);
      const auto before = [&](int64_t a, int64_t b) {
        const T u = in[a * inner], v = in[b * inner];
        if (u != u || v != v) {
          if ((u != u) != (v != v)) return (u != u) == largest;
          return a < b;
        }
        if (u != v) return largest ? u > v : u < v;
        return a < b;
      };
      std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
      const int64_t start = line / inner * k * inner + line % inner;
      for (int64_t i = 0; i < k; ++i) {
        values.as<T>()[start + i * inner] = in[order[static_cast<size_t>(i)] * inner];
        indices.as<int64_t>()[start + i * inner] = order[static_cast<size_t>(i)];
      }
    }
    return {};
  });
}

// The slices that Unique tells apart: along an axis, or the elements of the flattened tensor. The
// elements of slice i stand at (o * n + i) * inner for every o below `outer`.
struct Slices {
  int64_t outer, n, inner;
  bool flat;
  size_t axis;
};

// compare(a, b): -1, 0 or 1 for slices a and b.
Status unique_slices(KernelContext& c, const Slices& s,
                     FunctionRef<int(int64_t, int64_t)> compare) {
  const auto size = static_cast<size_t>(s.n);
  HOLOGRAM_TRY(const auto order, c.scratch<int64_t>(size));
  HOLOGRAM_TRY(const auto group_of, c.scratch<int64_t>(size));
  HOLOGRAM_TRY(const auto firsts, c.scratch<int64_t>(size));
  HOLOGRAM_TRY(const auto counts, c.scratch<int64_t>(size));
  std::iota(order.begin(), order.end(), 0);
  // Not stable_sort, which allocates.
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int sign = compare(a, b);
    return sign != 0 ? sign < 0 : a < b;
  });
  // Groups of equal slices, in sorted order; the first member of each is its lowest index.
  int64_t groups = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || compare(order[i - 1], order[i]) != 0) {
      firsts[static_cast<size_t>(groups)] = order[i];
      counts[static_cast<size_t>(groups++)] = 0;
    }
    ++counts[static_cast<size_t>(groups - 1)];
    group_of[static_cast<size_t>(order[i])] = groups - 1;
  }
  const auto first = firsts.first(static_cast<size_t>(groups)), count = counts.first(first.size());
  HOLOGRAM_TRY(const auto rank, c.scratch<int64_t>(first.size()));  // a group's place in the result
  std::iota(rank.begin(), rank.end(), 0);
  if (c.integer("sorted", 1) == 0) {
    HOLOGRAM_TRY(const auto appearance, c.scratch<int64_t>(first.size()));
    std::iota(appearance.begin(), appearance.end(), 0);
    std::sort(appearance.begin(), appearance.end(), [&](int64_t a, int64_t b) {
      return first[static_cast<size_t>(a)] < first[static_cast<size_t>(b)];
    });
    for (size_t i = 0; i < appearance.size(); ++i)
      rank[static_cast<size_t>(appearance[i])] = static_cast<int64_t>(i);
  }
  const Tensor& x = c.input(0);
  Dims dims = s.flat ? Dims{groups} : x.dims;
  if (!s.flat) dims[s.axis] = groups;
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  HOLOGRAM_CHECK(dispatch_size(x.dtype, [&]<typename T>() -> Status {
    for (int64_t o = 0; o < s.outer; ++o)
      for (size_t g = 0; g < first.size(); ++g)
        std::copy_n(x.as<T>() + (o * s.n + first[g]) * s.inner, s.inner,
                    y.as<T>() + (o * groups + rank[g]) * s.inner);
    return {};
  }));
  for (size_t output = 1; output <= 3; ++output) {
    if (!c.wants_output(output)) continue;
    HOLOGRAM_TRY(Tensor out, c.output(output, Dims{output == 2 ? s.n : groups}));
    auto* values = out.as<int64_t>();
    for (size_t g = 0; g < first.size(); ++g) {
      if (output == 1) values[rank[g]] = first[g];
      if (output == 3) values[rank[g]] = count[g];
    }
    if (output == 2)
      for (size_t i = 0; i < group_of.size(); ++i)
        values[i] = rank[static_cast<size_t>(group_of[i])];
  }
  return {};
}

// Not a number comes after every number, and is one: a sort needs an order of all elements.
template <typename T>
int compare_elements(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>)
    if (a != a || b != b) return static_cast<int>(a != a) - static_cast<int>(b != b);
  return a < b ? -1 : b < a ? 1 : 0;
}

// Ordered by the real part, then the imaginary.
template <typename T>
struct Complex {
  T real, imaginary;
};
template <typename T>
int compare_elements(const Complex<T>& a, const Complex<T>& b) {
  const int sign = compare_elements(a.real, b.real);
  return sign != 0 ? sign : compare_elements(a.imaginary, b.imaginary);
}

template <typename T>
Status unique_of(KernelContext& c, const Slices& s) {
  const T* data = c.input(0).as<T>();
  return unique_slices(c, s, [&](int64_t a, int64_t b) {
    for (int64_t o = 0; o < s.outer; ++o) {
      for (int64_t i = 0; i < s.inner; ++i) {
        const T& u = data[(o * s.n + a) * s.inner + i];
        const T& v = data[(o * s.n + b) * s.inner + i];
        if (const int sign = compare_elements(u, v)) return sign;
      }
    }
    return 0;
  });
}

Status unique(KernelContext& c) {
  const Tensor& x = c.input(0);
  const bool flat = !c.attributes().has("axis");
  Slices s{.outer = 1, .n = x.count(), .inner = 1, .flat = flat, .axis = 0};
  if (!flat) {
    HOLOGRAM_TRY(s.axis, c.axis("axis", 0, x.dims.rank()));
    s.outer = x.dims.product(0, s.axis);
    s.n = x.dims[s.axis];
    s.inner = x.dims.product(s.axis + 1, x.dims.rank());
  }
  if (x.dtype == DType::string) return unique_of<std::string>(c, s);
  if (x.dtype == DType::boolean) return unique_of<uint8_t>(c, s);
  if (x.dtype == DType::complex64) return unique_of<Complex<float>>(c, s);
  if (x.dtype == DType::complex128) return unique_of<Complex<double>>(c, s);
  return dispatch_number(x.dtype, [&]<typename T>() { return unique_of<T>(c, s); });
}

constexpr Kernel kKernels[] = {
    {"CumProd", cumulative<true>, true},
    {"CumSum", cumulative<false>, true},
    {"TopK", top_k, true},
    {"Unique", unique, true},
};

}  // namespace

std::span<const Kernel> sorting_kernels() { return kKernels; }

}  // namespace hologram::kernels
