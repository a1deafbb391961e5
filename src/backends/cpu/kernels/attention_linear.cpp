// Linear attention: a state a head that every token updates, and a query reads.
#include <cmath>

#include "backends/cpu/kernels/attention.h"

namespace hologram::kernels {
namespace {

// What one head of keys and values does with its tokens, in order.
struct LinearHead {
  int64_t tokens, k_size, v_size;
  bool decays, corrects;  // gated*, *delta
  int64_t decay_size;     // k_size, or 1 for a decay a head
};

// S = exp(g) * S; S += beta * k x (v - S'k), or k x v; `error` has v_size elements.
void update(const LinearHead& h, const float* k, const float* v, const float* decay, float beta,
            float* state, float* error) {
  if (h.decays)
    for (int64_t i = 0; i < h.k_size; ++i) {
      const float keep = std::exp(decay[h.decay_size == 1 ? 0 : i]);
      for (int64_t j = 0; j < h.v_size; ++j) state[i * h.v_size + j] *= keep;
    }
  std::copy_n(v, h.v_size, error);
  if (h.corrects) {
    for (int64_t i = 0; i < h.k_size; ++i)
      for (int64_t j = 0; j < h.v_size; ++j) error[j] -= k[i] * state[i * h.v_size + j];
    for (int64_t j = 0; j < h.v_size; ++j) error[j] *= beta;
  }
  for (int64_t i = 0; i < h.k_size; ++i)
    for (int64_t j = 0; j < h.v_size; ++j) state[i * h.v_size + j] += k[i] * error[j];
}

}  // namespace

Status linear_attention(KernelContext& c) {
  const Dims &q = c.input(0).dims, &k = c.input(1).dims, &v = c.input(2).dims;
  const int64_t q_heads = c.integer("q_num_heads"), kv_heads = c.integer("kv_num_heads");
  constexpr int64_t kMostHeads = 1 << 14;
  if (q_heads < 1 || q_heads > kMostHeads || kv_heads < 1 || q_heads % kv_heads != 0)
    return fail(ErrorCode::invalid_argument,
                "q_num_heads {} and kv_num_heads {}; the first is a multiple of the second and at "
                "most {}",
                q_heads, kv_heads, kMostHeads);
  if (q.rank() != 3 || k.rank() != 3 || v.rank() != 3 || k[0] != q[0] || v[0] != q[0] ||
      k[1] != q[1] || v[1] != q[1] || q[2] % q_heads != 0 || k[2] % kv_heads != 0 ||
      v[2] % kv_heads != 0 || q[2] / q_heads != k[2] / kv_heads)
    return fail(ErrorCode::shape_mismatch, "query {}, key {} and value {} do not fit",
                q.to_string(), k.to_string(), v.to_string());
  const std::string_view rule = c.text("update_rule", "gated_delta");
  LinearHead h{.tokens = q[1], .k_size = k[2] / kv_heads, .v_size = v[2] / kv_heads};
  h.decays = rule == "gated" || rule == "gated_delta";
  h.corrects = rule == "delta" || rule == "gated_delta";
  if (!h.decays && !h.corrects && rule != "linear")
    return fail(ErrorCode::invalid_argument,
                "update_rule '{}'; supported: linear, gated, delta, gated_delta", rule);
  if ((h.decays && !c.has_input(4)) || (h.corrects && !c.has_input(5)))
    return fail(ErrorCode::invalid_argument, "update_rule '{}' needs {}", rule,
                h.decays && !c.has_input(4) ? "decay" : "beta");
  const int64_t batch = q[0];
  if (h.decays) {
    const Dims& decay = c.input(4).dims;
    h.decay_size = decay == Dims{batch, h.tokens, kv_heads} ? 1 : h.k_size;
    if (!(decay == Dims{batch, h.tokens, kv_heads * h.decay_size}))
      return fail(ErrorCode::shape_mismatch, "decay {} for key {}", decay.to_string(),
                  k.to_string());
  }
  int64_t betas = 0;
  if (h.corrects) {
    const Dims& beta = c.input(5).dims;
    betas = beta.rank() == 3 ? beta[2] : 0;
    if (!(beta == Dims{batch, h.tokens, betas}) || (betas != 1 && betas != kv_heads))
      return fail(ErrorCode::shape_mismatch, "beta {} for {} heads of key {}", beta.to_string(),
                  kv_heads, k.to_string());
  }
  const Dims state_dims = {batch, kv_heads, h.k_size, h.v_size};
  if (c.has_input(3) && !(c.input(3).dims == state_dims))
    return fail(ErrorCode::shape_mismatch, "past_state {}; {} expected",
                c.input(3).dims.to_string(), state_dims.to_string());

  HOLOGRAM_CHECK(check_dims(state_dims));
  HOLOGRAM_TRY(Tensor out, c.output(0, {batch, h.tokens, q_heads * h.v_size}));
  float* states;
  if (c.wants_output(1)) {
    HOLOGRAM_TRY(Tensor state, c.output(1, state_dims));
    states = state.as<float>();
  } else {
    HOLOGRAM_TRY(auto scratch, c.scratch<float>(state_dims.count()));
    states = scratch.data();
  }
  HOLOGRAM_TRY(auto errors, c.scratch<float>(batch * kv_heads * h.v_size));
  if (c.has_input(3))
    std::copy_n(c.input(3).as<float>(), state_dims.count(), states);
  else
    std::fill_n(states, state_dims.count(), 0.f);
  float scale = static_cast<float>(c.number("scale", 0));
  if (scale == 0) scale = h.k_size > 0 ? 1 / std::sqrt(static_cast<float>(h.k_size)) : 1;

  if (state_dims.count() == 0 && out.count() == 0) return {};
  const int64_t shared = q_heads / kv_heads;
  c.threads().parallel_for(batch * kv_heads, 1, [&](size_t begin, size_t end) {
    for (size_t part = begin; part < end; ++part) {
      const int64_t b = part / kv_heads, head = part % kv_heads;
      float *state = states + part * h.k_size * h.v_size, *error = errors.data() + part * h.v_size;
      for (int64_t t = b * h.tokens; t < (b + 1) * h.tokens; ++t) {
        const int64_t at = t * kv_heads + head;
        update(h, c.input(1).as<float>() + at * h.k_size, c.input(2).as<float>() + at * h.v_size,
               h.decays ? c.input(4).as<float>() + at * h.decay_size : nullptr,
               h.corrects ? c.input(5).as<float>()[t * betas + (betas == 1 ? 0 : head)] : 1.f,
               state, error);
        for (int64_t query = head * shared; query < (head + 1) * shared; ++query) {
          const float* from = c.input(0).as<float>() + (t * q_heads + query) * h.k_size;
          float* to = out.as<float>() + (t * q_heads + query) * h.v_size;
          std::fill_n(to, h.v_size, 0.f);
          for (int64_t i = 0; i < h.k_size; ++i)
            for (int64_t j = 0; j < h.v_size; ++j) to[j] += from[i] * state[i * h.v_size + j];
          for (int64_t j = 0; j < h.v_size; ++j) to[j] *= scale;
        }
      }
    }
  });
  return {};
}

}  // namespace hologram::kernels
