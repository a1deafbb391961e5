// The part of the reductions that is compiled once a level.
// clang-format off: the order of these includes is Highway's
#include "backends/cpu/builtin/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/builtin/reduce_levels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include "backends/cpu/builtin/convert-inl.h"
#include "backends/cpu/builtin/families.h"
#include "backends/cpu/builtin/lanes-inl.h"
#include "backends/cpu/builtin/reduce.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::HWY_NAMESPACE {

// 16-bit floats are widened this many at a time.
constexpr size_t kRun = 2048;

template <typename T>
inline constexpr bool kIs16BitFloat = !std::is_same_v<T, Widened<T>>;

// The accumulator of an op on T.
template <ReduceOp op, typename T>
struct Accumulator {
  using Sum = std::conditional_t<
      std::is_integral_v<T>,
      std::conditional_t<op == ReduceOp::mean, double,
                         std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>,
      Widened<T>>;
  using Type = std::conditional_t<op == ReduceOp::min || op == ReduceOp::max, Widened<T>, Sum>;
};

template <ReduceOp op, typename A>
A join(A a, A b) {
  if constexpr (op == ReduceOp::min || op == ReduceOp::max) {
    if (a != a) return a;
    if (b != b) return b;
    return op == ReduceOp::min ? MinFold()(a, b) : MaxFold()(a, b);
  } else if constexpr (std::is_integral_v<A>) {
    return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));  // wraps
  } else {
    return a + b;
  }
}

template <ReduceOp op, typename A>
A float_run(const A* x, const A* y, size_t count) {
  if constexpr (op == ReduceOp::dot) return dot_run(x, y, count);
  if constexpr (op == ReduceOp::min) return extremum_run<true>(x, count);
  if constexpr (op == ReduceOp::max) return extremum_run<false>(x, count);
  return sum_run(x, count);
}

// Integers: exact, so any order gives the same result, and the compiler may choose its own.
template <ReduceOp op, typename T, typename A>
A integer_run(const T* x, const T* y, size_t count) {
  if constexpr (op == ReduceOp::min || op == ReduceOp::max) {
    T best = x[0];
    for (size_t i = 1; i < count; ++i)
      best = op == ReduceOp::min ? (x[i] < best ? x[i] : best) : (best < x[i] ? x[i] : best);
    return best;
  } else {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; ++i) {
      if constexpr (op == ReduceOp::dot)
        sum += static_cast<uint64_t>(static_cast<A>(x[i])) *
               static_cast<uint64_t>(static_cast<A>(y[i]));
      else
        sum += static_cast<uint64_t>(static_cast<A>(x[i]));
    }
    return static_cast<A>(sum);
  }
}

template <ReduceOp op, typename T>
void chunk(const void* x_bytes, const void* y_bytes, size_t count, void* accumulator) {
  using A = typename Accumulator<op, T>::Type;
  const auto* x = static_cast<const T*>(x_bytes);
  const auto* y = static_cast<const T*>(y_bytes);
  A result;
  if constexpr (std::is_same_v<T, A> && std::is_floating_point_v<T>) {
    result = float_run<op>(x, y, count);
  } else if constexpr (std::is_integral_v<T> && op != ReduceOp::mean) {
    result = integer_run<op, T, A>(x, y, count);
  } else {
    // Widened into a buffer, run by run; runs are joined in order.
    HWY_ALIGN A left[kRun];
    HWY_ALIGN A right[op == ReduceOp::dot ? kRun : 1];
    result = A{};
    for (size_t i = 0; i < count; i += kRun) {
      const size_t n = count - i < kRun ? count - i : kRun;
      if constexpr (kIs16BitFloat<T>) {
        widen(x + i, left, n);
        if constexpr (op == ReduceOp::dot) widen(y + i, right, n);
      } else {
        for (size_t k = 0; k < n; ++k) left[k] = static_cast<A>(x[i + k]);
      }
      const A part = float_run<op>(left, right, n);
      result = i == 0 ? part : join<op>(result, part);
    }
  }
  std::memcpy(accumulator, &result, sizeof(A));
}

template <ReduceOp op, typename T>
void combine(void* accumulator, const void* next) {
  using A = typename Accumulator<op, T>::Type;
  A a, b;
  std::memcpy(&a, accumulator, sizeof(A));
  std::memcpy(&b, next, sizeof(A));
  a = join<op>(a, b);
  std::memcpy(accumulator, &a, sizeof(A));
}

template <ReduceOp op, typename T>
void finish(const void* accumulator, uint64_t count, void* out) {
  using A = typename Accumulator<op, T>::Type;
  A value;
  std::memcpy(&value, accumulator, sizeof(A));
  if constexpr (op == ReduceOp::mean) value /= static_cast<A>(count);
  if constexpr (kIs16BitFloat<T>)
    *static_cast<T*>(out) = T(value);
  else
    std::memcpy(out, &value, sizeof(A));
}

template <ReduceOp op>
const ReduceKernel& kernel_of(DType type) {
  const ReduceKernel* found = nullptr;
  with_type(type, [&]<typename T>() {
    using A = typename Accumulator<op, T>::Type;
    static constexpr ReduceKernel kKernel = {chunk<op, T>, combine<op, T>, finish<op, T>, sizeof(T),
                                             kIs16BitFloat<T> ? sizeof(T) : sizeof(A)};
    found = &kKernel;
  });
  return *found;
}

const ReduceKernel& find_reduce(ReduceOp op, DType type) {
  switch (op) {
    case ReduceOp::sum:
      return kernel_of<ReduceOp::sum>(type);
    case ReduceOp::mean:
      return kernel_of<ReduceOp::mean>(type);
    case ReduceOp::min:
      return kernel_of<ReduceOp::min>(type);
    case ReduceOp::max:
      return kernel_of<ReduceOp::max>(type);
    case ReduceOp::dot:
      break;
  }
  return kernel_of<ReduceOp::dot>(type);
}

}  // namespace hologram::backends::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends {
HWY_EXPORT(find_reduce);
const ReduceKernel& reduce_kernel(ReduceOp op, DType type) {
  return HWY_DYNAMIC_DISPATCH(find_reduce)(op, type);
}
}  // namespace hologram::backends
#endif
