// Chunks: the chunks of all blocks in the order in which they matter, and runs of them as bytes.
//
// Chunk number layer * blocks + block: every block's first layer, then every block's second, ... A
// run of consecutive chunks is stored as: varint first, varint count, the sizes as varints, the
// chunks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holotensor/refine/block.h"
#include "support/result.h"

namespace hologram::holotensor::refine {

// The chunks of one block, as an encoder makes them.
struct BlockChunks {
  std::vector<std::byte> bytes;
  std::vector<uint32_t> ends;  // of each layer
  bool marks_zeros = false;

  std::span<const std::byte> chunk(unsigned layer) const {
    const uint32_t begin = layer == 0 ? 0 : ends[layer - 1];
    return std::span(bytes).subspan(begin, ends[layer] - begin);
  }
};

struct ChunkList {
  std::vector<BlockChunks> blocks;
  unsigned layers = 0;

  size_t count() const { return blocks.size() * layers; }
  std::span<const std::byte> chunk(size_t number) const {
    return blocks[number % blocks.size()].chunk(static_cast<unsigned>(number / blocks.size()));
  }
  // Bytes that a chunk adds to a run, its size field included.
  size_t stored_size(size_t number) const;
  std::vector<std::byte> run(size_t first, size_t end) const;
  size_t run_size(size_t first, size_t end) const;
};

// Layers that block `block` of `blocks` has in the first `chunks` chunks.
inline unsigned layers_in(size_t chunks, size_t block, size_t blocks) {
  return static_cast<unsigned>(chunks / blocks + (block < chunks % blocks));
}

// A run read back: chunk views into `bytes`.
struct ChunkRun {
  uint64_t first = 0;
  std::vector<std::span<const std::byte>> chunks;
};
// `limit`: chunks of the whole tensor.
Result<ChunkRun> parse_run(std::span<const std::byte> bytes, uint64_t limit);

}  // namespace hologram::holotensor::refine
