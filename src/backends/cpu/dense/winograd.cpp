#include "backends/cpu/dense/winograd.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/winograd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/finish-inl.h"
#include "backends/cpu/dense/gemm.h"
#include "backends/cpu/dense/row_tiles.h"
#include "backends/cpu/dense/tile.h"
#include "support/aligned.h"

#ifndef HOLOGRAM_DENSE_WINOGRAD_ONCE_
#define HOLOGRAM_DENSE_WINOGRAD_ONCE_
namespace hologram::backends::dense {

// The points of m = 4.
inline constexpr double kNear = 0.625, kFar = 1.5;

// One square of one channel block, on its way in or out.
struct WinogradSquare {
  size_t height, width;  // of the image
  ptrdiff_t y, x;        // of the square's first pixel there; may be outside for an input
  float* image;          // the channel block
  float* elements;       // element e of the square is at elements + e * stride
  size_t stride;
  const Epilogue* epilogue;  // of an output
  const float* bias;         // of the block, or null
  const float* residual;     // of the block, or null
  size_t offset;             // of the block from the output's start
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

HWY_INLINE V set(double value) { return hn::Set(D(), static_cast<float>(value)); }

// B^T of one row or column, in place.
template <size_t kOut>
struct Transform;

template <>
struct Transform<2> {
  static constexpr size_t kIn = 4;
  static HWY_INLINE void input(V* d) {
    const V r0 = hn::Sub(d[2], d[0]), r3 = hn::Sub(d[3], d[1]);
    const V r1 = hn::Add(d[1], d[2]), r2 = hn::Sub(d[2], d[1]);
    d[0] = r0;
    d[1] = r1;
    d[2] = r2;
    d[3] = r3;
  }
  static HWY_INLINE void output(const V* m, V* y) {
    y[0] = hn::Add(hn::Add(m[0], m[1]), m[2]);
    y[1] = hn::Add(hn::Sub(m[1], m[2]), m[3]);
  }
};

template <>
struct Transform<4> {
  static constexpr size_t kIn = 6;
  static constexpr double kA = kNear, kB = kFar, kA2 = kA * kA, kB2 = kB * kB;
  static HWY_INLINE void input(V* d) {
    // Even and odd parts of the values at +-a and +-b.
    const V even_a = hn::NegMulAdd(set(kB2), d[2], d[4]),
            odd_a = hn::NegMulAdd(set(kB2), d[1], d[3]);
    const V even_b = hn::NegMulAdd(set(kA2), d[2], d[4]),
            odd_b = hn::NegMulAdd(set(kA2), d[1], d[3]);
    const V sum = set(kA2 + kB2), product = set(kA2 * kB2);
    d[0] = hn::MulAdd(product, d[0], hn::NegMulAdd(sum, d[2], d[4]));
    d[5] = hn::MulAdd(product, d[1], hn::NegMulAdd(sum, d[3], d[5]));
    d[1] = hn::MulAdd(set(kA), odd_a, even_a);
    d[2] = hn::NegMulAdd(set(kA), odd_a, even_a);
    d[3] = hn::MulAdd(set(kB), odd_b, even_b);
    d[4] = hn::NegMulAdd(set(kB), odd_b, even_b);
  }
  static HWY_INLINE void output(const V* m, V* y) {
    const V s1 = hn::Add(m[1], m[2]), d1 = hn::Sub(m[1], m[2]);
    const V s2 = hn::Add(m[3], m[4]), d2 = hn::Sub(m[3], m[4]);
    y[0] = hn::Add(hn::Add(m[0], s1), s2);
    y[1] = hn::MulAdd(set(kB), d2, hn::Mul(set(kA), d1));
    y[2] = hn::MulAdd(set(kB2), s2, hn::Mul(set(kA2), s1));
    y[3] = hn::MulAdd(set(kB2 * kB), d2, hn::MulAdd(set(kA2 * kA), d1, m[5]));
  }
};

template <size_t kOut>
void square_in(const WinogradSquare& s) {
  using T = Transform<kOut>;
  constexpr size_t kIn = T::kIn;
  const D d;
  const float* from = s.image + (s.y * static_cast<ptrdiff_t>(s.width) + s.x) *
                                    static_cast<ptrdiff_t>(kChannelBlock);
  size_t row = s.width * kChannelBlock;
  HWY_ALIGN float edge[kIn * kIn * kChannelBlock];
  if (s.y < 0 || s.x < 0 || s.y + kIn > s.height || s.x + kIn > s.width) {
    std::memset(edge, 0, sizeof(edge));
    for (size_t i = 0; i < kIn; ++i) {
      const ptrdiff_t y = s.y + static_cast<ptrdiff_t>(i);
      if (y < 0 || y >= static_cast<ptrdiff_t>(s.height)) continue;
      const ptrdiff_t first = std::max<ptrdiff_t>(s.x, 0);
      const ptrdiff_t past =
          std::min(s.x + static_cast<ptrdiff_t>(kIn), static_cast<ptrdiff_t>(s.width));
      if (first < past)
        std::memcpy(edge + (i * kIn + static_cast<size_t>(first - s.x)) * kChannelBlock,
                    s.image + (static_cast<size_t>(y) * s.width + static_cast<size_t>(first)) *
                                  kChannelBlock,
                    static_cast<size_t>(past - first) * kChannelBlock * sizeof(float));
    }
    from = edge;
    row = kIn * kChannelBlock;
  }
  HWY_ALIGN float half[kIn * kIn * kLanes];
  for (size_t lane = 0; lane < kChannelBlock; lane += kLanes) {
    for (size_t j = 0; j < kIn; ++j) {
      V v[kIn];
#pragma GCC unroll 6
      for (size_t i = 0; i < kIn; ++i)
        v[i] = hn::LoadU(d, from + i * row + j * kChannelBlock + lane);
      T::input(v);
#pragma GCC unroll 6
      for (size_t i = 0; i < kIn; ++i) hn::Store(v[i], d, half + (i * kIn + j) * kLanes);
    }
    for (size_t i = 0; i < kIn; ++i) {
      V v[kIn];
#pragma GCC unroll 6
      for (size_t j = 0; j < kIn; ++j) v[j] = hn::Load(d, half + (i * kIn + j) * kLanes);
      T::input(v);
#pragma GCC unroll 6
      for (size_t j = 0; j < kIn; ++j)
        hn::StoreU(v[j], d, s.elements + (i * kIn + j) * s.stride + lane);
    }
  }
}

template <size_t kOut>
void square_out(const WinogradSquare& s) {
  using T = Transform<kOut>;
  constexpr size_t kIn = T::kIn;
  const D d;
  const Epilogue& e = *s.epilogue;
  const size_t rows = std::min(kOut, s.height - static_cast<size_t>(s.y));
  const size_t columns = std::min(kOut, s.width - static_cast<size_t>(s.x));
  const size_t first = (static_cast<size_t>(s.y) * s.width + static_cast<size_t>(s.x));
  HWY_ALIGN float half[kOut * kIn * kLanes];
  with_activation(d, e.activation, e.first, e.second, [&](auto function) HWY_ATTR {
    for (size_t lane = 0; lane < kChannelBlock; lane += kLanes) {
      for (size_t j = 0; j < kIn; ++j) {
        V m[kIn], y[kOut];
#pragma GCC unroll 6
        for (size_t i = 0; i < kIn; ++i)
          m[i] = hn::LoadU(d, s.elements + (i * kIn + j) * s.stride + lane);
        T::output(m, y);
#pragma GCC unroll 4
        for (size_t i = 0; i < kOut; ++i) hn::Store(y[i], d, half + (i * kIn + j) * kLanes);
      }
      for (size_t i = 0; i < rows; ++i) {
        V m[kIn], y[kOut];
#pragma GCC unroll 6
        for (size_t j = 0; j < kIn; ++j) m[j] = hn::Load(d, half + (i * kIn + j) * kLanes);
        T::output(m, y);
#pragma GCC unroll 4
        for (size_t j = 0; j < kOut; ++j) {
          if (j >= columns) break;
          const size_t place = (first + i * s.width + j) * kChannelBlock + lane;
          hn::StoreU(finish_vector(d, e, function, y[j], s.bias ? s.bias + lane : nullptr, 0.0f,
                                   s.residual ? s.residual + place : nullptr),
                     d, s.image + place);
        }
      }
    }
  });
  if (!e.program) return;
  for (size_t i = 0; i < rows; ++i) {
    const size_t place = (first + i * s.width) * kChannelBlock;
    e.program(e.program_context, s.image + place, columns * kChannelBlock, s.offset + place);
  }
}

void square_in_2(const WinogradSquare& s) { square_in<2>(s); }
void square_in_4(const WinogradSquare& s) { square_in<4>(s); }
void square_out_2(const WinogradSquare& s) { square_out<2>(s); }
void square_out_4(const WinogradSquare& s) { square_out<4>(s); }

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(square_in_2);
HWY_EXPORT(square_in_4);
HWY_EXPORT(square_out_2);
HWY_EXPORT(square_out_4);

namespace {

size_t outputs_of(const ConvShape& s) { return s.algorithm == ConvAlgorithm::winograd_2 ? 2 : 4; }

// How a sample is cut: squares in row-major order, in blocks small enough for both transformed
// blocks to stay in L2, but with enough rows for the products to use each weight they load.
struct Squares {
  size_t size, elements, across, count, block;
  explicit Squares(const ConvShape& s) : size(outputs_of(s)), elements((size + 2) * (size + 2)) {
    across = (s.out_width + size - 1) / size;
    count = across * ((s.out_height + size - 1) / size);
    constexpr size_t kBytes = 1024 * 1024, kLeast = 28;
    const size_t each = elements * sizeof(float) * kChannelBlock *
                        (channel_blocks(s.in_channels) + channel_blocks(s.out_channels));
    block = std::min(count, std::max(kBytes / each / kLeast * kLeast, kLeast));
  }
};

struct Places {
  size_t transformed, products, bias, total;
  Places(const ConvShape& s, const Squares& squares) {
    const size_t per_block = squares.elements * squares.block * kChannelBlock * sizeof(float);
    transformed = 0;
    products = per_block * channel_blocks(s.in_channels);
    bias = products + per_block * channel_blocks(s.out_channels);
    total = bias + channel_blocks(s.out_channels) * kChannelBlock * sizeof(float);
  }
};

}  // namespace

ConvAlgorithm best_conv_algorithm(const ConvShape& s) {
  if (!is_winograd(s) || s.in_channels < 16 || s.out_channels < 16) return ConvAlgorithm::direct;
  // Seconds by three rates: products, transformed elements, and weights, which are read from memory
  // once a sample.
  constexpr double kProducts = 50e9, kElements = 1.6e9, kWeightBytes = 14e9;
  const auto seconds = [&](size_t size, size_t elements) {
    const size_t squares = (s.out_height + size - 1) / size * ((s.out_width + size - 1) / size);
    const auto products = static_cast<double>(squares * elements * s.in_channels * s.out_channels);
    const auto moved = static_cast<double>(squares * elements * (s.in_channels + s.out_channels));
    const auto weights = static_cast<double>(elements * s.in_channels * s.out_channels * 4);
    return std::max(products / kProducts, weights / kWeightBytes) + moved / kElements / 2;
  };
  const double direct =
      static_cast<double>(s.out_height * s.out_width * 9 * s.in_channels * s.out_channels) /
      kProducts;
  const double two = seconds(2, 16), four = seconds(4, 36);
  if (direct <= std::min(two, four)) return ConvAlgorithm::direct;
  return two <= four ? ConvAlgorithm::winograd_2 : ConvAlgorithm::winograd_4;
}

size_t packed_winograd_bytes(const ConvShape& s) {
  const size_t n = outputs_of(s) + 2;
  return n * n * packed_b_bytes(s.in_channels, s.out_channels);
}

void pack_winograd(const ConvShape& s, const float* weights, float* packed) {
  // G: row i is (1, p, p^2) / prod of (p - q) over the other points q; the last row is infinity's.
  const size_t n = outputs_of(s) + 2;
  double points[5] = {0, 1, -1, 0, 0}, g[6][3] = {};
  if (n == 6) {
    points[1] = kNear;
    points[2] = -kNear;
    points[3] = kFar;
    points[4] = -kFar;
  }
  for (size_t i = 0; i + 1 < n; ++i) {
    double divisor = 1;
    for (size_t j = 0; j + 1 < n; ++j)
      if (j != i) divisor *= points[i] - points[j];
    g[i][0] = 1 / divisor;
    g[i][1] = points[i] / divisor;
    g[i][2] = points[i] * points[i] / divisor;
  }
  g[n - 1][2] = 1;
  const size_t matrix = packed_b_bytes(s.in_channels, s.out_channels) / sizeof(float);
  std::fill_n(packed, n * n * matrix, 0.0f);
  for (size_t out = 0; out < s.out_channels; ++out) {
    const size_t column = out / kPanelColumns * kPanelColumns;
    const size_t width = std::min(kPanelColumns, align_up(s.out_channels, kChunk) - column);
    for (size_t in = 0; in < s.in_channels; ++in) {
      const float* w = weights + (out * s.in_channels + in) * 9;
      float* to = packed + column * s.in_channels + in * width + (out - column);
      for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j) {
          double value = 0;
          for (size_t y = 0; y < 3; ++y)
            for (size_t x = 0; x < 3; ++x) value += g[i][y] * g[j][x] * w[y * 3 + x];
          to[(i * n + j) * matrix] = static_cast<float>(value);
        }
    }
  }
}

size_t winograd_scratch_bytes(const Conv& conv) {
  return Places(conv.shape, Squares(conv.shape)).total;
}

void winograd(const Conv& conv, std::byte* scratch, ThreadPool& pool) {
  const ConvShape& s = conv.shape;
  if (s.batch * s.out_channels * s.out_height * s.out_width == 0) return;
  const Squares squares(s);
  const Places places(s, squares);
  const size_t ins = channel_blocks(s.in_channels), outs = channel_blocks(s.out_channels);
  auto* transformed = reinterpret_cast<float*>(scratch + places.transformed);
  auto* products = reinterpret_cast<float*>(scratch + places.products);
  auto* bias = reinterpret_cast<float*>(scratch + places.bias);
  if (conv.epilogue.bias) {
    std::fill_n(bias, outs * kChannelBlock, 0.0f);
    std::copy_n(conv.epilogue.bias, s.out_channels, bias);
  }
  const bool two = squares.size == 2;
  const auto in = two ? HWY_DYNAMIC_DISPATCH(square_in_2) : HWY_DYNAMIC_DISPATCH(square_in_4);
  const auto out = two ? HWY_DYNAMIC_DISPATCH(square_out_2) : HWY_DYNAMIC_DISPATCH(square_out_4);
  const TileKernel kernel = tile_kernel();
  const size_t in_pixels = s.in_height * s.in_width * kChannelBlock;
  const size_t out_pixels = s.out_height * s.out_width * kChannelBlock;
  const size_t matrix = packed_b_bytes(s.in_channels, s.out_channels) / sizeof(float);
  const size_t panels = (outs * kChannelBlock + kPanelColumns - 1) / kPanelColumns;
  static constexpr ptrdiff_t kNoOffset = 0;
  const Epilogue plain;
  const unsigned threads = squares.count * squares.elements * ins * outs < 512 ? 1 : 0;

  for (size_t n = 0; n < s.batch; ++n) {
    for (size_t first = 0; first < squares.count; first += squares.block) {
      const size_t count = std::min(squares.block, squares.count - first);
      const auto place = [&](size_t index, ptrdiff_t& y, ptrdiff_t& x) {
        y = static_cast<ptrdiff_t>((first + index) / squares.across * squares.size);
        x = static_cast<ptrdiff_t>((first + index) % squares.across * squares.size);
      };
      const auto take = [&](size_t begin, size_t end) {
        for (size_t job = begin; job < end; ++job) {
          const size_t block = job / count, square = job % count;
          WinogradSquare w{.height = s.in_height, .width = s.in_width};
          place(square, w.y, w.x);
          w.y -= static_cast<ptrdiff_t>(s.pad_top);
          w.x -= static_cast<ptrdiff_t>(s.pad_left);
          w.image = const_cast<float*>(conv.input) + (n * ins + block) * in_pixels;
          w.elements = transformed + (block * count + square) * kChannelBlock;
          w.stride = ins * count * kChannelBlock;
          in(w);
        }
      };
      pool.parallel_for(ins * count, 8, take, Schedule::fixed, threads);

      const RowTiles tiles(count, kernel.rows);
      const auto multiply = [&](size_t begin, size_t end) {
        for (size_t job = begin; job < end; ++job) {
          const size_t element = job / panels, column = job % panels * kPanelColumns;
          for (size_t t = 0; t < tiles.tiles; ++t) {
            Tile tile;
            tile.rows = tiles.height(t);
            tile.a = transformed + (element * ins * count + tiles.begin(t)) * kChannelBlock;
            tile.a_row = kChannelBlock;
            tile.a_chunk = static_cast<ptrdiff_t>(count * kChannelBlock);
            tile.taps = &kNoOffset;
            tile.chunks = ins;
            tile.last = s.in_channels - (ins - 1) * kChannelBlock;
            tile.b = conv.packed_weights + element * matrix + column * s.in_channels;
            tile.b_stride = tile.columns = std::min(kPanelColumns, outs * kChannelBlock - column);
            tile.c = products + (element * outs + column / kChannelBlock) * count * kChannelBlock +
                     tiles.begin(t) * kChannelBlock;
            tile.c_row = kChannelBlock;
            tile.c_block = static_cast<ptrdiff_t>(count * kChannelBlock);
            tile.epilogue = &plain;
            kernel.run(tile);
          }
        }
      };
      pool.parallel_for(squares.elements * panels, 1, multiply, Schedule::dynamic, threads);

      const auto give = [&](size_t begin, size_t end) {
        for (size_t job = begin; job < end; ++job) {
          const size_t block = job / count, square = job % count;
          const size_t plane = (n * outs + block) * out_pixels;
          WinogradSquare w{.height = s.out_height, .width = s.out_width};
          place(square, w.y, w.x);
          w.image = conv.output + plane;
          w.elements = products + (block * count + square) * kChannelBlock;
          w.stride = outs * count * kChannelBlock;
          w.epilogue = &conv.epilogue;
          w.bias = conv.epilogue.bias ? bias + block * kChannelBlock : nullptr;
          w.residual = conv.epilogue.residual ? conv.epilogue.residual + plane : nullptr;
          w.offset = plane;
          out(w);
        }
      };
      pool.parallel_for(outs * count, 8, give, Schedule::fixed, threads);
    }
  }
}
}  // namespace hologram::backends::dense
#endif
