// Quantising and dequantising, one scale a tensor, an index of an axis, or a block along an axis.
#include "backends/cpu/kernels/quantisation.h"

#include <cmath>

#include "backends/cpu/dense/quantize.h"
#include "backends/cpu/kernels/convert.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/saturate.h"
#include "backends/cpu/kernels/softmax.h"
#include "backends/cpu/kernels/unpacked.h"

namespace hologram::kernels {

namespace dense = backends::dense;

namespace {

bool is_small_float(DType type) { return type >= DType::f8e4m3fn && type <= DType::f4e2m1; }

template <typename T>
void widen(const T* from, std::span<float> to) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(from[i]);
}

// Which scale belongs to which element: x is [outer, length, inner] about the axis, and element
// (o, a, i) has scale o * outer_step + a / block * axis_step + i * inner_step.
struct Grid {
  int64_t outer = 1, length = 1, inner = 1;
  int64_t block = 1, outer_step = 0, axis_step = 0, inner_step = 0;
};

Result<Grid> make_grid(const KernelContext& c) {
  const Dims &x = c.input(0).dims, &scale = c.input(1).dims;
  const int64_t block = c.integer("block_size", 0);
  if (c.has_input(2) && !(c.input(2).dims == scale) &&
      !(c.input(2).count() == 1 && scale.count() == 1))
    return fail(ErrorCode::shape_mismatch, "zero points {} and scales {}",
                c.input(2).dims.to_string(), scale.to_string());
  if (block < 0) return fail(ErrorCode::invalid_argument, "block_size {}", block);
  Grid grid;
  if (block == 0 && scale.count() == 1 && scale.rank() <= 1) {
    grid.inner = x.count();
    return grid;
  }
  HOLOGRAM_TRY(const size_t axis, c.axis("axis", 1, x.rank()));
  grid.outer = x.product(0, axis);
  grid.length = x[axis];
  grid.inner = x.product(axis + 1, x.rank());
  if (block == 0) {
    if (scale.rank() != 1 || scale[0] != x[axis])
      return fail(ErrorCode::shape_mismatch,
                  "scales {} for axis {} of {}; a scalar or one scale an index expected",
                  scale.to_string(), axis, x.to_string());
    grid.axis_step = 1;
    return grid;
  }
  Dims expected = x;
  expected[axis] = x[axis] / block + (x[axis] % block != 0);
  if (!(scale == expected))
    return fail(ErrorCode::shape_mismatch, "scales {} for {} in blocks of {}; {} expected",
                scale.to_string(), x.to_string(), block, expected.to_string());
  grid.block = block;
  grid.axis_step = grid.inner;
  grid.outer_step = expected[axis] * grid.inner;
  grid.inner_step = 1;
  return grid;
}

// Calls f(element, scale) for all elements, on all threads.
template <typename F>
void for_each(const Grid& g, ThreadPool& threads, const F& f) {
  if (g.inner == 0) return;
  const size_t grain = std::max<int64_t>(1, 16384 / g.inner);
  if (g.outer * g.length == 1) {  // one scale: split the elements themselves
    threads.parallel_for(g.inner, 16384, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) f(i, static_cast<int64_t>(i) * g.inner_step);
    });
    return;
  }
  threads.parallel_for(g.outer * g.length, grain, [&](size_t begin, size_t end) {
    for (int64_t line = begin; line < static_cast<int64_t>(end); ++line) {
      const int64_t scale =
          line / g.length * g.outer_step + line % g.length / g.block * g.axis_step;
      for (int64_t i = 0; i < g.inner; ++i) f(line * g.inner + i, scale + i * g.inner_step);
    }
  });
}

bool is_byte(DType type) { return type == DType::u8 || type == DType::i8; }

// One f32 scale for a whole tensor of bytes: what most models have.
bool is_plain(const KernelContext& c, const Grid& grid, DType floats, DType bytes) {
  return grid.outer * grid.length == 1 && grid.inner_step == 0 && floats == DType::f32 &&
         is_byte(bytes) && c.input(1).dtype == DType::f32 &&
         (!c.has_input(2) || c.input(2).dtype == bytes);
}
int32_t zero_point(const KernelContext& c) {
  if (!c.has_input(2)) return 0;
  const Tensor& zero = c.input(2);
  return zero.dtype == DType::i8 ? *zero.as<int8_t>() : *zero.as<uint8_t>();
}

Status quantize_linear(KernelContext& c) {
  const Tensor& x = c.input(0);
  HOLOGRAM_TRY(const Grid grid, make_grid(c));
  HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
  if (is_plain(c, grid, x.dtype, y.dtype) && !c.attributes().has("precision")) {
    const int32_t low = y.dtype == DType::i8 ? -128 : 0;
    const dense::Quantizer q{*c.input(1).as<float>(), zero_point(c), low, low + 255};
    c.threads().parallel_for(x.count(), 65536, [&](size_t begin, size_t end) {
      dense::quantize(q, x.as<float>() + begin, end - begin, y.as<uint8_t>() + begin);
    });
    return {};
  }
  HOLOGRAM_TRY(const auto values, as_floats(c, x));
  HOLOGRAM_TRY(const auto scales, as_floats(c, c.input(1)));
  std::span<const float> zeros;
  if (c.has_input(2)) {
    HOLOGRAM_TRY(zeros, as_floats(c, c.input(2)));
  }
  std::span<uint8_t> bytes;
  if (is_packed(y.dtype)) {
    HOLOGRAM_TRY(bytes, c.scratch<uint8_t>(x.count()));
  }
  const DType division = dtype_from_code(static_cast<uint8_t>(c.integer(
                                             "precision", static_cast<int64_t>(c.input(1).dtype))))
                             .value_or(DType::f32);
  const QuantisedWriter writer(y, bytes.data(), c.integer("saturate", 1) != 0);
  for_each(grid, c.threads(), [&](int64_t i, int64_t s) {
    writer.write(i, rounded_to(division, values[i] / scales[s]), zeros.empty() ? 0.f : zeros[s]);
  });
  if (is_packed(y.dtype)) pack_sub_byte(y.dtype, bytes.data(), x.count(), y.data);
  return {};
}

// Rounds once, from f32 to the result's type (widen_half).
Status dequantize_linear(KernelContext& c) {
  const Tensor& x = c.input(0);
  HOLOGRAM_TRY(const Grid grid, make_grid(c));
  HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
  if (is_plain(c, grid, y.dtype, x.dtype)) {
    c.threads().parallel_for(x.count(), 65536, [&](size_t begin, size_t end) {
      dense::dequantize(x.as<uint8_t>() + begin, end - begin, x.dtype == DType::i8,
                        *c.input(1).as<float>(), zero_point(c), y.as<float>() + begin);
    });
    return {};
  }
  HOLOGRAM_TRY(const auto values, as_floats(c, x));
  HOLOGRAM_TRY(const auto scales, as_floats(c, c.input(1)));
  std::span<const float> zeros;
  if (c.has_input(2)) {
    HOLOGRAM_TRY(zeros, as_floats(c, c.input(2)));
  }
  float* out = y.as<float>();
  for_each(grid, c.threads(), [&](int64_t i, int64_t s) {
    out[i] = (zeros.empty() ? values[i] : values[i] - zeros[s]) * scales[s];
  });
  return {};
}

Status dynamic_quantize_linear(KernelContext& c) {
  const Tensor& x = c.input(0);
  HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
  const float* values = x.as<float>();
  const auto count = static_cast<size_t>(x.count());
  const auto [low, high] = dense::range_of(values, count);  // it always has 0
  const float scale = (high - low) / 255.f;
  // All zeros: any scale will do, but not a division by zero.
  const float divisor = scale == 0 ? 1.f : scale;
  // No number where the range is infinite.
  const auto zero = truncated<int32_t>(std::nearbyint(std::clamp(-low / divisor, 0.f, 255.f)));
  const dense::Quantizer quantizer{divisor, zero, 0, 255};
  c.threads().parallel_for(count, 65536, [&](size_t begin, size_t end) {
    dense::quantize(quantizer, values + begin, end - begin, y.as<uint8_t>() + begin);
  });
  if (c.wants_output(1)) {
    HOLOGRAM_TRY(Tensor out, c.output(1, {}));
    *out.as<float>() = scale;
  }
  if (c.wants_output(2)) {
    HOLOGRAM_TRY(Tensor out, c.output(2, {}));
    *out.as<uint8_t>() = static_cast<uint8_t>(zero);
  }
  return {};
}

constexpr Kernel kKernels[] = {
    {"ConvInteger", conv_integer},
    {"DequantizeLinear", dequantize_linear, true},
    {"DynamicQuantizeLinear", dynamic_quantize_linear},
    {"MatMulInteger", matmul_integer},
    {"QLinearConv", qlinear_conv},
    {"QLinearMatMul", qlinear_matmul},
    {"QuantizeLinear", quantize_linear},
};

}  // namespace

Result<std::span<const float>> as_floats(KernelContext& c, const Tensor& tensor) {
  if (tensor.dtype == DType::f32) return std::span<const float>(tensor.span<float>());
  const int64_t count = tensor.count();
  HOLOGRAM_TRY(auto floats, c.scratch<float>(count));
  const auto* bytes = tensor.as<uint8_t>();
  if (is_packed(tensor.dtype)) {
    HOLOGRAM_TRY(auto unpacked, c.scratch<uint8_t>(count));
    unpack_sub_byte(tensor.dtype, tensor.data, count, unpacked.data());
    bytes = unpacked.data();
  }
  switch (tensor.dtype) {
    case DType::f16:
    case DType::bf16:
      convert_half_to_float(tensor, Tensor{.dtype = DType::f32,
                                           .dims = tensor.dims,
                                           .data = reinterpret_cast<std::byte*>(floats.data())});
      break;
    case DType::i8:
    case DType::i4:
    case DType::i2:
      widen(reinterpret_cast<const int8_t*>(bytes), floats);
      break;
    case DType::u8:
    case DType::u4:
    case DType::u2:
      widen(bytes, floats);
      break;
    case DType::i16:
      widen(tensor.as<int16_t>(), floats);
      break;
    case DType::u16:
      widen(tensor.as<uint16_t>(), floats);
      break;
    case DType::i32:
      widen(tensor.as<int32_t>(), floats);
      break;
    default:
      if (!is_small_float(tensor.dtype))
        return fail(ErrorCode::unsupported, "quantised elements of type {}", name_of(tensor.dtype));
      for (int64_t i = 0; i < count; ++i) floats[i] = small_float_to_f32(tensor.dtype, bytes[i]);
  }
  return std::span<const float>(floats);
}

QuantisedWriter::QuantisedWriter(const Tensor& out, uint8_t* bytes, bool saturate)
    : type_(out.dtype),
      data_(bytes ? reinterpret_cast<std::byte*>(bytes) : out.data),
      saturate_(saturate),
      is_integer_(!is_small_float(out.dtype)) {
  const bool is_signed =
      type_ == DType::i8 || type_ == DType::i16 || type_ == DType::i4 || type_ == DType::i2;
  const int bits = static_cast<int>(bits_of(type_));
  low_ = is_signed ? -std::ldexp(1, bits - 1) : 0;
  high_ = std::ldexp(1, is_signed ? bits - 1 : bits) - 1;
}

void QuantisedWriter::write(int64_t index, float value, float zero_point) const {
  if (!is_integer_) {
    const float sum = value + zero_point;
    // The one 4-bit float has no NaN; the standard's cases show negative zero.
    reinterpret_cast<uint8_t*>(data_)[index] =
        type_ == DType::f4e2m1 && std::isnan(sum) ? 0x8 : f32_to_small_float(type_, sum, saturate_);
    return;
  }
  const double sum = std::nearbyint(static_cast<double>(value)) + zero_point;
  const int32_t whole =
      std::isnan(sum) ? 0 : static_cast<int32_t>(std::min(std::max(sum, low_), high_));
  if (bits_of(type_) == 16)
    reinterpret_cast<uint16_t*>(data_)[index] = static_cast<uint16_t>(whole);
  else
    reinterpret_cast<uint8_t*>(data_)[index] = static_cast<uint8_t>(whole);
}

std::span<const Kernel> quantisation_kernels() { return kKernels; }

}  // namespace hologram::kernels
