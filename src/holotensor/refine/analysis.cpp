#include "holotensor/refine/analysis.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace hologram::holotensor::refine {
namespace {

// Groups a range of blocks at a time, so that buffers are made once a range.
size_t grain_for(size_t blocks, ThreadPool& pool) {
  return std::clamp<size_t>(blocks / (size_t{4} * pool.size()), 1, 64);
}

std::vector<int16_t> scales_of(const NumberFormat& format, std::span<const std::byte> source,
                               uint64_t elements, ThreadPool& pool) {
  std::vector<int16_t> scales((elements + kGroup - 1) / kGroup);
  const auto load = [&](size_t g, float* carriers) {
    const size_t count = std::min<uint64_t>(kGroup, elements - g * kGroup);
    load_carriers(format, source.data() + g * kGroup * format.bytes, count, carriers);
  };
  // The usual scale: the root of the mean square over a sample.
  double squares = 0, count = 0;
  float carriers[kGroup];
  for (size_t g = 0; g < scales.size(); g += std::max<size_t>(1, scales.size() / 512)) {
    load(g, carriers);
    for (const float carrier : carriers) {
      if (!std::isfinite(carrier) || carrier == 0) continue;
      squares += static_cast<double>(carrier) * carrier;
      ++count;
    }
  }
  int reference = kNoScale;
  if (squares > 0) {
    std::frexp(squares / count, &reference);
    reference = (reference - 1) >> 1;
  }
  pool.parallel_for(scales.size(), 256, [&](size_t begin, size_t end) {
    float carriers[kGroup];
    for (size_t g = begin; g < end; ++g) {
      load(g, carriers);
      scales[g] = static_cast<int16_t>(scale_of(format, carriers, reference));
    }
  });
  return scales;
}

// Where values lie inside the large cells of the first planes: the mean over a sample of groups.
void measure_centroids(Analysis& analysis) {
  TensorModel& model = analysis.model;
  const size_t groups = analysis.classes.size();
  if (analysis.elements < kFewElements) return;
  const size_t step = std::max<size_t>(1, groups / 512);
  double sum[kCentroidDepths][kCentroids] = {};
  uint64_t count[kCentroidDepths][kCentroids] = {};
  float carriers[kGroup];
  GroupSplit split;
  for (size_t g = 0; g < groups; g += step) {
    if (analysis.classes[g] == kEmptyClass) continue;
    const Window window = model.window(analysis.classes[g]);
    const size_t elements = std::min<uint64_t>(kGroup, analysis.elements - g * kGroup);
    load_carriers(model.format, analysis.source.data() + g * kGroup * model.format.bytes, elements,
                  carriers);
    split_group(model.format, window, carriers, split);
    for (unsigned i = 0; i < elements; ++i) {
      if (((split.exception[i / 64] | split.zero[i / 64]) >> (i % 64)) & 1) continue;
      // As approximate_carriers() has it: the middle of the last place.
      const bool grid = !model.format.integer && model.format.low_bits == 0;
      const int width = std::bit_width(split.magnitude[i]);
      const double half_ulp =
          grid && width > 0 ? power_of_two(width - model.format.significant - 1) : 0.5;
      for (unsigned depth = 1; depth <= kCentroidDepths && depth < window.planes; ++depth) {
        const unsigned cell_bits = window.planes - depth;
        const uint32_t cell = split.magnitude[i] >> cell_bits;
        if (cell >= kCentroids) break;
        const uint32_t within = split.magnitude[i] & ((1u << cell_bits) - 1);
        sum[depth - 1][cell] += (within + half_ulp) / static_cast<double>(1u << cell_bits);
        ++count[depth - 1][cell];
      }
    }
  }
  for (unsigned d = 0; d < kCentroidDepths; ++d)
    for (unsigned m = 0; m < kCentroids; ++m)
      if (count[d][m] >= 16)
        // In steps of 1/256, as it is stored.
        model.centroid[d][m] = static_cast<float>(
            std::clamp(std::round(sum[d][m] / static_cast<double>(count[d][m]) * 256), 1.0, 255.0) /
            256);
}

}  // namespace

unsigned Analysis::elements_of(size_t block) const {
  return static_cast<unsigned>(
      std::min<uint64_t>(block_elements, elements - block * uint64_t{block_elements}));
}

std::span<const std::byte> Analysis::source_of(size_t block) const {
  const size_t bytes = size_t{block_elements} * model.format.bytes;
  return source.subspan(block * bytes, size_t{elements_of(block)} * model.format.bytes);
}

std::span<const uint8_t> Analysis::classes_of(size_t block) const {
  const size_t per_block = block_elements / kGroup;
  return std::span(classes).subspan(block * per_block, (elements_of(block) + kGroup - 1) / kGroup);
}

Analysis analyse(const NumberFormat& format, std::span<const std::byte> source, uint64_t elements,
                 ThreadPool& pool) {
  Analysis analysis;
  TensorModel& model = analysis.model;
  model.format = format;
  analysis.source = source;
  analysis.elements = elements;
  analysis.block_elements = block_elements(format);
  const auto scales = scales_of(format, source, elements, pool);
  const int largest = *std::max_element(scales.begin(), scales.end());
  model.largest = largest == kNoScale ? 0 : largest;
  model.plane_layers = 1;
  analysis.classes.reserve(scales.size());
  for (const int scale : scales) {
    const unsigned c = scale == kNoScale
                           ? kEmptyClass
                           : std::min(static_cast<unsigned>(model.largest - scale), kMaxClass);
    analysis.classes.push_back(static_cast<uint8_t>(c));
    if (c != kEmptyClass)
      model.plane_layers = std::max(model.plane_layers, c + model.window(c).planes);
  }
  measure_centroids(analysis);
  return analysis;
}

ChunkList encode_chunks(const Analysis& analysis, ThreadPool& pool) {
  ChunkList list;
  list.layers = analysis.model.layers();
  list.blocks.resize(analysis.blocks());
  pool.parallel_for(
      list.blocks.size(), grain_for(list.blocks.size(), pool),
      [&](size_t begin, size_t end) {
        Block block;
        for (size_t b = begin; b < end; ++b) {
          BlockChunks& chunks = list.blocks[b];
          block.reset(analysis.model, analysis.elements_of(b));
          block.split(analysis.source_of(b), analysis.classes_of(b));
          chunks.marks_zeros = block.marks_zeros();
          chunks.bytes.reserve(analysis.source_of(b).size());
          for (unsigned layer = 0; layer < list.layers; ++layer) {
            block.encode(layer, chunks.bytes);
            chunks.ends.push_back(static_cast<uint32_t>(chunks.bytes.size()));
          }
        }
      },
      Schedule::dynamic);
  return list;
}

QualityCurve measure_cuts(const Analysis& analysis, const ChunkList& chunks,
                          std::span<const size_t> cuts, ThreadPool& pool) {
  const size_t blocks = chunks.blocks.size();
  std::vector<std::vector<ErrorSum>> by_block(blocks);
  pool.parallel_for(
      blocks, 1,
      [&](size_t begin, size_t end) {
        for (size_t b = begin; b < end; ++b) {
          std::vector<unsigned> layers;
          for (const size_t cut : cuts) {
            const unsigned count = layers_in(cut, b, blocks);
            if (layers.empty() || layers.back() != count) layers.push_back(count);
          }
          const auto sums = measure_block(analysis, b, chunks.blocks[b].marks_zeros, layers);
          for (const size_t cut : cuts) {
            const auto at =
                std::lower_bound(layers.begin(), layers.end(), layers_in(cut, b, blocks));
            by_block[b].push_back(sums[static_cast<size_t>(at - layers.begin())]);
          }
        }
      },
      Schedule::dynamic);
  QualityCurve curve;
  for (size_t i = 0; i < cuts.size(); ++i) {
    // In block order: the same sum whatever the threads did.
    ErrorSum total;
    for (const auto& sums : by_block) total.add(sums[i]);
    curve.push_back(total.quality(cuts[i] == chunks.count()));
  }
  return curve;
}

std::vector<size_t> cuts_for(const Analysis& analysis, const ChunkList& chunks,
                             std::span<const double> nmse, ThreadPool& pool) {
  const size_t blocks = chunks.blocks.size();
  std::vector<unsigned> layers(chunks.layers + size_t{1});
  for (unsigned i = 0; i < layers.size(); ++i) layers[i] = i;
  std::vector<std::vector<ErrorSum>> by_block(blocks);
  pool.parallel_for(
      blocks, 1,
      [&](size_t begin, size_t end) {
        for (size_t b = begin; b < end; ++b)
          by_block[b] = measure_block(analysis, b, chunks.blocks[b].marks_zeros, layers);
      },
      Schedule::dynamic);
  double error = 0, value = 0;
  for (const auto& sums : by_block) {
    error += sums[0].squared_error;
    value += sums[0].squared_value;
  }
  std::vector<size_t> cuts;
  size_t cut = 0;
  for (const double limit : nmse) {
    for (; cut < chunks.count() && error > limit * value; ++cut) {
      const size_t layer = cut / blocks, b = cut % blocks;
      error += by_block[b][layer + 1].squared_error - by_block[b][layer].squared_error;
    }
    cuts.push_back(cut);
  }
  return cuts;
}

}  // namespace hologram::holotensor::refine
