// integer_stream: signed integers as bytes, near their entropy, fast.
//
// Blocks of kIntegerBlock numbers. In each the low bits that look random are packed as they are,
// and what is left is cut into byte planes (centred, so that small numbers of either sign have a
// zero upper plane), each coded by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "holotensor/byte_io.h"
#include "support/result.h"
#include "support/thread_pool.h"

namespace hologram::holotensor {

inline constexpr size_t kIntegerBlock = 1 << 16;

// Appends to `out`. The count is not stored: the reader must know it.
void encode_integers(std::span<const int32_t> values, std::vector<std::byte>& out,
                     ThreadPool& pool);

// Reads values.size() numbers from the front of `in`. Any bytes are safe: an error or numbers.
Status decode_integers(ByteReader& in, std::span<int32_t> values, ThreadPool& pool);

// The fewest bytes that `count` numbers can take: refuses a count that lies before it is believed.
constexpr uint64_t least_integer_bytes(uint64_t count) {
  return 6 * ((count + kIntegerBlock - 1) / kIntegerBlock);
}

}  // namespace hologram::holotensor
