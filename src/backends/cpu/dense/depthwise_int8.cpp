#include "backends/cpu/dense/depthwise_int8.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/depthwise_int8.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/int8_vnni.h"
#include "backends/cpu/dense/tile.h"
#include "support/aligned.h"

#ifndef HOLOGRAM_DENSE_DEPTHWISE_INT8_ONCE_
#define HOLOGRAM_DENSE_DEPTHWISE_INT8_ONCE_
namespace hologram::backends::dense {
// The taps that one pixel sees, an even number of them.
struct DepthwisePixel {
  const uint8_t* const* x;  // [tap]
  const int16_t* w;         // [pair of taps][channels][2]
  size_t taps, channels;
  size_t first, last;  // of the channels
  uint8_t flip;        // to make bytes unsigned
  int32_t* sums;
};
}  // namespace hologram::backends::dense
#endif

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void depthwise_pixel(const DepthwisePixel& p) {
  const hn::CappedTag<int32_t, 16> d32;
  const hn::Rebind<uint8_t, decltype(d32)> d8;
  const hn::Twice<decltype(d8)> twice8;
  const hn::Rebind<int16_t, decltype(twice8)> d16;
  constexpr size_t kLanes = hn::MaxLanes(d32);
  const auto flip = hn::Set(d8, p.flip);
  size_t c = p.first;
  for (; c + kLanes <= p.last; c += kLanes) {
    auto sum = hn::Zero(d32), other = hn::Zero(d32);
    const int16_t* w = p.w + 2 * c;
    for (size_t t = 0; t < p.taps; t += 2, w += 2 * p.channels) {
      const auto a = hn::Xor(hn::LoadU(d8, p.x[t] + c), flip);
      const auto b = hn::Xor(hn::LoadU(d8, p.x[t + 1] + c), flip);
      const auto pairs =
          hn::Combine(twice8, hn::InterleaveUpper(d8, a, b), hn::InterleaveLower(d8, a, b));
      sum = hn::ReorderWidenMulAccumulate(d32, hn::PromoteTo(d16, pairs), hn::LoadU(d16, w), sum,
                                          other);
    }
    hn::StoreU(hn::RearrangeToOddPlusEven(sum, other), d32, p.sums + (c - p.first));
  }
  for (; c < p.last; ++c) {
    uint32_t sum = 0;  // wraps, as the vectors' do
    for (size_t t = 0; t < p.taps; ++t)
      sum +=
          static_cast<uint32_t>((p.x[t][c] ^ p.flip) * p.w[(t / 2 * p.channels + c) * 2 + t % 2]);
    p.sums[c - p.first] = static_cast<int32_t>(sum);
  }
}

detail::DepthwiseKernel get_depthwise_quads() {
#if HWY_TARGET == HWY_AVX3
  return detail::vnni_depthwise();
#else
  return {};
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(depthwise_pixel);
HWY_EXPORT(get_depthwise_quads);

namespace {

constexpr size_t kSmallWork = 64 * 1024;
constexpr size_t kPixels = 8, kSums = 256;  // whose sums are finished together

size_t even_taps(const ConvInt8Shape& s) { return align_up(s.taps(), 2); }
size_t quad_taps(const ConvInt8Shape& s) { return align_up(s.taps(), 4); }

// sum (x - x_zero) * w = sum x * w - x_zero * sum w; taps beyond the image read `edge`, x_zero.
// Arrays over channels are padded to whole vectors; where four taps are summed at a time, they lie
// by places (DepthwiseBlocks).
struct Prepared {
  size_t quads, weights, base, scales, biases, edge, total;
  explicit Prepared(const ConvInt8Shape& s) {
    const size_t padded = align_up(s.channels, 64);
    quads = 0;  // whether they are
    weights = kAlignment;
    base = weights + align_up(std::max(even_taps(s) * s.channels * sizeof(int16_t),
                                       quad_taps(s) * DepthwiseBlocks::padded(s.channels)),
                              kAlignment);
    scales = base + padded * sizeof(int32_t);
    biases = scales + padded * sizeof(float);
    edge = biases + padded * sizeof(float);
    total = edge + padded;
  }
};

// Sums that are exact -> what the caller asked for, filters begin..end of one pixel, at `to`.
void finish_pixel(const ConvInt8& c, const TileKernel& kernel, const int32_t* sums, size_t pixel,
                  size_t begin, size_t end, std::byte* to) {
  if (c.output == Int8Output::s32) {
    std::memcpy(to, sums, (end - begin) * sizeof(int32_t));
    return;
  }
  const bool bytes = c.output >= Int8Output::s8;
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
    if (bytes) quantize(c.quantizer(), results, columns, reinterpret_cast<uint8_t*>(to) + at);
  }
}

// Says false, having done nothing of use, where taps cannot be summed by fours.
bool prepare_quads(const ConvInt8& c, const Prepared& places, std::byte* scratch) {
  const ConvInt8Shape& s = c.shape;
  const detail::DepthwiseKernel kernel = HWY_DYNAMIC_DISPATCH(get_depthwise_quads)();
  Int8Codes codes;
  if (!kernel.run || c.output < Int8Output::s8 ||
      !finishes_int8_bytes(c.epilogue, c.quantizer(), codes) ||
      (c.w_zeros && std::any_of(c.w_zeros, c.w_zeros + s.channels, [](int32_t z) { return z; })))
    return false;
  auto* base = reinterpret_cast<int32_t*>(scratch + places.base);
  auto* scales = reinterpret_cast<float*>(scratch + places.scales);
  auto* biases = reinterpret_cast<float*>(scratch + places.biases);
  if (!kernel.pack(reinterpret_cast<const int16_t*>(c.packed_w + kAlignment), s.taps(), s.channels,
                   reinterpret_cast<int8_t*>(scratch + places.weights), base))
    return false;
  const auto x_zero = static_cast<uint32_t>(c.x_zero + (c.x_signed ? 128 : 0));
  for (size_t f = 0; f < s.channels; f += 4) {
    const size_t at = DepthwiseBlocks::place(s.channels, f);
    for (size_t i = 0; i < std::min<size_t>(4, s.channels - f); ++i) {
      base[at + i] = static_cast<int32_t>((c.bias32 ? static_cast<uint32_t>(c.bias32[f + i]) : 0) -
                                          x_zero * static_cast<uint32_t>(base[at + i]));
      scales[at + i] = (c.scales ? c.scales[f + i] : 1.0f) / c.output_scale;
      biases[at + i] = (c.epilogue.bias ? c.epilogue.bias[f + i] : 0.0f) / c.output_scale;
    }
  }
  return true;
}

}  // namespace

size_t depthwise_int8_scratch_bytes(const ConvInt8& c) { return Prepared(c.shape).total; }

void prepare_depthwise_int8(const ConvInt8& c, std::byte* scratch) {
  const ConvInt8Shape& s = c.shape;
  const Prepared places(s);
  std::memset(scratch + places.edge, c.x_zero, places.total - places.edge);
  const bool quads = prepare_quads(c, places, scratch);
  scratch[places.quads] = static_cast<std::byte>(quads);
  if (quads) return;
  std::memset(scratch + places.base, 0, places.edge - places.base);
  auto* weights = reinterpret_cast<int16_t*>(scratch + places.weights);
  auto* base = reinterpret_cast<int32_t*>(scratch + places.base);
  auto* scales = reinterpret_cast<float*>(scratch + places.scales);
  auto* biases = reinterpret_cast<float*>(scratch + places.biases);
  const auto* from = reinterpret_cast<const int16_t*>(c.packed_w + kAlignment);
  const int32_t x_zero = c.x_zero + (c.x_signed ? 128 : 0);  // of the bytes made unsigned
  for (size_t t = 0; t < s.taps(); t += 2, weights += 2 * s.channels) {
    const int16_t *first = from + t * s.channels, *second = first + s.channels;
    const bool two = t + 1 < s.taps();
    for (size_t f = 0; f < s.channels; ++f) {
      const int32_t zero = c.w_zeros ? c.w_zeros[f] : 0;
      const int32_t w0 = first[f] - zero, w1 = two ? second[f] - zero : 0;
      weights[2 * f] = static_cast<int16_t>(w0);
      weights[2 * f + 1] = static_cast<int16_t>(w1);
      base[f] =
          static_cast<int32_t>(static_cast<uint32_t>(base[f]) -
                               static_cast<uint32_t>(x_zero) * static_cast<uint32_t>(w0 + w1));
    }
  }
  for (size_t f = 0; f < s.channels; ++f) {
    if (c.bias32)
      base[f] =
          static_cast<int32_t>(static_cast<uint32_t>(base[f]) + static_cast<uint32_t>(c.bias32[f]));
    // For sums that become bytes in one pass; others take c.scales.
    scales[f] = (c.scales ? c.scales[f] : 1.0f) / c.output_scale;
    biases[f] = (c.epilogue.bias ? c.epilogue.bias[f] : 0.0f) / c.output_scale;
  }
}

void depthwise_int8(const ConvInt8& c, const uint8_t* image, std::byte* result,
                    const std::byte* scratch, ThreadPool& pool) {
  const ConvInt8Shape& s = c.shape;
  const Prepared places(s);
  const auto* weights = reinterpret_cast<const int16_t*>(scratch + places.weights);
  const auto* base = reinterpret_cast<const int32_t*>(scratch + places.base);
  const auto* edge = reinterpret_cast<const uint8_t*>(scratch + places.edge);
  const auto sum_pixel = HWY_DYNAMIC_DISPATCH(depthwise_pixel);
  const TileKernel kernel = tile_kernel();
  const bool quads = scratch[places.quads] != std::byte{0};
  const auto sum_quads = HWY_DYNAMIC_DISPATCH(get_depthwise_quads)().run;
  const size_t taps = quads ? quad_taps(s) : even_taps(s),
               size = c.output >= Int8Output::s8 ? 1 : 4;
  Int8Bytes direct{.width = kSums, .to_row = s.filters};
  const bool in_one_pass =
      c.output >= Int8Output::s8 && finishes_int8_bytes(c.epilogue, c.quantizer(), direct.codes);
  const auto finish = [&](int32_t* sums, size_t pixel, size_t count, size_t first, size_t last) {
    std::byte* to = result + (pixel * s.filters + first) * size;
    if (in_one_pass) {
      Int8Bytes f = direct;
      f.rows = count, f.columns = last - first, f.base = base + first;
      f.scales = reinterpret_cast<const float*>(scratch + places.scales) + first;
      f.biases = c.epilogue.bias ? reinterpret_cast<const float*>(scratch + places.biases) + first
                                 : nullptr;
      f.to = reinterpret_cast<uint8_t*>(to);
      return finish_int8_bytes(f, sums);
    }
    for (size_t i = 0; i < count; ++i, sums += kSums, to += s.filters * size) {
      for (size_t f = first; f < last; ++f)
        sums[f - first] = static_cast<int32_t>(static_cast<uint32_t>(sums[f - first]) +
                                               static_cast<uint32_t>(base[f]));
      finish_pixel(c, kernel, sums, pixel + i, first, last, to);
    }
  };
  const auto flip = static_cast<uint8_t>(c.x_signed ? 0x80 : 0);
  const auto run = [&](size_t begin, size_t end) {
    alignas(64) int32_t sums[kPixels * kSums];
    const uint8_t* x[kPixels][ConvInt8Shape::kMaxTaps];
    for (size_t oy = begin; oy < end; ++oy)
      for (size_t ox = 0; ox < s.out_width; ox += kPixels) {
        const size_t count = std::min(kPixels, s.out_width - ox), pixel = oy * s.out_width + ox;
        // Away from the sides a pixel's taps are those of the one before it, moved.
        const size_t left = ox * s.stride_width, reach = (s.kernel_width - 1) * s.dilation_width;
        const bool inside = left >= s.pad_left &&
                            left + (count - 1) * s.stride_width + reach < s.pad_left + s.width;
        for (size_t i = 0; i < count; ++i) {
          if (i == 0 || !inside) {
            find_taps(s, image, edge, pixel + i, x[i]);
            std::fill(x[i] + s.taps(), x[i] + taps, edge);  // by weights of 0
            continue;
          }
          for (size_t t = 0; t < taps; ++t)
            x[i][t] = x[0][t] == edge ? edge : x[0][t] + i * s.stride_width * s.channels;
        }
        if (quads) {
          Int8Bytes f = direct;
          f.base = base;
          f.scales = reinterpret_cast<const float*>(scratch + places.scales);
          f.biases = reinterpret_cast<const float*>(scratch + places.biases);
          f.to = reinterpret_cast<uint8_t*>(result) + pixel * s.filters;
          sum_quads({.x = x[0],
                     .x_row = ConvInt8Shape::kMaxTaps,
                     .pixels = count,
                     .quads = taps / 4,
                     .channels = s.channels,
                     .flip = flip,
                     .w = reinterpret_cast<const int8_t*>(weights),
                     .finish = f});
          continue;
        }
        for (size_t first = 0; first < s.channels; first += kSums) {
          const size_t last = std::min(first + kSums, s.channels);
          for (size_t i = 0; i < count; ++i)
            sum_pixel({.x = x[i],
                       .w = weights,
                       .taps = taps,
                       .channels = s.channels,
                       .first = first,
                       .last = last,
                       .flip = flip,
                       .sums = sums + i * kSums});
          finish(sums, pixel, count, first, last);
        }
      }
  };
  pool.parallel_for(s.out_height, 1, run, Schedule::dynamic,
                    s.pixels() * s.channels * s.taps() < kSmallWork ? 1 : 0);
}

}  // namespace hologram::backends::dense
#endif
