#include "backends/cpu/dense/conv_bf16.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "backends/cpu/dense/bf16_values.h"
#include "backends/cpu/dense/blocked_output.h"
#include "backends/cpu/dense/conv_image.h"
#include "backends/cpu/dense/image_rows.h"
#include "backends/cpu/dense/unit_gemm.h"
#include "support/aligned.h"

namespace hologram::backends::dense {
namespace {

constexpr size_t kChunkChannels = 2 * kChannelBlock;
constexpr size_t kFewChannels = 4, kPixelUnits = kFewChannels / 2;
constexpr size_t kRunPixels = kChunkChannels / kFewChannels;  // pixels of a chunk

struct Image {
  ConvAxis y, x;
  bool runs;    // nchw of few channels: pixels of kPixelUnits, rows of the kernel in one run
  bool points;  // every output pixel is made of one input pixel
  size_t chunks, taps, parts;
  size_t places;              // pixels of an image row with its margins
  size_t width;               // rows of the product that a row of the output takes
  size_t row;                 // units from row to row of the product
  size_t plane, chunk, part;  // units of each
  size_t rows;                // of the product: pixels in a row with the margins between them

  Image(const ConvShape& s, Bf16Parts p, Layout input)
      : y(ConvAxis::rows_of(s)),
        x(ConvAxis::columns_of(s)),
        runs(input == Layout::nchw),
        points(!runs && conv_of_points(s)),
        chunks(runs ? (s.kernel_width + kRunPixels - 1) / kRunPixels
                    : (s.in_channels + kChunkChannels - 1) / kChunkChannels),
        taps(runs ? s.kernel_height : s.kernel_height * s.kernel_width),
        parts(p == Bf16Parts::two ? 2 : 1),
        // A multiple of the stride, so that the next output row begins a whole number of rows on.
        places(runs ? align_up((s.out_width - 1) * s.stride_width + chunks * kRunPixels,
                               s.stride_width)
                    : x.size),
        width(runs     ? places / s.stride_width
              : points ? s.out_height * s.out_width
                       : x.size),
        row(runs ? s.stride_width * kPixelUnits : kChunk),
        plane(y.size * places * (runs ? kPixelUnits : kChunk)),
        chunk(y.planes * x.planes * plane),
        part(runs ? y.planes * plane : chunks * chunk),
        rows(points ? width : (s.out_height - 1) * width + s.out_width) {}

  size_t units() const { return chunks * taps * parts * kChunk; }
  // A tile reads whole registers of pixels, also beyond the last.
  size_t bytes() const {
    if (points) return 0;
    return align_up((parts * part + kMaxUnitRows * row + kChunk) * sizeof(uint32_t), kAlignment);
  }
  void find_steps(ptrdiff_t* steps) const {
    for (size_t ky = 0; runs && ky < y.kernel; ++ky)
      for (size_t c = 0; c < chunks; ++c)
        *steps++ = static_cast<ptrdiff_t>(y.residue(ky) * plane +
                                          y.lead(ky) * places * kPixelUnits + c * kChunk);
    for (size_t c = 0; !runs && c < chunks; ++c)
      for (size_t ky = 0; ky < y.kernel; ++ky)
        for (size_t kx = 0; kx < x.kernel; ++kx)
          *steps++ = static_cast<ptrdiff_t>(c * chunk +
                                            (y.residue(ky) * x.planes + x.residue(kx)) * plane +
                                            (y.lead(ky) * x.size + x.lead(kx)) * kChunk);
  }
};

// Of f32 bits, rounded to the upper half; a NaN stays one.
inline uint32_t upper(uint32_t bits) {
  const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return (nan ? bits | 0x400000u : rounded) & 0xffff0000u;
}

// Pixels of up to four channels, `stride` floats apart, as two units each.
template <size_t kChannels, bool kLow>
void interleave(const float* from, size_t stride, size_t count, uint32_t* __restrict high,
                uint32_t* __restrict low) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t h[4] = {}, l[4] = {};
    for (size_t c = 0; c < kChannels; ++c) {
      const float value = from[c * stride + i];
      h[c] = upper(std::bit_cast<uint32_t>(value));
      if constexpr (kLow) l[c] = upper(std::bit_cast<uint32_t>(value - std::bit_cast<float>(h[c])));
    }
    for (size_t u = 0; u < kPixelUnits; ++u) {
      high[kPixelUnits * i + u] = h[2 * u] >> 16 | h[2 * u + 1];
      if constexpr (kLow) low[kPixelUnits * i + u] = l[2 * u] >> 16 | l[2 * u + 1];
    }
  }
}
using Interleave = void (*)(const float*, size_t, size_t, uint32_t*, uint32_t*);
constexpr Interleave kInterleave[2][4] = {
    {&interleave<1, false>, &interleave<2, false>, &interleave<3, false>, &interleave<4, false>},
    {&interleave<1, true>, &interleave<2, true>, &interleave<3, true>, &interleave<4, true>}};

// The same for an nchw image of few channels; a plane for each residue of the rows alone.
void take_apart_runs(const ConvShape& s, const Image& image, const float* input, uint32_t* units,
                     ThreadPool& pool) {
  const size_t pixels = s.in_height * s.in_width, row_units = image.places * kPixelUnits;
  const size_t first = std::min(s.pad_left, image.places);
  const size_t count = std::min(s.in_width, image.places - first);
  const Interleave pack = kInterleave[image.parts - 1][s.in_channels - 1];
  const detail::InterleaveFunction quick = detail::avx512_bf16_interleave();
  const auto fill = [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      uint32_t* high = units + row * row_units;
      const size_t from_y = image.y.source(row / image.y.size, row % image.y.size);
      for (size_t p = 0; p < image.parts; ++p)
        std::memset(high + p * image.part, 0, row_units * sizeof(uint32_t));
      if (from_y == s.in_height) continue;
      const float* from = input + from_y * s.in_width;
      uint32_t* to = high + first * kPixelUnits;
      if (quick)
        quick(from, pixels, s.in_channels, count, to, image.parts == 2 ? to + image.part : nullptr);
      else
        pack(from, pixels, count, to, to + image.part);
    }
  };
  pool.parallel_for(image.y.planes * image.y.size, 16, fill, Schedule::dynamic);
}

// The input of one sample, f32 or bf16.
struct Pixels {
  const ConvShape& s;
  const void* input;
  bool bf16;
  size_t block;  // values from channel block to channel block
  // Channels of `chunk` of `count` pixels from `at` on, as units; `low` is null for one part.
  void chunk(size_t chunk, size_t at, size_t count, uint32_t* high, uint32_t* low) const {
    const size_t first = 2 * chunk * block + at * kChannelBlock;
    const size_t channels = std::min(kChunkChannels, s.in_channels - chunk * kChunkChannels);
    const size_t step = s.stride_width * kChannelBlock;
    const auto take = [&](const auto* from, auto function, auto... more) {
      function(from + first, channels > kChannelBlock ? from + first + block : nullptr, count, step,
               channels, high, more...);
    };
    if (bf16)
      take(static_cast<const uint16_t*>(input), join_pixels);
    else
      take(static_cast<const float*>(input), split_pixels, low);
  }
};

// One sample's planes. A row of a plane is zeros, a run of input pixels, zeros.
void take_apart(const Pixels& input, const Image& image, uint32_t* units, ThreadPool& pool) {
  const ConvShape& s = input.s;
  const size_t planes = image.y.planes * image.x.planes;
  const bool two = image.parts == 2;
  const auto fill = [&](size_t index, size_t begin, size_t count) {
    const size_t chunk = index / planes, plane = index % planes;
    const size_t py = plane / image.x.planes, px = plane % image.x.planes;
    for (size_t row = begin; row < begin + count; ++row) {
      uint32_t* high =
          units + chunk * image.chunk + plane * image.plane + row * image.x.size * kChunk;
      uint32_t* low = two ? high + image.part : nullptr;
      const auto clear = [&](size_t from, size_t to) {
        std::memset(high + from * kChunk, 0, (to - from) * kChunk * sizeof(uint32_t));
        if (low) std::memset(low + from * kChunk, 0, (to - from) * kChunk * sizeof(uint32_t));
      };
      const size_t from_y = image.y.source(py, row);
      size_t first = 0, last = 0;
      if (from_y < s.in_height) {
        while (first < image.x.size && image.x.source(px, first) == s.in_width) ++first;
        last = first;
        while (last < image.x.size && image.x.source(px, last) < s.in_width) ++last;
      }
      clear(0, first);
      clear(last, image.x.size);
      if (first == last) continue;
      input.chunk(chunk, from_y * s.in_width + image.x.source(px, first), last - first,
                  high + first * kChunk, low ? low + first * kChunk : nullptr);
    }
  };
  const size_t values = image.chunks * image.chunk;
  for_image_rows(pool, image.chunks * planes, image.y.size, image.x.size, values < 8192 ? 1 : 0,
                 fill);
}

struct Scratch {
  size_t image, steps, bias, copies;
  bool copy;  // rows of the product that only tiles can read where they lie, or that lie nowhere
  Scratch(const ConvShape& s, const Image& form)
      : image(form.bytes()),
        steps(align_up(form.chunks * form.taps * sizeof(ptrdiff_t), kAlignment)),
        bias(align_up(padded_bias_bytes(s), kAlignment)),
        copies(0),
        copy(form.points || (form.runs && unit_kernels().depth == 0)) {
    if (copy) copies = unit_gemm_scratch_bytes(form.rows, form.units());
  }
  size_t total() const { return image + steps + bias + copies; }
};

}  // namespace

bool conv_bf16_supported(const ConvShape& s, Layout input) {
  return s.groups == 1 && s.algorithm == ConvAlgorithm::direct &&
         (input == Layout::blocked || (s.in_channels <= kFewChannels && s.dilation_width == 1));
}

size_t packed_conv_bf16_bytes(const ConvShape& s, Bf16Parts parts, Layout input) {
  const Image image(s, parts, input);
  return unit_panel_units(s.out_channels, image.units()) * sizeof(uint32_t);
}

void pack_conv_bf16(const ConvShape& s, Bf16Parts parts, const float* weights, std::byte* packed,
                    Layout input) {
  const Image image(s, parts, input);
  // The sum as rows of a matrix, in the order of the steps; then as any other.
  const size_t depth = image.chunks * image.taps * kChunkChannels;
  const size_t taps = s.kernel_height * s.kernel_width;
  const auto place = [&](size_t i, size_t tap) {
    if (!image.runs) return (i / kChunkChannels * taps + tap) * kChunkChannels + i % kChunkChannels;
    const size_t ky = tap / s.kernel_width, kx = tap % s.kernel_width;
    return (ky * image.chunks + kx / kRunPixels) * kChunkChannels + kx % kRunPixels * kFewChannels +
           i;
  };
  std::vector<float> rows(depth * s.out_channels, 0.0f);
  for (size_t o = 0; o < s.out_channels; ++o)
    for (size_t i = 0; i < s.in_channels; ++i)
      for (size_t t = 0; t < taps; ++t)
        rows[place(i, t) * s.out_channels + o] = weights[(o * s.in_channels + i) * taps + t];
  pack_b_bf16(depth, s.out_channels, rows.data(), s.out_channels, false, packed, parts);
}

size_t conv_bf16_scratch_bytes(const ConvBf16& conv) {
  return Scratch(conv.shape, Image(conv.shape, conv.parts, conv.input_layout)).total();
}

void conv_bf16(const ConvBf16& conv, std::byte* memory, ThreadPool& pool) {
  const ConvShape& s = conv.shape;
  if (s.batch * s.out_channels * s.out_height * s.out_width == 0) return;
  const Image image(s, conv.parts, conv.input_layout);
  const Scratch scratch(s, image);
  auto* units = reinterpret_cast<uint32_t*>(memory);
  auto* steps = reinterpret_cast<ptrdiff_t*>(memory + scratch.image);
  image.find_steps(steps);
  const BlockedOutput output(s,
                             {.image = conv.output,
                              .bf16 = conv.output_bf16,
                              .epilogue = conv.epilogue,
                              .residual_bf16 = conv.residual_bf16,
                              .plane = conv.out_plane},
                             reinterpret_cast<float*>(memory + scratch.image + scratch.steps));
  const size_t pixels = s.out_height * s.out_width;
  const size_t in_values =
      s.in_height * s.in_width *
      (image.runs ? s.in_channels : channel_blocks(s.in_channels) * kChannelBlock);
  const UnitKernels kernels = unit_kernels();
  using PackRows = FunctionRef<void(size_t, size_t, uint32_t*)>;
  const auto copy_rows = [&](size_t row, size_t height, uint32_t* packed) {
    for (size_t step = 0; step < image.chunks * image.taps; ++step)
      for (size_t part = 0; part < image.parts; ++part)
        for (size_t r = 0; r < height; ++r, packed += kChunk)
          std::memcpy(packed, units + part * image.part + steps[step] + (row + r) * image.row,
                      kChunk * sizeof(uint32_t));
  };
  for (size_t n = 0; n < s.batch; ++n) {
    const Pixels input{s,
                       static_cast<const std::byte*>(conv.input) +
                           n * in_values * (conv.input_bf16 ? sizeof(uint16_t) : sizeof(float)),
                       conv.input_bf16,
                       conv.in_plane ? conv.in_plane : s.in_height * s.in_width * kChannelBlock};
    if (image.runs)
      take_apart_runs(s, image, static_cast<const float*>(input.input), units, pool);
    else if (!image.points)
      take_apart(input, image, units, pool);
    const auto take_points = [&](size_t row, size_t height, uint32_t* packed) {
      const size_t part = height * kChunk;
      for (size_t c = 0; c < image.chunks; ++c, packed += image.parts * part)
        for_points(s, row, height, [&](size_t r, size_t at, size_t count) {
          input.chunk(c, at, count, packed + r * kChunk,
                      image.parts == 2 ? packed + part + r * kChunk : nullptr);
        });
    };
    const size_t line = image.points ? pixels : s.out_width;  // pixels without a margin
    const auto finish = [&](size_t row, size_t rows, size_t column, void* sums, size_t width) {
      for_pixel_runs(row, rows, image.width, line, [&](size_t r, size_t count, size_t pixel) {
        output.finish(n, pixel, count, column, static_cast<float*>(sums) + r * width, width);
      });
    };
    unit_gemm({.m = image.rows,
               .n = s.out_channels,
               .units = image.units(),
               .packed_b = reinterpret_cast<const uint32_t*>(conv.packed_weights),
               .tile = image.parts == 2 ? kernels.split : kernels.bf16,
               .pack_a = image.points ? PackRows(take_points) : PackRows(copy_rows),
               .image = scratch.copy ? nullptr : units,
               .image_row = image.row,
               .steps = steps,
               .image_low = static_cast<ptrdiff_t>(image.part),
               .step_units = image.parts * kChunk,
               .finish = finish},
              memory + scratch.image + scratch.steps + scratch.bias, pool);
  }
}

}  // namespace hologram::backends::dense
