// How constants become HoloTensor fragments: `hologram compile --weights refine:8`.
#pragma once

#include <cstdint>
#include <string_view>

#include "holotensor/scheme.h"
#include "support/result.h"

namespace hologram::compiler {

struct WeightEncoding {
  holotensor::EncoderOptions encoder;  // always to the last bit: no target
  // Smaller constants stay plain, and so do all whose every bit carries meaning: integers,
  // booleans, texts, and those that are attributes. 8-bit integers are weights where nothing but
  // the weight operand of a quantised product reads them.
  int64_t plain_below = 4096;  // elements
};

// "SCHEME:FRAGMENTS" or "SCHEME:FRAGMENTS,any", such as "refine:8".
Result<WeightEncoding> parse_weight_encoding(std::string_view text);

}  // namespace hologram::compiler
