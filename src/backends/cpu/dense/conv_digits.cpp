#include "backends/cpu/dense/conv_digits.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "backends/cpu/dense/blocked_output.h"
#include "backends/cpu/dense/digit_image.h"
#include "backends/cpu/dense/digit_values.h"
#include "backends/cpu/dense/gemm_narrow.h"
#include "backends/cpu/dense/image_rows.h"
#include "backends/cpu/dense/unit_gemm.h"
#include "support/aligned.h"

namespace hologram::backends::dense {
namespace {

struct Scratch {
  size_t image, steps, bias, scales, copies;
  Scratch(const ConvShape& s, const DigitImage& form)
      : image(form.bytes()),
        steps(align_up(form.steps() * sizeof(ptrdiff_t), kAlignment)),
        bias(align_up(padded_bias_bytes(s), kAlignment)),
        // A scale a pixel, or a largest value a row of each block.
        scales(align_up(
            (form.points ? form.rows : channel_blocks(s.in_channels) * s.in_height) * sizeof(float),
            kAlignment)),
        copies(form.points ? unit_gemm_scratch_bytes(form.rows, form.units()) : 0) {}
  size_t total() const { return image + steps + bias + scales + copies; }
};

// One sample.
struct Pixels {
  const ConvShape& s;
  const float* input;
  DigitFunctions digits = digit_functions();

  size_t block() const { return s.in_height * s.in_width * kChannelBlock; }
  // Of block b; the lanes beyond the last channel are anything.
  size_t lanes(size_t b) const {
    return std::min(kChannelBlock, s.in_channels - b * kChannelBlock);
  }
};

DigitScale scale_of(const Pixels& in, int32_t* each, unsigned threads, ThreadPool& pool) {
  const ConvShape& s = in.s;
  const size_t blocks = channel_blocks(s.in_channels);
  const auto find = [&](size_t b, size_t row, size_t count) {
    alignas(64) int32_t most[kDigitRun] = {};
    in.digits.collect(in.input + b * in.block() + row * s.in_width * kChannelBlock, kChannelBlock,
                      count * s.in_width, in.lanes(b), most, 0);
    std::fill_n(each + b * s.in_height + row, count, in.digits.most(most));
  };
  for_image_rows(pool, blocks, s.in_height, s.in_width, threads, find);
  return DigitScale(*std::max_element(each, each + blocks * s.in_height));
}

// The planes of one sample. A row of a plane is zeros, the input's pixels, zeros.
void take_apart(const Pixels& in, const DigitImage& image, float factor, uint32_t* units,
                unsigned threads, ThreadPool& pool) {
  const ConvShape& s = in.s;
  const size_t blocks = image.channels / kChannelBlock;
  const auto fill = [&](size_t index, size_t begin, size_t count) {
    const size_t p = index / image.y.planes, residue = index % image.y.planes;
    for (size_t row = begin; row < begin + count; ++row) {
      uint32_t* upper = units + p * image.plane + (residue * image.y.size + row) * image.line;
      uint32_t* lower = upper + image.digit;
      const size_t from = image.y.source(residue, row);
      const auto clear = [&](size_t first, size_t last) {
        const size_t unit = image.channels / 4;
        for (uint32_t* digit : {upper, lower})
          std::memset(digit + first * unit, 0, (last - first) * unit * sizeof(uint32_t));
      };
      if (from == s.in_height) {
        clear(0, image.places);
        continue;
      }
      clear(0, s.pad_left);
      clear(s.pad_left + s.in_width, image.places);
      in.digits.pixels(
          {.from = in.input + p * blocks * in.block() + from * s.in_width * kChannelBlock,
           .block = in.block(),
           .step = kChannelBlock,
           .pixels = s.in_width,
           .runs = blocks,
           .count = std::min(image.channels, s.in_channels - p * image.channels),
           .factors = &factor,
           .upper = reinterpret_cast<uint8_t*>(upper + image.margin()),
           .lower = reinterpret_cast<uint8_t*>(lower + image.margin())});
    }
  };
  for_image_rows(pool, image.planes * image.y.planes, image.y.size, image.places, threads, fill);
  std::memset(units + 2 * image.digit, 0, image.margin() * sizeof(uint32_t));
}

}  // namespace

bool conv_digits_supported(const ConvShape& s) {
  return s.groups == 1 && s.algorithm == ConvAlgorithm::direct &&
         s.in_channels * s.kernel_height * s.kernel_width <= kMostDigitTerms;
}

bool conv_digits_pays(const ConvShape& s) {
  // In nanoseconds beside a busy hyperthread, for 32 pixels: loads and products of tiles for 32
  // outputs, what digits cost more to finish, and a block of 16 channels to find the largest values
  // of and to take apart. The latter two were found by `dense_bench "conv forms"`.
  constexpr size_t kLoad = 13, kProduct = 15, kFinish = 185, kBlock = 100;
  constexpr size_t kDigitsStep = 12 * kLoad + 12 * kProduct, kPartsStep = 8 * kLoad + 12 * kProduct;
  const size_t panels = (s.out_channels + kPanelColumns - 1) / kPanelColumns;
  const size_t parts = (s.in_channels + 2 * kChannelBlock - 1) / (2 * kChannelBlock) *
                       s.kernel_height * s.kernel_width;
  return panels * (DigitOrder(s).steps() * kDigitsStep + kFinish) +
             channel_blocks(s.in_channels) * kBlock <
         panels * parts * kPartsStep;
}

size_t packed_conv_digits_bytes(const ConvShape& s) {
  return packed_b_digits_bytes(DigitOrder(s).steps() * kDigitStep, s.out_channels);
}

void pack_conv_digits(const ConvShape& s, const float* weights, std::byte* packed) {
  // The sum as rows of a matrix, in the order of the steps; then as any other.
  const DigitOrder order(s);
  const size_t depth = order.steps() * kDigitStep;
  std::vector<float> rows(depth * s.out_channels, 0.0f);
  for (size_t o = 0; o < s.out_channels; ++o)
    for (size_t i = 0; i < s.in_channels; ++i)
      for (size_t ky = 0; ky < s.kernel_height; ++ky)
        for (size_t kx = 0; kx < s.kernel_width; ++kx)
          rows[order.place(i, ky, kx) * s.out_channels + o] = *weights++;
  pack_b_digits(depth, s.out_channels, rows.data(), s.out_channels, false, packed);
}

size_t conv_digits_scratch_bytes(const ConvDigits& conv) {
  return Scratch(conv.shape, DigitImage(conv.shape, 2)).total();
}

void conv_digits(const ConvDigits& conv, std::byte* memory, ThreadPool& pool) {
  const ConvShape& s = conv.shape;
  if (s.batch * s.out_channels * s.out_height * s.out_width == 0) return;
  const DigitImage image(s, 2);
  const Scratch scratch(s, image);
  const auto take = [&](size_t bytes) { return std::exchange(memory, memory + bytes); };
  auto* units = reinterpret_cast<uint32_t*>(take(scratch.image));
  auto* steps = reinterpret_cast<ptrdiff_t*>(take(scratch.steps));
  const BlockedOutput output(s, {.image = conv.output, .epilogue = conv.epilogue},
                             reinterpret_cast<float*>(take(scratch.bias)));
  std::byte* scales = take(scratch.scales);
  auto* row_scales = reinterpret_cast<float*>(scales);
  image.find_steps(steps);

  const auto* column_scales = reinterpret_cast<const float*>(conv.packed_weights);
  const size_t pixels = s.out_height * s.out_width;
  const unsigned threads = s.in_channels * s.in_height * s.in_width < 8192 ? 1 : 0;
  for (size_t n = 0; n < s.batch; ++n) {
    Pixels in{s, conv.input};
    in.input += n * channel_blocks(s.in_channels) * in.block();
    float image_scale = 0;
    if (!image.points) {
      const DigitScale scale = scale_of(in, reinterpret_cast<int32_t*>(scales), threads, pool);
      image_scale = scale.back;
      take_apart(in, image, scale.factor, units, threads, pool);
    }
    const auto take_points = [&](size_t row, size_t height, uint32_t* packed) {
      const size_t step = s.stride_width * kChannelBlock, digit = height * kChunk;
      alignas(64) int32_t most[kMaxUnitRows * kDigitRun] = {};
      float factors[kMaxUnitRows];
      for (size_t b = 0; b < channel_blocks(s.in_channels); ++b)
        for_points(s, row, height, [&](size_t r, size_t at, size_t count) {
          in.digits.collect(in.input + b * in.block() + at * kChannelBlock, step, count,
                            in.lanes(b), most + r * kDigitRun, kDigitRun);
        });
      for (size_t r = 0; r < height; ++r) {
        const DigitScale scale(in.digits.most(most + r * kDigitRun));
        factors[r] = scale.factor;
        row_scales[row + r] = scale.back;
      }
      for (size_t c = 0; c < image.planes; ++c, packed += 2 * digit)
        for_points(s, row, height, [&](size_t r, size_t at, size_t count) {
          in.digits.pixels({.from = in.input + c * (kDigitStep / kChannelBlock) * in.block() +
                                    at * kChannelBlock,
                            .block = in.block(),
                            .step = step,
                            .pixels = count,
                            .runs = kDigitStep / kDigitRun,
                            .count = std::min(kDigitStep, s.in_channels - c * kDigitStep),
                            .factors = factors + r,
                            .factor_step = 1,
                            .upper = reinterpret_cast<uint8_t*>(packed + r * kChunk),
                            .lower = reinterpret_cast<uint8_t*>(packed + digit + r * kChunk)});
        });
    };
    const auto finish = [&](size_t row, size_t rows, size_t column, void* sums, size_t width) {
      in.digits.scale(sums, rows, width, image.points ? row_scales + row : &image_scale,
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
               .packed_b = reinterpret_cast<const uint32_t*>(conv.packed_weights + head),
               .tile = unit_kernels().digits,
               .pack_a = take_points,
               .image = image.points ? nullptr : units,
               .image_row = image.points ? kChunk : image.row,
               .steps = steps,
               .image_low = static_cast<ptrdiff_t>(image.digit),
               .step_units = image.points ? kChunk : 2 * kChunk,
               .finish = finish},
              memory, pool);
  }
}

}  // namespace hologram::backends::dense
