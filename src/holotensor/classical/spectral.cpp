// spectral: the coefficients of a 2-D DCT in tiles, the most energetic tiles first.
//
// Own parameters: u64 number of essential tiles; the tiles' levels (half octaves of their mean
// energy), one byte each, compressed: varint size, u8 Codec, bytes. Tiles are ordered by level and
// then by place, so the levels alone say where every coefficient goes: the first tiles are the
// essential part, the others are dealt one by one over the fragments.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "holotensor/classical/classical.h"
#include "holotensor/classical/classical_decoder.h"
#include "holotensor/classical/classical_scheme.h"
#include "holotensor/classical/dct.h"
#include "holotensor/fragment.h"

namespace hologram::holotensor {
namespace {

constexpr uint64_t kMaxTiles = 1 << 19;  // their levels fit in the parameters

// How a matrix of coefficients is cut into tiles.
struct Tiling {
  MatrixShape shape;
  size_t tile_rows = 1, tile_columns = 1, down = 0, across = 0;

  explicit Tiling(MatrixShape matrix) : shape(matrix) {
    if (matrix.size() == 0) return;
    size_t side = 16;
    do {
      tile_rows = std::min(side, matrix.rows);
      tile_columns = std::min(std::max(side, side * side / tile_rows), matrix.columns);
      down = (matrix.rows + tile_rows - 1) / tile_rows;
      across = (matrix.columns + tile_columns - 1) / tile_columns;
      side *= 2;
    } while (down * across > kMaxTiles);
  }

  size_t count() const { return down * across; }
  struct Box {
    size_t row, column, rows, columns;
    size_t size() const { return rows * columns; }
  };
  Box box(size_t tile) const {
    const size_t row = tile / across * tile_rows, column = tile % across * tile_columns;
    return {row, column, std::min(tile_rows, shape.rows - row),
            std::min(tile_columns, shape.columns - column)};
  }
};

class SpectralSynthesis final : public Synthesis {
 public:
  SpectralSynthesis(Tiling tiling, std::span<const uint8_t> levels, uint64_t essential,
                    size_t fragments)
      : tiling_(tiling), tiles_(fragments + 1), sizes_(fragments + 1) {
    std::vector<uint32_t> order(levels.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) { return levels[a] > levels[b]; });
    for (size_t i = 0; i < order.size(); ++i) {
      const size_t part = i < essential ? fragments : (i - essential) % fragments;
      tiles_[part].push_back(order[i]);
      sizes_[part] += tiling_.box(order[i]).size();
    }
  }

  uint64_t part_size(size_t part) const override { return sizes_[part]; }

  Status synthesise(std::span<const Part> parts, double step, std::span<float> out,
                    ThreadPool& pool) const override {
    std::ranges::fill(out, 0.0f);
    pool.parallel_for(parts.size(), 1, [&](size_t begin, size_t end) {
      for (size_t part = begin; part < end; ++part) {
        if (!parts[part].empty()) place(tiles_[part], parts[part], step, out);
      }
    });
    return dct_2d(out, tiling_.shape.rows, tiling_.shape.columns, DctDirection::inverse, pool);
  }

  // A part's coefficients, in its order.
  void collect(size_t part, std::span<const float> coefficients, std::span<float> out) const {
    size_t at = 0;
    for (const uint32_t tile : tiles_[part]) {
      const Tiling::Box box = tiling_.box(tile);
      for (size_t i = 0; i < box.rows; ++i, at += box.columns) {
        const float* row = &coefficients[(box.row + i) * tiling_.shape.columns + box.column];
        std::copy_n(row, box.columns, &out[at]);
      }
    }
  }

 private:
  void place(std::span<const uint32_t> tiles, Part numbers, double step,
             std::span<float> out) const {
    size_t at = 0;
    for (const uint32_t tile : tiles) {
      const Tiling::Box box = tiling_.box(tile);
      for (size_t i = 0; i < box.rows; ++i) {
        float* row = &out[(box.row + i) * tiling_.shape.columns + box.column];
        for (size_t j = 0; j < box.columns; ++j) row[j] = static_cast<float>(numbers[at++] * step);
      }
    }
  }

  Tiling tiling_;
  std::vector<std::vector<uint32_t>> tiles_;  // of each part, in order; the last is essential
  std::vector<uint64_t> sizes_;
};

std::vector<double> tile_energies(const Tiling& tiling, std::span<const float> coefficients) {
  std::vector<double> energies(tiling.count());
  for (size_t tile = 0; tile < energies.size(); ++tile) {
    const Tiling::Box box = tiling.box(tile);
    double sum = 0;
    for (size_t i = 0; i < box.rows; ++i) {
      const float* row = &coefficients[(box.row + i) * tiling.shape.columns + box.column];
      for (size_t j = 0; j < box.columns; ++j) sum += double{row[j]} * row[j];
    }
    energies[tile] = sum / static_cast<double>(box.size());
  }
  return energies;
}

// Half octaves; 0 is silence, 200 a mean energy of 1.
uint8_t level_of(double energy) {
  if (!(energy > 0)) return 0;
  return static_cast<uint8_t>(std::clamp(std::round(200 + 2 * std::log2(energy)), 1.0, 255.0));
}

// Tiles worth repeating in every fragment: at least 16 times the mean energy, and not more than a
// sixteenth of all, so that white noise repeats (almost) nothing. The loudest always is.
uint64_t essential_count(std::span<const double> energies) {
  const double mean = std::accumulate(energies.begin(), energies.end(), 0.0) /
                      static_cast<double>(std::max<size_t>(1, energies.size()));
  const auto loud = static_cast<uint64_t>(
      std::ranges::count_if(energies, [&](double energy) { return energy >= 16 * mean; }));
  return std::min<uint64_t>(energies.size(),
                            std::clamp<uint64_t>(loud, 1, energies.size() / 16 + 1));
}

class SpectralAnalysis final : public Analysis {
 public:
  SpectralAnalysis(const Tiling& tiling, std::vector<float> coefficients, size_t fragments)
      : coefficients_(std::move(coefficients)), levels_(tiling.count()), essential_(0) {
    const auto energies = tile_energies(tiling, coefficients_);
    std::ranges::transform(energies, levels_.begin(), level_of);
    // A matrix of one tile has nothing to deal but that tile.
    essential_ = energies.size() <= fragments ? 0 : essential_count(energies);
    synthesis_ = std::make_unique<SpectralSynthesis>(tiling, levels_, essential_, fragments);
  }

  const Synthesis& synthesis() const override { return *synthesis_; }

  void write_parameters(ByteWriter& out) const override {
    const Compressed levels = compress(std::as_bytes(std::span(levels_)));
    out.put(essential_);
    out.varint(levels.bytes.size());
    out.put(static_cast<uint8_t>(levels.codec));
    out.bytes(levels.bytes);
  }

  void numbers(size_t part, std::span<float> out) const override {
    synthesis_->collect(part, coefficients_, out);
  }

 private:
  std::vector<float> coefficients_;
  std::vector<uint8_t> levels_;
  uint64_t essential_;
  std::unique_ptr<SpectralSynthesis> synthesis_;
};

class SpectralTransform final : public Transform {
 public:
  SchemeId id() const override { return SchemeId::spectral; }

  Result<std::unique_ptr<Analysis>> analyse(const Matrix& matrix, size_t fragments,
                                            const EncoderOptions&, double, bool,
                                            ThreadPool& pool) const override {
    std::vector<float> coefficients = matrix.scaled;
    HOLOGRAM_CHECK(
        dct_2d(coefficients, matrix.shape.rows, matrix.shape.columns, DctDirection::forward, pool));
    return std::make_unique<SpectralAnalysis>(Tiling(matrix.shape), std::move(coefficients),
                                              fragments);
  }

  Result<std::unique_ptr<Synthesis>> restore(MatrixShape shape, size_t fragments, uint64_t,
                                             ByteReader& in) const override {
    const Tiling tiling(shape);
    const auto essential = in.get<uint64_t>();
    const uint64_t stored = in.varint();
    const auto codec = static_cast<Codec>(in.get<uint8_t>());
    const auto bytes = in.bytes(stored);
    if (!in.ok() || essential > tiling.count()) {
      return fail(ErrorCode::corrupt, "the tiles of a spectral tensor make no sense");
    }
    HOLOGRAM_TRY(const auto levels, decompress(codec, bytes, tiling.count()));
    if (levels.size() != tiling.count()) {
      return fail(ErrorCode::corrupt, "a spectral tensor of {} tiles has {} levels", tiling.count(),
                  levels.size());
    }
    const std::span view(reinterpret_cast<const uint8_t*>(levels.data()), levels.size());
    return std::make_unique<SpectralSynthesis>(tiling, view, essential, fragments);
  }
};

const Transform& transform() {
  static const SpectralTransform it;
  return it;
}

}  // namespace

const Scheme& spectral_scheme() {
  static const ClassicalScheme scheme(transform());
  return scheme;
}

Result<std::unique_ptr<SchemeDecoder>> spectral_decoder(const TensorInfo& info) {
  return make_classical_decoder(transform(), info);
}

}  // namespace hologram::holotensor
