// hologram.Conv: a convolution in f32 of one or two spatial axes with its epilogue, either side in
// either layout, weights packed by the compiler or not.
#include "backends/cpu/dense/conv_bf16.h"
#include "backends/cpu/dense/conv_bytes.h"
#include "backends/cpu/dense/conv_digits.h"
#include "backends/cpu/dense/conv_joined.h"
#include "backends/cpu/dense/conv_mirror.h"
#include "backends/cpu/dense/conv_shorts.h"
#include "backends/cpu/dense/conv_signal.h"
#include "backends/cpu/dense/depthwise.h"
#include "backends/cpu/dense/gemm_half.h"
#include "backends/cpu/kernels/convolution.h"
#include "backends/cpu/kernels/fused.h"
#include "backends/cpu/kernels/samples.h"

namespace hologram::kernels {

namespace dense = backends::dense;

namespace {

Status expect_bytes(size_t bytes, size_t expected) {
  if (bytes == expected) return {};
  return fail(ErrorCode::shape_mismatch, "{} bytes of packed weights; {} expected", bytes,
              expected);
}

// Values of a sample before and behind a convolution.
struct Sample {
  size_t in, out;
  explicit Sample(const dense::Conv& conv)
      : in(sample_values(conv.shape.in_channels, conv.shape.in_height * conv.shape.in_width,
                         conv.input_layout)),
        out(sample_values(conv.shape.out_channels, conv.shape.out_height * conv.shape.out_width,
                          conv.output_layout)) {}

  // Of images whose type the job says.
  template <typename Job>
  Job narrow(Job job, size_t n) const {
    const auto size = [](bool bf16) { return bf16 ? sizeof(uint16_t) : sizeof(float); };
    job.input = static_cast<const std::byte*>(job.input) + n * in * size(job.input_bf16);
    job.output = static_cast<std::byte*>(job.output) + n * out * size(job.output_bf16);
    if (job.residual_bf16) job.residual_bf16 += n * out;
    return wide_residual(job, n);
  }
  template <typename Job>
  Job wide(Job job, size_t n) const {
    job.input += n * in;
    job.output += n * out;
    return wide_residual(job, n);
  }

 private:
  template <typename Job>
  Job wide_residual(Job job, size_t n) const {
    if (job.epilogue.residual) job.epilogue.residual += n * out;
    return job;
  }
};

// Of a signal, which is plain on both sides.
Status narrow_signal(KernelContext& c, const dense::Conv& conv, dense::Bf16Parts parts) {
  if (c.integer("packed") == 0 || c.has_input(3) || c.input(0).dtype != DType::f32 ||
      conv.input_layout != dense::Layout::nchw || !dense::signal_conv_supported(conv.shape))
    return fail(ErrorCode::unsupported, "no such convolution of bf16 parts with a plain output");
  HOLOGRAM_CHECK(
      expect_bytes(c.input(1).bytes(), dense::packed_signal_conv_bytes(conv.shape, parts)));
  const dense::SignalConv signal{.shape = conv.shape,
                                 .parts = parts,
                                 .input = conv.input,
                                 .packed_weights = c.input(1).data,
                                 .output = conv.output,
                                 .epilogue = conv.epilogue};
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(dense::signal_conv_scratch_bytes(signal)));
  dense::signal_conv(signal, scratch.data(), c.threads());
  return {};
}

// By filters that mirror themselves, the first `even` of them without a change of sign.
Status mirrored_signal(KernelContext& c, const dense::Conv& conv) {
  const int64_t even = c.integer("even");
  const auto filters = static_cast<int64_t>(conv.shape.out_channels);
  if (c.integer("packed") == 0 || c.has_input(3) || c.input(0).dtype != DType::f32 ||
      c.input(1).dtype != DType::f32 || conv.input_layout != dense::Layout::nchw ||
      conv.output_layout != dense::Layout::nchw || even < 0 || even > filters ||
      conv.shape.kernel_width < 4 || conv.shape.kernel_width % 2 != 0 ||
      !dense::signal_conv_supported(conv.shape))
    return fail(ErrorCode::unsupported, "no such convolution by filters that mirror themselves");
  const auto first = static_cast<size_t>(even);
  HOLOGRAM_CHECK(
      expect_bytes(c.input(1).bytes(), dense::packed_mirror_conv_bytes(conv.shape, first)));
  const dense::MirrorConv mirror{.shape = conv.shape,
                                 .even = first,
                                 .input = conv.input,
                                 .packed_weights = c.input(1).as<float>(),
                                 .output = conv.output,
                                 .epilogue = conv.epilogue};
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(dense::mirror_conv_scratch_bytes(mirror)));
  dense::mirror_conv(mirror, scratch.data(), c.threads());
  return {};
}

// Operands as bf16, of one part or two.
Status narrow_conv(KernelContext& c, const dense::Conv& conv, int64_t parts, bool output_bf16) {
  dense::ConvBf16 narrow{.shape = conv.shape,
                         .input_layout = conv.input_layout,
                         .parts = parts == 2 ? dense::Bf16Parts::two : dense::Bf16Parts::one,
                         .input = conv.input,
                         .input_bf16 = c.input(0).dtype == DType::bf16,
                         .packed_weights = c.input(1).data,
                         .output = conv.output,
                         .output_bf16 = output_bf16,
                         .epilogue = conv.epilogue};
  if ((parts == 1 || parts == 2) && conv.output_layout == dense::Layout::nchw && !output_bf16)
    return narrow_signal(c, conv, narrow.parts);
  if (c.has_input(3) && c.input(3).dtype == DType::bf16) {
    narrow.residual_bf16 = c.input(3).as<uint16_t>();
    narrow.epilogue.residual = nullptr;
  }
  if (parts == 2 && (narrow.input_bf16 || narrow.output_bf16 || narrow.residual_bf16))
    return fail(ErrorCode::unsupported, "bf16 images of a convolution of two parts");
  if (parts < 0 || parts > 2 || c.integer("packed") == 0 ||
      conv.output_layout != dense::Layout::blocked ||
      (narrow.input_bf16 && conv.input_layout != dense::Layout::blocked) ||
      !dense::conv_bf16_supported(conv.shape, conv.input_layout))
    return fail(ErrorCode::unsupported, "no such convolution of {} parts", parts);
  HOLOGRAM_CHECK(
      expect_bytes(c.input(1).bytes(),
                   dense::packed_conv_bf16_bytes(conv.shape, narrow.parts, conv.input_layout)));
  return run_samples(c, narrow, dense::conv_bf16_scratch_bytes, dense::conv_bf16,
                     [sample = Sample(conv)](const dense::ConvBf16& job, size_t n) {
                       return sample.narrow(job, n);
                     });
}

bool has_f32_images(const KernelContext& c, const Tensor& y) {
  return c.input(0).dtype == DType::f32 && y.dtype == DType::f32 &&
         (!c.has_input(3) || c.input(3).dtype == DType::f32);
}

// Operands as 16-bit integers.
Status shorts_conv(KernelContext& c, const dense::Conv& conv, const Tensor& y) {
  if (!has_f32_images(c, y) || !dense::conv_shorts_supported(conv.shape))
    return fail(ErrorCode::unsupported, "no such convolution of 16-bit integers");
  HOLOGRAM_CHECK(expect_bytes(c.input(1).bytes(), dense::packed_conv_shorts_bytes(conv.shape)));
  const dense::ConvShorts shorts{.shape = conv.shape,
                                 .input = conv.input,
                                 .packed_weights = c.input(1).data,
                                 .output = conv.output,
                                 .epilogue = conv.epilogue};
  return run_samples(c, shorts, dense::conv_shorts_scratch_bytes, dense::conv_shorts,
                     [sample = Sample(conv)](const dense::ConvShorts& job, size_t n) {
                       return sample.wide(job, n);
                     });
}

// Operands as 16-bit integers of two digits.
Status digits_conv(KernelContext& c, const dense::Conv& conv, const Tensor& y) {
  if (!has_f32_images(c, y) || !dense::conv_digits_supported(conv.shape))
    return fail(ErrorCode::unsupported, "no such convolution of two digits");
  HOLOGRAM_CHECK(expect_bytes(c.input(1).bytes(), dense::packed_conv_digits_bytes(conv.shape)));
  const dense::ConvDigits digits{.shape = conv.shape,
                                 .input = conv.input,
                                 .packed_weights = c.input(1).data,
                                 .output = conv.output,
                                 .epilogue = conv.epilogue};
  return run_samples(c, digits, dense::conv_digits_scratch_bytes, dense::conv_digits,
                     [sample = Sample(conv)](const dense::ConvDigits& job, size_t n) {
                       return sample.wide(job, n);
                     });
}

// Operands as 8-bit integers.
Status bytes_conv(KernelContext& c, const dense::Conv& conv, const Tensor& y) {
  dense::ConvBytes bytes{.shape = conv.shape,
                         .input = conv.input,
                         .input_bf16 = c.input(0).dtype == DType::bf16,
                         .packed_weights = c.input(1).data,
                         .output = conv.output,
                         .output_bf16 = y.dtype == DType::bf16,
                         .epilogue = conv.epilogue};
  if (c.has_input(3) && c.input(3).dtype == DType::bf16) {
    bytes.residual_bf16 = c.input(3).as<uint16_t>();
    bytes.epilogue.residual = nullptr;
  }
  if (!dense::conv_bytes_supported(conv.shape))
    return fail(ErrorCode::unsupported, "no such convolution of one digit");
  HOLOGRAM_CHECK(expect_bytes(c.input(1).bytes(), dense::packed_conv_bytes_bytes(conv.shape)));
  return run_samples(c, bytes, dense::conv_bytes_scratch_bytes, dense::conv_bytes,
                     [sample = Sample(conv)](const dense::ConvBytes& job, size_t n) {
                       return sample.narrow(job, n);
                     });
}

// The image that a convolution of points makes of the input, for the depthwise one behind it.
Result<Dims> points_image(const KernelContext& c, const Dims& points, int64_t channels) {
  const Dims& x = c.input(0).dims;
  constexpr int64_t kMost = int64_t{1} << 31, kMostOfAnImage = int64_t{1} << 48;
  const Dims in = points.rank() == 4 && x.rank() == 5 ? plain_dims(x, points[1]) : Dims();
  if (in.rank() != 4 || points[0] != channels || points[1] < 1 || points[1] > kMost ||
      points[2] != 1 || points[3] != 1 || !c.has_input(4) || c.integer("blocked_input") == 0 ||
      static_cast<uint64_t>(points.count()) > c.input(4).bytes() || !(blocked_dims(in) == x))
    return fail(ErrorCode::shape_mismatch, "input {} and weights {} before {} channels",
                x.to_string(), points.to_string(), channels);
  Dims image = {in[0], channels, in[2], in[3]};
  if (in[0] * in[2] * in[3] > kMostOfAnImage / channels)
    return fail(ErrorCode::unsupported, "an image {} between two convolutions", image.to_string());
  return image;
}

// A convolution of points and `conv`, which is depthwise and has all but its input.
Status joined_conv(KernelContext& c, const dense::Conv& conv, const Dims& points) {
  const Tensor& x = c.input(0);
  const int64_t parts = c.integer("points_parts"), output = c.integer("points_output");
  const bool narrow_x = x.dtype == DType::bf16;
  const bool narrow_y = output == static_cast<int64_t>(DType::bf16);
  dense::JoinedConv both{.points = {.input_layout = dense::Layout::blocked,
                                    .output_layout = dense::Layout::blocked,
                                    .input = x.as<float>()},
                         .depthwise = conv};
  both.points.long_sums = c.integer("points_long_sums") != 0;
  dense::ConvShape& shape = both.points.shape;
  shape.batch = conv.shape.batch;
  shape.in_channels = static_cast<size_t>(points[1]);
  shape.out_channels = conv.shape.in_channels;
  shape.in_height = shape.out_height = conv.shape.in_height;
  shape.in_width = shape.out_width = conv.shape.in_width;
  if (parts < 0 || parts > 2 || (output != 0 && !narrow_y) || c.has_input(3) ||
      ((narrow_x || narrow_y) && parts != 1) || (parts == 0 && c.input(4).dtype != DType::f32) ||
      conv.output_layout != dense::Layout::blocked ||
      !dense::joined_conv_supported(shape, conv.shape))
    return fail(ErrorCode::unsupported, "no such convolution of points before a depthwise one");
  dense::Epilogue& epilogue = both.points.epilogue;
  HOLOGRAM_TRY(epilogue.activation, activation_named(c.text("points_activation")));
  epilogue.first = static_cast<float>(c.number("points_first"));
  epilogue.second = static_cast<float>(c.number("points_second"));
  epilogue.post_scale = static_cast<float>(c.number("points_scale", 1));
  epilogue.post_shift = static_cast<float>(c.number("points_shift"));
  epilogue.post_low = static_cast<float>(c.number("points_low", -HUGE_VAL));
  epilogue.post =
      epilogue.post_scale != 1.0f || epilogue.post_shift != 0.0f || epilogue.post_low != -HUGE_VALF;
  if (c.has_input(5)) {
    const int64_t given = c.input(5).count();
    if (given != points[0] && given != 2 * points[0])
      return fail(ErrorCode::shape_mismatch, "bias {} for {} channels", c.input(5).dims.to_string(),
                  points[0]);
    epilogue.bias = c.input(5).as<float>();
    if (given != points[0]) both.points.bias_rest = epilogue.bias + points[0];
  }
  const dense::ConvBf16 narrow{.shape = shape,
                               .parts = parts == 2 ? dense::Bf16Parts::two : dense::Bf16Parts::one,
                               .input = x.data,
                               .input_bf16 = narrow_x,
                               .packed_weights = c.input(4).data,
                               .output_bf16 = narrow_y,
                               .epilogue = epilogue};
  HOLOGRAM_CHECK(expect_bytes(
      c.input(4).bytes(), parts != 0
                              ? dense::packed_conv_bf16_bytes(shape, narrow.parts)
                              : dense::packed_conv_weight_bytes(shape, dense::Layout::blocked)));
  if (parts != 0)
    both.narrow = &narrow;
  else
    both.points.packed_weights = c.input(4).as<float>();
  HOLOGRAM_TRY(auto scratch,
               c.scratch<std::byte>(dense::joined_conv_scratch_bytes(both, c.threads().size())));
  dense::joined_conv(both, scratch.data(), c.threads());
  return {};
}

}  // namespace

// Inputs X, W, B?, residual?, points?, points_bias?. B is a value a channel, or [2, channels]:
// values and what rounding took from them. `weight_shape` is that of the weights before they were
// packed; `packed` says that they are, for `algorithm` and the input's layout, as f32 or f16, as
// `parts` bf16 values each where that is not 0, as one or two `digits` (one of 16 bits where
// `digit_bits` says so), or as half the taps where
// the filters are `mirrored`, or as f64 where sums are `exact`; `long_sums` are not in parts. Where
// there is a `points_shape`, the image is what a 1 x 1 convolution by `points` makes of X, and this
// one is depthwise.
Status fused_conv(KernelContext& c) {
  const Tensor& x = c.input(0);
  const bool blocked_in = c.integer("blocked_input") != 0;
  const bool blocked_out = c.integer("blocked_output") != 0;
  const Dims weights(c.integers("weight_shape"));
  const int64_t groups = c.integer("group", 1);
  constexpr int64_t kMost = int64_t{1} << 31;
  if (weights.rank() < 3 || weights.rank() > 4 || groups < 1 || groups > kMost ||
      std::ranges::any_of(weights, [](int64_t d) { return d < 1 || d > kMost; }))
    return fail(ErrorCode::shape_mismatch, "weights {}", weights.to_string());
  // Each is small enough; so must they be together, or what is computed from them wraps.
  if (static_cast<uint64_t>(weights.count()) > c.input(1).bytes())
    return fail(ErrorCode::shape_mismatch, "{} bytes of weights {}", c.input(1).bytes(),
                weights.to_string());
  const int64_t channels = weights[1] * groups;
  const Dims points(c.integers("points_shape"));
  const bool joined = points.rank() != 0;
  Dims in = blocked_in ? plain_dims(x.dims, channels) : x.dims;
  if (joined) {
    HOLOGRAM_TRY(in, points_image(c, points, channels));
  }
  if (in.rank() != weights.rank() || in[1] != channels || weights[0] % groups != 0 ||
      (blocked_in && !joined && !(blocked_dims(in) == x.dims)))
    return fail(ErrorCode::shape_mismatch, "input {} and weights {} in {} groups",
                x.dims.to_string(), weights.to_string(), groups);
  HOLOGRAM_TRY(const Window w, make_window(c, spatial_dims(in), spatial_dims(weights)));
  Dims out = {in[0], weights[0]};
  for (int64_t d : w.output) out.push_back(d);
  HOLOGRAM_TRY(Tensor y, c.output(0, blocked_out ? blocked_dims(out) : out));
  if (y.count() == 0) return {};
  if (x.count() == 0)
    return fail(ErrorCode::shape_mismatch, "an empty input {}", x.dims.to_string());
  if (!fits_dense_conv(w, channels))
    return fail(ErrorCode::unsupported, "weights {} that reach far beyond the input {}",
                weights.to_string(), x.dims.to_string());

  dense::Conv conv{.shape = dense_conv_shape(w, in, out, groups),
                   .input_layout = blocked_in ? dense::Layout::blocked : dense::Layout::nchw,
                   .output_layout = blocked_out ? dense::Layout::blocked : dense::Layout::nchw,
                   .input = x.as<float>(),
                   .output = y.as<float>()};
  const int64_t algorithm = c.integer("algorithm");
  if (algorithm < 0 || algorithm > static_cast<int64_t>(dense::ConvAlgorithm::ordered))
    return fail(ErrorCode::unsupported, "convolution algorithm {}", algorithm);
  conv.shape.algorithm = static_cast<dense::ConvAlgorithm>(algorithm);
  if (!dense::conv_supported(conv.shape, conv.input_layout, conv.output_layout))
    return fail(ErrorCode::unsupported, "no convolution of weights {} in these layouts",
                weights.to_string());
  HOLOGRAM_TRY(conv.epilogue, read_epilogue(c, 2, 3, weights[0], y.count()));
  conv.long_sums = c.integer("long_sums") != 0;
  const bool exact = c.integer("exact") != 0;
  if (exact && (algorithm != 0 || joined || c.integer("packed") == 0 || c.integer("digits") != 0 ||
                c.integer("parts") != 0 || c.integer("mirrored") != 0 || x.dtype != DType::f32 ||
                y.dtype != DType::f32 || c.input(1).dtype != DType::u8))
    return fail(ErrorCode::unsupported, "no such convolution with sums of f64");
  if (joined &&
      (c.integer("digits") != 0 || c.integer("parts") != 0 || c.integer("mirrored") != 0 ||
       c.integer("packed") == 0 || c.input(1).dtype != DType::f32))
    return fail(ErrorCode::unsupported, "no such convolution behind one of points");
  if (const int64_t digits = c.integer("digits")) {
    const int64_t digit_bits = c.integer("digit_bits");
    if (digits < 1 || digits > 2 || c.integer("parts") != 0 || c.integer("packed") == 0 ||
        !blocked_in || !blocked_out || (digit_bits != 0 && (digit_bits != 16 || digits != 1)))
      return fail(ErrorCode::unsupported, "no such convolution of {} digits of {} bits", digits,
                  digit_bits);
    if (digit_bits == 16) return shorts_conv(c, conv, y);
    return digits == 1 ? bytes_conv(c, conv, y) : digits_conv(c, conv, y);
  }
  if (const int64_t parts = c.integer("parts"))
    return narrow_conv(c, conv, parts, y.dtype == DType::bf16);
  if (c.integer("mirrored") != 0) return mirrored_signal(c, conv);
  if (c.has_input(2) && c.input(2).count() == 2 * weights[0] &&
      conv.shape.algorithm != dense::ConvAlgorithm::ordered)
    conv.bias_rest = conv.epilogue.bias + weights[0];
  const bool narrow_x = x.dtype == DType::bf16, narrow_y = y.dtype == DType::bf16;
  if ((narrow_x && !blocked_in) || (narrow_y && !blocked_out) ||
      ((narrow_x || narrow_y) && (!dense::is_depthwise(conv.shape) || c.has_input(3))) ||
      (c.has_input(3) && c.input(3).dtype != DType::f32))
    return fail(ErrorCode::unsupported, "an f32 convolution of bf16 images");
  if (narrow_x && !joined) conv.input_bf16 = x.as<uint16_t>();
  if (narrow_y) conv.output_bf16 = y.as<uint16_t>();
  const size_t bytes = dense::packed_conv_weight_bytes(conv.shape, conv.input_layout);
  if (exact) {
    HOLOGRAM_CHECK(expect_bytes(c.input(1).bytes(), 2 * bytes));
    conv.exact_weights = reinterpret_cast<const double*>(c.input(1).data);
  } else if (c.integer("packed") != 0 && c.input(1).dtype == DType::f16) {
    if (c.input(1).bytes() * 2 != bytes)
      return fail(ErrorCode::shape_mismatch, "{} bytes of packed f16 weights; {} expected",
                  c.input(1).bytes(), bytes / 2);
    HOLOGRAM_TRY(auto wide, c.scratch<float>(bytes / sizeof(float)));
    dense::widen_half(c.input(1).as<uint16_t>(), wide.data(), wide.size(), c.threads());
    conv.packed_weights = wide.data();
  } else if (c.integer("packed") != 0) {
    HOLOGRAM_CHECK(expect_bytes(c.input(1).bytes(), bytes));
    conv.packed_weights = c.input(1).as<float>();
    if (joined) return joined_conv(c, conv, points);
  } else {
    if (!(c.input(1).dims == weights))
      return fail(ErrorCode::shape_mismatch, "weights {} where {} are expected",
                  c.input(1).dims.to_string(), weights.to_string());
    HOLOGRAM_TRY(auto packed, c.scratch<std::byte>(bytes));
    auto* floats = reinterpret_cast<float*>(packed.data());
    dense::pack_conv_weights(conv.shape, conv.input_layout, c.input(1).as<float>(), floats);
    conv.packed_weights = floats;
  }
  return run_samples(c, conv, dense::conv_scratch_bytes, dense::conv,
                     [sample = Sample(conv)](dense::Conv job, size_t n) {
                       if (job.input_bf16) job.input_bf16 += n * sample.in;
                       if (job.output_bf16) job.output_bf16 += n * sample.out;
                       return sample.wide(job, n);
                     });
}

}  // namespace hologram::kernels
