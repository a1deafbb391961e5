#include "backends/cpu/dense/conv_mirror.h"

#include <algorithm>
#include <cmath>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/conv_mirror.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/gemm.h"
#include "backends/cpu/dense/transpose.h"
#include "support/aligned.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// sums[j] = window[1 + j] + window[taps - 1 - j] and their differences, for each pair.
void fold_window(const float* window, size_t taps, float* sums, float* differences) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d), pairs = taps / 2 - 1;
  size_t j = 0;
  for (; j + lanes <= pairs; j += lanes) {
    const auto a = hn::LoadU(d, window + 1 + j);
    const auto b = hn::Reverse(d, hn::LoadU(d, window + taps - j - lanes));
    hn::StoreU(hn::Add(a, b), d, sums + j);
    hn::StoreU(hn::Sub(a, b), d, differences + j);
  }
  for (; j < pairs; ++j) {
    sums[j] = window[1 + j] + window[taps - 1 - j];
    differences[j] = window[1 + j] - window[taps - 1 - j];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(fold_window);

namespace {

// A folded window: sums of pairs, the samples that are no pair (the middle one and the first), then
// differences of pairs.
struct Fold {
  size_t taps;
  size_t pairs() const { return taps / 2 - 1; }
  size_t sums() const { return pairs() + 2; }
  size_t all() const { return sums() + pairs(); }
};

// Scratch: folded windows, then the results as a product makes them, then the product's own.
struct Places {
  size_t results, product, total;
  Places(const MirrorConv& conv, size_t product_bytes) {
    const ConvShape& s = conv.shape;
    results = align_up(s.out_width * Fold{s.kernel_width}.all() * sizeof(float), kAlignment);
    product = results + align_up(s.out_width * s.out_channels * sizeof(float), kAlignment);
    total = product + product_bytes;
  }
};

// Of the even filters, or of the odd ones.
Gemm product_of(const MirrorConv& conv, bool odd, const float* windows, float* results) {
  const ConvShape& s = conv.shape;
  const Fold fold{s.kernel_width};
  Gemm g{.m = s.out_width,
         .n = odd ? s.out_channels - conv.even : conv.even,
         .k = odd ? fold.pairs() : fold.sums(),
         .a = windows + (odd ? fold.sums() : 0),
         .lda = fold.all(),
         .packed_b = conv.packed_weights +
                     (odd ? packed_b_bytes(fold.sums(), conv.even) / sizeof(float) : 0),
         .c = results + (odd ? conv.even : 0),
         .ldc = s.out_channels,
         .epilogue = conv.epilogue};
  if (odd && g.epilogue.bias) g.epilogue.bias += conv.even;
  return g;
}

}  // namespace

std::optional<size_t> even_filters(size_t filters, size_t taps, const float* weights) {
  if (taps < 4 || taps % 2 != 0 || filters == 0) return std::nullopt;
  float largest = 0;
  for (size_t i = 0; i < filters * taps; ++i) {
    if (!std::isfinite(weights[i])) return std::nullopt;
    largest = std::max(largest, std::abs(weights[i]));
  }
  // A unit in the last place of the largest taps: their mean is as near to each as rounding is.
  const float allowed = largest * 0x1p-23f;
  std::vector<bool> even(filters), odd(filters);  // a filter of zeros is both
  for (size_t f = 0; f < filters; ++f) {
    const float* w = weights + f * taps;
    float sum = std::max(std::abs(w[0]), std::abs(w[taps / 2])), difference = 0;
    for (size_t n = 1; n < taps / 2; ++n) {
      sum = std::max(sum, std::abs(w[n] + w[taps - n]));
      difference = std::max(difference, std::abs(w[n] - w[taps - n]));
    }
    even[f] = difference <= allowed;
    odd[f] = sum <= allowed;
  }
  if (std::ranges::find(odd, false) == odd.end()) return 0;
  const auto first = std::ranges::find(even, false);
  if (std::find(odd.begin() + (first - even.begin()), odd.end(), false) != odd.end())
    return std::nullopt;
  return static_cast<size_t>(first - even.begin());
}

size_t packed_mirror_conv_bytes(const ConvShape& s, size_t even) {
  const Fold fold{s.kernel_width};
  return packed_b_bytes(fold.sums(), even) + packed_b_bytes(fold.pairs(), s.out_channels - even);
}

void pack_mirror_conv(const ConvShape& s, size_t even, const float* weights, float* packed) {
  const Fold fold{s.kernel_width};
  const size_t taps = s.kernel_width;
  // Filters as rows of half the taps. Taps that differ by less than rounding get their mean.
  std::vector<float> halves(std::max(even * fold.sums(), (s.out_channels - even) * fold.pairs()));
  const auto halve = [&](size_t filter, float sign, float* to) {
    const float* w = weights + filter * taps;
    for (size_t n = 1; n < taps / 2; ++n) to[n - 1] = (w[n] + sign * w[taps - n]) / 2;
    if (sign < 0) return;
    to[fold.pairs()] = w[taps / 2];
    to[fold.pairs() + 1] = w[0];
  };
  for (size_t f = 0; f < even; ++f) halve(f, 1, halves.data() + f * fold.sums());
  pack_b(fold.sums(), even, halves.data(), fold.sums(), true, packed, ThreadPool::shared());
  for (size_t f = even; f < s.out_channels; ++f)
    halve(f, -1, halves.data() + (f - even) * fold.pairs());
  pack_b(fold.pairs(), s.out_channels - even, halves.data(), fold.pairs(), true,
         packed + packed_b_bytes(fold.sums(), even) / sizeof(float), ThreadPool::shared());
}

size_t mirror_conv_scratch_bytes(const MirrorConv& conv) {
  return Places(conv, std::max(gemm_scratch_bytes(product_of(conv, false, nullptr, nullptr)),
                               gemm_scratch_bytes(product_of(conv, true, nullptr, nullptr))))
      .total;
}

void mirror_conv(const MirrorConv& conv, std::byte* scratch, ThreadPool& pool) {
  const ConvShape& s = conv.shape;
  const Fold fold{s.kernel_width};
  const Places places(conv, 0);
  auto* windows = reinterpret_cast<float*>(scratch);
  auto* results = reinterpret_cast<float*>(scratch + places.results);
  const auto fold_one = HWY_DYNAMIC_DISPATCH(fold_window);
  for (size_t sample = 0; sample < s.batch; ++sample) {
    const float* input = conv.input + sample * s.in_width;
    pool.parallel_for(s.out_width, std::max<size_t>(1, 16384 / s.kernel_width),
                      [&](size_t begin, size_t end) {
                        for (size_t i = begin; i < end; ++i) {
                          const float* window = input + i * s.stride_width;
                          float* to = windows + i * fold.all();
                          fold_one(window, s.kernel_width, to, to + fold.sums());
                          to[fold.pairs()] = window[s.kernel_width / 2];
                          to[fold.pairs() + 1] = window[0];
                        }
                      });
    for (const bool odd : {false, true})
      gemm(product_of(conv, odd, windows, results), scratch + places.product, pool);
    transpose(1, s.out_width, s.out_channels, results,
              conv.output + sample * s.out_channels * s.out_width, pool);
  }
}

}  // namespace hologram::backends::dense
#endif
