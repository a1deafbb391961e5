#include "backends/cpu/dense/conv_bf16.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/dense/tile.h"
#include "backends/cpu/dense/unit_gemm.h"
#include "support/aligned.h"

namespace hologram::backends::dense {
namespace {

constexpr size_t kChunkChannels = 2 * kChannelBlock;

// One axis: output i meets kernel position k at place i + lead(k) of the plane of residue(k).
struct Axis {
  size_t in, out, kernel, stride, pad, dilation;
  size_t planes, size;  // residues that occur (the lowest ones at least), places of a plane

  Axis(size_t in, size_t out, size_t kernel, size_t stride, size_t pad, size_t dilation)
      : in(in), out(out), kernel(kernel), stride(stride), pad(pad), dilation(dilation), planes(1) {
    for (size_t k = 0; k < kernel; ++k) planes = std::max(planes, residue(k) + 1);
    size = out + lead(kernel - 1);
  }
  size_t residue(size_t k) const { return k * dilation % stride; }
  size_t lead(size_t k) const { return k * dilation / stride; }
  // The input position of a place, or `in` where there is none.
  size_t source(size_t plane, size_t place) const {
    const size_t at = place * stride + plane;
    return at < pad || at - pad >= in ? in : at - pad;
  }
};

struct Image {
  Axis y, x;
  size_t chunks, taps, parts;
  size_t plane, chunk, part;  // units of each
  size_t rows;                // of the product: pixels in a row with the margins between them

  Image(const ConvShape& s, Bf16Parts p)
      : y(s.in_height, s.out_height, s.kernel_height, s.stride_height, s.pad_top,
          s.dilation_height),
        x(s.in_width, s.out_width, s.kernel_width, s.stride_width, s.pad_left, s.dilation_width),
        chunks((s.in_channels + kChunkChannels - 1) / kChunkChannels),
        taps(s.kernel_height * s.kernel_width),
        parts(p == Bf16Parts::two ? 2 : 1),
        plane(y.size * x.size * kChunk),
        chunk(y.planes * x.planes * plane),
        part(chunks * chunk),
        rows((s.out_height - 1) * x.size + s.out_width) {}

  size_t units() const { return chunks * taps * parts * kChunk; }
  // A tile reads whole registers of pixels, also beyond the last.
  size_t bytes() const {
    return align_up((parts * part + kMaxUnitRows * kChunk) * sizeof(uint32_t), kAlignment);
  }
  void find_steps(ptrdiff_t* steps) const {
    for (size_t c = 0; c < chunks; ++c)
      for (size_t ky = 0; ky < y.kernel; ++ky)
        for (size_t kx = 0; kx < x.kernel; ++kx)
          *steps++ = static_cast<ptrdiff_t>(c * chunk +
                                            (y.residue(ky) * x.planes + x.residue(kx)) * plane +
                                            (y.lead(ky) * x.size + x.lead(kx)) * kChunk);
  }
};

// One sample's planes. A row of a plane is zeros, a run of input pixels, zeros.
void take_apart(const ConvShape& s, const Image& image, const float* input, uint32_t* units,
                ThreadPool& pool) {
  const size_t rows = image.y.planes * image.x.planes * image.y.size;
  const size_t block = s.in_height * s.in_width * kChannelBlock;
  const bool two = image.parts == 2;
  const auto fill = [&](size_t begin, size_t end) {
    for (size_t job = begin; job < end; ++job) {
      const size_t chunk = job / rows, row = job % rows, plane = row / image.y.size;
      const size_t py = plane / image.x.planes, px = plane % image.x.planes;
      uint32_t* high = units + chunk * image.chunk + row * image.x.size * kChunk;
      uint32_t* low = two ? high + image.part : nullptr;
      const auto clear = [&](size_t from, size_t to) {
        std::memset(high + from * kChunk, 0, (to - from) * kChunk * sizeof(uint32_t));
        if (low) std::memset(low + from * kChunk, 0, (to - from) * kChunk * sizeof(uint32_t));
      };
      const size_t from_y = image.y.source(py, row % image.y.size);
      size_t first = 0, last = 0;
      if (from_y < s.in_height) {
        while (first < image.x.size && image.x.source(px, first) == s.in_width) ++first;
        last = first;
        while (last < image.x.size && image.x.source(px, last) < s.in_width) ++last;
      }
      clear(0, first);
      clear(last, image.x.size);
      if (first == last) continue;
      const float* from = input + 2 * chunk * block +
                          (from_y * s.in_width + image.x.source(px, first)) * kChannelBlock;
      const size_t channels = std::min(kChunkChannels, s.in_channels - chunk * kChunkChannels);
      split_pixels(from, channels > kChannelBlock ? from + block : nullptr, last - first,
                   s.stride_width * kChannelBlock, channels, high + first * kChunk,
                   low ? low + first * kChunk : nullptr);
    }
  };
  pool.parallel_for(image.chunks * rows, 8, fill, Schedule::fixed);
}

struct Scratch {
  size_t image, steps, bias;
  Scratch(const ConvShape& s, const Image& form)
      : image(form.bytes()),
        steps(align_up(form.chunks * form.taps * sizeof(ptrdiff_t), kAlignment)),
        bias(align_up(s.out_channels, kChannelBlock) * sizeof(float)) {}
};

}  // namespace

bool conv_bf16_supported(const ConvShape& s) {
  return s.groups == 1 && s.algorithm == ConvAlgorithm::direct;
}

size_t packed_conv_bf16_bytes(const ConvShape& s, Bf16Parts parts) {
  const Image image(s, parts);
  return unit_panel_units(s.out_channels, image.units()) * sizeof(uint32_t);
}

void pack_conv_bf16(const ConvShape& s, Bf16Parts parts, const float* weights, std::byte* packed) {
  const Image image(s, parts);
  // The sum as rows of a matrix, in the order of the steps; then as any other.
  const size_t depth = image.chunks * image.taps * kChunkChannels;
  std::vector<float> rows(depth * s.out_channels, 0.0f);
  for (size_t o = 0; o < s.out_channels; ++o)
    for (size_t i = 0; i < s.in_channels; ++i)
      for (size_t t = 0; t < image.taps; ++t)
        rows[((i / kChunkChannels * image.taps + t) * kChunkChannels + i % kChunkChannels) *
                 s.out_channels +
             o] = weights[(o * s.in_channels + i) * image.taps + t];
  pack_b_bf16(depth, s.out_channels, rows.data(), s.out_channels, false, packed, parts);
}

size_t conv_bf16_scratch_bytes(const ConvBf16& conv) {
  const Image image(conv.shape, conv.parts);
  const Scratch scratch(conv.shape, image);
  return scratch.image + scratch.steps + scratch.bias;
}

void conv_bf16(const ConvBf16& conv, std::byte* memory, ThreadPool& pool) {
  const ConvShape& s = conv.shape;
  if (s.batch * s.out_channels * s.out_height * s.out_width == 0) return;
  const Image image(s, conv.parts);
  const Scratch scratch(s, image);
  auto* units = reinterpret_cast<uint32_t*>(memory);
  auto* steps = reinterpret_cast<ptrdiff_t*>(memory + scratch.image);
  image.find_steps(steps);
  Epilogue epilogue = conv.epilogue;
  if (epilogue.bias && s.out_channels % kChannelBlock) {
    auto* bias = reinterpret_cast<float*>(memory + scratch.image + scratch.steps);
    std::memset(bias, 0, scratch.bias);
    std::memcpy(bias, epilogue.bias, s.out_channels * sizeof(float));
    epilogue.bias = bias;
  }
  const size_t pixels = s.out_height * s.out_width, block = pixels * kChannelBlock;
  const size_t in_floats = channel_blocks(s.in_channels) * s.in_height * s.in_width * kChannelBlock;
  const size_t out_floats = channel_blocks(s.out_channels) * block;
  const TileKernel kernel = tile_kernel();
  const UnitKernels kernels = unit_kernels();
  for (size_t n = 0; n < s.batch; ++n) {
    take_apart(s, image, conv.input + n * in_floats, units, pool);
    // Whole blocks are written; the lanes beyond the channels receive what falls out.
    const size_t outputs = align_up(s.out_channels, kChannelBlock);
    const auto finish = [&](size_t row, size_t rows, size_t column, void* sums, size_t width) {
      for (size_t r = 0; r < rows;) {
        const size_t y = (row + r) / image.x.size, x = (row + r) % image.x.size;
        if (x >= s.out_width) {  // the margin between two rows
          r += image.x.size - x;
          continue;
        }
        const size_t count = std::min(rows - r, s.out_width - x);
        Tile tile;
        tile.rows = count;
        tile.columns = std::min(width, outputs - column);
        tile.column = column;
        tile.epilogue = &epilogue;
        const size_t place = column / kChannelBlock * block + (y * s.out_width + x) * kChannelBlock;
        tile.offset = n * out_floats + place;
        tile.c = conv.output + tile.offset;
        tile.c_row = kChannelBlock;
        tile.c_block = static_cast<ptrdiff_t>(block);
        if (epilogue.residual) tile.residual = epilogue.residual + tile.offset;
        tile.residual_row = tile.c_row;
        kernel.finish(tile, static_cast<float*>(sums) + r * width, width);
        r += count;
      }
    };
    unit_gemm({.m = image.rows,
               .n = s.out_channels,
               .units = image.units(),
               .packed_b = reinterpret_cast<const uint32_t*>(conv.packed_weights),
               .tile = image.parts == 2 ? kernels.split : kernels.bf16,
               .pack_a = [](size_t, size_t, uint32_t*) {},
               .image = units,
               .steps = steps,
               .image_low = static_cast<ptrdiff_t>(image.part),
               .step_units = image.parts * kChunk,
               .finish = finish},
              nullptr, pool);
  }
}

}  // namespace hologram::backends::dense
