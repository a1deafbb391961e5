// Constants as HoloTensor fragments: `hologram compile --weights refine:8`.
#pragma once

#include <cstddef>
#include <vector>

#include "compiler/lower.h"
#include "compiler/weight_encoding.h"

namespace hologram::compiler {

// A `.ht` file of the constants that are weights; each gets its number in it. Without any the file
// is empty.
struct EncodedWeights {
  std::vector<std::byte> file;
  uint64_t directory = 0;  // bytes of its header and directory
};
Result<EncodedWeights> encode_weights(Lowered& lowered, const WeightEncoding& encoding);

}  // namespace hologram::compiler
