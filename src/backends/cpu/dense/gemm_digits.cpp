#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/dense/gemm_narrow.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/gemm_digits.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/tile.h"
#include "backends/cpu/dense/unit_gemm.h"
#include "support/aligned.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DI = hn::ScalableTag<int32_t>;

// The largest magnitude; NaN where a value is not finite.
float largest(const float* values, size_t count) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  auto most = hn::Zero(d), check = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto v = hn::LoadU(d, values + i);
    most = hn::Max(most, hn::Abs(v));
    check = hn::MulAdd(v, hn::Zero(d), check);
  }
  float result = hn::GetLane(hn::MaxOfLanes(d, most));
  float finite = hn::GetLane(hn::SumOfLanes(d, check));
  for (; i < count; ++i) {
    result = std::max(result, std::abs(values[i]));
    finite += values[i] * 0.0f;
  }
  return finite == 0 ? result : std::numeric_limits<float>::quiet_NaN();
}

// A row as chunks of 64 upper digits, then 64 lower ones, from one to the next `step` bytes.
void digits_of(const float* from, size_t count, float factor, uint8_t* to, size_t step) {
  const DF df;
  const DI di;
  const hn::RebindToUnsigned<DI> du;
  const hn::Rebind<uint8_t, DI> d8;
  constexpr size_t kValues = kChunk * 4;
  const size_t lanes = hn::Lanes(df);
  const auto factors = hn::Set(df, factor);
  for (size_t i = 0; i < count; i += kValues, to += 2 * step) {
    const size_t inside = std::min(kValues, count - i);
    HWY_ALIGN float last[kValues];
    const float* values = from + i;
    if (inside < kValues) {
      std::memset(last, 0, sizeof(last));
      std::memcpy(last, values, inside * sizeof(float));
      values = last;
    }
    for (size_t j = 0; j < kValues; j += lanes) {
      const auto q = hn::NearestInt(hn::Mul(hn::LoadU(df, values + j), factors));
      const auto upper = hn::ShiftRight<8>(hn::Add(q, hn::Set(di, 128)));
      hn::StoreU(hn::TruncateTo(d8, hn::BitCast(du, upper)), d8, to + j);
      hn::StoreU(hn::TruncateTo(d8, hn::BitCast(du, q)), d8, to + step + j);
    }
  }
}

void scale_sums(float* sums, size_t rows, size_t width, const float* row_scales,
                const float* scales) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  for (size_t r = 0; r < rows; ++r) {
    const auto row = hn::Set(d, row_scales[r]);
    for (size_t j = 0; j < width; j += lanes) {
      float* at = sums + r * width + j;
      hn::StoreU(hn::Mul(hn::LoadU(d, at), hn::Mul(row, hn::LoadU(d, scales + j))), d, at);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(largest);
HWY_EXPORT(digits_of);
HWY_EXPORT(scale_sums);

namespace {

// The largest number whose upper digit, rounded, is 127.
constexpr float kMost = 127 * 256;

// Units of the sum: chunks of upper and of lower digits take turns.
size_t units_of(size_t k) { return align_up(k, 4 * kChunk) / 2; }
size_t head_bytes(size_t n) { return align_up(n, kPanelColumns) * sizeof(float); }
size_t row_scales_at(const GemmDigits& g) {
  return align_up(unit_gemm_scratch_bytes(g.m, units_of(g.k)), kAlignment);
}

// What numbers are multiplied by to become integers, and products of those by to become numbers
// again (their sums are 1/256 of them, which is shared by both sides).
struct Scale {
  float factor = 0, back = 0;
  explicit Scale(float largest) {
    constexpr float kTiny = 1e-30f;  // rows and columns of no more are zeros
    if (std::isnan(largest))
      back = largest;  // and so is every result
    else if (largest > kTiny)
      factor = kMost / largest, back = largest / kMost * 16;
  }
};

}  // namespace

size_t packed_b_digits_bytes(size_t k, size_t n) {
  return head_bytes(n) + unit_panel_units(n, units_of(k)) * sizeof(uint32_t);
}

void pack_b_digits(size_t k, size_t n, const float* b, size_t ldb, bool transposed,
                   std::byte* packed) {
  std::memset(packed, 0, packed_b_digits_bytes(k, n));
  auto* scales = reinterpret_cast<float*>(packed);
  auto* panels = reinterpret_cast<uint8_t*>(packed + head_bytes(n));
  const size_t row_step = transposed ? 1 : ldb, column_step = transposed ? ldb : 1;
  for (size_t first = 0; first < n; first += kPanelColumns) {
    const size_t width = std::min(kPanelColumns, align_up(n, kChunk) - first);
    const size_t inside = std::min(kPanelColumns, n - first);
    const float* from = b + first * column_step;
    float largest[kPanelColumns] = {}, factors[kPanelColumns] = {};
    for (size_t i = 0; i < k; ++i)
      for (size_t j = 0; j < inside; ++j) {
        const float size = std::abs(from[i * row_step + j * column_step]);
        largest[j] = std::isfinite(size) ? std::max(largest[j], size) : size - size;
      }
    for (size_t j = 0; j < inside; ++j) {
      const Scale scale(largest[j]);
      scales[first + j] = scale.back;
      factors[j] = scale.factor;
    }
    uint8_t* panel = panels + first * units_of(k) * sizeof(uint32_t);
    for (size_t i = 0; i < k; ++i) {
      // [chunk of 64][digit][unit][column][4]
      const size_t unit = i / 64 * 2 * kChunk + i % 64 / 4;
      uint8_t* upper = panel + unit * width * 4 + i % 4;
      uint8_t* lower = upper + kChunk * width * 4;
      for (size_t j = 0; j < inside; ++j) {
        if (factors[j] == 0) continue;
        const float value = from[i * row_step + j * column_step] * factors[j];
        const auto q = static_cast<int32_t>(std::nearbyint(value));
        upper[j * 4] = static_cast<uint8_t>((q + 128) >> 8);
        lower[j * 4] = static_cast<uint8_t>(q);
      }
    }
  }
}

size_t gemm_digits_scratch_bytes(const GemmDigits& g) {
  return row_scales_at(g) + g.m * sizeof(float);
}

void gemm_digits(const GemmDigits& g, std::byte* scratch, ThreadPool& pool) {
  auto* row_scales = reinterpret_cast<float*>(scratch + row_scales_at(g));
  const auto* scales = reinterpret_cast<const float*>(g.packed_b);
  const auto largest = HWY_DYNAMIC_DISPATCH(hologram::backends::dense::largest);
  const auto digits = HWY_DYNAMIC_DISPATCH(digits_of);
  const auto scale = HWY_DYNAMIC_DISPATCH(scale_sums);
  const auto pack = [&](size_t row, size_t height, uint32_t* packed) {
    for (size_t r = 0; r < height; ++r) {
      const float* values = g.a + (row + r) * g.lda;
      const Scale own(largest(values, g.k));
      row_scales[row + r] = own.back;
      digits(values, g.k, own.factor, reinterpret_cast<uint8_t*>(packed + r * kChunk),
             height * kChunk * sizeof(uint32_t));
    }
  };
  const TileKernel kernel = tile_kernel();
  const auto finish = [&](size_t row, size_t rows, size_t column, void* sums, size_t width) {
    scale(static_cast<float*>(sums), rows, width, row_scales + row, scales + column);
    Tile tile;
    tile.rows = rows;
    tile.columns = std::min(width, g.n - column);
    tile.row = row;
    tile.column = column;
    tile.epilogue = &g.epilogue;
    tile.offset = row * g.ldc + column;
    tile.c = g.c + tile.offset;
    tile.c_row = static_cast<ptrdiff_t>(g.ldc);
    if (g.epilogue.residual) {
      const size_t stride = g.epilogue.residual_stride ? g.epilogue.residual_stride : g.ldc;
      tile.residual = g.epilogue.residual + row * stride + column;
      tile.residual_row = static_cast<ptrdiff_t>(stride);
    }
    kernel.finish(tile, static_cast<float*>(sums), width);
  };
  unit_gemm({.m = g.m,
             .n = g.n,
             .units = units_of(g.k),
             .packed_b = reinterpret_cast<const uint32_t*>(g.packed_b + head_bytes(g.n)),
             .tile = unit_kernels().digits,
             .pack_a = pack,
             .finish = finish},
            scratch, pool);
}

}  // namespace hologram::backends::dense
#endif
