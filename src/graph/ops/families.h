// The operator table, family by family: each file of entries adds its own.
#pragma once

#include "graph/operator.h"

namespace hologram::graph::ops {

void add_activation(OperatorTable& table);
void add_arithmetic(OperatorTable& table);
void add_attention(OperatorTable& table);
void add_cast(OperatorTable& table);
void add_comparison(OperatorTable& table);
void add_control_flow(OperatorTable& table);
void add_convolution(OperatorTable& table);
void add_fused(OperatorTable& table);
void add_dense(OperatorTable& table);
void add_generator(OperatorTable& table);
void add_image(OperatorTable& table);
void add_indexing(OperatorTable& table);
void add_linear_algebra(OperatorTable& table);
void add_loss(OperatorTable& table);
void add_machine_learning(OperatorTable& table);
void add_mathematics(OperatorTable& table);
void add_microsoft(OperatorTable& table);
void add_movement(OperatorTable& table);
void add_normalisation(OperatorTable& table);
void add_pooling(OperatorTable& table);
void add_quantisation(OperatorTable& table);
void add_random(OperatorTable& table);
void add_recurrent(OperatorTable& table);
void add_reduction(OperatorTable& table);
void add_resize(OperatorTable& table);
void add_sequence(OperatorTable& table);
void add_signal(OperatorTable& table);
void add_softmax(OperatorTable& table);
void add_sorting(OperatorTable& table);
void add_text(OperatorTable& table);
void add_training(OperatorTable& table);

// All of them.
void add_all(OperatorTable& table);

}  // namespace hologram::graph::ops
