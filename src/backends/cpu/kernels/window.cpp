#include "backends/cpu/kernels/window.h"

namespace hologram::kernels {

Result<Window> make_window(std::string_view auto_pad, std::span<const int64_t> strides,
                           std::span<const int64_t> dilations, std::span<const int64_t> pads,
                           const Dims& input, const Dims& size, bool ceil_mode) {
  const size_t rank = input.rank();
  auto wrong = [&](std::span<const int64_t> list, size_t want) {
    return !list.empty() && list.size() != want;
  };
  if (size.rank() != rank || wrong(strides, rank) || wrong(dilations, rank) ||
      wrong(pads, 2 * rank))
    return fail(ErrorCode::shape_mismatch,
                "kernel, strides, dilations or pads do not fit {} spatial axes", rank);
  Window w{.input = input,
           .size = size,
           .stride = Dims::filled(rank, 1),
           .dilation = Dims::filled(rank, 1),
           .pad_begin = Dims::filled(rank, 0),
           .pad_end = Dims::filled(rank, 0),
           .output = Dims::filled(rank, 0)};
  for (size_t i = 0; i < rank; ++i) {
    if (!strides.empty()) w.stride[i] = strides[i];
    if (!dilations.empty()) w.dilation[i] = dilations[i];
    if (w.stride[i] < 1 || w.dilation[i] < 1 || w.size[i] < 1)
      return fail(ErrorCode::invalid_argument,
                  "strides, dilations and kernel sizes must be positive");
    const int64_t reach = (w.size[i] - 1) * w.dilation[i] + 1;
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      w.output[i] = (input[i] + w.stride[i] - 1) / w.stride[i];
      const int64_t pad = std::max<int64_t>(0, (w.output[i] - 1) * w.stride[i] + reach - input[i]);
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
      return fail(ErrorCode::shape_mismatch, "a kernel of {} does not fit an axis of {}", reach,
                  input[i]);
    w.output[i] = room / w.stride[i] + 1;
    if (ceil_mode && room % w.stride[i] != 0 &&
        w.output[i] * w.stride[i] < input[i] + w.pad_begin[i])
      ++w.output[i];
  }
  return w;
}

Result<Window> make_window(const KernelContext& c, const Dims& input, const Dims& size,
                           bool ceil_mode) {
  return make_window(c.text("auto_pad", "NOTSET"), c.integers("strides"), c.integers("dilations"),
                     c.integers("pads"), input, size, ceil_mode);
}

}  // namespace hologram::kernels
