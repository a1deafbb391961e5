#include "backends/cpu/kernels/recurrent_activation.h"

namespace hologram::kernels {
namespace {

using Kind = RecurrentActivation::Kind;

struct Named {
  std::string_view name;
  Kind kind;
  bool has_alpha, has_beta;
  float alpha, beta;  // where the node does not say
};

constexpr Named kNamed[] = {
    {"Relu", Kind::relu, false, false, 0, 0},
    {"Tanh", Kind::tanh, false, false, 0, 0},
    {"Sigmoid", Kind::sigmoid, false, false, 0, 0},
    {"Affine", Kind::affine, true, true, 1, 0},
    {"LeakyRelu", Kind::leaky_relu, true, false, 0.01f, 0},
    {"ThresholdedRelu", Kind::thresholded_relu, true, false, 1, 0},
    {"ScaledTanh", Kind::scaled_tanh, true, true, 1, 1},
    {"HardSigmoid", Kind::hard_sigmoid, true, true, 0.2f, 0.5f},
    {"Elu", Kind::elu, true, false, 1, 0},
    {"Softsign", Kind::softsign, false, false, 0, 0},
    {"Softplus", Kind::softplus, false, false, 0, 0},
};

}  // namespace

Status read_activations(const KernelContext& c, size_t per_direction, size_t directions,
                        const Kind* defaults, RecurrentActivation* result) {
  const auto names = c.attributes().texts("activations");
  const auto alphas = c.attributes().numbers("activation_alpha");
  const auto betas = c.attributes().numbers("activation_beta");
  const size_t count = per_direction * directions;
  if (!names.empty() && names.size() != count)
    return fail(ErrorCode::invalid_argument, "{} activations where {} are needed", names.size(),
                count);
  size_t alpha = 0, beta = 0;
  for (size_t i = 0; i < count; ++i) {
    const Named* found = nullptr;
    for (const Named& named : kNamed)
      if (names.empty() ? named.kind == defaults[i % per_direction] : named.name == names[i])
        found = &named;
    if (!found)
      return fail(ErrorCode::unsupported,
                  "activation '{}'; supported: Relu, Tanh, Sigmoid, Affine, LeakyRelu, "
                  "ThresholdedRelu, ScaledTanh, HardSigmoid, Elu, Softsign, Softplus",
                  names[i]);
    result[i] = {found->kind, found->alpha, found->beta};
    if (found->has_alpha && alpha < alphas.size()) result[i].alpha = alphas[alpha++];
    if (found->has_beta && beta < betas.size()) result[i].beta = betas[beta++];
  }
  return {};
}

}  // namespace hologram::kernels
