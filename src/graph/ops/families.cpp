#include "graph/ops/families.h"

namespace hologram::graph::ops {

void add_all(OperatorTable& table) {
  add_activation(table);
  add_arithmetic(table);
  add_attention(table);
  add_cast(table);
  add_comparison(table);
  add_control_flow(table);
  add_convolution(table);
  add_fused(table);
  add_dense(table);
  add_generator(table);
  add_image(table);
  add_indexing(table);
  add_linear_algebra(table);
  add_loss(table);
  add_machine_learning(table);
  add_mathematics(table);
  add_microsoft(table);
  add_movement(table);
  add_normalisation(table);
  add_pooling(table);
  add_quantisation(table);
  add_random(table);
  add_recurrent(table);
  add_reduction(table);
  add_resize(table);
  add_sequence(table);
  add_signal(table);
  add_softmax(table);
  add_sorting(table);
  add_text(table);
  add_training(table);
}

}  // namespace hologram::graph::ops
