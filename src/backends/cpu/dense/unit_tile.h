// UnitTile: the register tile of narrow types. A unit is 4 bytes: four 8-bit values or two of 16.
// The sums of `rows` x (16 or 32) columns are left in a buffer for the caller to finish.
//
//   sums(row, column) = sum over units u of dot(a(row, u), b(u, column))
//   a: [chunk of 16 units][row][16], b: [unit][width]
//
// Values of two parts (an f32 as the sum of two bf16) are chunks in turn: the upper parts of 32
// values, then the lower parts of the same 32. The product of two lower parts is left out. Likewise
// values of two digits (16-bit integers as 256 * upper + lower, both signed bytes), 64 a chunk.
//
// Internal to the products of narrow types.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/function_ref.h"

namespace hologram::backends::dense {

struct UnitTile {
  const uint32_t* a = nullptr;
  // Where A is an image: chunk c of the sum starts at a + steps[c] (of its upper parts), its lower
  // parts `a_low` units further. Whole chunks only. Null: chunks follow each other.
  const ptrdiff_t* steps = nullptr;
  ptrdiff_t a_low = 0;
  size_t a_row = 16;  // units from row to row of an image; others than 16 for tiles (AMX), digits,
                      // shorts and int8 of kernels that are `in_place` only
  const uint32_t* b = nullptr;
  size_t units = 0;
  size_t rows = 0;
  size_t width = 0;      // columns of the panel: 16 or 32
  void* sums = nullptr;  // [rows][width] of int32_t or float; of digits see kDigitSums
  // Of shorts: what the sums of each kShortUnits units are multiplied with, [..][32];
  // null: 1.
  const float* run_scales = nullptr;
  const uint32_t* ahead = nullptr;  // what will be read soon, to be brought nearer meanwhile
  size_t ahead_units = 0;
  // Only for kernels that have a `depth`:
  bool add = false;  // to what `sums` holds
  // Called when the products are asked for and before sums are stored; null: nothing to do.
  const FunctionRef<void()>* meanwhile = nullptr;

  const uint32_t* chunk(size_t c) const {
    return a + (steps ? steps[c] : ptrdiff_t(c * rows * 16));
  }
  // The upper parts of 32 values, and from there to the lower parts.
  const uint32_t* pair(size_t c) const {
    return a + (steps ? steps[c] : ptrdiff_t(2 * c * rows * 16));
  }
  ptrdiff_t low() const { return steps ? a_low : ptrdiff_t(rows * 16); }
};

inline constexpr size_t kMaxUnitRows = 32;
inline constexpr size_t kFewUnitRows = 4;
inline constexpr size_t kShortUnits = 8;  // that are added up as integers
inline constexpr size_t kShortRows = 12;  // of a tile of shorts, at most
// From the sums of products of upper digits, as int32_t, to those of the mixed products.
inline constexpr size_t kDigitSums = 1024;
// Rows of A that a kernel may read (and not use) beyond the last.
inline constexpr size_t kUnitRowsBeyond = 16;

using UnitFunction = void (*)(const UnitTile&);

struct UnitKernels {
  size_t rows;          // the most a tile may have; at most kMaxUnitRows
  UnitFunction int8;    // unsigned a, signed b, int32_t sums
  UnitFunction bf16;    // float sums
  UnitFunction split;   // float sums of values of two parts; an even number of whole chunks
  UnitFunction digits;  // two sums a result, of values of two digits
  // Float sums of 16-bit integers, whole chunks, at most kShortRows: each half of a chunk is added
  // up as an int32_t, which its values must leave room for (see short_values.h).
  UnitFunction shorts;
  // int8 of at most kFewUnitRows rows where those are better off without tiles, which would
  // multiply mostly zeros: as for shorts, no depth, begin or end are for it. Null: int8 is as good.
  UnitFunction few = nullptr;
  // Units after which the sums are put down, so that a panel of that depth stays near for all
  // tiles of a block; 0: never. `whole`: the same where the left side is read more than once.
  size_t depth = 0, whole = 0;
  // Whether int8 takes its left side as it lies in memory, sums that end within a chunk too.
  bool in_place = false;
  bool avx512 = false;  // code for these vectors runs
  // Around the tiles that one thread runs; null where nothing is to be done.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
};

// For this CPU: tiles (AMX) or dot-product instructions (VNNI, AVX512_BF16) where it has them,
// otherwise the same sums from wider multiplications. Integer sums are exact either way.
UnitKernels unit_kernels();

// `pixels` chunks of units: each of 16 values of `first` and 16 of `second` (null: zeros) that lie
// `step` floats after those of the chunk before. Of each 32 values the first `count` are used, the
// others are zeros. `high` receives the values rounded to bf16 (to nearest, ties to even), `low`
// (may be null) what they leave, rounded likewise.
void split_pixels(const float* first, const float* second, size_t pixels, size_t step, size_t count,
                  uint32_t* high, uint32_t* low);

// Rows as the right side of a product: unit (u, j) holds values j of rows 2u and 2u + 1. Writes
// `width` (16 or 32) units for each of align_up(rows, 32) / 2 pairs, zeros beyond `rows` and
// `columns`. `low` (may be null) receives what `high` leaves; both go by chunks of 16 pairs, which
// start `chunk` units apart.
void split_row_pairs(const float* from, size_t step, size_t rows, size_t columns, size_t width,
                     size_t chunk, uint32_t* high, uint32_t* low);

namespace detail {
// Defined where the compiler can be told to use the instructions; null where the CPU lacks them.
UnitFunction vnni_tile();
UnitFunction vnni_shorts_tile();
UnitFunction avx512_bf16_tile();
// Replaces the kernels by those of AMX and says true where the CPU and the system have it.
bool use_amx(UnitKernels& kernels);
using SplitFunction = void (*)(const float*, const float*, size_t, size_t, size_t, uint32_t*,
                               uint32_t*);
SplitFunction avx512_bf16_split();
using PairFunction = void (*)(const float*, size_t, size_t, size_t, size_t, size_t, uint32_t*,
                              uint32_t*);
PairFunction avx512_bf16_pairs();
// `count` pixels of up to four channels, which lie `stride` floats apart, as two units each; `low`
// may be null.
using InterleaveFunction = void (*)(const float* from, size_t stride, size_t channels, size_t count,
                                    uint32_t* high, uint32_t* low);
InterleaveFunction avx512_bf16_interleave();
// For tests on a CPU that has it.
void allow_amx(bool allowed);
}  // namespace detail

}  // namespace hologram::backends::dense
