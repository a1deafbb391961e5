// hologram.MatMulInteger and hologram.ConvInteger: 8-bit integers by constant ones, left as i32,
// scaled to f32 and finished by an epilogue, or quantised to 8 bits again.
//
// Inputs X, W, x_zero?, w_zero? (i32, one a column or filter), scale? (one, or one a column), bias?
// (f32), residual? (f32, of products alone), bias32? (i32, added to the sums). The type of the
// result says what becomes of the sums; 8 bits need the attributes output_scale and output_zero.
#include <algorithm>

#include "backends/cpu/dense/conv_int8.h"
#include "backends/cpu/kernels/fused.h"
#include "backends/cpu/kernels/window.h"

namespace hologram::kernels {

namespace dense = backends::dense;

namespace {

// What both have in common; T is GemmInt8 or ConvInt8, n how many columns or filters there are.
template <typename T>
Status read_common(KernelContext& c, int64_t n, const Tensor& y, T& g, int32_t& x_zero,
                   const int32_t*& w_zeros) {
  const bool x_signed = c.input(0).dtype == DType::i8;
  if (c.has_input(2)) {
    if (c.input(2).count() != 1)
      return fail(ErrorCode::shape_mismatch, "a zero point {}", c.input(2).dims.to_string());
    x_zero = x_signed ? *c.input(2).as<int8_t>() : *c.input(2).as<uint8_t>();
  }
  if (c.has_input(3)) {
    if (c.input(3).count() != n)
      return fail(ErrorCode::shape_mismatch, "zero points {}", c.input(3).dims.to_string());
    w_zeros = c.input(3).as<int32_t>();
    for (const int32_t zero : c.input(3).span<int32_t>())
      if (zero < -128 || zero > 255)
        return fail(ErrorCode::out_of_range, "{} is no zero point of 8 bits", zero);
  }
  if (c.has_input(7)) {
    if (c.input(7).count() != n)
      return fail(ErrorCode::shape_mismatch, "integer bias {}", c.input(7).dims.to_string());
    g.bias32 = c.input(7).as<int32_t>();
  }
  if (y.dtype == DType::i32) return {};
  if (c.has_input(4)) {
    const Tensor& scale = c.input(4);
    if (scale.count() != 1 && scale.count() != n)
      return fail(ErrorCode::shape_mismatch, "scales {}", scale.dims.to_string());
    g.scales = scale.as<float>();
    if (scale.count() != n) {
      HOLOGRAM_TRY(auto scales, c.scratch<float>(n));
      std::fill(scales.begin(), scales.end(), *scale.as<float>());
      g.scales = scales.data();
    }
  }
  g.output = y.dtype == DType::f32  ? dense::Int8Output::f32
             : y.dtype == DType::i8 ? dense::Int8Output::s8
                                    : dense::Int8Output::u8;
  g.output_scale = static_cast<float>(c.number("output_scale", 1));
  const int64_t output_zero = c.integer("output_zero");
  if (output_zero < -128 || output_zero > 255)
    return fail(ErrorCode::out_of_range, "{} is no zero point of 8 bits", output_zero);
  g.output_zero = static_cast<int32_t>(output_zero);
  HOLOGRAM_TRY(g.epilogue, read_epilogue(c, 5, 6, n, y.count()));
  return {};
}

}  // namespace

Status fused_matmul_integer(KernelContext& c) {
  const Tensor &a = c.input(0), &b = c.input(1);
  const int64_t k = c.integer("k"), n = c.integer("n");
  const bool packed = c.integer("packed") != 0;
  if (a.dims.rank() < 1 || k < 1 || n < 1 || n > kMostOfAMatrix || a.dims.back() != k)
    return fail(ErrorCode::shape_mismatch, "{} times {} x {}", a.dims.to_string(), k, n);
  const size_t bytes = dense::packed_b_int8_bytes(static_cast<size_t>(k), static_cast<size_t>(n));
  if (b.bytes() != (packed ? bytes : static_cast<uint64_t>(k * n)))
    return fail(ErrorCode::shape_mismatch, "a matrix of {} bytes for {} x {}", b.bytes(), k, n);
  const int64_t rows = a.count() / k;
  Dims dims = a.dims;
  dims[dims.rank() - 1] = n;
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  if (rows == 0) return {};
  dense::GemmInt8 g{.m = static_cast<size_t>(rows),
                    .n = static_cast<size_t>(n),
                    .k = static_cast<size_t>(k),
                    .a = a.data,
                    .lda = static_cast<size_t>(k),
                    .a_signed = a.dtype == DType::i8,
                    .packed_b = b.data,
                    .c = y.data,
                    .ldc = static_cast<size_t>(n)};
  if (!packed) {
    HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(bytes));
    dense::pack_b_int8(g.k, g.n, b.data, g.n, false, b.dtype == DType::i8, scratch.data());
    g.packed_b = scratch.data();
  }
  HOLOGRAM_CHECK(read_common(c, n, y, g, g.a_zero, g.b_zeros));
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(dense::gemm_int8_scratch_bytes(g)));
  dense::gemm_int8(g, scratch.data(), c.threads());
  return {};
}

// `weight_shape` [filters, channels of a group, sizes]; one or two spatial axes. x_channels_last,
// y_channels_last: the memory of X or Y is in the order [batch, height, width, channels].
Status fused_conv_integer(KernelContext& c) {
  const Tensor &x = c.input(0), &w = c.input(1);
  const Dims weights(c.integers("weight_shape"));
  const int64_t groups = c.integer("group", 1);
  const size_t rank = weights.rank();
  if (rank < 3 || rank > 4 || x.dims.rank() != rank || groups < 1 || groups > kMostOfAMatrix ||
      std::ranges::any_of(weights, [](int64_t d) { return d < 1 || d > kMostOfAMatrix; }) ||
      weights[0] % groups != 0 || x.dims[1] != weights[1] * groups)
    return fail(ErrorCode::shape_mismatch, "input {} and weights {} in {} groups",
                x.dims.to_string(), weights.to_string(), groups);
  // Each is small enough; so must they be together, or what is computed from them wraps.
  if (weights.count() > (int64_t{1} << 40))
    return fail(ErrorCode::resource_exhausted, "weights {}", weights.to_string());
  const Dims area(std::span(x.dims.begin() + 2, rank - 2));
  const Dims kernel(std::span(weights.begin() + 2, rank - 2));
  HOLOGRAM_TRY(const Window window, make_window(c, area, kernel, false));
  Dims dims = {x.dims[0], weights[0]};
  for (int64_t d : window.output) dims.push_back(d);
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  if (y.count() == 0) return {};
  const bool plane = rank == 4;
  const auto pair = [&](const Dims& values, int64_t missing) {
    return std::pair(static_cast<size_t>(plane ? values[0] : missing),
                     static_cast<size_t>(values.back()));
  };
  dense::ConvInt8 g{.x = x.data, .x_signed = x.dtype == DType::i8, .packed_w = w.data, .y = y.data};
  g.x_channels_last = c.integer("x_channels_last") != 0;
  g.y_channels_last = c.integer("y_channels_last") != 0;
  dense::ConvInt8Shape& s = g.shape;
  s.batch = static_cast<size_t>(x.dims[0]);
  s.channels = static_cast<size_t>(x.dims[1]);
  s.filters = static_cast<size_t>(weights[0]);
  s.groups = static_cast<size_t>(groups);
  std::tie(s.height, s.width) = pair(area, 1);
  std::tie(s.kernel_height, s.kernel_width) = pair(kernel, 1);
  std::tie(s.stride_height, s.stride_width) = pair(window.stride, 1);
  std::tie(s.dilation_height, s.dilation_width) = pair(window.dilation, 1);
  std::tie(s.pad_top, s.pad_left) = pair(window.pad_begin, 0);
  std::tie(s.out_height, s.out_width) = pair(window.output, 1);
  const bool packed = c.integer("packed") != 0;
  const size_t bytes = dense::packed_conv_int8_bytes(s);
  if (w.bytes() != (packed ? bytes : static_cast<uint64_t>(weights.count())))
    return fail(ErrorCode::shape_mismatch, "{} bytes of weights {}", w.bytes(),
                weights.to_string());
  if (!packed) {
    HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(bytes));
    dense::pack_conv_int8(s, w.data, w.dtype == DType::i8, scratch.data());
    g.packed_w = scratch.data();
  }
  if (c.has_input(6)) return fail(ErrorCode::unsupported, "a convolution with a residual");
  HOLOGRAM_CHECK(read_common(c, weights[0], y, g, g.x_zero, g.w_zeros));
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(dense::conv_int8_scratch_bytes(g)));
  dense::conv_int8(g, scratch.data(), c.threads());
  return {};
}

}  // namespace hologram::kernels
