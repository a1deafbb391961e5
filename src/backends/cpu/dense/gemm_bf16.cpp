#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "backends/cpu/dense/gemm_narrow.h"
#include "backends/cpu/dense/tile.h"
#include "backends/cpu/dense/transpose.h"
#include "backends/cpu/dense/unit_gemm.h"
#include "support/aligned.h"

namespace hologram::backends::dense {
namespace {

// Units of the sum: chunks of upper and of lower parts take turns.
size_t units_of(size_t k, Bf16Parts parts) {
  const size_t units = (k + 1) / 2;
  return parts == Bf16Parts::one ? units : 2 * align_up(units, kChunk);
}

// To nearest, ties to even; a NaN stays one.
uint32_t bf16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return (bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded;
}

}  // namespace

size_t packed_b_bf16_bytes(size_t k, size_t n, Bf16Parts parts) {
  return unit_panel_units(n, units_of(k, parts)) * sizeof(uint32_t);
}

void pack_b_bf16(size_t k, size_t n, const float* b, size_t ldb, bool transposed, std::byte* packed,
                 Bf16Parts parts) {
  const size_t units = units_of(k, parts);
  const bool two = parts == Bf16Parts::two;
  auto* panels = reinterpret_cast<uint32_t*>(packed);
  std::memset(packed, 0, packed_b_bf16_bytes(k, n, parts));
  for (size_t column = 0; column < n; column += kPanelColumns) {
    const size_t width = std::min<size_t>(kPanelColumns, align_up(n, kChunk) - column);
    uint32_t* panel = panels + column * units;
    for (size_t i = 0; i < k; ++i) {
      const size_t unit = i / 2, shift = i % 2 * 16;
      const size_t at = two ? unit + unit / kChunk * kChunk : unit;
      for (size_t j = column; j < std::min(n, column + width); ++j) {
        const float value = b[transposed ? j * ldb + i : i * ldb + j];
        const uint32_t high = bf16_bits(value);
        panel[at * width + (j - column)] |= high << shift;
        if (two)
          panel[(at + kChunk) * width + (j - column)] |=
              bf16_bits(value - std::bit_cast<float>(high << 16)) << shift;
      }
    }
  }
}

size_t gemm_bf16_scratch_bytes(const GemmBf16& g) {
  return unit_gemm_scratch_bytes(g.m, units_of(g.k, g.parts));
}

void gemm_bf16(const GemmBf16& g, std::byte* scratch, ThreadPool& pool) {
  const bool two = g.parts == Bf16Parts::two;
  const Epilogue epilogue = two ? closely(g.epilogue) : nearly(g.epilogue);
  const auto pack = [&](size_t row, size_t height, uint32_t* packed) {
    // A chunk of 32 values of all rows of the tile at a time.
    const size_t part = height * kChunk;
    for (size_t i = 0; i < g.k; i += 2 * kChunk, packed += two ? 2 * part : part) {
      const float* from = g.a + row * g.lda + i;
      const size_t count = std::min(2 * kChunk, g.k - i);
      split_pixels(from, count > kChunk ? from + kChunk : nullptr, height, g.lda, count, packed,
                   two ? packed + part : nullptr);
    }
  };
  const TileKernel kernel = tile_kernel();
  const auto finish = [&](size_t row, size_t rows, size_t column, void* sums, size_t width) {
    Tile tile;
    tile.rows = rows;
    tile.columns = std::min(width, g.n - column);
    tile.row = row;
    tile.column = column;
    tile.epilogue = &epilogue;
    if (g.c_turned) {
      alignas(64) float values[kMaxUnitRows * kPanelColumns];
      tile.c = values;
      tile.c_row = kPanelColumns;
      kernel.finish(tile, static_cast<float*>(sums), width);
      return transpose_block(rows, tile.columns, values, kPanelColumns, g.c + column * g.ldc + row,
                             g.ldc);
    }
    tile.lie_in(g.c, g.ldc);
    kernel.finish(tile, static_cast<float*>(sums), width);
  };
  unit_gemm({.m = g.m,
             .n = g.n,
             .units = units_of(g.k, g.parts),
             .packed_b = reinterpret_cast<const uint32_t*>(g.packed_b),
             .tile = two ? unit_kernels().split : unit_kernels().bf16,
             .pack_a = pack,
             .step_units = two ? 2 * kChunk : kChunk,
             .finish = finish},
            scratch, pool);
}

namespace {
std::atomic<bool> pretended = false;
}
bool has_bf16_tiles() { return pretended || unit_kernels().depth != 0; }
void detail::pretend_bf16_tiles(bool pretend) { pretended = pretend; }

bool has_bf16_products() { return has_bf16_tiles() || detail::avx512_bf16_tile() != nullptr; }

}  // namespace hologram::backends::dense
