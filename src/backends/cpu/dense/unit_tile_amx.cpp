// Tiles of AMX: 16 x 64 bytes a register, eight registers. Sums take four of them (32 x 32
// results), two hold rows of A and two hold columns of B.
#include <algorithm>
#include <atomic>

#include "backends/cpu/dense/tile.h"
#include "backends/cpu/dense/unit_ahead.h"
#include "backends/cpu/dense/unit_tile.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace hologram::backends::dense {
namespace {

#define HOLOGRAM_AMX __attribute__((target("amx-tile,amx-bf16,amx-int8,avx512f")))

constexpr ptrdiff_t kRowBytes = 64;
constexpr size_t kTileUnits = kChunk * kChunk;

// All eight registers are 16 rows of 64 bytes, always: a shape costs more to change than the unused
// rows of a tile cost to multiply.
HOLOGRAM_AMX void begin_tiles() {
  struct alignas(64) {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  } config;
  for (int i = 0; i < 8; ++i) config.row_bytes[i] = kRowBytes, config.rows[i] = kChunk;
  // The compiler believes that loading reads eight bytes of it.
  asm volatile("" ::"r"(&config) : "memory");
  _tile_loadconfig(&config);
}
HOLOGRAM_AMX void end_tiles() { _tile_release(); }

enum class Product { int8, bf16 };

// The four sums of A tiles 4, 5 and B tiles 6, 7. Macros: register numbers are part of the opcode.
#define HOLOGRAM_ONE_PRODUCT(sum, a, b)    \
  if constexpr (kProduct == Product::int8) \
    _tile_dpbusd(sum, a, b);               \
  else                                     \
    _tile_dpbf16ps(sum, a, b)
#define HOLOGRAM_MULTIPLY(multiply) \
  multiply(0, 4, 6);                \
  if constexpr (kB == 2) {          \
    multiply(1, 4, 7);              \
  }                                 \
  if constexpr (kA == 2) {          \
    multiply(2, 5, 6);              \
    if constexpr (kB == 2) {        \
      multiply(3, 5, 7);            \
    }                               \
  }

template <Product kProduct, int kA, int kB>
HOLOGRAM_AMX inline __attribute__((always_inline)) void multiply_tiles() {
  if constexpr (kProduct == Product::int8) {
    HOLOGRAM_MULTIPLY(_tile_dpbusd)
  } else {
    HOLOGRAM_MULTIPLY(_tile_dpbf16ps)
  }
}

template <int kA>
HOLOGRAM_AMX inline __attribute__((always_inline)) void load_a(const uint32_t* a,
                                                               size_t row = kChunk) {
  _tile_loadd(4, a, static_cast<ptrdiff_t>(row * sizeof(uint32_t)));
  if constexpr (kA == 2)
    _tile_loadd(5, a + kChunk * row, static_cast<ptrdiff_t>(row * sizeof(uint32_t)));
}
template <int kB>
HOLOGRAM_AMX inline __attribute__((always_inline)) void load_b(const uint32_t* b) {
  _tile_loadd(6, b, kB * kRowBytes);
  if constexpr (kB == 2) _tile_loadd(7, b + kChunk, kB * kRowBytes);
}

// kA x kB register tiles: up to 16 kA rows, 16 kB columns.
template <int kA, int kB>
HOLOGRAM_AMX inline __attribute__((always_inline)) void load_sums(const UnitTile& tile) {
  if (!tile.add) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    return;
  }
  const auto* sums = static_cast<const uint32_t*>(tile.sums);
  _tile_loadd(0, sums, kB * kRowBytes);
  if constexpr (kB == 2) _tile_loadd(1, sums + kChunk, kB * kRowBytes);
  if constexpr (kA == 2) {
    _tile_loadd(2, sums + kB * kTileUnits, kB * kRowBytes);
    if constexpr (kB == 2) _tile_loadd(3, sums + kB * kTileUnits + kChunk, kB * kRowBytes);
  }
}
template <int kA, int kB>
HOLOGRAM_AMX inline __attribute__((always_inline)) void store_sums(const UnitTile& tile) {
  if (tile.meanwhile) (*tile.meanwhile)();
  auto* sums = static_cast<uint32_t*>(tile.sums);
  _tile_stored(0, sums, kB * kRowBytes);
  if constexpr (kB == 2) _tile_stored(1, sums + kChunk, kB * kRowBytes);
  if constexpr (kA == 2) {
    _tile_stored(2, sums + kB * kTileUnits, kB * kRowBytes);
    if constexpr (kB == 2) _tile_stored(3, sums + kB * kTileUnits + kChunk, kB * kRowBytes);
  }
}

template <Product kProduct, int kA, int kB>
HOLOGRAM_AMX void run_units(const UnitTile& tile) {
  load_sums<kA, kB>(tile);
  const size_t b_step = tile.width * kChunk;
  const uint32_t* b = tile.b;
  const size_t whole = tile.units / kChunk;
  const auto a_row = static_cast<ptrdiff_t>(tile.a_row * sizeof(uint32_t));
  UnitAhead ahead(tile, whole);
  for (size_t c = 0; c < whole; ++c, b += b_step) {
    // Each load before the product that first needs it.
    const uint32_t* a = tile.chunk(c);
    _tile_loadd(6, b, kB * kRowBytes);
    _tile_loadd(4, a, a_row);
    HOLOGRAM_ONE_PRODUCT(0, 4, 6);
    if constexpr (kB == 2) {
      _tile_loadd(7, b + kChunk, kB * kRowBytes);
      HOLOGRAM_ONE_PRODUCT(1, 4, 7);
    }
    if constexpr (kA == 2) {
      _tile_loadd(5, a + kChunk * tile.a_row, a_row);
      HOLOGRAM_ONE_PRODUCT(2, 5, 6);
    }
    ahead.advance();
    if constexpr (kA == 2 && kB == 2) {
      HOLOGRAM_ONE_PRODUCT(3, 5, 7);
    }
  }
  if (const size_t rest = tile.units % kChunk) {
    // Rows of B beyond the last would be another panel's: zeros instead, and zeros of A with them.
    const uint32_t* a = tile.chunk(whole);
    alignas(64) uint32_t rows[2 * kTileUnits] = {}, columns[2 * kTileUnits] = {};
    for (size_t r = 0; r < tile.rows; ++r)
      std::memcpy(rows + r * kChunk, a + r * kChunk, rest * sizeof(uint32_t));
    std::memcpy(columns, b, rest * tile.width * sizeof(uint32_t));
    asm volatile("" ::: "memory");
    load_a<kA>(rows);
    load_b<kB>(columns);
    multiply_tiles<kProduct, kA, kB>();
  }
  store_sums<kA, kB>(tile);
}

// Twelve products for eight loads: low x high, high x high, high x low.
template <int kA, int kB>
HOLOGRAM_AMX void run_split(const UnitTile& tile) {
  load_sums<kA, kB>(tile);
  const size_t b_part = tile.width * kChunk, pairs = tile.units / (2 * kChunk);
  const ptrdiff_t a_part = tile.low();
  const uint32_t* b = tile.b;
  UnitAhead ahead(tile, pairs);
  for (size_t c = 0; c < pairs; ++c, b += 2 * b_part) {
    const uint32_t* a = tile.pair(c);
    load_a<kA>(a + a_part, tile.a_row);
    load_b<kB>(b);
    ahead.advance();
    multiply_tiles<Product::bf16, kA, kB>();
    load_a<kA>(a, tile.a_row);
    multiply_tiles<Product::bf16, kA, kB>();
    load_b<kB>(b + b_part);
    multiply_tiles<Product::bf16, kA, kB>();
  }
  store_sums<kA, kB>(tile);
}

// What a tile will read, brought into the first cache.
HOLOGRAM_AMX inline __attribute__((always_inline)) void bring_near(const uint32_t* tile) {
#pragma GCC unroll 16
  for (size_t row = 0; row < kChunk; ++row) _mm_prefetch(tile + row * kChunk, _MM_HINT_T0);
}

// As run_split<2, 2>, each load before the product that first needs it, and with the rows of the
// next step brought near: products of parts leave time for that.
HOLOGRAM_AMX void run_split_near(const UnitTile& tile) {
  load_sums<2, 2>(tile);
  constexpr size_t kPart = 2 * kTileUnits;  // of B
  const size_t pairs = tile.units / (2 * kChunk);
  const ptrdiff_t row = static_cast<ptrdiff_t>(tile.a_row * sizeof(uint32_t));
  const ptrdiff_t low = tile.low(), second = static_cast<ptrdiff_t>(kChunk * tile.a_row);
  const uint32_t* b = tile.b;
  UnitAhead ahead(tile, pairs);
  for (size_t c = 0; c < pairs; ++c, b += 2 * kPart) {
    const uint32_t* a = tile.pair(c);
    const uint32_t* next = tile.pair(std::min(c + 1, pairs - 1));
    const uint32_t* next_b = b + (c + 1 < pairs ? 2 * kPart : 0);
    _tile_loadd(6, b, 2 * kRowBytes);
    _tile_loadd(4, a + low, row);
    _tile_dpbf16ps(0, 4, 6);
    bring_near(next);
    _tile_loadd(7, b + kChunk, 2 * kRowBytes);
    _tile_dpbf16ps(1, 4, 7);
    bring_near(next + kTileUnits);
    _tile_loadd(5, a + low + second, row);
    _tile_loadd(4, a, row);
    _tile_dpbf16ps(2, 5, 6);
    bring_near(next + low);
    _tile_dpbf16ps(3, 5, 7);
    bring_near(next + low + kTileUnits);
    _tile_loadd(5, a + second, row);
    _tile_dpbf16ps(0, 4, 6);
    bring_near(next_b);
    _tile_dpbf16ps(1, 4, 7);
    bring_near(next_b + kTileUnits);
    _tile_dpbf16ps(2, 5, 6);
    _tile_loadd(6, b + kPart, 2 * kRowBytes);
    _tile_dpbf16ps(3, 5, 7);
    ahead.advance();
    _tile_dpbf16ps(0, 4, 6);
    bring_near(next_b + kPart);
    _tile_loadd(7, b + kPart + kChunk, 2 * kRowBytes);
    _tile_dpbf16ps(2, 5, 6);
    bring_near(next_b + kPart + kTileUnits);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
  store_sums<2, 2>(tile);
}

// Registers 0 to 3 as sums of digits: 0, 1 and 2, 3 are `second` units apart, 0 and 2 kDigitSums.
template <int kCount>
HOLOGRAM_AMX inline __attribute__((always_inline)) void load_digit_sums(const UnitTile& tile,
                                                                        const uint32_t* sums,
                                                                        size_t second) {
  if (!tile.add) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    return;
  }
  const auto row = static_cast<ptrdiff_t>(tile.width * sizeof(uint32_t));
  _tile_loadd(0, sums, row);
  _tile_loadd(2, sums + kDigitSums, row);
  if constexpr (kCount == 2) {
    _tile_loadd(1, sums + second, row);
    _tile_loadd(3, sums + kDigitSums + second, row);
  }
}
template <int kCount>
HOLOGRAM_AMX inline __attribute__((always_inline)) void store_digit_sums(const UnitTile& tile,
                                                                         uint32_t* sums,
                                                                         size_t second) {
  const auto row = static_cast<ptrdiff_t>(tile.width * sizeof(uint32_t));
  _tile_stored(0, sums, row);
  _tile_stored(2, sums + kDigitSums, row);
  if constexpr (kCount == 2) {
    _tile_stored(1, sums + second, row);
    _tile_stored(3, sums + kDigitSums + second, row);
  }
}

// Upper by upper digits and the two mixed products have sums of their own, so 16 rows at a time:
// six products for six loads.
template <int kB>
HOLOGRAM_AMX void run_digits(const UnitTile& tile) {
  constexpr size_t kPart = kB * kTileUnits;  // of B
  const size_t pairs = tile.units / (2 * kChunk);
  const ptrdiff_t low = tile.low(), a_row = static_cast<ptrdiff_t>(tile.a_row * sizeof(uint32_t));
  UnitAhead ahead(tile, 2 * pairs);
  for (size_t row = 0; row < tile.rows; row += kChunk) {
    uint32_t* sums = static_cast<uint32_t*>(tile.sums) + row * tile.width;
    load_digit_sums<kB>(tile, sums, kChunk);
    const uint32_t* b = tile.b;
    for (size_t c = 0; c < pairs; ++c, b += 2 * kPart) {
      const uint32_t* a = tile.pair(c) + row * tile.a_row;
      _tile_loadd(4, a, a_row);
      _tile_loadd(6, b, kB * kRowBytes);
      _tile_dpbssd(0, 4, 6);
      _tile_loadd(5, a + low, a_row);
      _tile_dpbssd(2, 5, 6);
      if constexpr (kB == 2) {
        _tile_loadd(7, b + kChunk, kB * kRowBytes);
        _tile_dpbssd(1, 4, 7);
      }
      _tile_loadd(6, b + kPart, kB * kRowBytes);
      if constexpr (kB == 2) {
        _tile_dpbssd(3, 5, 7);
      }
      ahead.advance();
      _tile_dpbssd(2, 4, 6);
      if constexpr (kB == 2) {
        _tile_loadd(7, b + kPart + kChunk, kB * kRowBytes);
        _tile_dpbssd(3, 4, 7);
      }
    }
    if (row == 0 && tile.meanwhile) (*tile.meanwhile)();
    store_digit_sums<kB>(tile, sums, kChunk);
  }
}

// Of 32 rows and 16 columns: likewise six products for six loads, where 16 rows at a time would
// take eight.
HOLOGRAM_AMX void run_tall_digits(const UnitTile& tile) {
  constexpr size_t kPart = kTileUnits;
  const size_t pairs = tile.units / (2 * kChunk);
  const ptrdiff_t low = tile.low(), a_row = static_cast<ptrdiff_t>(tile.a_row * sizeof(uint32_t));
  const ptrdiff_t second = static_cast<ptrdiff_t>(kChunk * tile.a_row);
  UnitAhead ahead(tile, pairs);
  load_digit_sums<2>(tile, static_cast<uint32_t*>(tile.sums), kTileUnits);
  const uint32_t* b = tile.b;
  for (size_t c = 0; c < pairs; ++c, b += 2 * kPart) {
    const uint32_t* a = tile.pair(c);
    _tile_loadd(6, b, kRowBytes);
    _tile_loadd(4, a, a_row);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(7, b + kPart, kRowBytes);
    _tile_dpbssd(2, 4, 7);
    _tile_loadd(5, a + second, a_row);
    _tile_dpbssd(1, 5, 6);
    _tile_loadd(4, a + low, a_row);
    _tile_dpbssd(3, 5, 7);
    ahead.advance();
    _tile_dpbssd(2, 4, 6);
    _tile_loadd(5, a + low + second, a_row);
    _tile_dpbssd(3, 5, 6);
  }
  if (tile.meanwhile) (*tile.meanwhile)();
  store_digit_sums<2>(tile, static_cast<uint32_t*>(tile.sums), kTileUnits);
}

// One product of 32 rows and 32 columns, of 64 digits each: four products for four loads. `next`
// is the B of the product that follows, brought near meanwhile.
HOLOGRAM_AMX inline __attribute__((always_inline)) void multiply_digits(
    const uint32_t* a, ptrdiff_t a_row, ptrdiff_t second, const uint32_t* b, const uint32_t* next) {
  _tile_loadd(6, b, 2 * kRowBytes);
  _tile_loadd(4, a, a_row);
  _tile_dpbssd(0, 4, 6);
  bring_near(next);
  _tile_loadd(7, b + kChunk, 2 * kRowBytes);
  _tile_dpbssd(1, 4, 7);
  bring_near(next + kTileUnits);
  _tile_loadd(5, a + second, a_row);
  _tile_dpbssd(2, 5, 6);
  _tile_dpbssd(3, 5, 7);
}

// As many loads and products as run_digits, but all 32 rows at a time, upper digits first and mixed
// ones in a second pass: three quarters of B's bytes for half as many again of A's, which are near
// where A is an image.
HOLOGRAM_AMX void run_image_digits(const UnitTile& tile) {
  constexpr size_t kPart = 2 * kTileUnits;
  const size_t pairs = tile.units / (2 * kChunk);
  const ptrdiff_t low = tile.low(), a_row = static_cast<ptrdiff_t>(tile.a_row * sizeof(uint32_t));
  const ptrdiff_t second = static_cast<ptrdiff_t>(kChunk * tile.a_row);
  UnitAhead ahead(tile, pairs);
  load_sums<2, 2>(tile);
  const uint32_t* b = tile.b;
  for (size_t c = 0; c < pairs; ++c, b += 2 * kPart)
    multiply_digits(tile.pair(c), a_row, second, b, c + 1 < pairs ? b + 2 * kPart : tile.b);
  store_sums<2, 2>(tile);
  UnitTile cross = tile;
  cross.sums = static_cast<uint32_t*>(tile.sums) + kDigitSums;
  cross.meanwhile = nullptr;
  load_sums<2, 2>(cross);
  b = tile.b;
  for (size_t c = 0; c < pairs; ++c, b += 2 * kPart) {
    const uint32_t* a = tile.pair(c);
    multiply_digits(a + low, a_row, second, b, b + kPart);
    ahead.advance();
    multiply_digits(a, a_row, second, b + kPart, c + 1 < pairs ? b + 2 * kPart : tile.b);
  }
  store_sums<2, 2>(cross);
}

template <Product kProduct>
void run_any(const UnitTile& tile) {
  const bool two_a = tile.rows > kChunk, two_b = tile.width > kChunk;
  if (two_a) return two_b ? run_units<kProduct, 2, 2>(tile) : run_units<kProduct, 2, 1>(tile);
  return two_b ? run_units<kProduct, 1, 2>(tile) : run_units<kProduct, 1, 1>(tile);
}
void run_any_split(const UnitTile& tile) {
  const bool two_a = tile.rows > kChunk, two_b = tile.width > kChunk;
  // Rows of a first layer overlap: there is little to bring.
  if (two_a && two_b && tile.a_row == kChunk) return run_split_near(tile);
  if (two_a) return two_b ? run_split<2, 2>(tile) : run_split<2, 1>(tile);
  return two_b ? run_split<1, 2>(tile) : run_split<1, 1>(tile);
}

void run_any_digits(const UnitTile& tile) {
  const bool two_a = tile.rows > kChunk, two_b = tile.width > kChunk;
  if (two_a && two_b && tile.steps) return run_image_digits(tile);
  if (two_a && !two_b) return run_tall_digits(tile);
  return two_b ? run_digits<2>(tile) : run_digits<1>(tile);
}

// The CPU has the instructions, and the system keeps the registers for processes that ask.
bool find_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  if ((d & (kBf16 | kTile | kInt8)) != (kBf16 | kTile | kInt8)) return false;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

std::atomic<bool> amx_allowed = true;

}  // namespace

namespace detail {
bool use_amx(UnitKernels& kernels) {
  static const bool found = find_amx();
  if (!found || !amx_allowed) return false;
  kernels.rows = 2 * kChunk;
  kernels.int8 = &run_any<Product::int8>;
  kernels.bf16 = &run_any<Product::bf16>;
  kernels.split = &run_any_split;
  kernels.digits = &run_any_digits;
  // 16 KiB of a panel: what stays in the first cache beside the rows of A that pass through it.
  kernels.depth = 128;
  kernels.whole = 1152;
  kernels.begin = &begin_tiles;
  kernels.end = &end_tiles;
  return true;
}
void allow_amx(bool allowed) { amx_allowed = allowed; }
}  // namespace detail

}  // namespace hologram::backends::dense

#else

namespace hologram::backends::dense::detail {
bool use_amx(UnitKernels&) { return false; }
void allow_amx(bool) {}
}  // namespace hologram::backends::dense::detail

#endif
