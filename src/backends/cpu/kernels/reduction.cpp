// Reductions over axes, and ArgMax/ArgMin.
//
// A reduction over any set of axes is done in passes, one for each run of neighbouring reduced
// axes: a tensor seen as [outer, n, inner] becomes [outer, inner]. Every combination below is
// associative enough for that (also the log-sum-exp of log-sum-exps). The order of additions
// depends on the shape alone, never on threads.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/saturate.h"
#include "backends/cpu/kernels/wrapping.h"

namespace hologram::kernels {
namespace {

enum class Op { sum, product, max, min, log_sum_exp };
enum class Before { nothing, absolute, square };
enum class After { nothing, mean, root, logarithm };

// Floats are added in double: the error then does not grow with the length of a line.
template <typename T, Op op>
using Accumulator =
    std::conditional_t<std::is_floating_point_v<T> && op != Op::max && op != Op::min, double, T>;

template <typename T, Op op>
Accumulator<T, op> identity() {
  using Limits = std::numeric_limits<T>;
  switch (op) {
    case Op::sum:
      return 0;
    case Op::product:
      return 1;
    case Op::max:
      return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case Op::min:
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
    case Op::log_sum_exp:
      return 0;  // of exponentials; the maximum is taken off first
  }
}

template <Op op, typename A>
A combine(A a, A b) {
  if constexpr (op == Op::product) return wrapping_multiply(a, b);
  // A NaN on either side stays: written so that it compiles to selects.
  if constexpr (op == Op::max) return b > a || b != b ? b : a;
  if constexpr (op == Op::min) return b < a || b != b ? b : a;
  return wrapping_add(a, b);
}

template <typename A, typename T>
A prepare(T x, Before before) {
  const A value = static_cast<A>(x);
  if (before == Before::absolute) return value < A(0) ? wrapping_subtract(A(0), value) : value;
  if (before == Before::square) return wrapping_multiply(value, value);
  return value;
}

// Eight independent partial results keep the adders busy and let the loop be vectorised.
template <typename T, Op op>
Accumulator<T, op> reduce_line(const T* x, int64_t n, Before before) {
  using A = Accumulator<T, op>;
  constexpr int kLanes = 8;
  A lanes[kLanes];
  std::fill_n(lanes, kLanes, identity<T, op>());
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane)
      lanes[lane] = combine<op>(lanes[lane], prepare<A>(x[i + lane], before));
  for (int lane = 0; i < n; ++i, ++lane)
    lanes[lane] = combine<op>(lanes[lane], prepare<A>(x[i], before));
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane)
      lanes[lane] = combine<op>(lanes[lane], lanes[lane + half]);
  return lanes[0];
}

template <typename T>
T log_sum_exp(const T* x, int64_t n, int64_t stride) {
  T top = -std::numeric_limits<T>::infinity();
  for (int64_t i = 0; i < n; ++i) top = combine<Op::max>(top, x[i * stride]);
  if (!std::isfinite(top)) return top;  // all -inf, or an inf or NaN that decides the result
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += std::exp(static_cast<double>(x[i * stride]) - static_cast<double>(top));
  return static_cast<T>(std::log(sum) + static_cast<double>(top));
}

struct Pass {
  int64_t outer, n, inner;
};

template <typename T, Op op>
Status run_pass(KernelContext& c, const Pass& pass, const T* in, T* out, Before before) {
  const int64_t work = std::max<int64_t>(1, pass.n * std::max<int64_t>(1, pass.inner));
  const size_t grain = static_cast<size_t>(std::max<int64_t>(1, 16384 / work));
  if constexpr (op == Op::log_sum_exp && std::is_floating_point_v<T>) {
    c.threads().parallel_for(static_cast<size_t>(pass.outer), grain, [&](size_t begin, size_t end) {
      for (size_t o = begin; o < end; ++o)
        for (int64_t i = 0; i < pass.inner; ++i)
          out[static_cast<int64_t>(o) * pass.inner + i] = log_sum_exp(
              in + static_cast<int64_t>(o) * pass.n * pass.inner + i, pass.n, pass.inner);
    });
    return {};
  } else if (pass.inner == 1) {
    c.threads().parallel_for(static_cast<size_t>(pass.outer), grain, [&](size_t begin, size_t end) {
      for (size_t o = begin; o < end; ++o)
        out[o] = static_cast<T>(
            reduce_line<T, op>(in + static_cast<int64_t>(o) * pass.n, pass.n, before));
    });
    return {};
  } else {
    // Columns: whole rows are combined into a strip of accumulators.
    constexpr int64_t kStrip = 256;
    const int64_t strips = (pass.inner + kStrip - 1) / kStrip;
    c.threads().parallel_for(
        static_cast<size_t>(pass.outer * strips), grain, [&](size_t begin, size_t end) {
          using A = Accumulator<T, op>;
          A sums[kStrip];
          for (auto item = static_cast<int64_t>(begin); item < static_cast<int64_t>(end); ++item) {
            const int64_t o = item / strips, first = item % strips * kStrip;
            const int64_t width = std::min(kStrip, pass.inner - first);
            std::fill_n(sums, width, identity<T, op>());
            const T* row = in + o * pass.n * pass.inner + first;
            for (int64_t k = 0; k < pass.n; ++k, row += pass.inner)
              for (int64_t i = 0; i < width; ++i)
                sums[i] = combine<op>(sums[i], prepare<A>(row[i], before));
            for (int64_t i = 0; i < width; ++i)
              out[o * pass.inner + first + i] = static_cast<T>(sums[i]);
          }
        });
    return {};
  }
}

template <typename T>
void finish(T* out, int64_t count, After after, int64_t reduced) {
  for (int64_t i = 0; i < count; ++i) {
    if (after == After::mean) {
      if constexpr (std::is_floating_point_v<T>)
        out[i] /= static_cast<T>(reduced);
      else if (reduced != 0)
        out[i] = static_cast<T>(out[i] / static_cast<T>(reduced));
    }
    if (after == After::root) out[i] = truncated<T>(std::sqrt(static_cast<double>(out[i])));
    if (after == After::logarithm) out[i] = truncated<T>(std::log(static_cast<double>(out[i])));
  }
}

// Which axes go: the second input, or all where there is none.
Result<std::array<bool, kMaxRank>> reduced_axes(KernelContext& c, size_t rank) {
  HOLOGRAM_TRY(const Dims axes, c.input_integers(1));
  std::array<bool, kMaxRank> reduced;
  reduced.fill(axes.size() == 0 && c.integer("noop_with_empty_axes") == 0);
  for (const int64_t axis : axes) {
    HOLOGRAM_TRY(const size_t place, normalise_axis(axis, rank));
    reduced[place] = true;
  }
  return reduced;
}

// One a combination: what comes before and after costs a branch a line, instances of it kilobytes.
template <Op op>
[[gnu::noinline, gnu::noclone]] Status reduce_by(KernelContext& c, Before before, After after) {
  const Tensor& in = c.input(0);
  const size_t rank = in.dims.rank();
  HOLOGRAM_TRY(const auto reduced, reduced_axes(c, rank));
  const bool keep = c.integer("keepdims", 1) != 0;
  Dims shape;
  int64_t removed = 1;
  for (size_t axis = 0; axis < rank; ++axis) {
    if (reduced[axis]) removed *= in.dims[axis];
    if (!reduced[axis])
      shape.push_back(in.dims[axis]);
    else if (keep)
      shape.push_back(1);
  }
  HOLOGRAM_TRY(Tensor out, c.output(0, shape));

  // Runs of reduced axes, the last first, so that what a pass leaves is always dense.
  std::array<Pass, kMaxRank> passes;
  size_t pass_count = 0;
  for (size_t end = rank; end > 0;) {
    if (!reduced[end - 1]) {
      --end;
      continue;
    }
    size_t begin = end;
    while (begin > 0 && reduced[begin - 1]) --begin;
    int64_t inner = 1;
    for (size_t axis = end; axis < rank; ++axis) inner *= reduced[axis] ? 1 : in.dims[axis];
    passes[pass_count++] = {in.dims.product(0, begin), in.dims.product(begin, end), inner};
    end = begin;
  }
  if (pass_count == 0) passes[pass_count++] = {in.count(), 1, 1};  // every element is its own line

  const auto body = [&]<typename T>() -> Status {
    const T* from = in.as<T>();
    for (size_t i = 0; i < pass_count; ++i) {
      const Pass& pass = passes[i];
      T* to = out.as<T>();
      if (i + 1 < pass_count) {
        HOLOGRAM_TRY(const std::span<T> between,
                     c.scratch<T>(static_cast<size_t>(pass.outer * pass.inner)));
        to = between.data();
      }
      HOLOGRAM_CHECK((run_pass<T, op>(c, pass, from, to, i == 0 ? before : Before::nothing)));
      from = to;
    }
    if (after != After::nothing) finish(out.as<T>(), out.count(), after, removed);
    return {};
  };
  if constexpr (op == Op::max || op == Op::min) {
    if (in.dtype == DType::boolean) return body.template operator()<uint8_t>();
    return dispatch_number(in.dtype, body);
  } else if constexpr (op == Op::log_sum_exp) {
    return dispatch_float(in.dtype, body);
  } else {
    // Products wrap: their bits are the same with a sign and without.
    constexpr bool kSigned = op != Op::product;
    switch (in.dtype) {
      case DType::i32:
        return body.template operator()<std::conditional_t<kSigned, int32_t, uint32_t>>();
      case DType::i64:
        return body.template operator()<std::conditional_t<kSigned, int64_t, uint64_t>>();
      case DType::u32:
        return body.template operator()<uint32_t>();
      case DType::u64:
        return body.template operator()<uint64_t>();
      default:
        return dispatch_float(in.dtype, body);
    }
  }
}

template <Op op, Before before = Before::nothing, After after = After::nothing>
Status reduce(KernelContext& c) {
  return reduce_by<op>(c, before, after);
}

// The log-sum-exp of integers is computed in double.
Status reduce_log_sum_exp(KernelContext& c) {
  if (!is_integer(c.input(0).dtype)) return reduce<Op::log_sum_exp>(c);
  return fail(ErrorCode::unsupported, "type {}; supported: f16, bf16, f32, f64",
              name_of(c.input(0).dtype));
}

template <bool largest>
Status arg(KernelContext& c) {
  const Tensor& in = c.input(0);
  HOLOGRAM_TRY(const size_t axis, c.axis("axis", 0, in.dims.rank()));
  const bool keep = c.integer("keepdims", 1) != 0, last = c.integer("select_last_index") != 0;
  Dims shape;
  for (size_t i = 0; i < in.dims.rank(); ++i) {
    if (i != axis)
      shape.push_back(in.dims[i]);
    else if (keep)
      shape.push_back(1);
  }
  const int64_t n = in.dims[axis], inner = in.dims.product(axis + 1, in.dims.rank());
  HOLOGRAM_TRY(Tensor out, c.output(0, shape));
  if (n == 0 && out.count() > 0)
    return fail(ErrorCode::shape_mismatch, "axis {} has no elements, so none is the {}", axis,
                largest ? "largest" : "smallest");
  return dispatch_number(in.dtype, [&]<typename T>() -> Status {
    auto* result = out.as<int64_t>();
    c.threads().parallel_for(static_cast<size_t>(out.count()), 1024, [&](size_t begin, size_t end) {
      for (auto line = static_cast<int64_t>(begin); line < static_cast<int64_t>(end); ++line) {
        const T* x = in.as<T>() + line / inner * n * inner + line % inner;
        int64_t best = 0;
        for (int64_t i = 1; i < n; ++i) {
          const T value = x[i * inner], top = x[best * inner];
          const bool better = largest ? value > top : value < top;
          if (better || (last && value == top)) best = i;
        }
        result[line] = best;
      }
    });
    return {};
  });
}

constexpr Kernel kKernels[] = {
    {"ArgMax", arg<true>, true},
    {"ArgMin", arg<false>, true},
    {"ReduceL1", reduce<Op::sum, Before::absolute, After::nothing>, true},
    {"ReduceL2", reduce<Op::sum, Before::square, After::root>, true},
    {"ReduceLogSum", reduce<Op::sum, Before::nothing, After::logarithm>, true},
    {"ReduceLogSumExp", reduce_log_sum_exp, true},
    {"ReduceMax", reduce<Op::max>, true},
    {"ReduceMean", reduce<Op::sum, Before::nothing, After::mean>, true},
    {"ReduceMin", reduce<Op::min>, true},
    {"ReduceProd", reduce<Op::product>, true},
    {"ReduceSum", reduce<Op::sum>, true},
    {"ReduceSumSquare", reduce<Op::sum, Before::square, After::nothing>, true},
};

}  // namespace

std::span<const Kernel> reduction_kernels() { return kKernels; }

}  // namespace hologram::kernels
