// The domain com.microsoft, that ONNX Runtime's tools write into models. Files of entries:
#pragma once

#include "graph/operator.h"

namespace hologram::graph::ops {

inline constexpr const char* kMicrosoft = "com.microsoft";

void add_microsoft_attention(OperatorTable& table);
void add_microsoft_normalisation(OperatorTable& table);
void add_microsoft_quantised(OperatorTable& table);
void add_microsoft_bits(OperatorTable& table);

}  // namespace hologram::graph::ops
