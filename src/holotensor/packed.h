// packed: the source bytes, compressed; all or nothing. For element types without a progressive
// form, and for tensors (repeated values, constants) that plain compression stores in the fewest
// bytes.
//
// Payload: u8 transform (0 none, 1 bytes of equal place together); u8 Codec; the bytes.
#pragma once

#include "holotensor/scheme.h"

namespace hologram::holotensor {

const Scheme& packed_scheme();

// The payload alone, for comparing sizes.
std::vector<std::byte> pack(const TensorView& tensor);

}  // namespace hologram::holotensor
