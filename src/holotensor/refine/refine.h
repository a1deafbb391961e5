// refine: the default scheme. A tensor becomes an embedded stream of binary planes, highest first,
// which ends in its exact bits; the stream is cut into fragments (`ordered`), or protected by
// priority encoding so that any k fragments give a prefix of it (`any`).
//
// Groups of 256 elements have a power-of-two scale, which tells in which layer they begin and which
// statistics they follow; all steps of one layer are equal, as the least squared error asks. Signs
// come with a group's first plane, so cells never straddle zero and a plane costs what it tells.
//
// Parameters: u8 version (1); i16 largest scale exponent; u8 plane layers; kCentroidDepths x
// kCentroids u8 centroids in 1/256; for `any`, varint number of tiers and for each varint k and
// varint bytes. Payload of a fragment: `ordered`, a run of chunks (chunks.h); `any`, one shard of
// each tier's run.
#pragma once

#include "holotensor/refine/block.h"
#include "holotensor/scheme.h"

namespace hologram::holotensor {

const Scheme& refine_scheme();

namespace refine {

// A prefix of the chunks that any k fragments give back.
struct Tier {
  unsigned k = 0;
  uint64_t bytes = 0;
};

struct Parameters {
  TensorModel model;
  uint64_t elements = 0;
  std::vector<Tier> tiers;  // `any` only; k ascends
};
std::vector<std::byte> write_parameters(const Parameters& parameters, Distribution distribution);
Result<Parameters> parse_parameters(const TensorInfo& info);

Result<SchemeOutput> encode(const TensorView& tensor, const EncoderOptions& options,
                            ThreadPool& pool);
Result<std::unique_ptr<SchemeDecoder>> make_decoder(const TensorInfo& info);

}  // namespace refine
}  // namespace hologram::holotensor
