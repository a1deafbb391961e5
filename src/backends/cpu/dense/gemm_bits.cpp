#include "backends/cpu/dense/gemm_bits.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/dense/bits_tile.h"
#include "backends/cpu/dense/row_tiles.h"
#include "backends/cpu/dense/tile.h"

namespace hologram::backends::dense {
namespace {

constexpr size_t kTogether = 16;           // panels
constexpr size_t kSmallWork = 128 * 1024;  // multiply-adds below which one thread is enough

size_t panels_of(const BitsForm& form) { return (form.n + kPanelColumns - 1) / kPanelColumns; }

size_t panel_bytes(const BitsForm& form) {
  const size_t head = (form.zeros ? 2 : 1) * kPanelColumns * sizeof(float);
  size_t bytes = 0;
  for (size_t g = 0; g < form.groups(); ++g)
    bytes += head + bits_code_bytes(form.bits,
                                    std::min(form.group_rows(), form.k - g * form.group_rows()));
  return bytes;
}

// Of a row of A as integers.
size_t row_words(const BitsForm& form) {
  return form.k == 0 ? 0 : integer_words(form.k, form.group_rows(), form.bits);
}

}  // namespace

size_t packed_b_bits_bytes(const BitsForm& form) { return panels_of(form) * panel_bytes(form); }

void pack_b_bits(const BitsForm& form, const BitsWeights& w, std::byte* packed) {
  const size_t groups = form.groups(), middle = form.bits == 8 ? 128 : 8;
  const auto code = [&](size_t k, size_t column) -> uint8_t {
    if (k >= form.k || column >= form.n) return static_cast<uint8_t>(middle);
    return w.codes[w.transposed ? column * form.k + k : k * form.n + column];
  };
  for (size_t first = 0; first < form.n; first += kPanelColumns)
    for (size_t g = 0; g < groups; ++g) {
      auto* head = reinterpret_cast<float*>(packed);
      for (size_t j = 0; j < kPanelColumns; ++j) {
        const size_t column = first + j;
        const bool inside = column < form.n;
        head[j] = inside ? w.scales[column * groups + g] : 0.0f;
        if (!form.zeros) continue;
        head[kPanelColumns + j] =
            inside && w.zeros ? w.zeros[column * groups + g] - static_cast<float>(middle) : 0.0f;
      }
      packed += (form.zeros ? 2 : 1) * kPanelColumns * sizeof(float);
      const size_t begin = g * form.group_rows(),
                   rows = std::min(form.group_rows(), form.k - begin);
      const auto at = [&](size_t k, size_t j) {
        return k < rows ? code(begin + k, first + j) : static_cast<uint8_t>(middle);
      };
      std::byte* to = packed;
      const size_t columns = kPanelColumns / (form.bits == 8 ? 1 : 2);
      for (size_t k = 0; k < rows; k += 4)
        for (size_t j = 0; j < columns; ++j)
          for (size_t i = k; i < k + 4; ++i)
            *to++ = static_cast<std::byte>(
                form.bits == 8 ? at(i, j) : (at(i, j) & 15) | (at(i, columns + j) & 15) << 4);
      packed += bits_code_bytes(form.bits, rows);
    }
}

void pack_b_words(const BitsForm& form, const float* b, size_t ldb, bool transposed,
                  std::byte* packed) {
  constexpr float kLargest = 32767.0f, kSmallest = 1e-30f;  // what is below is 0
  const size_t group = form.group_rows(), row_step = transposed ? 1 : ldb,
               column_step = transposed ? ldb : 1;
  std::memset(packed, 0, packed_b_bits_bytes(form));
  for (size_t first = 0; first < form.n; first += kPanelColumns)
    for (size_t begin = 0; begin < form.k; begin += group) {
      const size_t rows = std::min(group, form.k - begin);
      auto* scales = reinterpret_cast<float*>(packed);
      auto* codes = reinterpret_cast<int16_t*>(scales + kPanelColumns);
      for (size_t j = 0; j < std::min(kPanelColumns, form.n - first); ++j) {
        const float* from = b + begin * row_step + (first + j) * column_step;
        float largest = 0;
        bool finite = true;
        for (size_t k = 0; k < rows; ++k) {
          finite &= std::isfinite(from[k * row_step]);
          largest = std::max(largest, std::abs(from[k * row_step]));
        }
        scales[j] = !finite ? NAN : largest < kSmallest ? 0.0f : largest / kLargest;
        if (!(scales[j] > 0)) continue;
        for (size_t k = 0; k < rows; ++k)
          codes[(k / 2 * kPanelColumns + j) * 2 + k % 2] =
              static_cast<int16_t>(std::nearbyint(from[k * row_step] / scales[j]));
      }
      packed += kPanelColumns * sizeof(float) + bits_code_bytes(form.bits, rows);
    }
}

bool has_word_products() {
  const BitsKernel* vnni = detail::vnni_bits();
  return vnni && bits_kernel().run == vnni->run;
}

size_t gemm_bits_scratch_bytes(const GemmBits& g) {
  return g.m * row_words(g.form) * sizeof(uint32_t);
}

void gemm_bits(const GemmBits& g, std::byte* scratch, ThreadPool& pool) {
  if (g.m == 0 || g.form.n == 0) return;
  const BitsKernel kernel = bits_kernel();
  const TileKernel finisher = tile_kernel();
  const size_t panel = panel_bytes(g.form), words = row_words(g.form);
  auto* integers = reinterpret_cast<uint32_t*>(scratch);
  for (size_t row = 0; row < g.m && g.form.k != 0; ++row)
    kernel.pack(g.a + row * g.lda, g.form.k, g.form.group_rows(), g.form.bits,
                integers + row * words);
  const RowTiles tiles(g.m, kernel.rows);
  const auto multiply = [&](size_t p, size_t t, float* sums) {
    kernel.run({.rows = tiles.height(t),
                .integers = integers + tiles.begin(t) * words,
                .integer_row = words,
                .k = g.form.k,
                .group = g.form.group_rows(),
                .bits = g.form.bits,
                .zeros = g.form.zeros,
                .panel = g.packed_b + p * panel,
                .sums = sums});
  };
  const auto finish = [&](size_t p, size_t t, float* sums) {
    const size_t row = tiles.begin(t), column = p * kPanelColumns;
    Tile tile;
    tile.rows = tiles.height(t);
    tile.columns = std::min(kPanelColumns, g.form.n - column);
    tile.row = row;
    tile.column = column;
    tile.epilogue = &g.epilogue;
    tile.lie_in(g.c, g.ldc);
    finisher.finish(tile, sums, kPanelColumns);
  };
  // Rows of one tile read panel after panel, which the finish of each would interrupt.
  const size_t together = tiles.tiles == 1 ? kTogether : 1;
  const auto run = [&](size_t begin, size_t end) {
    alignas(64) float sums[kTogether][kMaxBitsRows * kPanelColumns];
    for (size_t first = begin; first < end; first += together)
      for (size_t t = 0; t < tiles.tiles; ++t) {
        const size_t last = std::min(first + together, end);
        for (size_t p = first; p < last; ++p) multiply(p, t, sums[p - first]);
        for (size_t p = first; p < last; ++p) finish(p, t, sums[p - first]);
      }
  };
  // One row by 16 bits takes half the time that as many products of f32 do.
  const size_t small = g.form.bits == 16 ? 2 * kSmallWork : kSmallWork;
  const unsigned threads = g.m * g.form.n * g.form.k < small ? 1 : 0;
  const size_t panels = panels_of(g.form),
               grain = panels < 4 * together * pool.size() ? 1 : together;
  pool.parallel_for(panels, grain, run, Schedule::dynamic, threads);
}

}  // namespace hologram::backends::dense
