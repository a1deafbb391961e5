// choose_scheme: encodes a tensor with every scheme and keeps the best.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holotensor/encoder.h"
#include "support/result.h"

namespace hologram::holotensor {

// What one scheme made of the tensor.
struct SchemeTrial {
  SchemeId scheme = SchemeId::refine;
  uint64_t bytes = 0;          // fragments, headers and parameters
  Quality quality;             // with all fragments
  std::optional<Error> error;  // set when the scheme cannot do what was asked
};

struct SchemeChoice {
  EncodedTensor encoded;  // by the best scheme
  std::vector<SchemeTrial> trials;
};

// Measures on the whole tensor. With target_bits the best quality at that size wins (a scheme that
// uses less of it is credited 6.02 dB for each bit it saved); with a target error, or none, the
// fewest bytes. A later candidate must be better by a quarter of a bit a weight (1.5 dB): refine,
// the first, improves evenly with every fragment, which the others do not. `options.scheme` is not
// used. Fails when no candidate can do it, with the first one's error.
inline constexpr SchemeId kAllSchemes[] = {SchemeId::refine, SchemeId::spectral, SchemeId::lowrank,
                                           SchemeId::projection};
Result<SchemeChoice> choose_scheme(const TensorView& tensor, const EncoderOptions& options,
                                   std::span<const SchemeId> candidates = kAllSchemes);

}  // namespace hologram::holotensor
