#include "backends/cpu/dense/winograd.h"

#include <algorithm>
#include <atomic>
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

// The points, besides 0 and infinity; of both signs.
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
  const float* rest;         // of the bias, or null
  const float* residual;     // of the block, or null
  size_t offset;             // of the block from the output's start
};

// Kernels of a panel of outputs on their way to a row of their squares.
struct WinogradKernels {
  const float* weights;  // [inputs][9][width]
  size_t inputs, width;  // width: a multiple of 16
  size_t row;            // of the square
  float* elements;       // [n][inputs][width], an element every `stride` floats
  size_t stride;
};

// Products of a row of elements of few squares by kernels that become squares in registers.
struct WinogradFew {
  const float* weights;  // [inputs][9][width], from the first of 16 outputs on
  size_t inputs, width;
  size_t row, squares;
  const float*
      a;  // element e, square q, input i: a[e * a_element + i / 16 * a_chunk + q * 16 + i % 16]
  size_t a_element, a_chunk;
  float* c;  // element e, square q: 16 results at c[e * c_element + q * 16]
  size_t c_element;
  const float* ahead;  // lines of what is read later: so many are brought near with 16 inputs
  size_t ahead_lines;
};

inline constexpr size_t kOut = 4, kIn = 6, kElements = kIn * kIn;  // of a square

// G: row i is (1, p, p^2) for the points 0, +-kNear and +-kFar; the last, infinity's, is (0, 0, 1).
// The divisor of each row, the product of (p - q) over the other points q, is left to the output.
inline constexpr float kPoints[kIn] = {0, kNear, -kNear, kFar, -kFar, 0};
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

// Of one row or column: B^T in place, and A^T times kDivisor. The rounding of a constant would be
// the same error in every channel and pixel, so all of them are exact in f32: row i of A is
// (1, p, p^2, p^3) * kDivisor / (the divisor of row i of G), the last one (0, 0, 0, kDivisor).
struct Transform {
  static constexpr double kA = kNear, kB = kFar, kA2 = kA * kA, kB2 = kB * kB;
  // Makes 1 / kDivisor^2, which is left to the end, a float but for 3e-10 of it. (Two parts of it
  // would need fused operations.)
  static constexpr double kScale = 91.0 / 64;
  static constexpr double kAtZero = kScale * 2 * (kB2 - kA2);
  static constexpr double kAtA = kScale * kB2, kAtB = kScale * kA2;  // the former of -A
  static constexpr double kDivisor = kAtZero * kA2 * kB2;
  static_assert(kDivisor == static_cast<float>(kDivisor));
  static_assert(kAtA * kA2 * kA == static_cast<float>(kAtA * kA2 * kA));
  static_assert(kAtB * kB2 * kB == static_cast<float>(kAtB * kB2 * kB));
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
    y[0] = hn::MulAdd(set(kAtZero), m[0], hn::NegMulAdd(set(kAtA), s1, hn::Mul(set(kAtB), s2)));
    y[1] = hn::NegMulAdd(set(kAtA * kA), d1, hn::Mul(set(kAtB * kB), d2));
    y[2] = hn::Mul(set(kAtA * kA2), hn::Sub(s2, s1));  // kAtA * kA2 is kAtB * kB2
    y[3] = hn::MulAdd(set(kAtB * kB2 * kB), d2,
                      hn::NegMulAdd(set(kAtA * kA2 * kA), d1, hn::Mul(set(kDivisor), m[5])));
  }
};

void square_in(const WinogradSquare& s) {
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
      Transform::input(v);
#pragma GCC unroll 6
      for (size_t i = 0; i < kIn; ++i) hn::Store(v[i], d, half + (i * kIn + j) * kLanes);
    }
    for (size_t i = 0; i < kIn; ++i) {
      V v[kIn];
#pragma GCC unroll 6
      for (size_t j = 0; j < kIn; ++j) v[j] = hn::Load(d, half + (i * kIn + j) * kLanes);
      Transform::input(v);
#pragma GCC unroll 6
      for (size_t j = 0; j < kIn; ++j)
        hn::StoreU(v[j], d, s.elements + (i * kIn + j) * s.stride + lane);
    }
  }
}

// The pixels of a square of results, of those that the image has.
struct SquareOut {
  size_t rows, columns, first;
  explicit SquareOut(const WinogradSquare& s)
      : rows(std::min(kOut, s.height - static_cast<size_t>(s.y))),
        columns(std::min(kOut, s.width - static_cast<size_t>(s.x))),
        first(static_cast<size_t>(s.y) * s.width + static_cast<size_t>(s.x)) {}
};

// use(row, column, lane, sum) for each vector of sums.
template <class Use>
HWY_INLINE void transform_out(const WinogradSquare& s, const SquareOut& out, const Use& use) {
  const D d;
  HWY_ALIGN float half[kOut * kIn * kLanes];
  for (size_t lane = 0; lane < kChannelBlock; lane += kLanes) {
    for (size_t j = 0; j < kIn; ++j) {
      V m[kIn], y[kOut];
#pragma GCC unroll 6
      for (size_t i = 0; i < kIn; ++i)
        m[i] = hn::LoadU(d, s.elements + (i * kIn + j) * s.stride + lane);
      Transform::output(m, y);
#pragma GCC unroll 4
      for (size_t i = 0; i < kOut; ++i) hn::Store(y[i], d, half + (i * kIn + j) * kLanes);
    }
    for (size_t i = 0; i < out.rows; ++i) {
      V m[kIn], y[kOut];
#pragma GCC unroll 6
      for (size_t j = 0; j < kIn; ++j) m[j] = hn::Load(d, half + (i * kIn + j) * kLanes);
      Transform::output(m, y);
#pragma GCC unroll 4
      for (size_t j = 0; j < kOut; ++j) {
        if (j >= out.columns) break;
        use(i, j, lane, hn::Mul(set(1 / (Transform::kDivisor * Transform::kDivisor)), y[j]));
      }
    }
  }
}

void square_out(const WinogradSquare& s) {
  const D d;
  const Epilogue& e = *s.epilogue;
  const SquareOut out(s);
  const auto place = [&](size_t i, size_t j, size_t lane) {
    return (out.first + i * s.width + j) * kChannelBlock + lane;
  };
  if (is_direct(e)) {
    const ClipRange clip = clip_range(e);
    return transform_out(s, out, [&](size_t i, size_t j, size_t lane, V y) HWY_ATTR {
      const size_t at = place(i, j, lane);
      if (s.bias) y = hn::Add(y, hn::LoadU(d, s.bias + lane));
      if (s.rest) y = hn::Add(y, hn::LoadU(d, s.rest + lane));
      if (s.residual) y = hn::Add(y, hn::LoadU(d, s.residual + at));
      if (clip.clips) y = clamp(d, y, clip.low, clip.high);
      hn::StoreU(y, d, s.image + at);
    });
  }
  // Others are finished in a loop of their own: a transform for each of them would be a lot of
  // code.
  HWY_ALIGN float sums[kOut][kOut][kChannelBlock];
  transform_out(s, out, [&](size_t i, size_t j, size_t lane, V y) HWY_ATTR {
    if (s.rest) y = hn::Add(hn::Add(y, hn::LoadU(d, s.bias + lane)), hn::LoadU(d, s.rest + lane));
    hn::Store(y, d, &sums[i][j][lane]);
  });
  const float* bias = s.rest ? nullptr : s.bias;
  with_activation(d, e.activation, e.first, e.second, [&](auto function) HWY_ATTR {
    for (size_t i = 0; i < out.rows; ++i)
      for (size_t j = 0; j < out.columns; ++j)
        for (size_t lane = 0; lane < kChannelBlock; lane += kLanes) {
          const size_t at = place(i, j, lane);
          hn::StoreU(finish_vector(d, e, function, hn::Load(d, &sums[i][j][lane]),
                                   bias ? bias + lane : nullptr, 0.0f,
                                   s.residual ? s.residual + at : nullptr),
                     d, s.image + at);
        }
  });
  if (!e.program) return;
  for (size_t i = 0; i < out.rows; ++i) {
    const size_t at = place(i, 0, 0);
    e.program(e.program_context, s.image + at, out.columns * kChannelBlock, s.offset + at);
  }
}

// A row of G w G^T of one vector of kernels: first by rows, then by columns, where the two points
// of a pair share what is even.
struct KernelRow {
  size_t first;  // tap: infinity's row begins, and ends, with the last ones
  V p, p2;
  explicit HWY_INLINE KernelRow(size_t row)
      : first(row + 1 == kIn ? 6 : 0),
        p(set(kPoints[row])),
        p2(set(double{kPoints[row]} * kPoints[row])) {}

  // use(e, element) for each of them, in an order that keeps few at a time. w: nine taps, `width`
  // floats apart.
  template <class Use>
  HWY_INLINE void elements(const float* w, size_t width, const Use& use) const {
    const D d;
    V t[3];
#pragma GCC unroll 3
    for (size_t x = 0; x < 3; ++x) {
      const V w0 = hn::LoadU(d, w + (first + x) * width), w1 = hn::LoadU(d, w + (3 + x) * width);
      t[x] = hn::MulAdd(p2, hn::LoadU(d, w + (6 + x) * width), hn::MulAdd(p, w1, w0));
    }
    use(0, t[0]);
    use(kIn - 1, t[2]);
#pragma GCC unroll 2
    for (size_t j = 1; j + 1 < kIn; j += 2) {
      const double point = kPoints[j];
      const V even = hn::MulAdd(set(point * point), t[2], t[0]);
      use(j, hn::MulAdd(set(point), t[1], even));
      use(j + 1, hn::NegMulAdd(set(point), t[1], even));
    }
  }
};

void kernel_row(const WinogradKernels& k) {
  const D d;
  const KernelRow row(k.row);
  const float* w = k.weights;
  for (size_t in = 0; in < k.inputs; ++in, w += 9 * k.width)
    for (size_t lane = 0; lane < k.width; lane += kLanes) {
      float* to = k.elements + in * k.width + lane;
      row.elements(w + lane, k.width, [&](size_t e, V element) HWY_ATTR {
        hn::StoreU(element, d, to + e * k.stride);
      });
    }
}

HWY_ALIGN constexpr float kZeros[kIn * 4 * kLanes] = {};

// kSquares squares from `first` on, 16 outputs. Sums are in parts of 16 inputs, which are added to
// kMostAside sums in turn.
template <size_t kSquares>
void some_squares(const WinogradFew& f, size_t first) {
  const D d;
  const KernelRow row(f.row);
  constexpr size_t kSums = kIn * kSquares * kLanes;
  HWY_ALIGN float parts[kMostAside * kSums];
  for (size_t lane = 0; lane < kChannelBlock; lane += kLanes) {
    V sums[kIn][kSquares];
#pragma GCC unroll 6
    for (size_t e = 0; e < kIn; ++e)
#pragma GCC unroll 4
      for (size_t q = 0; q < kSquares; ++q) sums[e][q] = hn::Zero(d);
    const float* w = f.weights + lane;
    size_t part = 0;
    const size_t lines = lane == 0 && first == 0 ? f.ahead_lines : 0;
    for (size_t in = 0; in < f.inputs; in += kChannelBlock, ++part) {
      for (size_t l = 0; l < lines; ++l)
        __builtin_prefetch(f.ahead + (part * lines + l) * kChunk, 0, 2);
      const float* a = f.a + part * f.a_chunk + first * kChannelBlock;
      // Before the first part these are zeros, which a later part replaces.
      float* const aside = parts + part % kMostAside * kSums;
      const float* before = part <= kMostAside ? kZeros : aside;
      row.elements(w, f.width, [&](size_t e, V element) HWY_ATTR {
#pragma GCC unroll 4
        for (size_t q = 0; q < kSquares; ++q) {
          const size_t at = (e * kSquares + q) * kLanes;
          hn::Store(hn::Add(sums[e][q], hn::Load(d, before + at)), d, aside + at);
          sums[e][q] = hn::Mul(hn::Set(d, a[e * f.a_element + q * kChannelBlock]), element);
        }
      });
      w += 9 * f.width;
      const float* past = a + std::min(kChannelBlock, f.inputs - in);
      for (++a; a < past; ++a, w += 9 * f.width)
        row.elements(w, f.width, [&](size_t e, V element) HWY_ATTR {
#pragma GCC unroll 4
          for (size_t q = 0; q < kSquares; ++q)
            sums[e][q] =
                hn::MulAdd(hn::Set(d, a[e * f.a_element + q * kChannelBlock]), element, sums[e][q]);
        });
    }
    part = std::min(part, kMostAside);
#pragma GCC unroll 6
    for (size_t e = 0; e < kIn; ++e)
#pragma GCC unroll 4
      for (size_t q = 0; q < kSquares; ++q) {
        for (size_t p = 0; p < part; ++p)
          sums[e][q] =
              hn::Add(sums[e][q], hn::Load(d, parts + p * kSums + (e * kSquares + q) * kLanes));
        hn::StoreU(sums[e][q], d, f.c + e * f.c_element + (first + q) * kChannelBlock + lane);
      }
  }
}

void few_squares(const WinogradFew& f) {
  size_t first = 0;
  if constexpr (HWY_TARGET <= HWY_AVX3)  // sums of four squares need 24 registers
    for (; first + 4 <= f.squares; first += 4) some_squares<4>(f, first);
  for (; first < f.squares; ++first) some_squares<1>(f, first);
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(few_squares);
HWY_EXPORT(kernel_row);
HWY_EXPORT(square_in);
HWY_EXPORT(square_out);

namespace {

size_t panels_of(const ConvShape& s) {
  return (align_up(s.out_channels, kChannelBlock) + kPanelColumns - 1) / kPanelColumns;
}

// How a sample is cut: squares in row-major order, in blocks small enough for both transformed
// blocks to stay in L2, but with enough rows for the products to use each weight they load.
struct Squares {
  size_t across, count, block;
  explicit Squares(const ConvShape& s) {
    across = (s.out_width + kOut - 1) / kOut;
    count = across * ((s.out_height + kOut - 1) / kOut);
    constexpr size_t kBytes = 1024 * 1024, kLeast = 28;
    const size_t each = kElements * sizeof(float) * kChannelBlock *
                        (channel_blocks(s.in_channels) + channel_blocks(s.out_channels));
    block = std::min(count, std::max(kBytes / each / kLeast * kLeast, kLeast));
  }
};

// Kernels become squares as they are used, those of a panel of outputs and some inputs at a time,
// each thread's in a place of its own that stays in L2: four times the weights would take longer to
// read than to make. Elements lie off multiples of 4 KiB, where their lines would drive each other
// out of the first cache.
constexpr size_t kMostThreads = 128;

// So few squares that kernels become squares in registers, again for every four of them.
bool are_few(const Squares& squares) { return squares.count <= 8; }

struct Places {
  size_t transformed, products, bias, rest, kernels, inputs, stride, kernel_bytes, threads, total;
  Places(const ConvShape& s, const Squares& squares) {
    const size_t per_block = kElements * squares.block * kChannelBlock * sizeof(float);
    transformed = 0;
    products = per_block * channel_blocks(s.in_channels);
    bias = products + per_block * channel_blocks(s.out_channels);
    rest = bias + align_up(s.out_channels, kChannelBlock) * sizeof(float);
    kernels = rest + rest - bias;
    inputs = std::min<size_t>(128, align_up(s.in_channels, kChannelBlock));
    stride = align_up(inputs * kPanelColumns, 1024) + 5 * kChunk;
    kernel_bytes = kIn * stride * sizeof(float);
    threads = std::min(kMostThreads, panels_of(s) * kIn);
    if (are_few(squares)) kernel_bytes = 0;
    total = kernels + threads * kernel_bytes;
  }
};

}  // namespace

ConvAlgorithm best_conv_algorithm(const ConvShape& s) {
  if (!is_winograd(s) || s.in_channels < 16 || s.out_channels < 16) return ConvAlgorithm::direct;
  // Seconds by three rates: products, transformed elements, and weights, which are read from memory
  // once a sample. Making a kernel's square takes as long as so many products, in registers 96.
  constexpr double kProducts = 50e9, kMoved = 1.6e9, kWeightBytes = 14e9, kKernel = 270;
  const auto pairs = static_cast<double>(s.in_channels * s.out_channels);
  const Squares squares(s);
  const size_t blocks = (squares.count + squares.block - 1) / squares.block;
  const auto elements = static_cast<double>(squares.count * kElements);
  // Four squares at a time only AVX-512 has registers for.
  const size_t fours = tile_kernel().wide_rows != 0 ? squares.count / 4 : 0;
  const double products =
      (are_few(squares) ? static_cast<double>(fours * 240 + (squares.count - 4 * fours) * 132)
                        : elements + static_cast<double>(blocks) * kKernel) *
      pairs;
  const double moved = elements * static_cast<double>(s.in_channels + s.out_channels);
  const double winograd =
      std::max(products / kProducts, 36 * pairs / kWeightBytes) + moved / kMoved / 2;
  const double direct = static_cast<double>(s.out_height * s.out_width * 9) * pairs / kProducts;
  return direct <= winograd ? ConvAlgorithm::direct : ConvAlgorithm::winograd;
}

size_t packed_winograd_bytes(const ConvShape& s) {
  return 9 * s.in_channels * align_up(s.out_channels, kChannelBlock) * sizeof(float);
}

void pack_winograd(const ConvShape& s, const float* weights, float* packed) {
  for (size_t column = 0; column < s.out_channels; column += kPanelColumns) {
    const size_t width = std::min<size_t>(kPanelColumns, align_up(s.out_channels, kChunk) - column);
    for (size_t in = 0; in < s.in_channels; ++in)
      for (size_t tap = 0; tap < 9; ++tap)
        for (size_t i = 0; i < width; ++i)
          *packed++ = column + i < s.out_channels
                          ? weights[((column + i) * s.in_channels + in) * 9 + tap]
                          : 0.0f;
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
  auto* rest = reinterpret_cast<float*>(scratch + places.rest);
  if (conv.bias_rest) {
    std::fill_n(rest, outs * kChannelBlock, 0.0f);
    std::copy_n(conv.bias_rest, s.out_channels, rest);
  }
  const auto in = HWY_DYNAMIC_DISPATCH(square_in), out = HWY_DYNAMIC_DISPATCH(square_out);
  const auto prepare = HWY_DYNAMIC_DISPATCH(kernel_row);
  const auto few = HWY_DYNAMIC_DISPATCH(few_squares);
  const TileKernel kernel = tile_kernel();
  const size_t in_pixels = s.in_height * s.in_width * kChannelBlock;
  const size_t out_pixels = s.out_height * s.out_width * kChannelBlock;
  const size_t panels = panels_of(s), rows = kIn;
  // Whole squares make best use of what they read; parts of them where threads would be idle.
  const size_t cuts = pool.size() == 1 ? 1 : std::clamp<size_t>(8 * pool.size() / panels, 1, rows);
  static constexpr ptrdiff_t kNoOffset = 0;
  const Epilogue plain;
  const unsigned threads = squares.count * kElements * ins * outs < 512 ? 1 : 0;

  for (size_t n = 0; n < s.batch; ++n) {
    for (size_t first = 0; first < squares.count; first += squares.block) {
      const size_t count = std::min(squares.block, squares.count - first);
      const auto place = [&](size_t index, ptrdiff_t& y, ptrdiff_t& x) {
        y = static_cast<ptrdiff_t>((first + index) / squares.across * kOut);
        x = static_cast<ptrdiff_t>((first + index) % squares.across * kOut);
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
      pool.parallel_for(ins * count, 8, take, Schedule::dynamic, threads);

      const RowTiles tiles(count, kernel.rows);
      // Inputs in turn, so that the weights are read from memory once. The next ones, which follow
      // these, come meanwhile.
      const auto multiply = [&](size_t panel, size_t first_row, size_t last_row, float* elements) {
        const size_t column = panel * kPanelColumns;
        const size_t width = std::min(kPanelColumns, outs * kChannelBlock - column);
        for (size_t input = 0; input < s.in_channels; input += places.inputs)
          for (size_t row = first_row; row < last_row; ++row) {
            const size_t inputs = std::min(places.inputs, s.in_channels - input);
            const float* weights =
                conv.packed_weights + 9 * (s.in_channels * column + input * width);
            const size_t runs = (last_row - first_row) * rows * tiles.tiles;
            const size_t lines = (9 * width + runs - 1) / runs;  // with 16 inputs
            prepare({.weights = weights,
                     .inputs = inputs,
                     .width = width,
                     .row = row,
                     .elements = elements,
                     .stride = places.stride});
            for (size_t e = 0; e < rows; ++e)
              for (size_t t = 0; t < tiles.tiles; ++t) {
                const size_t element = row * rows + e, square = tiles.begin(t);
                Tile tile;
                tile.rows = tiles.height(t);
                tile.a = transformed +
                         ((element * ins + input / kChannelBlock) * count + square) * kChannelBlock;
                tile.a_row = kChannelBlock;
                tile.a_chunk = static_cast<ptrdiff_t>(count * kChannelBlock);
                tile.taps = &kNoOffset;
                tile.chunks = channel_blocks(inputs);
                tile.last = inputs - (tile.chunks - 1) * kChannelBlock;
                tile.part = conv.long_sums ? 0 : 1;
                tile.b = elements + e * places.stride;
                tile.b_stride = tile.columns = width;
                tile.ahead_lines = lines;
                tile.ahead = weights + 9 * inputs * width +
                             (((row - first_row) * rows + e) * tiles.tiles + t) * lines *
                                 tile.chunks * kChunk;
                tile.c = products + ((element * outs + column / kChannelBlock) * count + square) *
                                        kChannelBlock;
                tile.c_row = kChannelBlock;
                tile.c_block = static_cast<ptrdiff_t>(count * kChannelBlock);
                tile.residual = input > 0 ? tile.c : nullptr;
                tile.residual_row = tile.c_row;
                tile.epilogue = &plain;
                kernel.run(tile);
              }
          }
      };
      const auto multiply_few = [&](size_t panel, size_t first_row, size_t last_row) {
        const size_t past = std::min((panel + 1) * kPanelColumns, outs * kChannelBlock);
        const size_t width = past - panel * kPanelColumns;
        const float* weights = conv.packed_weights + 9 * s.in_channels * panel * kPanelColumns;
        const float* next = weights + pool.size() * 9 * s.in_channels * kPanelColumns;
        const size_t runs = (last_row - first_row) * width / kChannelBlock;
        const size_t lines = panel + pool.size() < panels ? (9 * width + runs - 1) / runs : 0;
        for (size_t column = panel * kPanelColumns; column < past; column += kChannelBlock)
          for (size_t row = first_row; row < last_row; ++row)
            few({.weights = weights + column % kPanelColumns,
                 .inputs = s.in_channels,
                 .width = width,
                 .row = row,
                 .squares = count,
                 .a = transformed + row * rows * ins * count * kChannelBlock,
                 .a_element = ins * count * kChannelBlock,
                 .a_chunk = count * kChannelBlock,
                 .c = products +
                      (row * rows * outs + column / kChannelBlock) * count * kChannelBlock,
                 .c_element = outs * count * kChannelBlock,
                 .ahead = next + (column % kPanelColumns / kChannelBlock * (last_row - first_row) +
                                  row - first_row) *
                                     lines * ins * kChunk,
                 .ahead_lines = lines});
      };
      std::atomic<size_t> next = 0;
      const auto take_rows = [&](size_t begin, size_t end) {
        for (size_t thread = begin; thread < end; ++thread) {
          auto* elements =
              reinterpret_cast<float*>(scratch + places.kernels + thread * places.kernel_bytes);
          for (size_t job; (job = next.fetch_add(1, std::memory_order_relaxed)) < panels * cuts;) {
            const size_t from = job % cuts * rows / cuts, to = (job % cuts + 1) * rows / cuts;
            if (are_few(squares))
              multiply_few(job / cuts, from, to);
            else
              multiply(job / cuts, from, to, elements);
          }
        }
      };
      pool.parallel_for(std::min<size_t>(pool.size(), places.threads), 1, take_rows,
                        Schedule::fixed, threads);

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
          w.rest = conv.bias_rest ? rest + block * kChannelBlock : nullptr;
          w.residual = conv.epilogue.residual ? conv.epilogue.residual + plane : nullptr;
          w.offset = plane;
          out(w);
        }
      };
      pool.parallel_for(outs * count, 8, give, Schedule::dynamic, threads);
    }
  }
}
}  // namespace hologram::backends::dense
#endif
