// Block: the planes of one independently coded part of a tensor, and its chunks.
//
// A block has one chunk a layer. Layer j holds plane j of the tensor, that is plane j - c of every
// group of scale class c; the layer after the last plane is the tail, which makes the block exact.
// A chunk needs the chunks of the layers before it and nothing else. Chunk of a plane:
//
//  1. varint size of 4
//  2. layer 0 only, the head: u8 flags (kHasZeros, kManyClasses, kHasExceptions); the class of all
//  groups
//     (u8), or varint size, u8 Codec and the classes of the groups; where flagged, varint count of
//     exceptions and for each varint distance from the one before and the element as it is; where
//     flagged, the level of the mask of zeros
//  3. for every class that has a plane here, ascending: the level of its signs, in its first plane;
//  then
//     0 and the level of the plane, or 1 and four levels, one a context
//  4. the coded streams (bernoulli.h), in the order of 2 and 3
//  5. the raw streams, each in whole bytes, in the same order
//
// The tail: varint size of, and then, the missing low bits of every float whose leading one came
// too late for the planes (all magnitude bits where none came); for f32, u8 form (0 all zero, 1
// raw, else Codec + 1) and the low byte of every live element.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holotensor/refine/bernoulli.h"
#include "holotensor/refine/bit_kernels.h"
#include "holotensor/refine/lane_kernels.h"
#include "holotensor/refine/number_format.h"
#include "support/result.h"

namespace hologram::holotensor::refine {

// Depths with measured centroids; deeper cells are small enough for their middle.
inline constexpr unsigned kCentroidDepths = 5;
// Tensors with fewer elements have no centroids: they would cost more than they tell.
inline constexpr uint64_t kFewElements = 4096;

// What all blocks of a tensor share.
struct TensorModel {
  NumberFormat format{};
  int largest = 0;            // exponent of class 0's scale
  unsigned plane_layers = 0;  // layers before the tail
  // [depth - 1][cell]; one half from entry kCentroids on. A row fills the widest vector.
  float centroid[kCentroidDepths][16];

  TensorModel();
  unsigned layers() const { return plane_layers + 1; }
  Window window(unsigned scale_class) const { return window_of(format, largest, scale_class); }
  // Planes of a class that are known after `layers` layers.
  unsigned depth(unsigned scale_class, unsigned layers) const;
  // For the cells of `depth` planes out of `planes`; null: the middle.
  const float* centroids(unsigned depth, unsigned planes) const {
    return depth <= kCentroidDepths && depth < planes ? centroid[depth - 1] : nullptr;
  }
};

struct Exception {
  uint32_t position = 0;
  uint32_t bits = 0;  // the element as it is
};

// Buffers are kept between blocks: one Block a thread.
class Block {
 public:
  // Prepares for `elements` elements; everything is unknown.
  void reset(const TensorModel& model, unsigned elements);

  // --- encoding ---
  // `classes`: the scale class of each group.
  void split(std::span<const std::byte> source, std::span<const uint8_t> classes);
  // Whether zeros are marked, and so exact from the first layer on.
  bool marks_zeros() const { return has_zeros_; }
  // Appends the chunk of a layer; layers in order, once each.
  void encode(unsigned layer, std::vector<std::byte>& out);

  // --- decoding ---
  // The chunk of the next layer. On error the block is of no further use.
  Status decode(std::span<const std::byte> chunk);
  // The best values for the layers decoded so far.
  Status store(DType type, std::span<std::byte> out) const;

 private:
  struct Range {
    uint32_t begin, end;  // words
  };
  // The groups of one scale class.
  struct ClassState {
    std::vector<Range> ranges;
    uint64_t live = 0;
    uint64_t significant[kExtraPlanes + 1] = {};
    uint32_t words = 0;
    bool always_flat = false;  // encoder: contexts have stopped paying
  };
  struct EncodeBuffers {
    std::vector<uint16_t> words;
    std::vector<std::byte> section;
  };
  class StreamWriter;
  class StreamReader;

  void set_classes(std::span<const uint8_t> classes);
  void set_live(bool has_zeros);
  void add_exception(Exception exception);
  PlaneMasks masks(unsigned plane) const;
  void update_significance(ClassState& state, unsigned plane);
  uint64_t* plane(unsigned i) { return planes_.data() + i * stride_; }
  const uint64_t* significant(unsigned i) const { return significant_.data() + i * stride_; }
  unsigned group_elements(unsigned group) const;

  void encode_head(StreamWriter& writer);
  void encode_tail(std::vector<std::byte>& out) const;
  Status decode_head(StreamReader& reader);
  Status decode_tail(std::span<const std::byte> chunk);
  class TailReader;
  // The live elements of a word whose leading one came too late for the planes.
  uint64_t late(unsigned word) const;
  Status complete_group(unsigned group, TailReader& tail, size_t& low_byte,
                        const uint32_t* magnitude, float* carriers) const;
  Status complete_codes(unsigned group, TailReader& tail, std::byte* codes) const;
  Status store_codes(std::span<std::byte> out) const;
  Status store_carriers_of_groups(DType type, std::span<std::byte> out) const;

  const TensorModel* model_ = nullptr;
  unsigned elements_ = 0, groups_ = 0, words_ = 0;
  size_t stride_ = 0;    // words from one plane to the next
  unsigned layers_ = 0;  // decoded so far
  bool masked_ = false;  // live_ is in use
  bool has_zeros_ = false;
  std::vector<uint8_t> classes_;
  std::vector<ClassState> states_;  // by class, up to the largest present
  std::vector<uint64_t> planes_, significant_, negative_, live_, zeros_, excepted_, scratch_;
  std::vector<Exception> exceptions_;
  EncodeBuffers buffers_;
  std::span<const std::byte> source_;                 // encoding
  std::span<const std::byte> tail_bits_, low_bytes_;  // decoding
  std::vector<std::byte> low_storage_;
};

// A group's carriers after `layers` layers, given its magnitudes and signs: what the decoder stores
// and what the encoder measures. `live`: null, or the words of the elements that are not zero.
void approximate_group(const TensorModel& model, unsigned scale_class, unsigned layers,
                       const uint32_t* magnitude, const uint64_t* negative, const uint64_t* live,
                       float* out);

// The scale exponent of a group, or kNoScale when every carrier is +0. `reference` is the usual one
// of the tensor: groups that differ from it by chance alone get it, so that equal rows share a
// class.
inline constexpr int kNoScale = -1000;
int scale_of(const NumberFormat& format, const float* carriers, int reference = kNoScale);

}  // namespace hologram::holotensor::refine
