// Rotary position embedding: pairs of a head's elements turn by an angle of the token's position.
#include "backends/cpu/kernels/attention.h"

namespace hologram::kernels {

Status rotary_embedding(KernelContext& c) {
  const Tensor& x = c.input(0);
  const Dims &cos = c.input(1).dims, &sin = c.input(2).dims;
  const bool packed = x.dims.rank() == 3;
  const int64_t heads = packed ? c.integer("num_heads") : x.dims.rank() == 4 ? x.dims[1] : 0;
  if (heads < 1 || (packed && x.dims[2] % heads != 0))
    return fail(ErrorCode::shape_mismatch,
                "input {} of {} heads; rank 4, or rank 3 and num_heads expected",
                x.dims.to_string(), heads);
  const int64_t batch = x.dims[0], tokens = x.dims[packed ? 1 : 2];
  const int64_t size = packed ? x.dims[2] / heads : x.dims[3];
  const int64_t asked = c.integer("rotary_embedding_dim");
  const int64_t turned = asked == 0 ? size : asked, half = turned / 2;
  if (turned < 0 || turned > size || turned % 2 != 0)
    return fail(ErrorCode::invalid_argument, "{} of {} elements of a head cannot turn in pairs",
                turned, size);
  const bool by_position = c.has_input(3);
  const bool fits = cos == sin && (by_position ? cos.rank() == 2 && cos[1] == half
                                               : cos == Dims{batch, tokens, half});
  if (!fits)
    return fail(ErrorCode::shape_mismatch, "cos_cache {} and sin_cache {} for input {}",
                cos.to_string(), sin.to_string(), x.dims.to_string());
  if (by_position) {
    if (c.input(3).count() != batch * tokens)
      return fail(ErrorCode::shape_mismatch, "position_ids {} for input {}",
                  c.input(3).dims.to_string(), x.dims.to_string());
    for (const int64_t position : c.input(3).span<int64_t>())
      if (position < 0 || position >= cos[0])
        return fail(ErrorCode::out_of_range, "position {} of a cache of {}", position, cos[0]);
  }
  HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
  if (y.count() == 0) return {};
  const bool interleaved = c.integer("interleaved") != 0;
  const int64_t step = interleaved ? 2 : 1, other = interleaved ? 1 : half;
  c.threads().parallel_for(batch * tokens * heads, 64, [&](size_t begin, size_t end) {
    for (int64_t part = begin; part < static_cast<int64_t>(end); ++part) {
      // In the order of memory: [batch, tokens, heads] packed, else [batch, heads, tokens].
      const int64_t token =
          packed ? part / heads : part / (heads * tokens) * tokens + part % tokens;
      const int64_t angle = (by_position ? c.input(3).as<int64_t>()[token] : token) * half;
      const float *cosines = c.input(1).as<float>() + angle, *from = x.as<float>() + part * size;
      const float* sines = c.input(2).as<float>() + angle;
      float* to = y.as<float>() + part * size;
      for (int64_t i = 0; i < half; ++i) {
        const float a = from[i * step], b = from[i * step + other];
        to[i * step] = cosines[i] * a - sines[i] * b;
        to[i * step + other] = sines[i] * a + cosines[i] * b;
      }
      std::copy(from + turned, from + size, to + turned);
    }
  });
  return {};
}

}  // namespace hologram::kernels
