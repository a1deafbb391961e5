// Weights and inputs on their way into the forms of ConvPlan.
#pragma once

#include "backends/cpu/dense/conv_plan.h"
#include "support/thread_pool.h"

namespace hologram::backends::dense {

// [group][phase][panel of 32 outputs][tap][input][32], the last panel 16 wide where that is enough.
void pack_weights(const ConvPlan& plan, const float* weights, float* packed);

// Copies one sample into an image with zero margins.
void pack_image(const ConvPlan& plan, Layout layout, const float* input, float* image,
                ThreadPool& pool);

}  // namespace hologram::backends::dense
