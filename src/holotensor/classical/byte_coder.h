// byte_coder: bytes at their order-0 entropy, by interleaved rANS with a table of their own.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "holotensor/byte_io.h"
#include "support/result.h"

namespace hologram::holotensor {

// Appends to `out`; the count is not stored. Bytes that do not shrink are stored as they are;
// bytes with structure beyond their frequencies (runs) by the common compression where that wins.
void encode_bytes(std::span<const std::byte> bytes, ByteWriter& out);

// Reads out.size() bytes. Any input is safe: an error, or bytes.
Status decode_bytes(ByteReader& in, std::span<std::byte> out);

}  // namespace hologram::holotensor
