// The first few nanoseconds of every element-wise op. The op and the number of its operands are
// known here when compiling, so the common case (everything contiguous, of one shape and type,
// small enough for one thread) is a row of comparisons and a call of native code; the rest goes to
// run_elementwise().
#pragma once

#include <array>
#include <utility>

#include "runtime/ops/elementwise.h"
#include "runtime/ops/op_kernels.h"

namespace hologram::runtime::ops {

inline bool same_shape(const Tensor& a, const Tensor& b) {
  // One dimension each: the counts say it, without a look at the dimensions.
  if (a.rank() == 1 && b.rank() == 1) return a.element_count() == b.element_count();
  return a.dims() == b.dims();
}

// Of contiguous tensors. The same elements in the same places are safe.
inline bool disjoint_or_same(const Tensor& input, const Tensor& out) {
  const auto a = reinterpret_cast<uintptr_t>(input.address());
  const auto b = reinterpret_cast<uintptr_t>(out.address());
  return (a == b && input.byte_count() == out.byte_count()) || a + input.byte_count() <= b ||
         b + out.byte_count() <= a;
}

inline bool is_flat_output(const Executor& executor, const Tensor& out) {
  return out.backend() == &executor.backend() && out.is_contiguous() && out.writable() &&
         out.element_count() != 0;
}
inline bool is_flat_input(const Executor& executor, const Tensor& input, DType type,
                          const Tensor& out) {
  return input.backend() == &executor.backend() && input.is_contiguous() && input.type() == type &&
         same_shape(input, out) && disjoint_or_same(input, out);
}

// Inputs, then `out`, then the scalars' bits.
template <ElementwiseOp op, size_t kInputs, size_t kScalars>
[[gnu::always_inline]] inline Status elementwise_op(
    const Executor& executor, const std::array<const Tensor*, kInputs>& inputs, const Tensor& out,
    const std::array<uint64_t, kScalars>& scalars) {
  static_assert(info(op).inputs == kInputs && info(op).scalars == kScalars);
  const DType type = inputs[0]->type();
  const OpKernels::Slot* slot = executor.op_kernels().loaded(op, Variant::flat, type);
  // Unrolled by hand: a loop would keep the pointers in memory.
  const bool flat =
      slot != nullptr && is_flat_output(executor, out) &&
      out.type() == result_type(op, type)&& [&]<size_t... i>(std::index_sequence<i...>) {
    return (is_flat_input(executor, *inputs[i], type, out) && ...);
  }
  (std::make_index_sequence<kInputs>());
  const auto threads = static_cast<uint64_t>(out.element_count());
  if (flat && threads <= slot->direct.most_threads) [[likely]] {
    constexpr size_t kWords = kInputs + 1 + kScalars + 1;
    static_assert(kWords <= backends::DirectLaunch::kMaxWords);
    if constexpr (kWords <= isa::kMaxWordsInRegisters)
      if (slot->direct.words) [[likely]] {
        [&]<size_t... i, size_t... j>(std::index_sequence<i...>, std::index_sequence<j...>) {
          slot->direct.run_words(inputs[i]->address()..., out.address(), scalars[j]..., threads);
        }
        (std::make_index_sequence<kInputs>(), std::make_index_sequence<kScalars>());
        return {};
      }
    backends::DirectLaunch& direct = backends::DirectLaunch::mine(kWords);
    uint64_t* const words = direct.words_of(kWords);
    for (size_t i = 0; i < kInputs; ++i) backends::put_word(words[i], inputs[i]->address());
    backends::put_word(words[kInputs], out.address());
    for (size_t i = 0; i < kScalars; ++i) backends::put_word(words[kInputs + 1 + i], scalars[i]);
    backends::put_word(words[kInputs + 1 + kScalars], threads);
    // Only integers are divided with a trap (integer_ops.h).
    constexpr bool kMayTrap = op == ElementwiseOp::div || op == ElementwiseOp::pow;
    const uint32_t trap = slot->direct.run(direct, threads, kMayTrap);
    return trap == isa::kTrapNone ? Status() : slot->kernel.load()->trapped(trap);
  }
  // Copies: what a call takes the address of would be in memory from the start.
  const std::array<const Tensor*, kInputs> again = inputs;
  const std::array<uint64_t, kScalars> values = scalars;
  return run_elementwise(executor, op, again, values, out);
}

}  // namespace hologram::runtime::ops
