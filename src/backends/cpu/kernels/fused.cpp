#include "backends/cpu/kernels/fused.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backends/cpu/dense/activate.h"
#include "backends/cpu/kernels/families.h"

namespace hologram::kernels {

using backends::dense::Activation;

Result<Activation> activation_named(std::string_view name) {
  static constexpr std::pair<std::string_view, Activation> kNames[] = {
      {"", Activation::none},
      {"Relu", Activation::relu},
      {"Clip", Activation::clip},
      {"LeakyRelu", Activation::leaky_relu},
      {"Elu", Activation::elu},
      {"Sigmoid", Activation::sigmoid},
      {"Tanh", Activation::tanh},
      {"Swish", Activation::silu},
      {"Gelu", Activation::gelu_erf},
      {"GeluTanh", Activation::gelu_tanh},
      {"HardSigmoid", Activation::hard_sigmoid},
      {"HardSwish", Activation::hard_swish},
      {"Softplus", Activation::softplus},
      {"Exp", Activation::exp},
      {"TanhRatio", Activation::tanh_ratio},
      {"SwishRatio", Activation::silu_ratio},
  };
  for (const auto& [known, activation] : kNames)
    if (known == name) return activation;
  return fail(ErrorCode::unsupported, "activation '{}' is not one an epilogue has", name);
}

Result<backends::dense::Epilogue> read_epilogue(const KernelContext& c, size_t bias,
                                                size_t residual, int64_t channels, int64_t count) {
  backends::dense::Epilogue e;
  HOLOGRAM_TRY(e.activation, activation_named(c.text("activation")));
  e.first = static_cast<float>(c.number("activation_first"));
  e.second = static_cast<float>(c.number("activation_second"));
  e.post_scale = static_cast<float>(c.number("post_scale", 1));
  e.post_shift = static_cast<float>(c.number("post_shift"));
  e.post_low = static_cast<float>(c.number("post_low", -HUGE_VAL));
  e.post = e.post_scale != 1.0f || e.post_shift != 0.0f || e.post_low != -HUGE_VALF;
  e.residual_last = c.integer("residual_last") != 0;
  if (c.has_input(bias)) {
    if (const int64_t given = c.input(bias).count(); given != channels && given != 2 * channels)
      return fail(ErrorCode::shape_mismatch, "bias {} for {} channels",
                  c.input(bias).dims.to_string(), channels);
    e.bias = c.input(bias).as<float>();
  }
  if (c.has_input(residual)) {
    if (c.input(residual).count() != count)
      return fail(ErrorCode::shape_mismatch, "{} added to {} elements",
                  c.input(residual).dims.to_string(), count);
    e.residual = c.input(residual).as<float>();
  }
  return e;
}

Status fused_activation(KernelContext& c) {
  const Tensor& x = c.input(0);
  HOLOGRAM_TRY(const Activation activation, activation_named(c.text("activation")));
  HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
  backends::dense::activate(activation, static_cast<float>(c.number("activation_first")),
                            static_cast<float>(c.number("activation_second")), x.as<float>(),
                            y.as<float>(), static_cast<size_t>(x.count()), c.threads());
  return {};
}

// sin(x), or cos(x) for `quarters` of 1, by the formula of ONNX Runtime where angles are small.
Status fused_sine(KernelContext& c) {
  using backends::dense::Function;
  constexpr float kSmall = 10000;  // radians
  const Tensor& x = c.input(0);
  HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
  const bool cosine = c.integer("quarters") == 1;
  const float* from = x.as<float>();
  float* to = y.as<float>();
  backends::dense::apply(cosine ? Function::cos : Function::sin, from, to,
                         static_cast<size_t>(x.count()));
  for (int64_t i = 0; i < x.count(); ++i)
    if (!(std::abs(from[i]) < kSmall)) to[i] = cosine ? std::cos(from[i]) : std::sin(from[i]);
  return {};
}

namespace {

constexpr Kernel kKernels[] = {
    {"hologram.Activation", fused_activation},
    {"hologram.Attention", fused_attention},
    {"hologram.Conv", fused_conv},
    {"hologram.ConvInteger", fused_conv_integer},
    {"hologram.Fourier", fused_fourier},
    {"hologram.FromBlocked", from_blocked},
    {"hologram.GRU", fused_gru},
    {"hologram.Gate", fused_gate},
    {"hologram.GatherPacked", gather_packed},
    {"hologram.GlobalAveragePool", blocked_global_average},
    {"hologram.LSTM", fused_lstm},
    {"hologram.MatMul", fused_matmul},
    {"hologram.MatMulInteger", fused_matmul_integer},
    {"hologram.Pool", blocked_pool},
    {"hologram.Rotary", fused_rotary},
    {"hologram.RotaryPairs", fused_rotary_pairs},
    {"hologram.Scale", blocked_scale},
    {"hologram.Sine", fused_sine},
    {"hologram.Spread", blocked_spread},
    {"hologram.ToBlocked", to_blocked},
};

}  // namespace

std::span<const Kernel> fused_kernels() { return kKernels; }

}  // namespace hologram::kernels
