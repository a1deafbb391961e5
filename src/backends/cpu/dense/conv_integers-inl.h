// The driver of convolutions whose operands become 16-bit integers by a scale a sample or, of a
// 1 x 1 kernel, a pixel. A Form says how: as two digits (tiles), or whole (dot products of pairs).
//
//   static constexpr size_t kDigits, kBytes;   // of a value, and of a digit
//   using Size;           // what the scale of values is found from; Size() of none
//   Size larger(Size, Size); Scale scale(Size)  // Scale has `factor` and `back`
//   Size size_of(pixels of one block)           // of all of them
//   void sizes_of(pixels, Size*)                // of each; 32 at most
//   void write(const IntegerRuns&)
//   UnitFunction tile();
//   void finish(void* sums, rows, width, row_scales, row_step, scales)
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "backends/cpu/dense/blocked_output.h"
#include "backends/cpu/dense/digit_image.h"
#include "backends/cpu/dense/image_rows.h"
#include "backends/cpu/dense/unit_gemm.h"
#include "support/aligned.h"

namespace hologram::backends::dense {

// Runs of 16 floats, `block` floats from run to run of a pixel, `step` from pixel to pixel; the
// first `count` of a pixel's values are used.
struct IntegerPixels {
  const float* from;
  size_t block, step, pixels, count;
};

// The integers of `runs` runs of each pixel, in a row: a chunk of 64 bytes, `chunk` units from one
// to the next, then the lower digits `digit` units from the upper ones where there are two.
struct IntegerRuns {
  IntegerPixels values;
  size_t runs;
  const float* factors;  // `factor_step` from pixel to pixel: 0 or 1
  size_t factor_step;
  uint32_t* to;
  size_t chunk, digit;
};

template <class Form>
class IntegerConv {
 public:
  struct Job {
    const ConvShape& shape;
    const float* input;
    const std::byte* packed_weights;
    float* output;
    const Epilogue& epilogue;
  };

  static DigitOrder order(const ConvShape& s) { return DigitOrder(s, Form::kBytes); }

  // The sum as rows of a matrix, in the order of its steps.
  static std::vector<float> weight_rows(const ConvShape& s, const float* weights) {
    const DigitOrder places = order(s);
    std::vector<float> rows(depth(s) * s.out_channels, 0.0f);
    for (size_t o = 0; o < s.out_channels; ++o)
      for (size_t i = 0; i < s.in_channels; ++i)
        for (size_t ky = 0; ky < s.kernel_height; ++ky)
          for (size_t kx = 0; kx < s.kernel_width; ++kx)
            rows[places.place(i, ky, kx) * s.out_channels + o] = *weights++;
    return rows;
  }
  static size_t depth(const ConvShape& s) {
    const DigitOrder places = order(s);
    return places.steps() * places.step;
  }

  static size_t scratch_bytes(const ConvShape& s) { return Scratch(s, image_of(s)).total(); }

  static void run(const Job& job, std::byte* memory, ThreadPool& pool) {
    const ConvShape& s = job.shape;
    if (s.batch * s.out_channels * s.out_height * s.out_width == 0) return;
    const DigitImage image = image_of(s);
    const Scratch scratch(s, image);
    const auto take = [&](size_t bytes) { return std::exchange(memory, memory + bytes); };
    auto* units = reinterpret_cast<uint32_t*>(take(scratch.image));
    auto* steps = reinterpret_cast<ptrdiff_t*>(take(scratch.steps));
    const BlockedOutput output(s, {.image = job.output, .epilogue = job.epilogue},
                               reinterpret_cast<float*>(take(scratch.bias)));
    std::byte* scales = take(scratch.scales);
    auto* row_scales = reinterpret_cast<float*>(scales);
    image.find_steps(steps);

    const Form form;
    const auto* column_scales = reinterpret_cast<const float*>(job.packed_weights);
    const size_t pixels = s.out_height * s.out_width;
    const unsigned threads = s.in_channels * s.in_height * s.in_width < 8192 ? 1 : 0;
    for (size_t n = 0; n < s.batch; ++n) {
      const Pixels in{s, job.input + n * channel_blocks(s.in_channels) * block_of(s)};
      float image_scale = 0;
      if (!image.points) {
        const auto scale = scale_of(form, in, reinterpret_cast<Size*>(scales), threads, pool);
        image_scale = scale.back;
        take_apart(form, in, image, scale.factor, units, threads, pool);
      }
      const auto take_points = [&](size_t row, size_t height, uint32_t* packed) {
        const size_t step = s.stride_width * kChannelBlock, digit = height * kChunk;
        Size sizes[kMaxUnitRows];
        float factors[kMaxUnitRows];
        for_points(s, row, height, [&](size_t r, size_t at, size_t count) {
          form.sizes_of({in.input + at * kChannelBlock, block_of(s), step, count, s.in_channels},
                        sizes + r);
        });
        for (size_t r = 0; r < height; ++r) {
          const auto scale = form.scale(sizes[r]);
          factors[r] = scale.factor;
          row_scales[row + r] = scale.back;
        }
        for (size_t first = 0; first < s.in_channels;
             first += image.step, packed += Form::kDigits * digit)
          for_points(s, row, height, [&](size_t r, size_t at, size_t count) {
            form.write(
                {.values = {in.input + first / kChannelBlock * block_of(s) + at * kChannelBlock,
                            block_of(s), step, count, std::min(image.step, s.in_channels - first)},
                 .runs = image.step / kChannelBlock,
                 .factors = factors + r,
                 .factor_step = 1,
                 .to = packed + r * kChunk,
                 .chunk = kChunk,
                 .digit = digit});
          });
      };
      const auto finish = [&](size_t row, size_t rows, size_t column, void* sums, size_t width) {
        form.finish(sums, rows, width, image.points ? row_scales + row : &image_scale,
                    image.points ? 1 : 0, column_scales + column);
        const size_t line = image.points ? pixels : s.out_width;  // pixels without a margin
        for_pixel_runs(row, rows, image.width, line, [&](size_t r, size_t count, size_t pixel) {
          output.finish(n, pixel, count, column, static_cast<float*>(sums) + r * width, width);
        });
      };
      const size_t head = align_up(s.out_channels, kPanelColumns) * sizeof(float);
      unit_gemm({.m = image.rows,
                 .n = s.out_channels,
                 .units = image.units(),
                 .packed_b = reinterpret_cast<const uint32_t*>(job.packed_weights + head),
                 .tile = form.tile(),
                 .pack_a = take_points,
                 .image = image.points ? nullptr : units,
                 .image_row = image.points ? kChunk : image.row,
                 .steps = steps,
                 .image_low = static_cast<ptrdiff_t>(image.digit),
                 .step_units = image.points ? kChunk : Form::kDigits * kChunk,
                 .finish = finish},
                memory, pool);
    }
  }

 private:
  using Size = typename Form::Size;

  struct Scratch {
    size_t image, steps, bias, scales, copies;
    Scratch(const ConvShape& s, const DigitImage& form)
        : image(form.bytes()),
          steps(align_up(form.steps() * sizeof(ptrdiff_t), kAlignment)),
          bias(align_up(padded_bias_bytes(s), kAlignment)),
          // A scale a pixel, or a size a row of each block.
          scales(align_up((form.points ? form.rows : channel_blocks(s.in_channels) * s.in_height) *
                              sizeof(float),
                          kAlignment)),
          copies(form.points ? unit_gemm_scratch_bytes(form.rows, form.units()) : 0) {}
    size_t total() const { return image + steps + bias + scales + copies; }
  };
  static_assert(sizeof(Size) == sizeof(float));

  // One sample.
  struct Pixels {
    const ConvShape& s;
    const float* input;
  };

  static DigitImage image_of(const ConvShape& s) {
    return DigitImage(s, Form::kDigits, Form::kBytes);
  }
  static size_t block_of(const ConvShape& s) { return s.in_height * s.in_width * kChannelBlock; }

  static auto scale_of(const Form& form, const Pixels& in, Size* each, unsigned threads,
                       ThreadPool& pool) {
    const ConvShape& s = in.s;
    const size_t blocks = channel_blocks(s.in_channels);
    const auto find = [&](size_t b, size_t row, size_t count) {
      const float* from = in.input + b * block_of(s) + row * s.in_width * kChannelBlock;
      // The lanes beyond the last channel are anything.
      const size_t lanes = std::min(kChannelBlock, s.in_channels - b * kChannelBlock);
      const Size size = form.size_of({from, block_of(s), kChannelBlock, count * s.in_width, lanes});
      std::fill_n(each + b * s.in_height + row, count, size);
    };
    for_image_rows(pool, blocks, s.in_height, s.in_width, threads, find);
    Size all{};
    for (size_t i = 0; i < blocks * s.in_height; ++i) all = form.larger(all, each[i]);
    return form.scale(all);
  }

  // The planes of one sample. A row of a plane is zeros, the input's pixels, zeros.
  static void take_apart(const Form& form, const Pixels& in, const DigitImage& image, float factor,
                         uint32_t* units, unsigned threads, ThreadPool& pool) {
    const ConvShape& s = in.s;
    const size_t blocks = image.channels / kChannelBlock;
    const auto fill = [&](size_t index, size_t begin, size_t count) {
      const size_t p = index / image.y.planes, residue = index % image.y.planes;
      for (size_t row = begin; row < begin + count; ++row) {
        uint32_t* to = units + p * image.plane + (residue * image.y.size + row) * image.line;
        const size_t from = image.y.source(residue, row);
        const auto clear = [&](size_t first, size_t last) {
          for (size_t d = 0; d < Form::kDigits; ++d)
            std::memset(to + d * image.digit + first * image.pixel(), 0,
                        (last - first) * image.pixel() * sizeof(uint32_t));
        };
        if (from == s.in_height) {
          clear(0, image.places);
          continue;
        }
        clear(0, s.pad_left);
        clear(s.pad_left + s.in_width, image.places);
        form.write(
            {.values = {in.input + p * blocks * block_of(s) + from * s.in_width * kChannelBlock,
                        block_of(s), kChannelBlock, s.in_width,
                        std::min(image.channels, s.in_channels - p * image.channels)},
             .runs = blocks,
             .factors = &factor,
             .factor_step = 0,
             .to = to + image.margin(),
             .chunk = kChunk,
             .digit = image.digit});
      }
    };
    for_image_rows(pool, image.planes * image.y.planes, image.y.size, image.places, threads, fill);
    std::memset(units + Form::kDigits * image.digit, 0, image.margin() * sizeof(uint32_t));
  }
};

}  // namespace hologram::backends::dense
