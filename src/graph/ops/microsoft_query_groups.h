// com.microsoft.GroupQueryAttention: the attention of language models, with its cache of keys and
// values and its rotary embedding.
#pragma once

#include "graph/operator.h"

namespace hologram::graph::ops {

Result<std::vector<ValueId>> group_query_attention(ComposeContext& c);

}  // namespace hologram::graph::ops
