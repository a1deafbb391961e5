#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "backends/cpu/dense/digit_values.h"
#include "backends/cpu/dense/gemm_narrow.h"
#include "backends/cpu/dense/tile.h"
#include "backends/cpu/dense/unit_gemm.h"
#include "support/aligned.h"

namespace hologram::backends::dense {
namespace {

// Units of the sum: chunks of upper and of lower digits take turns.
size_t units_of(size_t k) { return align_up(k, 4 * kChunk) / 2; }
size_t head_bytes(size_t n) { return align_up(n, kPanelColumns) * sizeof(float); }
size_t row_scales_at(const GemmDigits& g) {
  return align_up(unit_gemm_scratch_bytes(g.m, units_of(g.k)), kAlignment);
}

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
    const size_t width = std::min<size_t>(kPanelColumns, align_up(n, kChunk) - first);
    const size_t inside = std::min(kPanelColumns, n - first);
    const float* from = b + first * column_step;
    int32_t largest[kPanelColumns] = {};
    float factors[kPanelColumns] = {};
    for (size_t i = 0; i < k; ++i)
      for (size_t j = 0; j < inside; ++j)
        largest[j] = std::max(
            largest[j], std::bit_cast<int32_t>(std::abs(from[i * row_step + j * column_step])));
    for (size_t j = 0; j < inside; ++j) {
      const DigitScale scale(largest[j]);
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
  const DigitFunctions digits = digit_functions();
  const auto pack = [&](size_t row, size_t height, uint32_t* packed) {
    for (size_t r = 0; r < height; ++r) {
      const float* values = g.a + (row + r) * g.lda;
      const size_t rest = g.k % kDigitRun;
      alignas(64) int32_t most[kDigitRun] = {};
      digits.collect(values, kDigitRun, g.k / kDigitRun, kDigitRun, most, 0);
      digits.collect(values + g.k - rest, kDigitRun, 1, rest, most, 0);
      const DigitScale own(digits.most(most));
      row_scales[row + r] = own.back;
      auto* upper = reinterpret_cast<uint8_t*>(packed + r * kChunk);
      const size_t digit = height * kChunk * sizeof(uint32_t);
      digits.pixels({.from = values,
                     .block = kDigitRun,
                     .pixels = 1,
                     .runs = units_of(g.k) / 8,
                     .count = g.k,
                     .factors = &own.factor,
                     .upper = upper,
                     .lower = upper + digit,
                     .chunk = 2 * digit});
    }
  };
  const TileKernel kernel = tile_kernel();
  const Epilogue epilogue = closely(g.epilogue);
  const auto finish = [&](size_t row, size_t rows, size_t column, void* sums, size_t width) {
    digits.scale(sums, rows, width, row_scales + row, 1, scales + column);
    Tile tile;
    tile.rows = rows;
    tile.columns = std::min(width, g.n - column);
    tile.row = row;
    tile.column = column;
    tile.epilogue = &epilogue;
    tile.lie_in(g.c, g.ldc);
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
