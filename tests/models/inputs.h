// Inputs for the models of models.json: realistic enough that every part of a model does work.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "bench/peers/onnx_runtime.h"

namespace hologram::models {

// One tensor a port. `run` maps names, or patterns of the shell (past_key_values.*), to
//   shape  where the model leaves dimensions open
//   fill   a number, or: normal; speech (a voiced sound, -1..1); picture (shapes and shades,
//   -1..1);
//          tokens (integers below `below`); mask (ones, then a few zeros)
//   scale  what normal, speech and picture are multiplied by
// The first pattern that fits a port decides. A port without one, or one left without a shape, is
// an error. Each `draw` gives others of their kind: other random numbers, the picture moved round
// with a little noise on it, a later part of the sound.
Result<std::vector<peers::PeerTensor>> make_inputs(const std::vector<peers::PeerTensor>& ports,
                                                   const nlohmann::ordered_json& run,
                                                   uint32_t draw = 0);

}  // namespace hologram::models
