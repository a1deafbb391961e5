// hologram.LSTM and hologram.GRU: f32, sigmoid gates, tanh states, no clipping, weights packed by
// the compiler as f32 or as 16-bit integers, one direction after the other.
#include <algorithm>

#include "backends/cpu/dense/gemm.h"
#include "backends/cpu/dense/gemm_bits.h"
#include "backends/cpu/dense/recurrent.h"
#include "backends/cpu/kernels/fused.h"

namespace hologram::kernels {
namespace {

namespace dense = backends::dense;

struct Layer {
  int64_t steps, batch, inputs, hidden, directions;
  bool batch_first, reverse;
};

Status expect(const KernelContext& c, size_t input, std::string_view name, int64_t count) {
  if (!c.has_input(input) || c.input(input).count() == count) return {};
  return fail(ErrorCode::shape_mismatch, "{} is {}; {} elements expected", name,
              c.input(input).dims.to_string(), count);
}

// Of 16-bit integers where its elements are bytes.
Status expect_matrix(const KernelContext& c, size_t input, std::string_view name,
                     int64_t directions, int64_t rows, int64_t columns) {
  const Tensor& matrix = c.input(input);
  const auto k = static_cast<size_t>(rows), n = static_cast<size_t>(columns);
  const size_t bytes = matrix.dtype == DType::u8
                           ? dense::packed_b_bits_bytes(dense::word_form(k, n))
                           : dense::packed_b_bytes(k, n);
  if ((matrix.dtype == DType::f32 || matrix.dtype == DType::u8) &&
      matrix.bytes() == bytes * static_cast<size_t>(directions))
    return {};
  return fail(ErrorCode::shape_mismatch, "{} is {} bytes; {} x {} expected", name, matrix.bytes(),
              rows, columns);
}

Result<Layer> layer_of(const KernelContext& c, int64_t gates) {
  const Dims& x = c.input(0).dims;
  const std::string_view direction = c.text("direction", "forward");
  Layer l{};
  l.batch_first = c.integer("layout") != 0;
  l.reverse = direction == "reverse";
  l.directions = direction == "bidirectional" ? 2 : 1;
  l.inputs = c.integer("input_size");
  l.hidden = c.integer("hidden_size");
  if (x.rank() != 3 || x[2] != l.inputs || l.hidden < 1 || l.hidden > kMostOfAMatrix / 4 ||
      l.inputs < 1 || l.inputs > kMostOfAMatrix)
    return fail(ErrorCode::shape_mismatch, "X {}; rank 3 and {} inputs to {} states expected",
                x.to_string(), l.inputs, l.hidden);
  if (l.batch_first && l.directions == 2)
    return fail(ErrorCode::unsupported, "two directions with the batch first");
  l.steps = x[l.batch_first ? 1 : 0];
  l.batch = x[l.batch_first ? 0 : 1];
  const int64_t width = gates * l.hidden, states = l.directions * l.batch * l.hidden;
  HOLOGRAM_CHECK(expect_matrix(c, 1, "packed W", l.directions, l.inputs, width));
  HOLOGRAM_CHECK(expect_matrix(c, 2, "packed R", l.directions, l.hidden, width));
  HOLOGRAM_CHECK(expect(c, 3, "B", l.directions * 2 * width));
  HOLOGRAM_CHECK(expect(c, 4, "sequence_lens", l.batch));
  HOLOGRAM_CHECK(expect(c, 5, "initial_h", states));
  HOLOGRAM_CHECK(expect(c, 6, "initial_c", states));
  HOLOGRAM_CHECK(expect(c, 7, "P", l.directions * 3 * l.hidden));
  if (c.has_input(4))
    for (const int32_t length : c.input(4).span<int32_t>())
      if (length < 0 || length > l.steps)
        return fail(ErrorCode::out_of_range, "a sequence of length {} of {}", length, l.steps);
  return l;
}

Status recurrent(KernelContext& c, int64_t gates) {
  HOLOGRAM_TRY(const Layer l, layer_of(c, gates));
  const bool is_lstm = gates == 4;
  float* outputs[3] = {};
  for (size_t i = 0; i < (is_lstm ? 3 : 2); ++i) {
    if (!c.wants_output(i)) continue;
    const Dims all = l.batch_first ? Dims{l.batch, l.steps, l.directions, l.hidden}
                                   : Dims{l.steps, l.directions, l.batch, l.hidden};
    const Dims state = l.batch_first ? Dims{l.batch, l.directions, l.hidden}
                                     : Dims{l.directions, l.batch, l.hidden};
    HOLOGRAM_TRY(Tensor out, c.output(i, i == 0 ? all : state));
    outputs[i] = out.as<float>();
  }
  const int64_t width = gates * l.hidden, state = l.batch * l.hidden;
  for (int64_t i = 0; i < l.directions; ++i) {
    // Of one direction, where that input or output is there.
    const auto part = [&](size_t input, int64_t count) {
      return c.has_input(input) ? c.input(input).as<float>() + i * count : nullptr;
    };
    const auto made = [&](size_t output, int64_t count) {
      return outputs[output] ? outputs[output] + i * count : nullptr;
    };
    const auto matrix = [&](size_t input, DType dtype) -> const std::byte* {
      const Tensor& all = c.input(input);
      return all.dtype != dtype ? nullptr : all.data + i * (all.bytes() / l.directions);
    };
    dense::Recurrent r{.steps = static_cast<size_t>(l.steps),
                       .batch = static_cast<size_t>(l.batch),
                       .input = static_cast<size_t>(l.inputs),
                       .hidden = static_cast<size_t>(l.hidden),
                       .reverse = l.reverse || i == 1,
                       .x = c.input(0).as<float>(),
                       .packed_w = reinterpret_cast<const float*>(matrix(1, DType::f32)),
                       .packed_r = reinterpret_cast<const float*>(matrix(2, DType::f32)),
                       .words_w = matrix(1, DType::u8),
                       .words_r = matrix(2, DType::u8),
                       .bias = part(3, 2 * width),
                       .initial_h = part(5, state),
                       .initial_c = is_lstm ? part(6, state) : nullptr,
                       .peephole = is_lstm ? part(7, 3 * l.hidden) : nullptr,
                       .lengths = c.has_input(4) ? c.input(4).as<int32_t>() : nullptr,
                       .linear_before_reset = c.integer("linear_before_reset") != 0,
                       .y = made(0, l.batch_first ? l.hidden : state),
                       .last_h = made(1, state),
                       .last_c = is_lstm ? made(2, state) : nullptr};
    const auto inputs = static_cast<size_t>(l.inputs), hidden = static_cast<size_t>(l.hidden);
    r.x_step = l.batch_first ? inputs : r.batch * inputs;
    r.x_sample = l.batch_first ? r.steps * inputs : inputs;
    const auto directions = static_cast<size_t>(l.directions);
    r.y_step = l.batch_first ? hidden : directions * r.batch * hidden;
    r.y_sample = l.batch_first ? r.steps * hidden : hidden;
    HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(is_lstm ? dense::lstm_scratch_bytes(r)
                                                            : dense::gru_scratch_bytes(r)));
    (is_lstm ? dense::lstm : dense::gru)(r, scratch.data(), c.threads());
  }
  return {};
}

}  // namespace

Status fused_lstm(KernelContext& c) { return recurrent(c, 4); }
Status fused_gru(KernelContext& c) { return recurrent(c, 3); }

}  // namespace hologram::kernels
