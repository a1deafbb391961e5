// The three classical schemes: spectral, projection and lowrank.
//
// Each turns a tensor (flattened to a matrix) into numbers that matter unequally, rounds them with
// one step, and deals them over the fragments so that any subset decodes: more fragments give more
// of the numbers. Without a target the fragments also carry an exact residual, so that all of them
// together give every bit. The quality curve is measured on the fragments that help least.
#pragma once

#include "holotensor/scheme.h"

namespace hologram::holotensor {

// Stateless and never destroyed.
const Scheme& spectral_scheme();
const Scheme& projection_scheme();
const Scheme& lowrank_scheme();

Result<std::unique_ptr<SchemeDecoder>> spectral_decoder(const TensorInfo& info);
Result<std::unique_ptr<SchemeDecoder>> projection_decoder(const TensorInfo& info);
Result<std::unique_ptr<SchemeDecoder>> lowrank_decoder(const TensorInfo& info);

}  // namespace hologram::holotensor
