// Analysis: what an encoder learns of a tensor before it codes it, and measures after.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holotensor/refine/block.h"
#include "holotensor/refine/chunks.h"
#include "holotensor/tensor.h"
#include "support/thread_pool.h"

namespace hologram::holotensor::refine {

// A tensor cut into blocks and groups, with the model of its scales.
struct Analysis {
  TensorModel model;
  TensorView tensor;
  uint64_t elements = 0;
  unsigned block_elements = 0;
  std::vector<uint8_t> classes;  // of every group

  size_t blocks() const { return (elements + block_elements - 1) / block_elements; }
  unsigned elements_of(size_t block) const;
  Result<std::span<const std::byte>> source_of(size_t block, std::vector<std::byte>& scratch) const;
  std::span<const uint8_t> classes_of(size_t block) const;
};

// Errors are those of reading the tensor. `elements` > 0.
Result<Analysis> analyse(const NumberFormat& format, const TensorView& tensor, uint64_t elements,
                         ThreadPool& pool);

Result<ChunkList> encode_chunks(const Analysis& analysis, ThreadPool& pool);

// The errors of one block, whose elements are `source`, after each of the given numbers of layers,
// by the decoder's own kernels.
std::vector<ErrorSum> measure_block(const Analysis& analysis, size_t block,
                                    std::span<const std::byte> source, bool marks_zeros,
                                    std::span<const unsigned> layers);

// The quality of the first cuts[i] chunks, for each i. Cuts ascend.
Result<QualityCurve> measure_cuts(const Analysis& analysis, const ChunkList& chunks,
                                  std::span<const size_t> cuts, ThreadPool& pool);

// The smallest number of first chunks that reaches each NMSE (ascending quality), or all chunks.
Result<std::vector<size_t>> cuts_for(const Analysis& analysis, const ChunkList& chunks,
                                     std::span<const double> nmse, ThreadPool& pool);

}  // namespace hologram::holotensor::refine
