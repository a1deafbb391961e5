// Epilogues that are cheap enough for registers.
#pragma once

#include "backends/cpu/dense/epilogue.h"

namespace hologram::backends::dense {

// The range a clip or a relu keeps; `clips` is false for the other activations.
struct ClipRange {
  bool clips;
  float low, high;
};
inline ClipRange clip_range(const Epilogue& e) {
  if (e.activation == Activation::relu) return {true, 0.0f, HUGE_VALF};
  return {e.activation == Activation::clip, e.first, e.second};
}

// True when the epilogue is no more than bias, residual and a clip: cheap enough for registers.
inline bool is_direct(const Epilogue& e) {
  return e.alpha == 1.0f && !e.program && !e.post && (!e.bias || e.bias_axis == BiasAxis::column) &&
         (!e.residual || (e.residual_scale == 1.0f && !e.residual_last)) &&
         (e.activation == Activation::none || e.activation == Activation::relu ||
          e.activation == Activation::clip);
}

}  // namespace hologram::backends::dense
