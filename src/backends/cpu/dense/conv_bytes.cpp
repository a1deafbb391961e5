#include "backends/cpu/dense/conv_bytes.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "backends/cpu/dense/blocked_output.h"
#include "backends/cpu/dense/byte_values.h"
#include "backends/cpu/dense/digit_image.h"
#include "backends/cpu/dense/digit_values.h"
#include "backends/cpu/dense/image_rows.h"
#include "backends/cpu/dense/unit_gemm.h"
#include "support/aligned.h"

namespace hologram::backends::dense {
namespace {

size_t head_bytes(size_t n) { return align_up(n, kPanelColumns) * sizeof(float); }

// Only tiles and kernels that read A in place take rows that overlap.
bool copies_rows(const DigitImage& image) {
  const UnitKernels kernels = unit_kernels();
  return image.points || (kernels.depth == 0 && !kernels.in_place);
}

struct Scratch {
  size_t image, steps, bias, ranges, scales, copies;
  Scratch(const ConvShape& s, const DigitImage& form)
      : image(form.bytes()),
        steps(align_up(form.steps() * sizeof(ptrdiff_t), kAlignment)),
        bias(align_up(padded_bias_bytes(s), kAlignment)),
        // A range a row of each block; of points a scale and zero point each.
        ranges(form.points
                   ? 0
                   : align_up(channel_blocks(s.in_channels) * s.in_height * sizeof(ByteRange),
                              kAlignment)),
        scales(form.points ? align_up(2 * form.rows * sizeof(float), kAlignment) : 0),
        copies(copies_rows(form) ? unit_gemm_scratch_bytes(form.rows, form.units()) : 0) {}
  size_t total() const { return image + steps + bias + ranges + scales + copies; }
};

// One sample.
struct Pixels {
  const ConvShape& s;
  const std::byte* input;
  bool bf16;
  ByteFunctions bytes = byte_functions();

  size_t block() const { return s.in_height * s.in_width * kChannelBlock; }
  const std::byte* at(size_t value) const {
    return input + value * (bf16 ? sizeof(uint16_t) : sizeof(float));
  }
  // Of block b; the lanes beyond the last channel are anything.
  size_t lanes(size_t b) const {
    return std::min(kChannelBlock, s.in_channels - b * kChannelBlock);
  }
};

ByteScale scale_of(const Pixels& in, ByteRange* each, unsigned threads, ThreadPool& pool) {
  const ConvShape& s = in.s;
  const size_t blocks = channel_blocks(s.in_channels);
  const auto find = [&](size_t b, size_t row, size_t count) {
    const ByteRange range =
        in.bytes.range({.from = in.at(b * in.block() + row * s.in_width * kChannelBlock),
                        .bf16 = in.bf16,
                        .step = kChannelBlock,
                        .pixels = count * s.in_width},
                       in.lanes(b));
    std::fill_n(each + b * s.in_height + row, count, range);
  };
  for_image_rows(pool, blocks, s.in_height, s.in_width, threads, find);
  ByteRange all;
  for (size_t i = 0; i < blocks * s.in_height; ++i) all.include(each[i]);
  return ByteScale(all);
}

// The planes of one sample. A row of a plane is zero points, the input's pixels, zero points.
void take_apart(const Pixels& in, const DigitImage& image, const ByteScale& scale, uint32_t* units,
                unsigned threads, ThreadPool& pool) {
  const ConvShape& s = in.s;
  const size_t blocks = image.channels / kChannelBlock, unit = image.channels / 4;
  const auto zero = static_cast<int>(scale.zero);
  const auto fill = [&](size_t index, size_t begin, size_t count) {
    const size_t p = index / image.y.planes, residue = index % image.y.planes;
    for (size_t row = begin; row < begin + count; ++row) {
      uint32_t* to = units + p * image.plane + (residue * image.y.size + row) * image.line;
      const size_t from = image.y.source(residue, row);
      const auto clear = [&](size_t first, size_t last) {
        std::memset(to + first * unit, zero, (last - first) * unit * sizeof(uint32_t));
      };
      if (from == s.in_height) {
        clear(0, image.places);
        continue;
      }
      clear(0, s.pad_left);
      clear(s.pad_left + s.in_width, image.places);
      in.bytes.pixels({.from = in.at(p * blocks * in.block() + from * s.in_width * kChannelBlock),
                       .bf16 = in.bf16,
                       .block = in.block(),
                       .step = kChannelBlock,
                       .pixels = s.in_width,
                       .runs = blocks,
                       .count = std::min(image.channels, s.in_channels - p * image.channels),
                       .factors = &scale.factor,
                       .zeros = &scale.zero,
                       .to = reinterpret_cast<uint8_t*>(to + image.margin())});
    }
  };
  for_image_rows(pool, image.planes * image.y.planes, image.y.size, image.places, threads, fill);
  std::memset(units + image.digit, zero, image.margin() * sizeof(uint32_t));
}

}  // namespace

bool conv_bytes_supported(const ConvShape& s) {
  return s.groups == 1 && s.algorithm == ConvAlgorithm::direct &&
         s.in_channels * s.kernel_height * s.kernel_width <= kMostDigitTerms;
}

bool conv_bytes_pays(const ConvShape& s) {
  const size_t bf16 = (s.in_channels + 2 * kChannelBlock - 1) / (2 * kChannelBlock) *
                      s.kernel_height * s.kernel_width;
  return DigitOrder(s).steps() < bf16;
}

size_t packed_conv_bytes_bytes(const ConvShape& s) {
  return 2 * head_bytes(s.out_channels) +
         unit_panel_units(s.out_channels, DigitOrder(s).steps() * kChunk) * sizeof(uint32_t);
}

void pack_conv_bytes(const ConvShape& s, const float* weights, std::byte* packed) {
  std::memset(packed, 0, packed_conv_bytes_bytes(s));
  const DigitOrder order(s);
  auto* scales = reinterpret_cast<float*>(packed);
  auto* sums = reinterpret_cast<int32_t*>(packed + head_bytes(s.out_channels));
  auto* panels = reinterpret_cast<uint8_t*>(packed + 2 * head_bytes(s.out_channels));
  const size_t terms = s.in_channels * s.kernel_height * s.kernel_width;
  const size_t depth = order.steps() * kDigitStep;
  for (size_t o = 0; o < s.out_channels; ++o) {
    const float* of = weights + o * terms;
    float largest = 0;
    bool finite = true;
    for (size_t i = 0; i < terms; ++i) {
      largest = std::max(largest, std::abs(of[i]));
      finite &= std::isfinite(of[i]);
    }
    const float scale = largest / 127.0f;
    scales[o] = finite ? scale : std::numeric_limits<float>::quiet_NaN();
    if (!finite || scale < FLT_MIN) continue;
    const size_t first = o / kPanelColumns * kPanelColumns;
    const size_t width = std::min<size_t>(kPanelColumns, align_up(s.out_channels, kChunk) - first);
    uint8_t* panel = panels + first * depth + (o - first) * 4;
    for (size_t i = 0; i < s.in_channels; ++i)
      for (size_t ky = 0; ky < s.kernel_height; ++ky)
        for (size_t kx = 0; kx < s.kernel_width; ++kx) {
          const auto code = static_cast<int8_t>(std::nearbyint(*of++ / scale));
          const size_t place = order.place(i, ky, kx);
          panel[place / 4 * width * 4 + place % 4] = static_cast<uint8_t>(code);
          sums[o] += code;
        }
  }
}

size_t conv_bytes_scratch_bytes(const ConvBytes& conv) {
  return Scratch(conv.shape, DigitImage(conv.shape, 1)).total();
}

void conv_bytes(const ConvBytes& conv, std::byte* memory, ThreadPool& pool) {
  const ConvShape& s = conv.shape;
  if (s.batch * s.out_channels * s.out_height * s.out_width == 0) return;
  const DigitImage image(s, 1);
  const Scratch scratch(s, image);
  const auto take = [&](size_t bytes) { return std::exchange(memory, memory + bytes); };
  auto* units = reinterpret_cast<uint32_t*>(take(scratch.image));
  auto* steps = reinterpret_cast<ptrdiff_t*>(take(scratch.steps));
  const BlockedOutput output(s,
                             {.image = conv.output,
                              .bf16 = conv.output_bf16,
                              .epilogue = conv.epilogue,
                              .residual_bf16 = conv.residual_bf16},
                             reinterpret_cast<float*>(take(scratch.bias)));
  auto* ranges = reinterpret_cast<ByteRange*>(take(scratch.ranges));
  auto* row_backs = reinterpret_cast<float*>(take(scratch.scales));
  float* row_zeros = row_backs + image.rows;
  image.find_steps(steps);

  const auto* scales = reinterpret_cast<const float*>(conv.packed_weights);
  const size_t head = head_bytes(s.out_channels);
  const auto* column_sums = reinterpret_cast<const int32_t*>(conv.packed_weights + head);
  const size_t pixels = s.out_height * s.out_width;
  const unsigned threads = s.in_channels * s.in_height * s.in_width < 8192 ? 1 : 0;
  const bool copies = copies_rows(image);
  using PackRows = FunctionRef<void(size_t, size_t, uint32_t*)>;
  const auto copy_rows = [&](size_t row, size_t height, uint32_t* packed) {
    for (size_t step = 0; step < image.steps(); ++step)
      for (size_t r = 0; r < height; ++r, packed += kChunk)
        std::memcpy(packed, units + steps[step] + (row + r) * image.row, kDigitStep);
  };
  for (size_t n = 0; n < s.batch; ++n) {
    Pixels in{s, static_cast<const std::byte*>(conv.input), conv.input_bf16};
    in.input = in.at(n * channel_blocks(s.in_channels) * in.block());
    float image_back = 0, image_zero = 0;
    if (!image.points) {
      const ByteScale scale = scale_of(in, ranges, threads, pool);
      image_back = scale.back;
      image_zero = scale.zero;
      take_apart(in, image, scale, units, threads, pool);
    }
    const auto take_points = [&](size_t row, size_t height, uint32_t* packed) {
      const size_t step = s.stride_width * kChannelBlock;
      ByteRange found[kMaxUnitRows];
      float factors[kMaxUnitRows];
      for_points(s, row, height, [&](size_t r, size_t at, size_t count) {
        in.bytes.ranges({.from = in.at(at * kChannelBlock),
                         .bf16 = in.bf16,
                         .block = in.block(),
                         .step = step,
                         .pixels = count,
                         .count = s.in_channels},
                        found + r);
      });
      for (size_t r = 0; r < height; ++r) {
        const ByteScale scale(found[r]);
        factors[r] = scale.factor;
        row_backs[row + r] = scale.back;
        row_zeros[row + r] = scale.zero;
      }
      for (size_t c = 0; c < image.planes; ++c, packed += height * kChunk)
        for_points(s, row, height, [&](size_t r, size_t at, size_t count) {
          in.bytes.pixels(
              {.from = in.at(c * (kDigitStep / kChannelBlock) * in.block() + at * kChannelBlock),
               .bf16 = in.bf16,
               .block = in.block(),
               .step = step,
               .pixels = count,
               .runs = kDigitStep / kByteRun,
               .count = std::min(kDigitStep, s.in_channels - c * kDigitStep),
               .factors = factors + r,
               .zeros = row_zeros + row + r,
               .scale_step = 1,
               .to = reinterpret_cast<uint8_t*>(packed + r * kChunk)});
        });
    };
    const auto finish = [&](size_t row, size_t rows, size_t column, void* sums, size_t width) {
      in.bytes.scale({.sums = static_cast<int32_t*>(sums),
                      .rows = rows,
                      .width = width,
                      .backs = image.points ? row_backs + row : &image_back,
                      .zeros = image.points ? row_zeros + row : &image_zero,
                      .row_step = image.points ? 1u : 0u,
                      .scales = scales + column,
                      .column_sums = column_sums + column});
      const size_t line = image.points ? pixels : s.out_width;  // pixels without a margin
      for_pixel_runs(row, rows, image.width, line, [&](size_t r, size_t count, size_t pixel) {
        output.finish(n, pixel, count, column, static_cast<float*>(sums) + r * width, width);
      });
    };
    unit_gemm({.m = image.rows,
               .n = s.out_channels,
               .units = image.units(),
               .packed_b = reinterpret_cast<const uint32_t*>(conv.packed_weights + 2 * head),
               .tile = unit_kernels().int8,
               .pack_a = image.points ? PackRows(take_points) : PackRows(copy_rows),
               .image = copies ? nullptr : units,
               .image_row = copies ? kChunk : image.row,
               .steps = steps,
               .finish = finish},
              memory, pool);
  }
}

}  // namespace hologram::backends::dense
