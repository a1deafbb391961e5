// hologram.Gate: squeeze and excitation of a blocked image in one step. See dense/gate.h.
#include "backends/cpu/dense/gate.h"
#include "backends/cpu/kernels/fused.h"

namespace hologram::kernels {

namespace dense = backends::dense;

namespace {

// The names of a layer's attributes.
struct LayerNames {
  AttributeName activation, first, second, scale, shift, low;
};
constexpr LayerNames kSqueeze = {"squeeze_activation", "squeeze_first", "squeeze_second",
                                 "squeeze_scale",      "squeeze_shift", "squeeze_low"};
constexpr LayerNames kExcite = {"excite_activation", "excite_first", "excite_second",
                                "excite_scale",      "excite_shift", "excite_low"};

Result<dense::Gate::Layer> read_layer(const KernelContext& c, const LayerNames& names,
                                      size_t weights, size_t bias, int64_t inputs,
                                      int64_t outputs) {
  dense::Gate::Layer layer;
  const size_t expected =
      dense::gate_weight_bytes(static_cast<size_t>(inputs), static_cast<size_t>(outputs));
  if (c.input(weights).bytes() != expected)
    return fail(ErrorCode::shape_mismatch, "{} bytes of packed weights; {} expected",
                c.input(weights).bytes(), expected);
  layer.weights = c.input(weights).as<float>();
  if (c.has_input(bias)) {
    const Tensor& b = c.input(bias);
    if (b.count() != outputs && b.count() != 2 * outputs)
      return fail(ErrorCode::shape_mismatch, "bias {} for {} channels", b.dims.to_string(),
                  outputs);
    layer.epilogue.bias = b.as<float>();
    if (b.count() != outputs) layer.bias_rest = b.as<float>() + outputs;
  }
  dense::Epilogue& e = layer.epilogue;
  HOLOGRAM_TRY(e.activation, activation_named(c.text(names.activation)));
  if (!dense::is_gate_activation(e.activation))
    return fail(ErrorCode::unsupported, "{} in a gate", c.text(names.activation));
  const auto number = [&](AttributeName name, float otherwise) {
    return static_cast<float>(c.number(name, otherwise));
  };
  e.first = number(names.first, 0);
  e.second = number(names.second, 0);
  e.post_scale = number(names.scale, e.post_scale);
  e.post_shift = number(names.shift, e.post_shift);
  e.post_low = number(names.low, e.post_low);
  e.post = e.post_scale != 1.0f || e.post_shift != 0.0f || e.post_low != -HUGE_VALF;
  return layer;
}

}  // namespace

// Inputs X, squeeze, excite, squeeze_bias?, excite_bias?: the matrices are packed as weights of 1 x
// 1 convolutions, `channels` to `hidden` and back; biases are as those of hologram.Conv.
Status fused_gate(KernelContext& c) {
  const Tensor& x = c.input(0);
  const int64_t channels = c.integer("channels"), hidden = c.integer("hidden");
  if (channels < 1 || hidden < 1 || channels > kMostOfAMatrix || hidden > kMostOfAMatrix ||
      x.dims.rank() < 4 || !(blocked_dims(plain_dims(x.dims, channels)) == x.dims))
    return fail(ErrorCode::shape_mismatch, "a gate of {} and {} channels for {}", channels, hidden,
                x.dims.to_string());
  dense::Gate gate{.batch = static_cast<size_t>(x.dims[0]),
                   .pixels = static_cast<size_t>(x.dims.product(2, x.dims.rank() - 1)),
                   .channels = static_cast<size_t>(channels),
                   .hidden = static_cast<size_t>(hidden)};
  HOLOGRAM_TRY(gate.squeeze, read_layer(c, kSqueeze, 1, 3, channels, hidden));
  HOLOGRAM_TRY(gate.excite, read_layer(c, kExcite, 2, 4, hidden, channels));
  HOLOGRAM_TRY(gate.activation, activation_named(c.text("activation")));
  gate.first = static_cast<float>(c.number("activation_first"));
  gate.second = static_cast<float>(c.number("activation_second"));
  gate.plus_one = c.integer("plus_one") != 0;
  HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
  if (y.count() == 0) return {};
  if (x.dtype == DType::bf16)
    gate.x_bf16 = x.as<uint16_t>();
  else
    gate.x = x.as<float>();
  if (y.dtype == DType::bf16)
    gate.y_bf16 = y.as<uint16_t>();
  else
    gate.y = y.as<float>();
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(dense::gate_scratch_bytes(gate)));
  dense::gate(gate, scratch.data(), c.threads());
  return {};
}

}  // namespace hologram::kernels
