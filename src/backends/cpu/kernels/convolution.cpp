// Conv: f32 over one or two axes by the dense kernels, anything else unrolled into columns and
// multiplied.
#include "backends/cpu/kernels/convolution.h"

#include <algorithm>

#include "backends/cpu/kernels/columns.h"
#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/gemm.h"

namespace hologram::kernels {

backends::dense::ConvShape dense_conv_shape(const Window& w, const Dims& in, const Dims& out,
                                            int64_t groups) {
  const size_t rank = w.size.rank();
  auto at = [&](const Dims& dims, size_t axis, int64_t missing) {
    return static_cast<size_t>(axis + rank < 2 ? missing : dims[axis + rank - 2]);
  };
  const Dims in_size = spatial_dims(in), out_size = spatial_dims(out);
  return {.batch = static_cast<size_t>(in[0]),
          .in_channels = static_cast<size_t>(in[1]),
          .in_height = at(in_size, 0, 1),
          .in_width = at(in_size, 1, 1),
          .out_channels = static_cast<size_t>(out[1]),
          .out_height = at(out_size, 0, 1),
          .out_width = at(out_size, 1, 1),
          .kernel_height = at(w.size, 0, 1),
          .kernel_width = at(w.size, 1, 1),
          .stride_height = at(w.stride, 0, 1),
          .stride_width = at(w.stride, 1, 1),
          .pad_top = at(w.pad_begin, 0, 0),
          .pad_left = at(w.pad_begin, 1, 0),
          .dilation_height = at(w.dilation, 0, 1),
          .dilation_width = at(w.dilation, 1, 1),
          .groups = static_cast<size_t>(groups)};
}

bool fits_dense_conv(const Window& w, int64_t channels) {
  Dims extent = {channels};
  for (size_t i = 0; i < w.size.rank(); ++i)
    extent.push_back(w.input[i] + w.output[i] + w.pad_begin[i] + w.pad_end[i] +
                     (w.size[i] - 1) * w.dilation[i]);
  return extent.count() <= (int64_t{1} << 44);
}

Status check_bias(const KernelContext& c, size_t input, int64_t channels) {
  if (c.has_input(input) && c.input(input).count() != channels)
    return fail(ErrorCode::shape_mismatch, "bias {} for {} channels",
                c.input(input).dims.to_string(), channels);
  return {};
}

Status check_kernel_shape(const KernelContext& c, const Dims& weights) {
  const auto size = c.integers("kernel_shape");
  if (!size.empty() && !(Dims(size) == spatial_dims(weights)))
    return fail(ErrorCode::shape_mismatch, "kernel_shape {} and weights {}", Dims(size).to_string(),
                weights.to_string());
  return {};
}

namespace {

Status conv_dense(KernelContext& c, const Window& w, int64_t groups, const Tensor& y) {
  namespace dense = backends::dense;
  dense::Conv conv{.shape = dense_conv_shape(w, c.input(0).dims, y.dims, groups),
                   .input = c.input(0).as<float>(),
                   .output = y.as<float>()};
  HOLOGRAM_TRY(auto packed, c.scratch<std::byte>(
                                dense::packed_conv_weight_bytes(conv.shape, conv.input_layout)));
  auto* weights = reinterpret_cast<float*>(packed.data());
  dense::pack_conv_weights(conv.shape, conv.input_layout, c.input(1).as<float>(), weights);
  conv.packed_weights = weights;
  if (c.has_input(2)) conv.epilogue.bias = c.input(2).as<float>();
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(dense::conv_scratch_bytes(conv)));
  dense::conv(conv, scratch.data(), c.threads());
  return {};
}

template <typename T>
Status conv_columns(KernelContext& c, const Window& w, int64_t groups, const Tensor& y) {
  const Tensor &x = c.input(0), &weights = c.input(1);
  const int64_t channels = weights.dims[1], filters = weights.dims[0] / groups;
  const int64_t taps = w.size.count(), positions = w.output.count(), pixels = w.input.count();
  HOLOGRAM_TRY(auto columns, c.scratch<T>(channels * taps * positions));
  GemmScratch scratch;
  for (int64_t image = 0; image < x.dims[0]; ++image)
    for (int64_t group = 0; group < groups; ++group) {
      const T* in = x.as<T>() + (image * groups + group) * channels * pixels;
      T* out = y.as<T>() + (image * groups + group) * filters * positions;
      c.threads().parallel_for(channels, 1, [&](size_t begin, size_t end) {
        for (size_t k = begin; k < end; ++k)
          unroll(in + k * pixels, w, columns.data() + k * taps * positions);
      });
      if (c.has_input(2))
        for (int64_t f = 0; f < filters; ++f)
          std::fill_n(out + f * positions, positions, c.input(2).as<T>()[group * filters + f]);
      HOLOGRAM_CHECK(gemm<T>({.m = filters,
                              .n = positions,
                              .k = channels * taps,
                              .a = weights.as<T>() + group * filters * channels * taps,
                              .a_row = channels * taps,
                              .a_column = 1,
                              .b = columns.data(),
                              .b_row = positions,
                              .b_column = 1,
                              .c = out,
                              .c_row = positions,
                              .accumulate = c.has_input(2)},
                             c, scratch));
    }
  return {};
}

Status conv(KernelContext& c) {
  const Tensor &x = c.input(0), &weights = c.input(1);
  const size_t rank = x.dims.rank();
  const int64_t groups = c.integer("group", 1);
  if (rank < 3 || weights.dims.rank() != rank || groups < 1 || weights.dims[0] % groups != 0 ||
      x.dims[1] % groups != 0 || weights.dims[1] != x.dims[1] / groups)
    return fail(ErrorCode::shape_mismatch, "input {} and weights {} in {} groups",
                x.dims.to_string(), weights.dims.to_string(), groups);
  HOLOGRAM_CHECK(check_kernel_shape(c, weights.dims));
  HOLOGRAM_CHECK(check_bias(c, 2, weights.dims[0]));
  HOLOGRAM_TRY(const Window w, make_window(c, spatial_dims(x.dims), spatial_dims(weights.dims)));
  Dims dims = {x.dims[0], weights.dims[0]};
  for (int64_t d : w.output) dims.push_back(d);
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  if (y.count() == 0) return {};
  if (x.dtype == DType::f32 && rank <= 4 && x.count() > 0 && fits_dense_conv(w, x.dims[1]))
    return conv_dense(c, w, groups, y);
  return dispatch_float(x.dtype, [&]<typename T>() { return conv_columns<T>(c, w, groups, y); });
}

constexpr Kernel kKernels[] = {
    {"CausalConvWithState", causal_conv_with_state, true},
    {"Col2Im", col2im, true},
    {"Conv", conv, true},
    {"ConvTranspose", conv_transpose, true},
    {"DeformConv", deform_conv, true},
};

}  // namespace

std::span<const Kernel> convolution_kernels() { return kKernels; }

}  // namespace hologram::kernels
