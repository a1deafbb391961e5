// CausalConvWithState: a depthwise convolution over time that looks back only, and what it must
// remember of this call for the next.
#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/convolution.h"
#include "backends/cpu/kernels/dispatch.h"

namespace hologram::kernels {

Status causal_conv_with_state(KernelContext& c) {
  const Tensor &x = c.input(0), &weights = c.input(1);
  if (x.dims.rank() != 3 || weights.dims.rank() != 3 || weights.dims[0] != x.dims[1] ||
      weights.dims[1] != 1 || weights.dims[2] < 1)
    return fail(ErrorCode::shape_mismatch,
                "input {} and weights {}; [batch, channels, length] and [channels, 1, k] expected",
                x.dims.to_string(), weights.dims.to_string());
  const int64_t channels = x.dims[1], length = x.dims[2], size = weights.dims[2], past = size - 1;
  const Dims state = {x.dims[0], channels, past};
  HOLOGRAM_CHECK(check_bias(c, 2, channels));
  if (c.has_input(3) && !(c.input(3).dims == state))
    return fail(ErrorCode::shape_mismatch, "past_state {}; {} expected",
                c.input(3).dims.to_string(), state.to_string());
  const auto activation = c.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return fail(ErrorCode::invalid_argument, "activation '{}'; supported: none, silu, swish",
                activation);
  HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
  Tensor present;
  if (c.wants_output(1)) {
    HOLOGRAM_TRY(present, c.output(1, state));
  }
  if (y.count() == 0 && (!c.wants_output(1) || present.count() == 0)) return {};
  return dispatch_float(x.dtype, [&]<typename T>() -> Status {
    // The past and the input of every channel, one after the other.
    HOLOGRAM_TRY(auto lines, c.scratch<T>(x.dims[0] * channels * (past + length)));
    c.threads().parallel_for(x.dims[0] * channels, 4, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        T* line = lines.data() + i * static_cast<size_t>(past + length);
        if (c.has_input(3))
          std::copy_n(c.input(3).as<T>() + i * past, past, line);
        else
          std::fill_n(line, past, T(0));
        std::copy_n(x.as<T>() + i * length, length, line + past);
        const size_t channel = i % static_cast<size_t>(channels);
        const T* taps = weights.as<T>() + channel * size;
        T* out = y.as<T>() + i * length;
        std::fill_n(out, length, c.has_input(2) ? c.input(2).as<T>()[channel] : T(0));
        for (int64_t k = 0; k < size; ++k)
          for (int64_t t = 0; t < length; ++t) out[t] += taps[k] * line[t + k];
        if (activation != "none")
          for (int64_t t = 0; t < length; ++t) out[t] = out[t] / (1 + std::exp(-out[t]));
        if (present.data) std::copy_n(line + length, past, present.as<T>() + i * past);
      }
    });
    return {};
  });
}

}  // namespace hologram::kernels
