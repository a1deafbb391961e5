// What convolutions share that take an image apart into planes and multiply rows of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "backends/cpu/dense/conv.h"

namespace hologram::backends::dense {

// One axis: output i meets kernel position k at place i + lead(k) of the plane of residue(k).
struct ConvAxis {
  size_t in, out, kernel, stride, pad, dilation;
  size_t planes, size;  // residues that occur (the lowest ones at least), places of a plane

  ConvAxis(size_t in, size_t out, size_t kernel, size_t stride, size_t pad, size_t dilation)
      : in(in), out(out), kernel(kernel), stride(stride), pad(pad), dilation(dilation), planes(1) {
    for (size_t k = 0; k < kernel; ++k) planes = std::max(planes, residue(k) + 1);
    size = out + lead(kernel - 1);
  }
  static ConvAxis rows_of(const ConvShape& s) {
    return {s.in_height,     s.out_height, s.kernel_height,
            s.stride_height, s.pad_top,    s.dilation_height};
  }
  static ConvAxis columns_of(const ConvShape& s) {
    return {s.in_width, s.out_width, s.kernel_width, s.stride_width, s.pad_left, s.dilation_width};
  }
  size_t residue(size_t k) const { return k * dilation % stride; }
  size_t lead(size_t k) const { return k * dilation / stride; }
  // The input position of a place, or `in` where there is none.
  size_t source(size_t plane, size_t place) const {
    const size_t at = place * stride + plane;
    return at < pad || at - pad >= in ? in : at - pad;
  }
};

// Whether every output pixel is made of one input pixel.
inline bool conv_of_points(const ConvShape& s) {
  return s.kernel_height * s.kernel_width == 1 && s.pad_top + s.pad_left == 0 &&
         (s.out_height - 1) * s.stride_height < s.in_height &&
         (s.out_width - 1) * s.stride_width < s.in_width;
}

// Calls body(r, at, count) for the runs of input pixels, from `at` on and stride_width apart, that
// make rows row + r.. of a convolution of points.
template <typename Body>
void for_points(const ConvShape& s, size_t row, size_t rows, const Body& body) {
  // Where nothing is left out rows of the image follow each other.
  const bool dense = s.stride_width == 1 && s.stride_height == 1 && s.in_width == s.out_width;
  for (size_t r = 0, count = 0; r < rows; r += count) {
    const size_t y = (row + r) / s.out_width, x = (row + r) % s.out_width;
    count = dense ? rows - r : std::min(rows - r, s.out_width - x);
    body(r, y * s.stride_height * s.in_width + x * s.stride_width, count);
  }
}

// Calls body(r, count, pixel) for the runs of output pixels in rows row + r.. of a product. A line
// of pixels takes `width` rows, of which the first `line` are its own.
template <typename Body>
void for_pixel_runs(size_t row, size_t rows, size_t width, size_t line, const Body& body) {
  for (size_t r = 0; r < rows;) {
    const size_t y = (row + r) / width, x = (row + r) % width;
    if (x >= line) {  // the margin between two lines
      r += width - x;
      continue;
    }
    const size_t count = std::min(rows - r, line - x);
    body(r, count, y * line + x);
    r += count;
  }
}

inline size_t padded_bias_bytes(const ConvShape& s) {
  return channel_blocks(s.out_channels) * kChannelBlock * sizeof(float);
}
// Whole blocks are written: the epilogue's bias with zeros up to the end of the last.
inline void pad_bias(const ConvShape& s, Epilogue& epilogue, float* memory) {
  if (!epilogue.bias || s.out_channels % kChannelBlock == 0) return;
  std::memset(memory, 0, padded_bias_bytes(s));
  std::memcpy(memory, epilogue.bias, s.out_channels * sizeof(float));
  epilogue.bias = memory;
}

}  // namespace hologram::backends::dense
