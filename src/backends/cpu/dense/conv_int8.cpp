#include "backends/cpu/dense/conv_int8.h"

#include <algorithm>
#include <cstring>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/conv_int8.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/quantize.h"
#include "backends/cpu/dense/tile.h"
#include "support/aligned.h"

#ifndef HOLOGRAM_DENSE_CONV_INT8_ONCE_
#define HOLOGRAM_DENSE_CONV_INT8_ONCE_
namespace hologram::backends::dense {
// The taps that one pixel of a depthwise convolution sees: x and w for each, channels beside each
// other and as 16-bit values less their zero.
struct DepthwisePixel {
  const uint8_t* const* x;  // null: padding
  const int16_t* w;         // [tap][channels]
  size_t taps, channels;
  size_t first, last;  // of the channels
  uint8_t flip;        // to make bytes unsigned
  int16_t x_zero;      // of those
  int32_t* sums;
};
}  // namespace hologram::backends::dense
#endif

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void depthwise_pixel(const DepthwisePixel& p) {
  const hn::ScalableTag<int32_t> d32;
  const hn::Rebind<uint8_t, decltype(d32)> d8;
  const hn::Rebind<int16_t, decltype(d32)> d16;
  const size_t lanes = hn::Lanes(d32);
  const auto zero = hn::Set(d32, p.x_zero);
  const auto flip = hn::Set(d8, p.flip);
  size_t c = p.first;
  for (; c + lanes <= p.last; c += lanes) {
    auto sum = hn::Zero(d32);
    for (size_t t = 0; t < p.taps; ++t) {
      if (!p.x[t]) continue;
      const auto x = hn::PromoteTo(d32, hn::Xor(hn::LoadU(d8, p.x[t] + c), flip));
      const auto w = hn::PromoteTo(d32, hn::LoadU(d16, p.w + t * p.channels + c));
      sum = hn::Add(sum, hn::Mul(hn::Sub(x, zero), w));
    }
    hn::StoreU(sum, d32, p.sums + (c - p.first));
  }
  for (; c < p.last; ++c) {
    int32_t sum = 0;
    for (size_t t = 0; t < p.taps; ++t)
      if (p.x[t])
        sum += (static_cast<int32_t>(p.x[t][c] ^ p.flip) - p.x_zero) * p.w[t * p.channels + c];
    p.sums[c - p.first] = sum;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(depthwise_pixel);

namespace {

constexpr size_t kSmallWork = 64 * 1024;

size_t element_size(Int8Output output) { return output >= Int8Output::s8 ? 1 : 4; }

size_t group_bytes(const ConvInt8Shape& s) {
  return align_up(packed_b_int8_bytes(s.depth(), s.filters / s.groups), kAlignment);
}

// Depthwise: a line with the signedness, then [tap][channel] 16-bit values.
size_t depthwise_bytes(const ConvInt8Shape& s) {
  return kAlignment + align_up(s.taps() * s.channels * sizeof(int16_t), kAlignment);
}

// [rows][columns] -> [columns][rows], in blocks that stay in L1.
template <typename T>
void turn(const T* from, size_t rows, size_t columns, T* to, ThreadPool& pool) {
  constexpr size_t kSide = 32;
  const auto run = [&](size_t begin, size_t end) {
    for (size_t c0 = begin * kSide; c0 < std::min(end * kSide, columns); c0 += kSide)
      for (size_t r0 = 0; r0 < rows; r0 += kSide)
        for (size_t c = c0; c < std::min(c0 + kSide, columns); ++c)
          for (size_t r = r0; r < std::min(r0 + kSide, rows); ++r)
            to[c * rows + r] = from[r * columns + c];
  };
  pool.parallel_for((columns + kSide - 1) / kSide, 1, run, Schedule::fixed,
                    rows * columns < kSmallWork ? 1 : 0);
}

// Scratch of one image after the other.
struct Places {
  size_t turned, gathered, result, weights, product, total;
  explicit Places(const ConvInt8& c) {
    const ConvInt8Shape& s = c.shape;
    size_t at = 0;
    const auto take = [&](size_t bytes) {
      const size_t place = at;
      at += align_up(bytes, kAlignment);
      return place;
    };
    turned = take(c.x_channels_last ? 0 : s.channels * s.height * s.width);
    gathered = take(s.depthwise() || (s.pointwise() && s.groups == 1) ? 0 : s.pixels() * s.depth());
    result = take(c.y_channels_last ? 0 : s.filters * s.pixels() * element_size(c.output));
    weights = take(s.depthwise() ? s.taps() * s.channels * sizeof(int16_t) : 0);
    product = at;
    total = at + (s.depthwise() ? 0 : gemm_int8_scratch_bytes(product_of(c, 0)));
  }

  // One group of one image; the pointers into images are the caller's to set.
  static GemmInt8 product_of(const ConvInt8& c, size_t group) {
    const ConvInt8Shape& s = c.shape;
    const size_t filters = s.filters / s.groups, first = group * filters;
    GemmInt8 g{.m = s.pixels(),
               .n = filters,
               .k = s.depth(),
               .lda = s.depth(),
               .a_signed = c.x_signed,
               .a_zero = c.x_zero,
               .packed_b = c.packed_w + group * group_bytes(s),
               .b_zeros = c.w_zeros ? c.w_zeros + first : nullptr,
               .bias32 = c.bias32 ? c.bias32 + first : nullptr,
               .output = c.output,
               .ldc = s.filters,
               .scales = c.scales ? c.scales + first : nullptr,
               .epilogue = c.epilogue,
               .output_scale = c.output_scale,
               .output_zero = c.output_zero,
               .output_low = c.output_low,
               .output_high = c.output_high};
    if (g.epilogue.bias) g.epilogue.bias += first;
    return g;
  }
};

// The bytes that the taps of every pixel see, of the channels of one group.
void gather(const ConvInt8& c, const uint8_t* image, size_t group, uint8_t* rows,
            ThreadPool& pool) {
  const ConvInt8Shape& s = c.shape;
  const size_t channels = s.channels / s.groups;
  const auto zero = static_cast<uint8_t>(c.x_zero);
  const auto run = [&](size_t begin, size_t end) {
    for (size_t oy = begin; oy < end; ++oy)
      for (size_t ox = 0; ox < s.out_width; ++ox) {
        uint8_t* to = rows + (oy * s.out_width + ox) * s.depth();
        for (size_t ky = 0; ky < s.kernel_height; ++ky)
          for (size_t kx = 0; kx < s.kernel_width; ++kx, to += channels) {
            // Beyond the edge the subtraction wraps to something large.
            const size_t y = oy * s.stride_height + ky * s.dilation_height - s.pad_top;
            const size_t x = ox * s.stride_width + kx * s.dilation_width - s.pad_left;
            if (y < s.height && x < s.width)
              std::memcpy(to, image + (y * s.width + x) * s.channels + group * channels, channels);
            else
              std::memset(to, zero, channels);
          }
      }
  };
  pool.parallel_for(s.out_height, 1, run, Schedule::dynamic,
                    s.pixels() * s.depth() < kSmallWork ? 1 : 0);
}

// sums -> what the caller asked for, filters begin..end of one pixel, at `to`.
void finish_pixel(const ConvInt8& c, const TileKernel& kernel, int32_t* sums, size_t pixel,
                  size_t begin, size_t end, std::byte* to) {
  for (size_t f = begin; f < end; ++f)
    if (c.bias32) sums[f - begin] += c.bias32[f];
  if (c.output == Int8Output::s32) {
    std::memcpy(to, sums, (end - begin) * sizeof(int32_t));
    return;
  }
  const bool bytes = c.output >= Int8Output::s8;
  const int32_t low = c.output == Int8Output::s8 ? -128 : 0;
  const Quantizer quantizer{c.output_scale, c.output_zero, std::max(low, c.output_low),
                            std::min(low + 255, c.output_high)};
  for (size_t first = begin; first < end; first += kPanelColumns) {
    const size_t columns = std::min(kPanelColumns, end - first), at = first - begin;
    alignas(64) float values[kPanelColumns] = {}, results[kPanelColumns];
    for (size_t j = 0; j < columns; ++j)
      values[j] = static_cast<float>(sums[at + j]) * (c.scales ? c.scales[first + j] : 1.0f);
    Tile tile;
    tile.rows = 1;
    tile.columns = columns;
    tile.row = pixel;
    tile.column = first;
    tile.epilogue = &c.epilogue;
    tile.offset = pixel * c.shape.filters + first;
    tile.c = bytes ? results : reinterpret_cast<float*>(to) + at;
    tile.c_row = kPanelColumns;
    kernel.finish(tile, values, kPanelColumns);
    if (bytes) quantize(quantizer, results, columns, reinterpret_cast<uint8_t*>(to) + at);
  }
}

void depthwise(const ConvInt8& c, const uint8_t* image, const int16_t* weights, std::byte* result,
               ThreadPool& pool) {
  const ConvInt8Shape& s = c.shape;
  const auto sum_pixel = HWY_DYNAMIC_DISPATCH(depthwise_pixel);
  const TileKernel kernel = tile_kernel();
  const auto run = [&](size_t begin, size_t end) {
    constexpr size_t kSums = 256;
    int32_t sums[kSums];
    const uint8_t* taps[ConvInt8Shape::kMaxTaps];
    for (size_t oy = begin; oy < end; ++oy)
      for (size_t ox = 0; ox < s.out_width; ++ox) {
        for (size_t t = 0; t < s.taps(); ++t) {
          const size_t y =
              oy * s.stride_height + t / s.kernel_width * s.dilation_height - s.pad_top;
          const size_t x = ox * s.stride_width + t % s.kernel_width * s.dilation_width - s.pad_left;
          taps[t] = y < s.height && x < s.width ? image + (y * s.width + x) * s.channels : nullptr;
        }
        const size_t pixel = oy * s.out_width + ox;
        for (size_t first = 0; first < s.channels; first += kSums) {
          const size_t last = std::min(first + kSums, s.channels);
          sum_pixel({.x = taps,
                     .w = weights,
                     .taps = s.taps(),
                     .channels = s.channels,
                     .first = first,
                     .last = last,
                     .flip = static_cast<uint8_t>(c.x_signed ? 0x80 : 0),
                     .x_zero = static_cast<int16_t>(c.x_zero + (c.x_signed ? 128 : 0)),
                     .sums = sums});
          finish_pixel(c, kernel, sums, pixel, first, last,
                       result + (pixel * s.filters + first) * element_size(c.output));
        }
      }
  };
  pool.parallel_for(s.out_height, 1, run, Schedule::dynamic,
                    s.pixels() * s.channels * s.taps() < kSmallWork ? 1 : 0);
}

}  // namespace

size_t packed_conv_int8_bytes(const ConvInt8Shape& s) {
  return s.depthwise() ? depthwise_bytes(s) : s.groups * group_bytes(s);
}

void pack_conv_int8(const ConvInt8Shape& s, const void* w, bool w_signed, std::byte* packed) {
  const auto* from = static_cast<const uint8_t*>(w);
  const size_t channels = s.channels / s.groups, taps = s.taps(), filters = s.filters / s.groups;
  if (s.depthwise()) {
    std::memset(packed, 0, depthwise_bytes(s));
    auto* to = reinterpret_cast<int16_t*>(packed + kAlignment);
    for (size_t c = 0; c < s.channels; ++c)
      for (size_t t = 0; t < taps; ++t) {
        const uint8_t byte = from[c * taps + t];
        to[t * s.channels + c] = w_signed ? static_cast<int8_t>(byte) : byte;
      }
    return;
  }
  // A column a filter: taps, then the channels of each.
  std::vector<uint8_t> columns(filters * s.depth());
  for (size_t g = 0; g < s.groups; ++g) {
    for (size_t f = 0; f < filters; ++f)
      for (size_t c = 0; c < channels; ++c)
        for (size_t t = 0; t < taps; ++t)
          columns[f * s.depth() + t * channels + c] =
              from[((g * filters + f) * channels + c) * taps + t];
    pack_b_int8(s.depth(), filters, columns.data(), s.depth(), true, w_signed,
                packed + g * group_bytes(s));
  }
}

size_t conv_int8_scratch_bytes(const ConvInt8& conv) { return Places(conv).total; }

void conv_int8(const ConvInt8& c, std::byte* scratch, ThreadPool& pool) {
  const ConvInt8Shape& s = c.shape;
  if (s.pixels() == 0 || s.filters == 0) return;
  const Places places(c);
  const size_t area = s.height * s.width, size = element_size(c.output);
  auto* weights = reinterpret_cast<int16_t*>(scratch + places.weights);
  if (s.depthwise()) {
    const auto* from = reinterpret_cast<const int16_t*>(c.packed_w + kAlignment);
    for (size_t i = 0; i < s.taps() * s.channels; ++i)
      weights[i] = static_cast<int16_t>(from[i] - (c.w_zeros ? c.w_zeros[i % s.channels] : 0));
  }
  for (size_t image = 0; image < s.batch; ++image) {
    const auto* x = static_cast<const uint8_t*>(c.x) + image * s.channels * area;
    if (!c.x_channels_last) {
      auto* turned = reinterpret_cast<uint8_t*>(scratch + places.turned);
      turn(x, s.channels, area, turned, pool);
      x = turned;
    }
    std::byte* y = static_cast<std::byte*>(c.y) + image * s.filters * s.pixels() * size;
    std::byte* result = c.y_channels_last ? y : scratch + places.result;
    if (s.depthwise()) {
      depthwise(c, x, weights, result, pool);
    } else {
      for (size_t g = 0; g < s.groups; ++g) {
        GemmInt8 product = Places::product_of(c, g);
        product.a = x;
        if (!s.pointwise() || s.groups != 1) {
          auto* rows = reinterpret_cast<uint8_t*>(scratch + places.gathered);
          gather(c, x, g, rows, pool);
          product.a = rows;
        }
        product.c = result + g * product.n * size;
        gemm_int8(product, scratch + places.product, pool);
      }
    }
    if (c.y_channels_last) continue;
    if (size == 1)
      turn(reinterpret_cast<const uint8_t*>(result), s.pixels(), s.filters,
           reinterpret_cast<uint8_t*>(y), pool);
    else
      turn(reinterpret_cast<const uint32_t*>(result), s.pixels(), s.filters,
           reinterpret_cast<uint32_t*>(y), pool);
  }
}

}  // namespace hologram::backends::dense
#endif
