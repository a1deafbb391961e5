#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/cpu/dense/gemm_narrow.h"
#include "backends/cpu/dense/tile.h"
#include "backends/cpu/dense/unit_gemm.h"
#include "support/aligned.h"

namespace hologram::backends::dense {
namespace {

size_t units_of(size_t k) { return (k + 1) / 2; }

// To nearest, ties to even; a NaN stays one.
uint32_t bf16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return (bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded;
}

}  // namespace

size_t packed_b_bf16_bytes(size_t k, size_t n) {
  return unit_panel_units(n, units_of(k)) * sizeof(uint32_t);
}

void pack_b_bf16(size_t k, size_t n, const float* b, size_t ldb, bool transposed,
                 std::byte* packed) {
  const size_t units = units_of(k);
  auto* panels = reinterpret_cast<uint32_t*>(packed);
  std::memset(packed, 0, packed_b_bf16_bytes(k, n));
  for (size_t column = 0; column < n; column += kPanelColumns) {
    const size_t width = std::min(kPanelColumns, align_up(n, kChunk) - column);
    uint32_t* panel = panels + column * units;
    for (size_t i = 0; i < k; ++i)
      for (size_t j = column; j < std::min(n, column + width); ++j)
        panel[i / 2 * width + (j - column)] |= bf16_bits(b[transposed ? j * ldb + i : i * ldb + j])
                                               << (i % 2 * 16);
  }
}

size_t gemm_bf16_scratch_bytes(const GemmBf16& g) {
  return unit_gemm_scratch_bytes(g.m, units_of(g.k));
}

void gemm_bf16(const GemmBf16& g, std::byte* scratch, ThreadPool& pool) {
  const auto pack = [&](size_t row, size_t height, uint32_t* packed) {
    constexpr size_t kValues = kChunk * 2;
    for (size_t i = 0; i < g.k; i += kValues, packed += height * kChunk) {
      const size_t count = std::min(kValues, g.k - i);
      for (size_t r = 0; r < height; ++r) {
        const float* from = g.a + (row + r) * g.lda + i;
        uint32_t* to = packed + r * kChunk;
        for (size_t u = 0; u < count / 2; ++u)
          to[u] = bf16_bits(from[2 * u]) | bf16_bits(from[2 * u + 1]) << 16;
        if (count % 2) to[count / 2] = bf16_bits(from[count - 1]);
      }
    }
  };
  const TileKernel kernel = tile_kernel();
  const auto finish = [&](size_t row, size_t rows, size_t column, void* sums, size_t width) {
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
             .packed_b = reinterpret_cast<const uint32_t*>(g.packed_b),
             .tile = unit_kernels().bf16,
             .pack_a = pack,
             .finish = finish},
            scratch, pool);
}

}  // namespace hologram::backends::dense
