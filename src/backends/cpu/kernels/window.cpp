#include "backends/cpu/kernels/window.h"

namespace hologram::kernels {
namespace {

// Larger numbers cannot be meant, and their products would overflow.
constexpr int64_t kLargest = int64_t{1} << 30;

bool in_range(std::span<const int64_t> list, int64_t smallest) {
  return std::ranges::all_of(list, [&](int64_t v) { return v >= smallest && v <= kLargest; });
}

bool is_same(std::string_view auto_pad) {
  return auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
}

Window empty_window(const Dims& input, const Dims& size, std::span<const int64_t> strides,
                    std::span<const int64_t> dilations) {
  const size_t rank = input.rank();
  return {.input = input,
          .size = size,
          .stride = strides.empty() ? Dims::filled(rank, 1) : Dims(strides),
          .dilation = dilations.empty() ? Dims::filled(rank, 1) : Dims(dilations),
          .pad_begin = Dims::filled(rank, 0),
          .pad_end = Dims::filled(rank, 0),
          .output = Dims::filled(rank, 0)};
}

}  // namespace

Status check_window(std::string_view auto_pad, std::span<const int64_t> size,
                    std::span<const int64_t> strides, std::span<const int64_t> dilations,
                    std::span<const int64_t> pads, size_t rank) {
  auto wrong = [&](std::span<const int64_t> list, size_t want) {
    return !list.empty() && list.size() != want;
  };
  if (rank == 0) return fail(ErrorCode::shape_mismatch, "an input without spatial axes");
  if (wrong(size, rank) || wrong(strides, rank) || wrong(dilations, rank) || wrong(pads, 2 * rank))
    return fail(ErrorCode::shape_mismatch,
                "kernel, strides, dilations or pads do not fit {} spatial axes", rank);
  if (!in_range(size, 1) || !in_range(strides, 1) || !in_range(dilations, 1))
    return fail(ErrorCode::invalid_argument,
                "strides, dilations and kernel sizes must be positive and at most {}", kLargest);
  // Taps are numbered, also those of a pool, which has no weights that bound them.
  if (!Dims(size).are_possible())
    return fail(ErrorCode::invalid_argument, "a kernel of {} is too large", Dims(size).to_string());
  if (!in_range(pads, 0))
    return fail(ErrorCode::invalid_argument, "pads must be at least 0 and at most {}", kLargest);
  if (auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty() && !is_same(auto_pad))
    return fail(ErrorCode::invalid_argument,
                "auto_pad '{}'; supported: NOTSET, VALID, SAME_UPPER, SAME_LOWER", auto_pad);
  return {};
}

Result<Window> make_window(std::string_view auto_pad, std::span<const int64_t> strides,
                           std::span<const int64_t> dilations, std::span<const int64_t> pads,
                           const Dims& input, const Dims& size, bool ceil_mode) {
  const size_t rank = input.rank();
  if (size.rank() != rank)
    return fail(ErrorCode::shape_mismatch, "a kernel of rank {} for {} spatial axes", size.rank(),
                rank);
  HOLOGRAM_CHECK(check_dims(input));
  HOLOGRAM_CHECK(check_window(auto_pad, size, strides, dilations, pads, rank));
  Window w = empty_window(input, size, strides, dilations);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t reach = (w.size[i] - 1) * w.dilation[i] + 1, stride = w.stride[i];
    if (is_same(auto_pad)) {
      w.output[i] = (input[i] + stride - 1) / stride;
      const int64_t pad = std::max<int64_t>(0, (w.output[i] - 1) * stride + reach - input[i]);
      w.pad_begin[i] = auto_pad == "SAME_UPPER" ? pad / 2 : pad - pad / 2;
      w.pad_end[i] = pad - w.pad_begin[i];
      continue;
    }
    if (auto_pad != "VALID" && !pads.empty()) {
      w.pad_begin[i] = pads[i];
      w.pad_end[i] = pads[i + rank];
    }
    const int64_t room = input[i] + w.pad_begin[i] + w.pad_end[i] - reach;
    if (room < 0)
      return fail(ErrorCode::shape_mismatch,
                  "a kernel that reaches over {} does not fit an axis "
                  "of {} with its pads",
                  reach, input[i]);
    w.output[i] = room / stride + 1;
    // The standard's formula for VALID rounds down in both modes.
    if (ceil_mode && auto_pad != "VALID")
      w.output[i] = std::min((room + stride - 1) / stride + 1,
                             (input[i] + w.pad_begin[i] + stride - 1) / stride);
  }
  return w;
}

Result<Window> make_window(const KernelContext& c, const Dims& input, const Dims& size,
                           bool ceil_mode) {
  return make_window(c.text("auto_pad", "NOTSET"), c.integers("strides"), c.integers("dilations"),
                     c.integers("pads"), input, size, ceil_mode);
}

Result<Window> make_transposed_window(const KernelContext& c, const Dims& input, const Dims& size) {
  const size_t rank = input.rank();
  const auto auto_pad = c.text("auto_pad", "NOTSET");
  const auto pads = c.integers("pads"), extra = c.integers("output_padding");
  auto shape = c.integers("output_shape");
  if (shape.size() == rank + 2) shape = shape.subspan(2);  // batch and channels, as some write it
  if (size.rank() != rank || (!extra.empty() && extra.size() != rank) ||
      (!shape.empty() && shape.size() != rank))
    return fail(ErrorCode::shape_mismatch,
                "kernel, output_padding or output_shape do not fit {} spatial axes", rank);
  if (!in_range(extra, 0) || !in_range(shape, 0))
    return fail(ErrorCode::invalid_argument,
                "output_padding and output_shape must be at least 0 and at most {}", kLargest);
  HOLOGRAM_CHECK(
      check_window(auto_pad, size, c.integers("strides"), c.integers("dilations"), pads, rank));
  Window w = empty_window(input, size, c.integers("strides"), c.integers("dilations"));
  w.output = input;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t reach = (size[i] - 1) * w.dilation[i] + 1;
    const int64_t full = w.stride[i] * (input[i] - 1) + (extra.empty() ? 0 : extra[i]) + reach;
    if (!shape.empty() || is_same(auto_pad)) {
      w.input[i] = shape.empty() ? input[i] * w.stride[i] : shape[i];
      const int64_t total = std::max<int64_t>(0, full - w.input[i]);
      w.pad_begin[i] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.pad_end[i] = total - w.pad_begin[i];
      continue;
    }
    if (auto_pad != "VALID" && !pads.empty()) {
      w.pad_begin[i] = pads[i];
      w.pad_end[i] = pads[i + rank];
    }
    w.input[i] = full - w.pad_begin[i] - w.pad_end[i];
    if (w.input[i] < 0 || input[i] == 0)
      return fail(ErrorCode::shape_mismatch, "axis {} of the result would have {} elements", i,
                  w.input[i]);
  }
  return w;
}

}  // namespace hologram::kernels
