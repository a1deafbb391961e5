#include "backends/cpu/dense/conv_int8.h"

#include <algorithm>
#include <cstring>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/conv_int8.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/depthwise_int8.h"
#include "backends/cpu/dense/transpose.h"
#include "support/aligned.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// to[j * to_stride + i] = from[i * from_stride + j], 16 x 16: four rounds of a perfect shuffle.
HWY_INLINE void turn_16x16(const uint8_t* from, size_t from_stride, uint8_t* to, size_t to_stride) {
  const hn::FixedTag<uint8_t, 16> d;
  hn::Vec<decltype(d)> rows[16], next[16];
  for (size_t i = 0; i < 16; ++i) rows[i] = hn::LoadU(d, from + i * from_stride);
#pragma GCC unroll 4
  for (size_t round = 0; round < 4; ++round) {
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; ++i) {
      next[2 * i] = hn::InterleaveLower(d, rows[i], rows[i + 8]);
      next[2 * i + 1] = hn::InterleaveUpper(d, rows[i], rows[i + 8]);
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < 16; ++i) rows[i] = next[i];
  }
  for (size_t i = 0; i < 16; ++i) hn::StoreU(rows[i], d, to + i * to_stride);
}

// [rows][columns] -> [columns][rows], the columns first..last.
void turn_bytes(const uint8_t* from, size_t rows, size_t columns, size_t first, size_t last,
                uint8_t* to) {
  for (size_t j = first; j < last; j += 16)
    for (size_t i = 0; i < rows; i += 16) {
      if (j + 16 <= last && i + 16 <= rows) {
        turn_16x16(from + i * columns + j, columns, to + j * rows + i, rows);
        continue;
      }
      for (size_t y = j; y < std::min(j + 16, last); ++y)
        for (size_t x = i; x < std::min(i + 16, rows); ++x)
          to[y * rows + x] = from[x * columns + y];
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(turn_bytes);

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

// [rows][columns] -> [columns][rows]
void turn(const uint8_t* from, size_t rows, size_t columns, uint8_t* to, ThreadPool& pool) {
  constexpr size_t kSide = 64;
  const auto bytes = HWY_DYNAMIC_DISPATCH(turn_bytes);
  const auto run = [&](size_t begin, size_t end) {
    bytes(from, rows, columns, begin * kSide, std::min(end * kSide, columns), to);
  };
  pool.parallel_for((columns + kSide - 1) / kSide, 1, run, Schedule::fixed,
                    rows * columns < kSmallWork ? 1 : 0);
}

// Scratch of one image after the other.
struct Places {
  size_t turned, gathered, edge, result, product, total;
  explicit Places(const ConvInt8& c) {
    const ConvInt8Shape& s = c.shape;
    size_t at = 0;
    const auto take = [&](size_t bytes) {
      const size_t place = at;
      at += align_up(bytes, kAlignment);
      return place;
    };
    turned = take(c.x_channels_last ? 0 : s.channels * s.height * s.width);
    gathered = take(gathers(s) ? s.pixels() * s.depth() : 0);
    edge = take(finds(s) || gathers(s) ? s.channels : 0);
    result = take(c.y_channels_last ? 0 : s.filters * s.pixels() * element_size(c.output));
    product = at;
    total = at + (s.depthwise() ? depthwise_int8_scratch_bytes(c)
                                : gemm_int8_scratch_bytes(product_of(c, 0)));
  }

  // Where a product gets its rows: from the image itself, from its pieces tap by tap, or from a
  // copy of all of them.
  static bool finds(const ConvInt8Shape& s) {
    return !s.depthwise() && !(s.pointwise() && s.groups == 1) &&
           Int8Rows::supported(s.taps(), s.channels / s.groups);
  }
  static bool gathers(const ConvInt8Shape& s) {
    return !s.depthwise() && !(s.pointwise() && s.groups == 1) && !finds(s);
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

void copy_16(uint8_t* to, const uint8_t* from) {
  uint64_t values[2];
  std::memcpy(values, from, sizeof(values));
  std::memcpy(to, values, sizeof(values));
}

// What the taps of a pixel see, one after the other, of the channels of the group that starts at
// `offset`; `edge` beyond the image.
void fill_taps(const ConvInt8Shape& s, const uint8_t* image, size_t offset, const uint8_t* edge,
               size_t pixel, uint8_t* to) {
  const size_t channels = s.channels / s.groups;
  // Beyond the edge the subtraction wraps to something large.
  const size_t top = pixel / s.out_width * s.stride_height - s.pad_top;
  const size_t left = pixel % s.out_width * s.stride_width - s.pad_left;
  // Of all channels, taps beside each other are neighbours in memory.
  const bool runs =
      s.groups == 1 && s.dilation_width == 1 && left < s.width && left + s.kernel_width <= s.width;
  const size_t run = s.kernel_width * channels, padded = align_up(run, 16);
  const size_t end = s.height * s.width * s.channels;
  for (size_t ky = 0; ky < s.kernel_height; ++ky, to += run) {
    const size_t y = top + ky * s.dilation_height;
    const size_t at = (y * s.width + left) * s.channels;
    if (runs && y < s.height && at + padded <= end) {
      // Up to 15 bytes more, where the next taps come; behind the last ones lies another pixel,
      // which may be another thread's.
      const size_t room = (s.kernel_height - ky) * run;
      const size_t whole = padded <= room ? padded : run - run % 16;
      for (size_t i = 0; i < whole; i += 16) copy_16(to + i, image + at + i);
      if (whole < run) std::memcpy(to + whole, image + at + whole, run - whole);
      continue;
    }
    for (size_t kx = 0; kx < s.kernel_width; ++kx) {
      const size_t x = left + kx * s.dilation_width;
      std::memcpy(
          to + kx * channels,
          y < s.height && x < s.width ? image + (y * s.width + x) * s.channels + offset : edge,
          channels);
    }
  }
}

// The same of every pixel.
void gather(const ConvInt8Shape& s, const uint8_t* image, size_t offset, const uint8_t* edge,
            uint8_t* rows, ThreadPool& pool) {
  const auto run = [&](size_t begin, size_t end) {
    for (size_t pixel = begin; pixel < end; ++pixel)
      fill_taps(s, image, offset, edge, pixel, rows + pixel * s.depth());
  };
  pool.parallel_for(s.pixels(), s.out_width, run, Schedule::dynamic,
                    s.pixels() * s.depth() < kSmallWork ? 1 : 0);
}

}  // namespace

void find_taps(const ConvInt8Shape& s, const uint8_t* image, const uint8_t* edge, size_t pixel,
               const uint8_t** taps) {
  // Beyond the edge the subtraction wraps to something large.
  const size_t top = pixel / s.out_width * s.stride_height - s.pad_top;
  const size_t left = pixel % s.out_width * s.stride_width - s.pad_left;
  for (size_t ky = 0; ky < s.kernel_height; ++ky) {
    const size_t y = top + ky * s.dilation_height;
    for (size_t kx = 0; kx < s.kernel_width; ++kx, ++taps) {
      const size_t x = left + kx * s.dilation_width;
      *taps = y < s.height && x < s.width ? image + (y * s.width + x) * s.channels : edge;
    }
  }
}

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
  if (s.depthwise()) prepare_depthwise_int8(c, scratch + places.product);
  if (Places::finds(s) || Places::gathers(s))
    std::memset(scratch + places.edge, c.x_zero, s.channels);
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
      depthwise_int8(c, x, result, scratch + places.product, pool);
    } else {
      for (size_t g = 0; g < s.groups; ++g) {
        GemmInt8 product = Places::product_of(c, g);
        product.a = x;
        const size_t offset = g * (s.channels / s.groups);
        const auto* edge = reinterpret_cast<const uint8_t*>(scratch + places.edge);
        const auto find = [&](size_t pixel, const uint8_t** taps) {
          find_taps(s, x + offset, edge, pixel, taps);
        };
        const auto fill = [&](size_t pixel, uint8_t* line) {
          fill_taps(s, x, offset, edge, pixel, line);
        };
        const Int8Rows pieces{s.taps(), s.channels / s.groups, find, fill};
        if (Places::finds(s)) product.rows = &pieces;
        if (Places::gathers(s)) {
          auto* rows = reinterpret_cast<uint8_t*>(scratch + places.gathered);
          gather(s, x, offset, edge, rows, pool);
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
      transpose(1, s.pixels(), s.filters, reinterpret_cast<const float*>(result),
                reinterpret_cast<float*>(y), pool);
  }
}

}  // namespace hologram::backends::dense
#endif
