// Softmax and the cross-entropy of its logarithm, row by row; compiled once a level.
// clang-format off: the order of these includes is Highway's
#include "backends/cpu/builtin/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/builtin/softmax_levels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <cmath>
#include <limits>

#include "backends/cpu/builtin/convert-inl.h"
#include "backends/cpu/builtin/families.h"
#include "backends/cpu/builtin/lanes-inl.h"
#include "backends/cpu/builtin/softmax.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::HWY_NAMESPACE {

// Rows are worked through this many elements at a time; sums of pieces are added in order.
constexpr size_t kPiece = 1024;

// The piece as f32 or f64: in place where it is already, else widened into `buffer`.
template <typename T>
HWY_INLINE const Widened<T>* piece_of(const T* x, size_t count, Widened<T>* buffer) {
  if constexpr (std::is_same_v<T, Widened<T>>) {
    return x;
  } else {
    widen(x, buffer, count);
    return buffer;
  }
}

// to[i] = exp(x[i] - shift). `x` and `to` may be the same.
template <typename A>
HWY_INLINE void exp_run(const A* x, A shift, A* to, size_t count) {
  const hn::ScalableTag<A> d;
  const size_t width = hn::Lanes(d);
  const auto by = hn::Set(d, shift);
  size_t i = 0;
  for (; i + width <= count; i += width)
    hn::StoreU(hn::Exp(d, hn::Sub(hn::LoadU(d, x + i), by)), d, to + i);
  if (i == count) return;
  HWY_ALIGN A rest[hn::MaxLanes(d)] = {};
  for (size_t k = i; k < count; ++k) rest[k - i] = x[k];
  hn::Store(hn::Exp(d, hn::Sub(hn::Load(d, rest), by)), d, rest);
  for (size_t k = i; k < count; ++k) to[k] = rest[k - i];
}

template <typename T>
Widened<T> greatest(const T* x, size_t count) {
  using A = Widened<T>;
  HWY_ALIGN A buffer[kPiece];
  A best = -std::numeric_limits<A>::infinity();
  for (size_t i = 0; i < count; i += kPiece) {
    const size_t n = count - i < kPiece ? count - i : kPiece;
    const A part = extremum_run<false>(piece_of(x + i, n, buffer), n);
    if (part != part) return part;
    best = MaxFold()(best, part);
  }
  return best;
}

// The sum of exp(x[i] - shift); where `to` is not null the terms are kept there.
template <typename T>
Widened<T> sum_of_exp(const T* x, Widened<T> shift, size_t count, Widened<T>* to) {
  using A = Widened<T>;
  HWY_ALIGN A buffer[kPiece];
  A sum = 0;
  for (size_t i = 0; i < count; i += kPiece) {
    const size_t n = count - i < kPiece ? count - i : kPiece;
    A* terms = to ? to + i : buffer;
    exp_run(piece_of(x + i, n, buffer), shift, terms, n);
    sum += sum_run(terms, n);
  }
  return sum;
}

template <typename T>
void softmax_row(const void* from, void* to, size_t count) {
  using A = Widened<T>;
  const auto* x = static_cast<const T*>(from);
  auto* out = static_cast<T*>(to);
  const A shift = greatest(x, count);
  if (shift != shift) {
    for (size_t i = 0; i < count; ++i) out[i] = narrow_one(shift, T());
    return;
  }
  if constexpr (std::is_same_v<T, A>) {
    const A sum = sum_of_exp(x, shift, count, out);
    for (size_t i = 0; i < count; ++i) out[i] /= sum;
  } else {
    // The terms do not fit the narrow type without rounding; they are computed again instead.
    const A sum = sum_of_exp<T>(x, shift, count, nullptr);
    HWY_ALIGN A buffer[kPiece];
    for (size_t i = 0; i < count; i += kPiece) {
      const size_t n = count - i < kPiece ? count - i : kPiece;
      exp_run(piece_of(x + i, n, buffer), shift, buffer, n);
      for (size_t k = 0; k < n; ++k) buffer[k] /= sum;
      narrow(buffer, out + i, n);
    }
  }
}

// log(sum of exp(x[i]))
template <typename T>
Widened<T> log_sum_exp(const T* x, size_t count) {
  const Widened<T> shift = greatest(x, count);
  if (shift != shift) return shift;
  return shift + std::log(sum_of_exp<T>(x, shift, count, nullptr));
}

template <typename T>
void class_row(const void* logits, size_t count, size_t target, void* loss) {
  using A = Widened<T>;
  const auto* x = static_cast<const T*>(logits);
  HWY_ALIGN A buffer[kPiece];
  *static_cast<A*>(loss) = log_sum_exp(x, count) - *piece_of(x + target, 1, buffer);
}

template <typename T>
void distribution_row(const void* logits, const void* target, size_t count, void* loss) {
  using A = Widened<T>;
  const auto* x = static_cast<const T*>(logits);
  const auto* t = static_cast<const T*>(target);
  const A whole = log_sum_exp(x, count);
  HWY_ALIGN A terms[kPiece];
  HWY_ALIGN A weights[kPiece];
  A sum = 0;
  for (size_t i = 0; i < count; i += kPiece) {
    const size_t n = count - i < kPiece ? count - i : kPiece;
    const A* values = piece_of(x + i, n, terms);
    for (size_t k = 0; k < n; ++k) terms[k] = whole - values[k];
    sum += dot_run(static_cast<const A*>(terms), piece_of(t + i, n, weights), n);
  }
  *static_cast<A*>(loss) = sum;
}

const SoftmaxKernel& find_softmax(DType type) {
  const SoftmaxKernel* found = nullptr;
  with_type(type, [&]<typename T>() {
    if constexpr (std::is_floating_point_v<Widened<T>>) {
      static constexpr SoftmaxKernel kKernel = {softmax_row<T>, class_row<T>, distribution_row<T>};
      found = &kKernel;
    }
  });
  return *found;
}

}  // namespace hologram::backends::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends {
HWY_EXPORT(find_softmax);
const SoftmaxKernel& softmax_kernel(DType type) { return HWY_DYNAMIC_DISPATCH(find_softmax)(type); }
}  // namespace hologram::backends
#endif
