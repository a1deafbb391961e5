// packed: the source bytes, compressed; all or nothing. For element types without a progressive
// form, and for tensors (repeated values, constants) that plain compression stores in the fewest
// bytes.
//
// Payload: u8 transform, a sum of 2 (the first dimension by all others, transposed), 4 (signs taken
// off and put behind, eight a byte) and 1 (bytes of equal place together), done in this order; u8
// Codec; the bytes.
#pragma once

#include "holotensor/scheme.h"

namespace hologram::holotensor {

const Scheme& packed_scheme();
Result<std::unique_ptr<SchemeDecoder>> packed_decoder(const TensorInfo& info);

// The payload alone, for comparing sizes.
std::vector<std::byte> pack(const TensorView& tensor);

}  // namespace hologram::holotensor
