// FlexAttention: attention whose scores and probabilities a model's own graphs change.
#pragma once

#include "graph/infer.h"

namespace hologram::graph::ops {

Status flex_attention_shape(InferContext& c);
Result<std::vector<ValueId>> flex_attention(ComposeContext& c);

}  // namespace hologram::graph::ops
