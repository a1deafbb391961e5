#include "holotensor/refine/analysis.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "holotensor/first_failure.h"

namespace hologram::holotensor::refine {
namespace {

// Groups a range of blocks at a time, so that buffers are made once a range.
size_t grain_for(size_t blocks, ThreadPool& pool) {
  return std::clamp<size_t>(blocks / (size_t{4} * pool.size()), 1, 64);
}

// The carriers of one group.
Status load_group(const NumberFormat& format, const TensorView& tensor, uint64_t elements, size_t g,
                  std::vector<std::byte>& scratch, float* carriers) {
  const size_t count = std::min<uint64_t>(kGroup, elements - g * kGroup);
  HOLOGRAM_TRY(const auto source,
               tensor.read(g * kGroup * format.bytes, count * format.bytes, scratch));
  load_carriers(format, source.data(), count, carriers);
  return {};
}

Result<std::vector<int16_t>> scales_of(const NumberFormat& format, const TensorView& tensor,
                                       uint64_t elements, ThreadPool& pool) {
  std::vector<int16_t> scales((elements + kGroup - 1) / kGroup);
  // The usual scale: the root of the mean square over a sample.
  double squares = 0, count = 0;
  float carriers[kGroup];
  std::vector<std::byte> scratch;
  for (size_t g = 0; g < scales.size(); g += std::max<size_t>(1, scales.size() / 512)) {
    HOLOGRAM_CHECK(load_group(format, tensor, elements, g, scratch, carriers));
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
  FirstFailure failure;
  const size_t group_bytes = size_t{kGroup} * format.bytes;
  constexpr size_t kGroupsAtOnce = 256;
  pool.parallel_for(scales.size(), kGroupsAtOnce, [&](size_t begin, size_t end) {
    float carriers[kGroup];
    std::vector<std::byte> scratch;
    for (size_t first = begin; first < end; first += kGroupsAtOnce) {
      const size_t last = std::min(end, first + kGroupsAtOnce);
      const uint64_t stop = std::min<uint64_t>(last * kGroup, elements);
      const auto source =
          tensor.read(first * group_bytes, (stop - first * kGroup) * format.bytes, scratch);
      if (!source) return void(failure.ok(std::unexpected(source.error())));
      for (size_t g = first; g < last; ++g) {
        load_carriers(format, source->data() + (g - first) * group_bytes,
                      std::min<uint64_t>(kGroup, elements - g * kGroup), carriers);
        scales[g] = static_cast<int16_t>(scale_of(format, carriers, reference));
      }
    }
  });
  HOLOGRAM_CHECK(failure.status());
  return scales;
}

// Where values lie inside the large cells of the first planes: the mean over a sample of groups.
Status measure_centroids(Analysis& analysis) {
  TensorModel& model = analysis.model;
  const size_t groups = analysis.classes.size();
  if (analysis.elements < kFewElements) return {};
  const size_t step = std::max<size_t>(1, groups / 512);
  double sum[kCentroidDepths][kCentroids] = {};
  uint64_t count[kCentroidDepths][kCentroids] = {};
  float carriers[kGroup];
  std::vector<std::byte> scratch;
  GroupSplit split;
  for (size_t g = 0; g < groups; g += step) {
    if (analysis.classes[g] == kEmptyClass) continue;
    const Window window = model.window(analysis.classes[g]);
    const size_t elements = std::min<uint64_t>(kGroup, analysis.elements - g * kGroup);
    HOLOGRAM_CHECK(
        load_group(model.format, analysis.tensor, analysis.elements, g, scratch, carriers));
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
  return {};
}

}  // namespace

unsigned Analysis::elements_of(size_t block) const {
  return static_cast<unsigned>(
      std::min<uint64_t>(block_elements, elements - block * uint64_t{block_elements}));
}

Result<std::span<const std::byte>> Analysis::source_of(size_t block,
                                                       std::vector<std::byte>& scratch) const {
  const size_t bytes = size_t{block_elements} * model.format.bytes;
  return tensor.read(block * bytes, size_t{elements_of(block)} * model.format.bytes, scratch);
}

std::span<const uint8_t> Analysis::classes_of(size_t block) const {
  const size_t per_block = block_elements / kGroup;
  return std::span(classes).subspan(block * per_block, (elements_of(block) + kGroup - 1) / kGroup);
}

Result<Analysis> analyse(const NumberFormat& format, const TensorView& tensor, uint64_t elements,
                         ThreadPool& pool) {
  Analysis analysis;
  TensorModel& model = analysis.model;
  model.format = format;
  analysis.tensor = tensor;
  analysis.elements = elements;
  analysis.block_elements = block_elements(format);
  HOLOGRAM_TRY(const auto scales, scales_of(format, tensor, elements, pool));
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
  HOLOGRAM_CHECK(measure_centroids(analysis));
  return analysis;
}

Result<ChunkList> encode_chunks(const Analysis& analysis, ThreadPool& pool) {
  ChunkList list;
  list.layers = analysis.model.layers();
  list.blocks.resize(analysis.blocks());
  FirstFailure failure;
  pool.parallel_for(
      list.blocks.size(), grain_for(list.blocks.size(), pool),
      [&](size_t begin, size_t end) {
        Block block;
        std::vector<std::byte> scratch, encoded;
        for (size_t b = begin; b < end; ++b) {
          const auto source = analysis.source_of(b, scratch);
          if (!source) return void(failure.ok(std::unexpected(source.error())));
          BlockChunks& chunks = list.blocks[b];
          block.reset(analysis.model, analysis.elements_of(b));
          block.split(*source, analysis.classes_of(b));
          chunks.marks_zeros = block.marks_zeros();
          encoded.clear();
          for (unsigned layer = 0; layer < list.layers; ++layer) {
            block.encode(layer, encoded);
            chunks.ends.push_back(static_cast<uint32_t>(encoded.size()));
          }
          chunks.bytes = encoded;  // no larger than it must be: all blocks are held
        }
      },
      Schedule::dynamic);
  HOLOGRAM_CHECK(failure.status());
  return list;
}

namespace {

// measure_block() for every block, at the layers that layers_of(block) names.
template <typename LayersOf>
Result<std::vector<std::vector<ErrorSum>>> measure_blocks(const Analysis& analysis,
                                                          const ChunkList& chunks,
                                                          LayersOf layers_of, ThreadPool& pool) {
  std::vector<std::vector<ErrorSum>> by_block(chunks.blocks.size());
  FirstFailure failure;
  pool.parallel_for(
      by_block.size(), 1,
      [&](size_t begin, size_t end) {
        std::vector<std::byte> scratch;
        for (size_t b = begin; b < end; ++b) {
          const auto source = analysis.source_of(b, scratch);
          if (!source) return void(failure.ok(std::unexpected(source.error())));
          by_block[b] =
              measure_block(analysis, b, *source, chunks.blocks[b].marks_zeros, layers_of(b));
        }
      },
      Schedule::dynamic);
  HOLOGRAM_CHECK(failure.status());
  return by_block;
}

}  // namespace

Result<QualityCurve> measure_cuts(const Analysis& analysis, const ChunkList& chunks,
                                  std::span<const size_t> cuts, ThreadPool& pool) {
  const size_t blocks = chunks.blocks.size();
  const auto layers_of = [&](size_t b) {
    std::vector<unsigned> layers;
    for (const size_t cut : cuts) {
      const unsigned count = layers_in(cut, b, blocks);
      if (layers.empty() || layers.back() != count) layers.push_back(count);
    }
    return layers;
  };
  HOLOGRAM_TRY(const auto by_block, measure_blocks(analysis, chunks, layers_of, pool));
  std::vector<ErrorSum> totals(cuts.size());
  // In block order: the same sum whatever the threads did.
  for (size_t b = 0; b < blocks; ++b) {
    size_t at = 0;
    for (size_t i = 0; i < cuts.size(); ++i) {
      if (i > 0 && layers_in(cuts[i], b, blocks) != layers_in(cuts[i - 1], b, blocks)) ++at;
      totals[i].add(by_block[b][at]);
    }
  }
  QualityCurve curve;
  for (size_t i = 0; i < cuts.size(); ++i)
    curve.push_back(totals[i].quality(cuts[i] == chunks.count()));
  return curve;
}

Result<std::vector<size_t>> cuts_for(const Analysis& analysis, const ChunkList& chunks,
                                     std::span<const double> nmse, ThreadPool& pool) {
  const size_t blocks = chunks.blocks.size();
  std::vector<unsigned> layers(chunks.layers + size_t{1});
  for (unsigned i = 0; i < layers.size(); ++i) layers[i] = i;
  HOLOGRAM_TRY(
      const auto by_block,
      measure_blocks(
          analysis, chunks, [&](size_t) { return std::span<const unsigned>(layers); }, pool));
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
