// UnitTile: the register tile of narrow types. A unit is 4 bytes: four 8-bit values or two bf16.
// The sums of `rows` x (16 or 32) columns are left in a buffer for the caller to finish.
//
//   sums(row, column) = sum over units u of dot(a(row, u), b(u, column))
//   a: [chunk of 16 units][row][16], b: [unit][width]
//
// Internal to the products of narrow types.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hologram::backends::dense {

struct UnitTile {
  const uint32_t* a = nullptr;
  const uint32_t* b = nullptr;
  size_t units = 0;
  size_t rows = 0;
  size_t width = 0;      // columns of the panel: 16 or 32
  void* sums = nullptr;  // [rows][width] of int32_t or float
};

struct UnitKernels {
  size_t rows;                    // the most a tile may have; at most kMaxTileRows
  void (*int8)(const UnitTile&);  // unsigned a, signed b, int32_t sums
  void (*bf16)(const UnitTile&);  // float sums
};

// For this CPU: dot-product instructions where it has them (VNNI, AVX512_BF16), otherwise the same
// sums from wider multiplications. Integer sums are exact either way.
UnitKernels unit_kernels();

namespace detail {
// Defined where the compiler can be told to use the instructions; null where the CPU lacks them.
using UnitFunction = void (*)(const UnitTile&);
UnitFunction vnni_tile();
UnitFunction avx512_bf16_tile();
}  // namespace detail

}  // namespace hologram::backends::dense
