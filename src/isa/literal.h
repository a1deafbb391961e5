// Constants in the text form. Integers are decimal or hexadecimal; floats are decimal (the shortest
// that reads back to the same bits), inf, -inf, nan, or their bits in hexadecimal; bool is true or
// false.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/dtype.h"
#include "support/result.h"

namespace hologram::isa {

// `bits` are those of one element of a compute type, zero-extended.
std::string print_literal(DType type, uint64_t bits);

// invalid_argument says what was expected.
Result<uint64_t> parse_literal(DType type, std::string_view text);

// Of `type`, rounded once from `value`.
uint64_t float_bits(DType type, double value);

}  // namespace hologram::isa
