// ConvTranspose and Col2Im: columns are folded back into images.
#include <algorithm>
#include <type_traits>

#include "backends/cpu/kernels/columns.h"
#include "backends/cpu/kernels/convolution.h"
#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/gemm.h"

namespace hologram::kernels {
namespace {

Status transpose_dense(KernelContext& c, const Window& w, int64_t groups, const Tensor& y) {
  namespace dense = backends::dense;
  dense::Conv conv{.shape = dense_conv_shape(w, c.input(0).dims, y.dims, groups),
                   .input = c.input(0).as<float>(),
                   .output = y.as<float>()};
  HOLOGRAM_TRY(auto packed,
               c.scratch<std::byte>(dense::packed_conv_transpose_weight_bytes(conv.shape)));
  auto* weights = reinterpret_cast<float*>(packed.data());
  dense::pack_conv_transpose_weights(conv.shape, c.input(1).as<float>(), weights);
  conv.packed_weights = weights;
  if (c.has_input(2)) conv.epilogue.bias = c.input(2).as<float>();
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(dense::conv_transpose_scratch_bytes(conv)));
  dense::conv_transpose(conv, scratch.data(), c.threads());
  return {};
}

// columns = weights^T * image, one group at a time; each filter's columns are then folded.
template <typename T>
Status transpose_columns(KernelContext& c, const Window& w, int64_t groups, const Tensor& y) {
  const Tensor &x = c.input(0), &weights = c.input(1);
  const int64_t filters = weights.dims[1], channels = x.dims[1] / groups;
  const int64_t taps = w.size.count(), positions = w.output.count(), pixels = w.input.count();
  HOLOGRAM_TRY(auto columns, c.scratch<T>(filters * taps * positions));
  GemmScratch scratch;
  for (int64_t image = 0; image < x.dims[0]; ++image)
    for (int64_t group = 0; group < groups; ++group) {
      T* out = y.as<T>() + (image * groups + group) * filters * pixels;
      for (int64_t f = 0; f < filters; ++f)
        std::fill_n(out + f * pixels, pixels,
                    c.has_input(2) ? c.input(2).as<T>()[group * filters + f] : T(0));
      HOLOGRAM_CHECK(gemm<T>({.m = filters * taps,
                              .n = positions,
                              .k = channels,
                              .a = weights.as<T>() + group * channels * filters * taps,
                              .a_row = 1,
                              .a_column = filters * taps,
                              .b = x.as<T>() + (image * groups + group) * channels * positions,
                              .b_row = positions,
                              .b_column = 1,
                              .c = columns.data(),
                              .c_row = positions},
                             c, scratch));
      c.threads().parallel_for(filters, 1, [&](size_t begin, size_t end) {
        for (size_t f = begin; f < end; ++f)
          fold(columns.data() + f * taps * positions, w, out + f * pixels);
      });
    }
  return {};
}

struct Complex64 {
  float re, im;
};
struct Complex128 {
  double re, im;
};
template <typename C>
requires std::is_same_v<C, Complex64> || std::is_same_v<C, Complex128> C operator+(C a, C b) {
  return {a.re + b.re, a.im + b.im};
}

template <typename Body>
Status dispatch_added(DType type, Body&& body) {
  switch (type) {
    case DType::boolean:
      return body.template operator()<bool>();
    case DType::complex64:
      return body.template operator()<Complex64>();
    case DType::complex128:
      return body.template operator()<Complex128>();
    default:
      return dispatch_number(type, body);
  }
}

}  // namespace

Status conv_transpose(KernelContext& c) {
  const Tensor &x = c.input(0), &weights = c.input(1);
  const size_t rank = x.dims.rank();
  const int64_t groups = c.integer("group", 1);
  if (rank < 3 || weights.dims.rank() != rank || groups < 1 || x.dims[1] % groups != 0 ||
      groups > std::max<int64_t>(1, x.dims[1]) || weights.dims[0] != x.dims[1])
    return fail(ErrorCode::shape_mismatch, "input {} and weights {} in {} groups",
                x.dims.to_string(), weights.dims.to_string(), groups);
  HOLOGRAM_CHECK(check_kernel_shape(c, weights.dims));
  HOLOGRAM_CHECK(check_bias(c, 2, weights.dims[1] * groups));
  HOLOGRAM_TRY(const Window w,
               make_transposed_window(c, spatial_dims(x.dims), spatial_dims(weights.dims)));
  Dims dims = {x.dims[0], weights.dims[1] * groups};
  for (int64_t d : w.input) dims.push_back(d);
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  if (y.count() == 0) return {};
  // The dense form packs weights for each place within a stride: a plan may name any.
  constexpr int64_t kMostPlaces = 1024;
  int64_t places = 1;
  for (const int64_t stride : w.stride) places = std::min(stride, kMostPlaces + 1) * places;
  if (x.dtype == DType::f32 && rank <= 4 && x.count() > 0 && places <= kMostPlaces &&
      fits_dense_conv(w, x.dims[1]))
    return transpose_dense(c, w, groups, y);
  return dispatch_float(x.dtype,
                        [&]<typename T>() { return transpose_columns<T>(c, w, groups, y); });
}

Status col2im(KernelContext& c) {
  const Tensor& x = c.input(0);
  HOLOGRAM_TRY(const Dims image, c.input_integers(1));
  HOLOGRAM_TRY(const Dims block, c.input_integers(2));
  for (int64_t d : image)
    if (d < 0) return fail(ErrorCode::shape_mismatch, "image_shape {}", image.to_string());
  HOLOGRAM_TRY(const Window w, make_window(c, image, block));
  const int64_t taps = block.count(), positions = w.output.count(), pixels = image.count();
  if (x.dims.rank() != 3 || x.dims[1] % taps != 0 || x.dims[2] != positions)
    return fail(ErrorCode::shape_mismatch,
                "input {} for images of {} in blocks of {}; [N, C * {}, {}] expected",
                x.dims.to_string(), image.to_string(), block.to_string(), taps, positions);
  Dims dims = {x.dims[0], x.dims[1] / taps};
  for (int64_t d : image) dims.push_back(d);
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  if (y.count() == 0) return {};
  return dispatch_added(x.dtype, [&]<typename T>() -> Status {
    std::fill_n(y.as<T>(), y.count(), T{});
    c.threads().parallel_for(dims[0] * dims[1], 1, [&](size_t begin, size_t end) {
      for (size_t plane = begin; plane < end; ++plane)
        fold(x.as<T>() + plane * taps * positions, w, y.as<T>() + plane * pixels);
    });
    return {};
  });
}

}  // namespace hologram::kernels
