// Products of quantised matrices and convolutions of quantised images.
//
// Operands become what they stand for without the scale, x - zero point, in i32 (f64 where an
// operand may be an 8-bit float: also exact for integers), and go through gemm; the scales are
// applied to the sums.
#include <cmath>

#include "backends/cpu/kernels/columns.h"
#include "backends/cpu/kernels/convolution.h"
#include "backends/cpu/kernels/gemm.h"
#include "backends/cpu/kernels/pointwise.h"
#include "backends/cpu/kernels/quantisation.h"

namespace hologram::kernels {
namespace {

Dims leading(const Dims& dims) { return Dims(std::span(dims.begin(), dims.rank() - 2)); }

// A scale or zero point of a matrix operand: one for the tensor, a line (row of A, column of B), or
// a line of every matrix.
struct PerLine {
  std::span<const float> values;
  int64_t matrix_step = 0, line_step = 0;
  float at(int64_t matrix, int64_t line) const {
    return values.empty() ? 0.f : values[matrix * matrix_step + line * line_step];
  }
};

Result<PerLine> per_line(KernelContext& c, size_t input, int64_t matrices, int64_t lines) {
  PerLine result;
  if (!c.has_input(input)) return result;
  HOLOGRAM_TRY(result.values, as_floats(c, c.input(input)));
  const int64_t count = c.input(input).count();
  if (count == 1) return result;
  result.line_step = 1;
  if (count == lines) return result;
  result.matrix_step = lines;
  if (count == matrices * lines) return result;
  return fail(ErrorCode::shape_mismatch,
              "a scale or zero point {} of {} matrices of {} rows or columns",
              c.input(input).dims.to_string(), matrices, lines);
}

struct Operands {
  size_t a, b, a_zero, b_zero;
};

struct Product {
  Dims a, b, batch, dims;
  int64_t m = 0, n = 0, k = 0;
  // The matrix of an operand that belongs to matrix `index` of the result.
  int64_t matrix(const Dims& operand, int64_t index) const {
    const Dims own = leading(operand), strides = own.strides();
    int64_t result = 0;
    for (size_t axis = batch.rank(); axis-- > 0; index /= batch[axis]) {
      const size_t shift = batch.rank() - own.rank();
      if (axis >= shift && own[axis - shift] != 1)
        result += index % batch[axis] * strides[axis - shift];
    }
    return result;
  }
};

Result<Product> make_product(const Dims& left, const Dims& right) {
  Product p{.a = left, .b = right};
  if (left.rank() == 0 || right.rank() == 0)
    return fail(ErrorCode::shape_mismatch, "a scalar operand");
  const bool row = left.rank() == 1, column = right.rank() == 1;
  if (row) p.a.insert(0, 1);
  if (column) p.b.push_back(1);
  p.m = p.a[p.a.rank() - 2];
  p.k = p.a.back();
  p.n = p.b.back();
  if (p.b[p.b.rank() - 2] != p.k)
    return fail(ErrorCode::shape_mismatch, "{} and {} do not multiply", left.to_string(),
                right.to_string());
  HOLOGRAM_TRY(p.batch, broadcast_dims(leading(p.a), leading(p.b)));
  p.dims = p.batch;
  if (!row) p.dims.push_back(p.m);
  if (!column) p.dims.push_back(p.n);
  return p;
}

// out = (A - a_zero) * (B - b_zero), all matrices.
template <typename T>
Status multiply(KernelContext& c, const Product& p, const Operands& in, T* out) {
  HOLOGRAM_TRY(const auto a, as_floats(c, c.input(in.a)));
  HOLOGRAM_TRY(const auto b, as_floats(c, c.input(in.b)));
  const int64_t a_count = leading(p.a).count(), b_count = leading(p.b).count();
  HOLOGRAM_TRY(const PerLine a_zero, per_line(c, in.a_zero, a_count, p.m));
  HOLOGRAM_TRY(const PerLine b_zero, per_line(c, in.b_zero, b_count, p.n));
  HOLOGRAM_TRY(auto left, c.scratch<T>(a.size()));
  HOLOGRAM_TRY(auto right, c.scratch<T>(b.size()));
  for (int64_t at = 0, i = 0; i < a_count; ++i)
    for (int64_t row = 0; row < p.m; ++row) {
      const float zero = a_zero.at(i, row);
      for (int64_t x = 0; x < p.k; ++x, ++at) left[at] = static_cast<T>(a[at] - zero);
    }
  for (int64_t at = 0, i = 0; i < b_count; ++i)
    for (int64_t x = 0; x < p.k; ++x)
      for (int64_t column = 0; column < p.n; ++column, ++at)
        right[at] = static_cast<T>(b[at] - b_zero.at(i, column));
  for (int64_t i = 0; p.dims.count() > 0 && i < p.batch.count(); ++i)
    gemm<T>({.m = p.m,
             .n = p.n,
             .k = p.k,
             .a = left.data() + p.matrix(p.a, i) * p.m * p.k,
             .a_row = p.k,
             .b = right.data() + p.matrix(p.b, i) * p.k * p.n,
             .b_row = p.n,
             .c = out + i * p.m * p.n,
             .c_row = p.n},
            c.threads());
  return {};
}

struct ConvOperands {
  size_t x, w, x_zero, w_zero;
};

// The sums of a convolution in i32. `make` gives memory for the shape of the result.
template <typename Make>
Status convolve(KernelContext& c, const ConvOperands& in, const Make& make) {
  const Tensor &x = c.input(in.x), &w = c.input(in.w);
  const size_t rank = x.dims.rank();
  const int64_t groups = c.integer("group", 1);
  if (rank < 3 || w.dims.rank() != rank || groups < 1 || w.dims[0] % groups != 0 ||
      x.dims[1] % groups != 0 || w.dims[1] != x.dims[1] / groups)
    return fail(ErrorCode::shape_mismatch, "input {} and weights {} in {} groups",
                x.dims.to_string(), w.dims.to_string(), groups);
  HOLOGRAM_CHECK(check_kernel_shape(c, w.dims));
  HOLOGRAM_TRY(const Window window, make_window(c, spatial_dims(x.dims), spatial_dims(w.dims)));
  if (c.has_input(in.x_zero) && c.input(in.x_zero).count() != 1)
    return fail(ErrorCode::shape_mismatch, "the zero point of the input is {}, not a scalar",
                c.input(in.x_zero).dims.to_string());
  Dims dims = {x.dims[0], w.dims[0]};
  for (int64_t d : window.output) dims.push_back(d);
  HOLOGRAM_TRY(int32_t * out, make(dims));
  if (dims.count() == 0) return {};

  HOLOGRAM_TRY(const auto pixels, as_floats(c, x));
  HOLOGRAM_TRY(const auto weights, as_floats(c, w));
  HOLOGRAM_TRY(const PerLine x_zero, per_line(c, in.x_zero, 1, 1));
  HOLOGRAM_TRY(const PerLine w_zero, per_line(c, in.w_zero, 1, w.dims[0]));
  HOLOGRAM_TRY(auto image, c.scratch<int32_t>(pixels.size()));
  HOLOGRAM_TRY(auto filter, c.scratch<int32_t>(weights.size()));
  const float zero = x_zero.at(0, 0);
  for (size_t i = 0; i < pixels.size(); ++i) image[i] = static_cast<int32_t>(pixels[i] - zero);
  const int64_t filter_size = w.dims.product(1, rank);
  for (size_t i = 0; i < weights.size(); ++i)
    filter[i] = static_cast<int32_t>(weights[i] - w_zero.at(0, i / filter_size));

  const int64_t channels = w.dims[1], filters = w.dims[0] / groups;
  const int64_t taps = window.size.count(), positions = window.output.count();
  const int64_t area = window.input.count();
  HOLOGRAM_TRY(auto columns, c.scratch<int32_t>(channels * taps * positions));
  for (int64_t part = 0; part < x.dims[0] * groups; ++part) {
    const int32_t* from = image.data() + part * channels * area;
    c.threads().parallel_for(channels, 1, [&](size_t begin, size_t end) {
      for (size_t k = begin; k < end; ++k)
        unroll(from + k * area, window, columns.data() + k * taps * positions);
    });
    gemm<int32_t>({.m = filters,
                   .n = positions,
                   .k = channels * taps,
                   .a = filter.data() + part % groups * filters * channels * taps,
                   .a_row = channels * taps,
                   .b = columns.data(),
                   .b_row = positions,
                   .c = out + part * filters * positions,
                   .c_row = positions},
                  c.threads());
  }
  return {};
}

Status check_scalar(const KernelContext& c, size_t input, std::string_view what) {
  if (c.input(input).count() == 1) return {};
  return fail(ErrorCode::shape_mismatch, "{} {} is not a scalar", what,
              c.input(input).dims.to_string());
}

}  // namespace

Status matmul_integer(KernelContext& c) {
  HOLOGRAM_TRY(const Product p, make_product(c.input(0).dims, c.input(1).dims));
  HOLOGRAM_TRY(Tensor out, c.output(0, p.dims));
  return multiply<int32_t>(c, p, {.a = 0, .b = 1, .a_zero = 2, .b_zero = 3}, out.as<int32_t>());
}

Status qlinear_matmul(KernelContext& c) {
  HOLOGRAM_TRY(const Product p, make_product(c.input(0).dims, c.input(3).dims));
  HOLOGRAM_CHECK(check_scalar(c, 6, "y_scale"));
  HOLOGRAM_CHECK(check_scalar(c, 7, "y_zero_point"));
  HOLOGRAM_TRY(Tensor out, c.output(0, p.dims));
  HOLOGRAM_TRY(auto sums, c.scratch<double>(p.dims.count()));
  HOLOGRAM_CHECK(multiply<double>(c, p, {.a = 0, .b = 3, .a_zero = 2, .b_zero = 5}, sums.data()));
  HOLOGRAM_TRY(const PerLine a_scale, per_line(c, 1, leading(p.a).count(), p.m));
  HOLOGRAM_TRY(const PerLine b_scale, per_line(c, 4, leading(p.b).count(), p.n));
  HOLOGRAM_TRY(const auto y_scale, as_floats(c, c.input(6)));
  HOLOGRAM_TRY(const auto y_zero, as_floats(c, c.input(7)));
  if (out.count() == 0) return {};
  const QuantisedWriter writer(out, nullptr, true);
  for (int64_t at = 0, i = 0; i < p.batch.count(); ++i) {
    const int64_t a = p.matrix(p.a, i), b = p.matrix(p.b, i);
    for (int64_t row = 0; row < p.m; ++row)
      for (int64_t column = 0; column < p.n; ++column, ++at) {
        const double scale =
            static_cast<double>(a_scale.at(a, row)) * b_scale.at(b, column) / y_scale[0];
        writer.write(at, static_cast<float>(sums[at] * scale), y_zero[0]);
      }
  }
  return {};
}

Status conv_integer(KernelContext& c) {
  return convolve(c, {.x = 0, .w = 1, .x_zero = 2, .w_zero = 3},
                  [&](const Dims& dims) -> Result<int32_t*> {
                    HOLOGRAM_TRY(Tensor out, c.output(0, dims));
                    return out.as<int32_t>();
                  });
}

Status qlinear_conv(KernelContext& c) {
  for (const auto& [input, what] :
       {std::pair<size_t, std::string_view>{1, "x_scale"}, {6, "y_scale"}, {7, "y_zero_point"}})
    HOLOGRAM_CHECK(check_scalar(c, input, what));
  Tensor out;
  std::span<int32_t> sums;
  HOLOGRAM_CHECK(convolve(c, {.x = 0, .w = 3, .x_zero = 2, .w_zero = 5},
                          [&](const Dims& dims) -> Result<int32_t*> {
                            HOLOGRAM_TRY(out, c.output(0, dims));
                            HOLOGRAM_TRY(sums, c.scratch<int32_t>(dims.count()));
                            return sums.data();
                          }));
  const int64_t filters = out.dims[1], positions = out.dims.product(2, out.dims.rank());
  HOLOGRAM_CHECK(check_bias(c, 8, filters));
  HOLOGRAM_TRY(const PerLine w_scale, per_line(c, 4, 1, filters));
  HOLOGRAM_TRY(const auto y_zero, as_floats(c, c.input(7)));
  const double x_scale = *c.input(1).as<float>(), y_scale = *c.input(6).as<float>();
  const QuantisedWriter writer(out, nullptr, true);
  for (int64_t line = 0; line < out.dims[0] * filters; ++line) {
    const double scale = x_scale * w_scale.at(0, line % filters) / y_scale;
    const int64_t bias = c.has_input(8) ? c.input(8).as<int32_t>()[line % filters] : 0;
    for (int64_t i = line * positions; i < (line + 1) * positions; ++i)
      writer.write(i, static_cast<float>(static_cast<double>(sums[i] + bias) * scale), y_zero[0]);
  }
  return {};
}

}  // namespace hologram::kernels
