// The driver that products of narrow types share: packs A by tiles, runs UnitTiles over fixed
// blocks, hands the sums of each to `finish`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/dense/tile.h"
#include "backends/cpu/dense/unit_tile.h"
#include "support/function_ref.h"
#include "support/thread_pool.h"

namespace hologram::backends::dense {

struct UnitGemm {
  size_t m = 0, n = 0, units = 0;
  const uint32_t* packed_b = nullptr;  // [panel][unit][32], the last panel 16 wide where enough
  void (*tile)(const UnitTile&) = nullptr;
  // Writes rows row..row+height of A as [chunk][height][16] units; called once a tile.
  FunctionRef<void(size_t row, size_t height, uint32_t* packed)> pack_a;
  // Instead of packing: an image whose rows are `image_row` units apart, see UnitTile.
  const uint32_t* image = nullptr;
  size_t image_row = kChunk;
  const ptrdiff_t* steps = nullptr;
  ptrdiff_t image_low = 0;
  size_t step_units = kChunk;  // of the sum that one step stands for: 16, of two parts 32
  // sums: [rows][width] of the kernel's type, to be rewritten freely.
  FunctionRef<void(size_t row, size_t rows, size_t column, void* sums, size_t width)> finish;

  // Whether a value of A serves several products of a tile: at several kernel positions, or as two
  // parts.
  bool reused() const { return image != nullptr || step_units > kChunk; }
};

size_t unit_gemm_scratch_bytes(size_t m, size_t units);
// Units of packed B.
size_t unit_panel_units(size_t n, size_t units);
void unit_gemm(const UnitGemm& gemm, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
