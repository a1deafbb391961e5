// DigitImage: an image taken apart into integers for a convolution: planes
// [channels][digit][row residue][row][pixel][channel]. A step of the sum is 64 bytes, so 64 digits
// or 32 shorts: of as many channels a pixel of the kernel; where whole pixels of fewer (or of more
// that are not a multiple) take fewer steps, a row of the kernel is one run of values instead, and
// rows of the product overlap.
//
// Internal to convolutions by digits, bytes and shorts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/dense/conv_image.h"
#include "backends/cpu/dense/tile.h"
#include "backends/cpu/dense/unit_tile.h"
#include "support/aligned.h"

namespace hologram::backends::dense {

inline constexpr size_t kDigitStep = 4 * kChunk;  // bytes of a chunk

// The order of the sum: that of the weights too, so nothing here depends on the image's size.
struct DigitOrder {
  size_t step;                 // values of a chunk
  size_t channels;             // of a plane's pixel: whole blocks
  size_t planes;               // of channels
  size_t taps, runs;           // of a row of the kernel: taps in one run, and such runs
  size_t chunks, kernel_rows;  // chunks of a run

  explicit DigitOrder(const ConvShape& s, size_t bytes = 1)
      : step(kDigitStep / bytes),
        channels(step),
        planes(chunks_of(s.in_channels)),
        taps(s.dilation_width == 1 ? s.kernel_width : 1),
        runs(s.kernel_width / taps),
        chunks(taps),
        kernel_rows(s.kernel_height) {
    const size_t whole = channel_blocks(s.in_channels) * kChannelBlock;
    if (chunks_of(taps * whole) < planes * chunks)
      channels = whole, planes = 1, chunks = chunks_of(taps * whole);
  }
  size_t chunks_of(size_t values) const { return (values + step - 1) / step; }
  size_t steps() const { return planes * kernel_rows * runs * chunks; }
  // The place of a weight in the sum.
  size_t place(size_t channel, size_t ky, size_t kx) const {
    const size_t run = (channel / channels * kernel_rows + ky) * runs + kx / taps;
    return run * chunks * step + kx % taps * channels + channel % channels;
  }
};

struct DigitImage : DigitOrder {
  ConvAxis y;
  bool points;
  size_t places;        // pixels of a plane's row with its margins
  size_t width;         // rows of the product that a line of the output takes
  size_t row, line;     // units from row to row of the product, and of a plane's row
  size_t plane, digit;  // units of each
  size_t rows;          // of the product: pixels with the margins between them
  size_t pad, dilation, digits;

  // `bytes`: of a digit.
  DigitImage(const ConvShape& s, size_t digits, size_t bytes = 1)
      : DigitOrder(s, bytes),
        y(ConvAxis::rows_of(s)),
        points(conv_of_points(s)),
        places(align_up(std::max(s.out_width * s.stride_width, right_of(s)), s.stride_width)),
        width(points ? s.out_height * s.out_width : places / s.stride_width),
        row(s.stride_width * pixel()),
        line(places * pixel()),
        plane(y.planes * y.size * line),
        digit(planes * plane),
        rows(points ? width : (s.out_height - 1) * width + s.out_width),
        pad(s.pad_left),
        dilation(s.dilation_width),
        digits(digits) {}

  // A row ends where the margin at the left of the next one can serve as its own.
  static size_t right_of(const ConvShape& s) {
    const size_t inside = s.pad_left + s.in_width;
    const size_t reach =
        (s.out_width - 1) * s.stride_width + (s.kernel_width - 1) * s.dilation_width + 1;
    return std::max(inside, reach - std::min(reach, s.pad_left));
  }
  size_t units() const { return steps() * digits * kChunk; }
  size_t pixel() const { return channels * kChunk / step; }  // units, of a plane
  size_t margin() const { return pad * pixel(); }            // units
  // A tile reads whole registers of rows and whole chunks, also beyond the last.
  size_t bytes() const {
    if (points) return 0;
    return align_up((digits * digit + margin() + kMaxUnitRows * row + kChunk) * sizeof(uint32_t),
                    kAlignment);
  }
  void find_steps(ptrdiff_t* to) const {
    for (size_t p = 0; p < planes; ++p)
      for (size_t ky = 0; ky < kernel_rows; ++ky)
        for (size_t run = 0; run < runs; ++run)
          for (size_t c = 0; c < chunks; ++c)
            *to++ =
                static_cast<ptrdiff_t>(p * plane + (y.residue(ky) * y.size + y.lead(ky)) * line +
                                       run * dilation * pixel() + c * kChunk);
  }
};

}  // namespace hologram::backends::dense
