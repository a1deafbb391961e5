// hologram.Fourier: the transform of every window of a signal, [batch, 1, samples] to [batch,
// frequencies, windows]. `weight_shape` is that of the filters it stands for, `waves` which they
// are, and `sine` the sign of sines. Where there is a second result, sines are apart from cosines,
// and `weight_shape` is that of either.
#include "backends/cpu/dense/fourier.h"
#include "backends/cpu/kernels/fused.h"

namespace hologram::kernels {

namespace dense = backends::dense;

Status fused_fourier(KernelContext& c) {
  const Tensor &x = c.input(0), &table = c.input(1);
  const auto filters = c.integers("weight_shape"), strides = c.integers("strides");
  const int64_t waves = c.integer("waves"), taps = filters.size() == 3 ? filters[2] : 0;
  const int64_t stride = strides.empty() ? 1 : strides[0];
  constexpr int64_t kLongestStride = int64_t{1} << 31;
  if (waves < 0 || waves > static_cast<int64_t>(dense::Waves::both) || taps < 1 ||
      !dense::fourier_supported(static_cast<size_t>(taps)) || strides.size() > 1 || stride < 1 ||
      stride > kLongestStride)
    return fail(ErrorCode::unsupported, "no such Fourier transform");
  dense::Fourier t{.taps = static_cast<size_t>(taps),
                   .stride = static_cast<size_t>(stride),
                   .waves = static_cast<dense::Waves>(waves),
                   .sine = c.integer("sine", 1) < 0 ? -1.0f : 1.0f};
  const bool apart = c.wants_output(1);
  if (apart && t.waves != dense::Waves::both)
    return fail(ErrorCode::unsupported, "no such Fourier transform with sines apart");
  const auto rows =
      static_cast<int64_t>(dense::fourier_rows(apart ? dense::Waves::sines : t.waves, t.taps));
  if (filters[0] != rows || filters[1] != 1 || x.dims.rank() != 3 || x.dims[1] != 1 ||
      x.dims[2] < taps ||
      table.count() != static_cast<int64_t>(dense::fourier_table_floats(t.taps)))
    return fail(ErrorCode::shape_mismatch, "input {} and table {} of a transform of {} samples",
                x.dims.to_string(), table.dims.to_string(), taps);
  const int64_t frames = (x.dims[2] - taps) / stride + 1;
  HOLOGRAM_TRY(Tensor y, c.output(0, {x.dims[0], rows, frames}));
  t.batch = static_cast<size_t>(x.dims[0]);
  t.samples = static_cast<size_t>(x.dims[2]);
  t.frames = static_cast<size_t>(frames);
  t.input = x.as<float>();
  t.table = table.as<float>();
  t.output = y.as<float>();
  if (apart) {
    HOLOGRAM_TRY(const Tensor sines, c.output(1, y.dims));
    t.sines = sines.as<float>();
  }
  dense::fourier(t, c.threads());
  return {};
}

}  // namespace hologram::kernels
