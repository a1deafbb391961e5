#include "backends/cpu/dense/depthwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/depthwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/bf16_values-inl.h"
#include "backends/cpu/dense/bf16_values.h"
#include "backends/cpu/dense/finish-inl.h"
#include "backends/cpu/dense/image_rows.h"
#include "backends/cpu/dense/wide-inl.h"
#include "support/aligned.h"

#ifndef HOLOGRAM_DENSE_DEPTHWISE_ONCE_
#define HOLOGRAM_DENSE_DEPTHWISE_ONCE_
namespace hologram::backends::dense {
// One output row of one channel block.
struct DepthwiseRow {
  const ConvShape* shape;
  const void* input;  // the block: [height][width][16] of f32 or bf16
  bool input_bf16;
  const float* weights;         // of the block
  const double* exact_weights;  // instead, or null: sums are f64, bias included
  const float* bias;            // 16 values, or null
  const float* start;           // what sums begin with: 16 values, or null
  const Epilogue* epilogue;
  size_t channels;  // of the block that exist
  size_t y;
  float* output;          // the row: blocked, or nchw of the block's first channel
  uint16_t* output_bf16;  // instead, where blocked
  const float* residual;
  size_t channel_stride;  // of an nchw output; 0: blocked
  size_t offset;          // of `output` from the whole output's start
};
}  // namespace hologram::backends::dense
#endif

HWY_BEFORE_NAMESPACE();
#include "backends/cpu/dense/oldest_level-inl.h"
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t kLanes = hn::MaxLanes(D());
constexpr size_t kPixels = HWY_MAX_BYTES == 64 ? 8 : 4;  // kept in registers with their inputs

// The error of a sum grows with its length: those of wide kernels are in parts, a row of the kernel
// each. With 3 x 3 that would take a tenth longer, and gain little.
constexpr bool in_parts(size_t kernel_width) { return kernel_width >= 5; }
HWY_INLINE V begin_row(bool parts, V sum) { return parts ? hn::Zero(D()) : sum; }
HWY_INLINE V end_row(bool parts, V row, V sum) { return parts ? hn::Add(sum, row) : row; }

// In a register: GCC would rather load the value again for each of its products, and then the loads
// of a row take longer than the products.
HWY_INLINE V kept(V value) {
#if HWY_ARCH_X86
  asm("" : "+v"(value.raw));
#endif
  return value;
}

// What happens to the sums of a row while they are in registers: sum + bias, and a clip.
struct RowEnd {
  V start;  // what a sum begins with
  V bias, low, high;
  bool clips;
};
RowEnd row_end(const DepthwiseRow& row, bool direct, size_t lane) {
  const D d;
  const ClipRange clip = clip_range(*row.epilogue);
  return {row.start ? hn::LoadU(d, row.start + lane) : hn::Zero(d),
          row.bias && row.epilogue->alpha == 1.0f ? hn::LoadU(d, row.bias + lane) : hn::Zero(d),
          hn::Set(d, clip.low), hn::Set(d, clip.high), direct && clip.clips};
}
template <size_t kCount>
HWY_INLINE void store_pixels(const RowEnd& end, V (&sums)[kCount], float* output) {
  const D d;
  const V bias = end.bias;
#pragma GCC unroll 16
  for (size_t p = 0; p < kCount; ++p) sums[p] = hn::Add(sums[p], bias);
  if (end.clips) {
    const V low = end.low, high = end.high;
#pragma GCC unroll 16
    for (size_t p = 0; p < kCount; ++p) sums[p] = hn::Max(low, hn::Min(high, sums[p]));
  }
#pragma GCC unroll 16
  for (size_t p = 0; p < kCount; ++p) hn::StoreU(sums[p], d, output + p * kChannelBlock);
}

// Rows of the kernel that meet the input.
struct KernelRows {
  size_t first, end;
  ptrdiff_t y;  // input row that meets `first`
};
KernelRows kernel_rows(const ConvShape& s, size_t y) {
  const ptrdiff_t top =
      static_cast<ptrdiff_t>(y * s.stride_height) - static_cast<ptrdiff_t>(s.pad_top);
  KernelRows rows{s.kernel_height, 0, 0};
  for (size_t k = 0; k < s.kernel_height; ++k) {
    const ptrdiff_t at = top + static_cast<ptrdiff_t>(k * s.dilation_height);
    if (at < 0 || at >= static_cast<ptrdiff_t>(s.in_height)) continue;
    if (rows.first == s.kernel_height) {
      rows.first = k;
      rows.y = at;
    }
    rows.end = k + 1;
  }
  return rows;
}

// A pixel whose kernel may reach over the edges, or of a kernel without code of its own.
template <typename T>
void any_pixel(const DepthwiseRow& row, const KernelRows& rows, const RowEnd& end, size_t lane,
               size_t x, float* output) {
  const D d;
  const ConvShape& s = *row.shape;
  const auto* input = static_cast<const T*>(row.input);
  V sum[1] = {end.start};
  const ptrdiff_t left =
      static_cast<ptrdiff_t>(x * s.stride_width) - static_cast<ptrdiff_t>(s.pad_left);
  const auto step = static_cast<ptrdiff_t>(s.dilation_width);
  const auto width = static_cast<ptrdiff_t>(s.in_width);
  constexpr auto kBlock = static_cast<ptrdiff_t>(kChannelBlock);
  // Columns of the kernel that meet the row: few are left out, and divisions take longer.
  ptrdiff_t first = 0, past = static_cast<ptrdiff_t>(s.kernel_width);
  while (first < past && left + first * step < 0) ++first;
  while (past > first && left + (past - 1) * step >= width) --past;
  const bool parts = in_parts(s.kernel_width);
  for (size_t ky = rows.first; ky < rows.end; ++ky) {
    const size_t y = static_cast<size_t>(rows.y) + (ky - rows.first) * s.dilation_height;
    const T* in = input + y * s.in_width * kChannelBlock + lane;
    const float* weights = row.weights + ky * s.kernel_width * kChannelBlock + lane;
    V part = begin_row(parts, sum[0]);
    for (ptrdiff_t kx = first; kx < past; ++kx)
      part = hn::MulAdd(hn::LoadU(d, weights + kx * kBlock),
                        load_value(d, in + (left + kx * step) * kBlock), part);
    sum[0] = end_row(parts, part, sum[0]);
  }
  store_pixels(end, sum, output);
}

// kCount pixels whose kernels lie inside the row. Loads are shared by the pixels they meet.
template <typename T, size_t kWidth, size_t kStride, size_t kCount>
HWY_INLINE void inner_pixels(const DepthwiseRow& row, const KernelRows& rows, const RowEnd& end,
                             size_t lane, size_t x, float* output) {
  const D d;
  const ConvShape& s = *row.shape;
  V sums[kCount];
#pragma GCC unroll 8
  for (size_t p = 0; p < kCount; ++p) sums[p] = end.start;
  for (size_t ky = rows.first; ky < rows.end; ++ky) {
    const size_t y = static_cast<size_t>(rows.y) + (ky - rows.first) * s.dilation_height;
    const T* in = static_cast<const T*>(row.input) +
                  (y * s.in_width + x * kStride - s.pad_left) * kChannelBlock + lane;
    const float* from = row.weights + ky * kWidth * kChannelBlock + lane;
    V weights[kWidth];
#pragma GCC unroll 8
    for (size_t kx = 0; kx < kWidth; ++kx) weights[kx] = hn::LoadU(d, from + kx * kChannelBlock);
    V part[kCount];
#pragma GCC unroll 8
    for (size_t p = 0; p < kCount; ++p) part[p] = begin_row(in_parts(kWidth), sums[p]);
#pragma GCC unroll 32
    for (size_t i = 0; i < (kCount - 1) * kStride + kWidth; ++i) {
      const V x = kept(load_value(d, in + i * kChannelBlock));
#pragma GCC unroll 8
      for (size_t kx = 0; kx < kWidth; ++kx)
        if (i >= kx && (i - kx) % kStride == 0 && (i - kx) / kStride < kCount)
          part[(i - kx) / kStride] = hn::MulAdd(weights[kx], x, part[(i - kx) / kStride]);
    }
#pragma GCC unroll 8
    for (size_t p = 0; p < kCount; ++p) sums[p] = end_row(in_parts(kWidth), part[p], sums[p]);
  }
  store_pixels(end, sums, output);
}

// A whole row of kPixelCount pixels, as wide as the input: which taps lie beyond an edge is known
// when this is compiled. In the rows of 14 and 7 pixels that networks end with, edges are most of
// the time otherwise.
template <typename T, size_t kWidth, size_t kPixelCount>
void whole_row(const DepthwiseRow& row, const KernelRows& rows, const RowEnd& end, size_t lane,
               float* output) {
  constexpr size_t kPad = kWidth / 2;
  const D d;
  const ConvShape& s = *row.shape;
  V sums[kPixelCount];
#pragma GCC unroll 14
  for (size_t p = 0; p < kPixelCount; ++p) sums[p] = end.start;
  for (size_t ky = rows.first; ky < rows.end; ++ky) {
    const size_t y = static_cast<size_t>(rows.y) + (ky - rows.first) * s.dilation_height;
    const T* in = static_cast<const T*>(row.input) + y * kPixelCount * kChannelBlock + lane;
    const float* from = row.weights + ky * kWidth * kChannelBlock + lane;
    V weights[kWidth];
#pragma GCC unroll 8
    for (size_t kx = 0; kx < kWidth; ++kx) weights[kx] = hn::LoadU(d, from + kx * kChannelBlock);
    V part[kPixelCount];
#pragma GCC unroll 14
    for (size_t p = 0; p < kPixelCount; ++p) part[p] = begin_row(in_parts(kWidth), sums[p]);
#pragma GCC unroll 14
    for (size_t i = 0; i < kPixelCount; ++i) {
      const V x = kept(load_value(d, in + i * kChannelBlock));
#pragma GCC unroll 8
      for (size_t kx = 0; kx < kWidth; ++kx)
        if (i + kPad >= kx && i + kPad - kx < kPixelCount)
          part[i + kPad - kx] = hn::MulAdd(weights[kx], x, part[i + kPad - kx]);
    }
#pragma GCC unroll 14
    for (size_t p = 0; p < kPixelCount; ++p) sums[p] = end_row(in_parts(kWidth), part[p], sums[p]);
  }
  store_pixels(end, sums, output);
}
using WholeRow = void (*)(const DepthwiseRow&, const KernelRows&, const RowEnd&, size_t, float*);
// nullptr where there is none for the shape.
template <typename T, size_t kWidth, size_t kStride>
WholeRow whole_row_of(const ConvShape& s, size_t first, size_t past) {
  if constexpr (kWidth != 0 && kStride == 1) {
    if (first != 0 || past != s.in_width || s.out_width != s.in_width || s.pad_left != kWidth / 2)
      return nullptr;
    if (past == 14) return whole_row<T, kWidth, 14>;
    if (past == 7) return whole_row<T, kWidth, 7>;
  }
  return nullptr;
}

// In f64: what sums begin with, products and bias are rounded once. `lane` is one of wide::kLanes.
wide::V begin_wide(const DepthwiseRow& row, size_t lane) {
  const wide::V start = row.start ? wide::load(row.start + lane) : wide::set(0);
  const bool bias = row.bias && row.epilogue->alpha == 1.0f;
  return bias ? wide::add(start, wide::load(row.bias + lane)) : start;
}
template <size_t kCount>
HWY_INLINE void store_wide(const wide::V (&sums)[kCount], const ClipRange& clip, float* output) {
#pragma GCC unroll 8
  for (size_t p = 0; p < kCount; ++p)
    wide::store_rounded(sums[p], clip.clips, clip.low, clip.high, output + p * kChannelBlock);
}

void any_exact_pixel(const DepthwiseRow& row, const KernelRows& rows, const ClipRange& clip,
                     size_t lane, size_t x, float* output) {
  const ConvShape& s = *row.shape;
  wide::V sum[1] = {begin_wide(row, lane)};
  const auto* input = static_cast<const float*>(row.input) + lane;
  for (size_t ky = rows.first; ky < rows.end; ++ky) {
    const size_t y = static_cast<size_t>(rows.y) + (ky - rows.first) * s.dilation_height;
    for (size_t kx = 0; kx < s.kernel_width; ++kx) {
      const size_t at = x * s.stride_width + kx * s.dilation_width;  // from the margin's edge
      if (at < s.pad_left || at >= s.pad_left + s.in_width) continue;
      const double* weight = row.exact_weights + (ky * s.kernel_width + kx) * kChannelBlock + lane;
      sum[0] = wide::mul_add(wide::load(weight),
                             wide::load(input + (y * s.in_width + at - s.pad_left) * kChannelBlock),
                             sum[0]);
    }
  }
  store_wide(sum, clip, output);
}

// kCount pixels whose kernels lie inside the row.
template <size_t kWidth, size_t kStride, size_t kCount>
void exact_pixels(const DepthwiseRow& row, const KernelRows& rows, const ClipRange& clip,
                  size_t lane, size_t x, float* output) {
  const ConvShape& s = *row.shape;
  const wide::V start = begin_wide(row, lane);
  wide::V sums[kCount];
#pragma GCC unroll 8
  for (size_t p = 0; p < kCount; ++p) sums[p] = start;
  for (size_t ky = rows.first; ky < rows.end; ++ky) {
    const size_t y = static_cast<size_t>(rows.y) + (ky - rows.first) * s.dilation_height;
    const float* in = static_cast<const float*>(row.input) +
                      (y * s.in_width + x * kStride - s.pad_left) * kChannelBlock + lane;
    const double* from = row.exact_weights + ky * kWidth * kChannelBlock + lane;
    wide::V weights[kWidth];
#pragma GCC unroll 8
    for (size_t kx = 0; kx < kWidth; ++kx) weights[kx] = wide::load(from + kx * kChannelBlock);
#pragma GCC unroll 32
    for (size_t i = 0; i < (kCount - 1) * kStride + kWidth; ++i) {
      const wide::V value = wide::load(in + i * kChannelBlock);
#pragma GCC unroll 8
      for (size_t kx = 0; kx < kWidth; ++kx)
        if (i >= kx && (i - kx) % kStride == 0 && (i - kx) / kStride < kCount)
          sums[(i - kx) / kStride] = wide::mul_add(weights[kx], value, sums[(i - kx) / kStride]);
    }
  }
  store_wide(sums, clip, output);
}

// run_pixels of those.
template <size_t kWidth, size_t kStride>
void run_exact_pixels(const DepthwiseRow& row, const KernelRows& rows, bool direct, size_t first,
                      size_t past, float* output) {
  constexpr size_t kGroup = HWY_MAX_BYTES == 64 ? 8 : 4;
  const ConvShape& s = *row.shape;
  ClipRange clip = clip_range(*row.epilogue);
  clip.clips &= direct;
  for (size_t lane = 0; lane < kChannelBlock; lane += wide::kLanes)
    for (size_t x = first; x < past;) {
      float* to = output + (x - first) * kChannelBlock + lane;
      if constexpr (kWidth != 0)
        if (past - x >= kGroup && x * kStride >= s.pad_left &&
            (x + kGroup - 1) * kStride + kWidth <= s.pad_left + s.in_width) {
          exact_pixels<kWidth, kStride, kGroup>(row, rows, clip, lane, x, to);
          x += kGroup;
          continue;
        }
      any_exact_pixel(row, rows, clip, lane, x++, to);
    }
}

// Pixels first..past of the row into output[pixel - first][16].
template <typename T, size_t kWidth, size_t kStride>
void run_pixels(const DepthwiseRow& row, const KernelRows& rows, bool direct, size_t first,
                size_t past, float* output) {
  const ConvShape& s = *row.shape;
  // Pixels that need no check: kernel inside the row.
  size_t inner = past, inner_end = past;
  if constexpr (kWidth != 0) {
    const size_t reach = (kWidth - 1) + 1;
    inner = std::min(past, std::max(first, (s.pad_left + kStride - 1) / kStride));
    const size_t fit =
        s.in_width + s.pad_left < reach ? 0 : (s.in_width + s.pad_left - reach) / kStride + 1;
    inner_end = std::clamp(fit, inner, past);
  }
  const WholeRow whole = whole_row_of<T, kWidth, kStride>(s, first, past);
  for (size_t lane = 0; lane < kChannelBlock; lane += kLanes) {
    const RowEnd end = row_end(row, direct, lane);
    const auto to = [&](size_t x) { return output + (x - first) * kChannelBlock + lane; };
    if (whole) {
      whole(row, rows, end, lane, to(first));
      continue;
    }
    size_t x = first;
    for (; x < inner; ++x) any_pixel<T>(row, rows, end, lane, x, to(x));
    if constexpr (kWidth != 0) {
      // The last ones begin before the first that is left, where these are too few for the code.
      constexpr size_t kFew = 4;
      const size_t all = inner_end - x;
      if constexpr (kPixels > kFew)
        for (; inner_end - x > kFew && all >= kPixels; x += kPixels) {
          x = std::min(x, inner_end - kPixels);
          inner_pixels<T, kWidth, kStride, kPixels>(row, rows, end, lane, x, to(x));
        }
      for (; x < inner_end && all >= kFew; x += kFew) {
        x = std::min(x, inner_end - kFew);
        inner_pixels<T, kWidth, kStride, kFew>(row, rows, end, lane, x, to(x));
      }
    }
    for (; x < past; ++x) any_pixel<T>(row, rows, end, lane, x, to(x));
  }
}

using PixelFunction = void (*)(const DepthwiseRow&, const KernelRows&, bool, size_t, size_t,
                               float*);
template <typename T, size_t kWidth, size_t kStride>
PixelFunction pixel_function_of(bool exact) {
  // On SSE4 and where vectors are one value, any pixel will do.
  constexpr bool kSpecial = kLanes > 4;
  if constexpr (std::is_same_v<T, float>)
    if (exact) return run_exact_pixels < kSpecial ? kWidth : 0, kSpecial ? kStride : 0 > ;
  return run_pixels<T, kWidth, kStride>;
}
template <typename T>
PixelFunction pixel_function(const ConvShape& s, bool exact) {
  // Images of bf16 are for CPUs that multiply it, which have wide vectors.
  if constexpr (!std::is_same_v<T, float> && HWY_MAX_BYTES < 64) return run_pixels<T, 0, 0>;
  if (s.dilation_width == 1 && s.kernel_width == 3 && s.stride_width == 1)
    return pixel_function_of<T, 3, 1>(exact);
  if (s.dilation_width == 1 && s.kernel_width == 3 && s.stride_width == 2)
    return pixel_function_of<T, 3, 2>(exact);
  if (s.dilation_width == 1 && s.kernel_width == 5 && s.stride_width == 1)
    return pixel_function_of<T, 5, 1>(exact);
  if (s.dilation_width == 1 && s.kernel_width == 5 && s.stride_width == 2)
    return pixel_function_of<T, 5, 2>(exact);
  return pixel_function_of<T, 0, 0>(exact);
}

// alpha * sum + bias, of an alpha that is not 1.
void scale_pixels(const DepthwiseRow& row, float* sums, size_t count) {
  const D d;
  const V alpha = hn::Set(d, row.epilogue->alpha);
  for (size_t i = 0; i < count; i += kLanes) {
    const V sum = hn::Mul(hn::LoadU(d, sums + i), alpha);
    hn::StoreU(row.bias ? hn::Add(sum, hn::LoadU(d, row.bias + i % kChannelBlock)) : sum, d,
               sums + i);
  }
}

// `rest` is what remains of the epilogue after alpha and bias, `direct` where pixels do that too.
void run_row(const DepthwiseRow& row, PixelFunction pixels, const Epilogue& rest, bool direct) {
  const KernelRows rows = kernel_rows(*row.shape, row.y);
  const size_t width = row.shape->out_width;
  const bool blocked = row.channel_stride == 0;
  if (direct && blocked && row.output) return pixels(row, rows, true, 0, width, row.output);
  constexpr size_t kPart = 64, kSegment = 16;
  HWY_ALIGN float values[kPart * kChannelBlock], turned[kSegment * kChannelBlock];
  const detail::NarrowFunction silu = row.output_bf16 && rest.activation == Activation::silu &&
                                              rest.first == 1.0f && !rest.post && !rest.program
                                          ? detail::avx512_bf16_narrow_silu()
                                          : nullptr;
  const size_t part = blocked ? kPart : kSegment;
  for (size_t x = 0; x < width; x += part) {
    const size_t run = std::min(part, width - x), count = run * kChannelBlock;
    const size_t at = x * (blocked ? kChannelBlock : 1);
    pixels(row, rows, direct && blocked, x, x + run, values);
    if (row.epilogue->alpha != 1.0f) scale_pixels(row, values, count);
    const float* residual = row.residual ? row.residual + at : nullptr;
    if (!blocked) {
      turn_tile(values, kChannelBlock, run, kChannelBlock, turned);
      finish_turned(rest, turned, run, row.channels, nullptr,
                    {row.output + at, residual, row.offset + at, 1,
                     static_cast<ptrdiff_t>(row.channel_stride), 0});
      continue;
    }
    if (silu) {
      silu(values, count, row.output_bf16 + at);
      continue;
    }
    float* to = row.output ? row.output + at : values;
    if (!direct) finish_run(rest, values, count, 0.0f, residual, to);
    if (rest.program) rest.program(rest.program_context, to, count, row.offset + at);
    if (row.output_bf16) narrow_values(values, count, row.output_bf16 + at);
  }
}

// `count` rows of one block from `row` on.
void depthwise_rows(DepthwiseRow row, size_t count) {
  const ConvShape& s = *row.shape;
  const PixelFunction pixels = row.input_bf16
                                   ? pixel_function<uint16_t>(s, false)
                                   : pixel_function<float>(s, row.exact_weights != nullptr);
  Epilogue rest = *row.epilogue;
  const bool direct = is_direct(rest) && !rest.residual;
  rest.alpha = 1.0f;
  const size_t step = s.out_width * (row.channel_stride == 0 ? kChannelBlock : 1);
  for (; count > 0; --count) {
    run_row(row, pixels, rest, direct);
    ++row.y;
    row.offset += step;
    if (row.output) row.output += step;
    if (row.output_bf16) row.output_bf16 += step;
    if (row.residual) row.residual += step;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(depthwise_rows);

size_t packed_depthwise_bytes(const ConvShape& s) {
  return channel_blocks(s.in_channels) * kChannelBlock * s.kernel_height * s.kernel_width *
         sizeof(float);
}

void pack_depthwise(const ConvShape& s, const float* weights, float* packed) {
  const size_t taps = s.kernel_height * s.kernel_width;
  for (size_t block = 0; block < channel_blocks(s.in_channels); ++block)
    for (size_t t = 0; t < taps; ++t)
      for (size_t lane = 0; lane < kChannelBlock; ++lane) {
        const size_t channel = block * kChannelBlock + lane;
        *packed++ = channel < s.in_channels ? weights[channel * taps + t] : 0.0f;
      }
}

namespace {
constexpr size_t kSmallWork = 256 * 1024;  // multiply-adds below which one thread is enough

size_t image_bytes(const Conv& conv) {
  const ConvShape& s = conv.shape;
  return conv.input_layout == Layout::blocked ? 0
                                              : channel_blocks(s.in_channels) * s.in_height *
                                                    s.in_width * kChannelBlock * sizeof(float);
}
}  // namespace

size_t depthwise_scratch_bytes(const Conv& conv) {
  return image_bytes(conv) +
         2 * channel_blocks(conv.shape.in_channels) * kChannelBlock * sizeof(float);
}

DepthwiseRows::DepthwiseRows(const Conv& conv, std::byte* scratch)
    : conv_(conv), run_(HWY_DYNAMIC_DISPATCH(depthwise_rows)) {
  const ConvShape& s = conv.shape;
  const size_t lanes = channel_blocks(s.in_channels) * kChannelBlock;
  const auto pad = [&](const float* from, float* to) -> const float* {
    if (!from) return nullptr;
    std::fill_n(to, lanes, 0.0f);
    std::memcpy(to, from, s.in_channels * sizeof(float));
    return to;
  };
  auto* bias = reinterpret_cast<float*>(scratch + image_bytes(conv));
  bias_ = pad(conv.epilogue.bias, bias);
  start_ = pad(conv.bias_rest, bias + lanes);
}

void DepthwiseRows::run(size_t sample, size_t block, size_t y, size_t count,
                        const void* input) const {
  const ConvShape& s = conv_.shape;
  const bool blocked = conv_.output_layout == Layout::blocked;
  const size_t pixels = s.out_height * s.out_width;
  const size_t channels = blocked ? channel_blocks(s.out_channels) * kChannelBlock : s.out_channels;
  const size_t place = (sample * channels + block * kChannelBlock) * pixels +
                       y * s.out_width * (blocked ? kChannelBlock : 1);
  const size_t kernels = block * s.kernel_height * s.kernel_width * kChannelBlock;
  run_({.shape = &s,
        .input = input,
        .input_bf16 = conv_.input_bf16 != nullptr,
        .weights = conv_.exact_weights ? nullptr : conv_.packed_weights + kernels,
        .exact_weights = conv_.exact_weights ? conv_.exact_weights + kernels : nullptr,
        .bias = bias_ ? bias_ + block * kChannelBlock : nullptr,
        .start = start_ ? start_ + block * kChannelBlock : nullptr,
        .epilogue = &conv_.epilogue,
        .channels = std::min(kChannelBlock, s.in_channels - block * kChannelBlock),
        .y = y,
        .output = conv_.output_bf16 ? nullptr : conv_.output + place,
        .output_bf16 = conv_.output_bf16 ? conv_.output_bf16 + place : nullptr,
        .residual = conv_.epilogue.residual ? conv_.epilogue.residual + place : nullptr,
        .channel_stride = blocked ? 0 : pixels,
        .offset = place},
       count);
}

void depthwise(const Conv& conv, std::byte* scratch, ThreadPool& pool) {
  const ConvShape& s = conv.shape;
  const size_t blocks = channel_blocks(s.in_channels);
  const size_t in_pixels = s.in_height * s.in_width, out_pixels = s.out_height * s.out_width;
  if (s.batch * blocks * out_pixels == 0) return;
  float* image = reinterpret_cast<float*>(scratch);
  const DepthwiseRows rows(conv, scratch);
  for (size_t n = 0; n < s.batch; ++n) {
    const size_t from = n * blocks * in_pixels * kChannelBlock;
    const bool plain = conv.input_layout != Layout::blocked;
    if (plain)
      to_blocked(1, s.in_channels, in_pixels, conv.input + n * s.in_channels * in_pixels, image,
                 pool);
    const auto body = [&](size_t block, size_t y, size_t count) {
      const size_t plane = block * in_pixels * kChannelBlock;
      if (conv.input_bf16)
        rows.run(n, block, y, count, conv.input_bf16 + from + plane);
      else
        rows.run(n, block, y, count, (plain ? image : conv.input + from) + plane);
    };
    const size_t work = blocks * out_pixels * s.kernel_height * s.kernel_width * kChannelBlock;
    for_image_rows(pool, blocks, s.out_height, s.out_width, work < kSmallWork ? 1 : 0, body);
  }
}
}  // namespace hologram::backends::dense
#endif
