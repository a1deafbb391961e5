#include "backends/cpu/dense/conv_joined.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/dense/depthwise.h"
#include "backends/cpu/dense/image_rows.h"
#include "support/aligned.h"

namespace hologram::backends::dense {
namespace {

// Of rows that are there at a time: half of a second cache of 1 MiB.
constexpr size_t kWindowBytes = 512 * 1024;
// An image that one thread finds in its second cache, as large as those are.
constexpr size_t kNearBytes = 2 * 1024 * 1024;

// Rows of the image between that rows y.. of the result need.
struct Needed {
  const ConvShape& s;
  size_t reach() const { return (s.kernel_height - 1) * s.dilation_height + 1; }
  size_t first(size_t y) const { return within(y * s.stride_height); }
  size_t past(size_t y) const { return within(y * s.stride_height + reach()); }  // of row y alone

 private:
  size_t within(size_t row) const {
    return row < s.pad_top ? 0 : std::min(row - s.pad_top, s.in_height);
  }
};

// Bands of the result and the window of each; one band of everything where the steps run one after
// the other.
struct Cut {
  size_t bands, rows;  // of the window
  bool apart;
  size_t plane, window;                        // bytes of a block of channels, of all
  size_t constants, points, window_at, total;  // places in scratch

  Cut(const JoinedConv& c, unsigned threads) {
    const ConvShape& s = c.depthwise.shape;
    const Needed needed{s};
    const size_t blocks = channel_blocks(s.in_channels);
    const size_t row = s.in_width * kChannelBlock *
                       (c.narrow && c.narrow->output_bf16 ? sizeof(uint16_t) : sizeof(float));
    bands = std::max<size_t>(std::min<size_t>(threads, s.out_height), 1);
    apart = bands > 1 ? s.in_height / bands < 8 * needed.reach()
                      : blocks * s.in_height * row < kNearBytes;
    if (apart) bands = 1;
    rows = apart ? s.in_height
                 : std::min(s.in_height, std::max(kWindowBytes / (blocks * row),
                                                  needed.reach() + 4 * s.stride_height));
    plane = rows * row;
    window = align_up(blocks * plane, kAlignment);
    constants = align_up(depthwise_scratch_bytes(c.depthwise), kAlignment);
    points = align_up(points_bytes(c, rows), kAlignment);
    window_at = constants + bands * points;
    total = window_at + bands * window;
  }
  static size_t points_bytes(const JoinedConv& c, size_t rows) {
    if (!c.narrow) {
      Conv part = c.points;
      part.shape.in_height = part.shape.out_height = rows;
      return conv_scratch_bytes(part);
    }
    ConvBf16 part = *c.narrow;
    part.shape.in_height = part.shape.out_height = rows;
    return conv_bf16_scratch_bytes(part);
  }
};

}  // namespace

bool joined_conv_supported(const ConvShape& points, const ConvShape& depthwise) {
  return points.groups == 1 && points.algorithm == ConvAlgorithm::direct &&
         depthwise.algorithm == ConvAlgorithm::direct && is_depthwise(depthwise) &&
         points.kernel_height * points.kernel_width == 1 && points.pad_top + points.pad_left == 0 &&
         points.stride_height * points.stride_width == 1 && points.in_width > 1 &&
         points.in_height == points.out_height && points.in_width == points.out_width &&
         points.batch == depthwise.batch && points.out_channels == depthwise.in_channels &&
         points.out_height == depthwise.in_height && points.out_width == depthwise.in_width;
}

size_t joined_conv_scratch_bytes(const JoinedConv& c, unsigned threads) {
  return Cut(c, threads).total;
}

void joined_conv(const JoinedConv& c, std::byte* scratch, ThreadPool& pool) {
  const ConvShape &s = c.points.shape, &t = c.depthwise.shape;
  if (t.batch * t.in_channels * t.out_height * t.out_width == 0) return;
  const Cut cut(c, pool.size());
  const Needed needed{t};
  const bool bf16 = c.narrow && c.narrow->output_bf16;
  const size_t blocks = channel_blocks(t.in_channels), pixel = kChannelBlock * (bf16 ? 2 : 4);
  const size_t row = t.in_width * pixel, in_plane = s.in_height * s.in_width * kChannelBlock;
  Conv depthwise = c.depthwise;
  if (bf16) depthwise.input_bf16 = reinterpret_cast<const uint16_t*>(scratch + cut.window_at);
  const DepthwiseRows result(depthwise, scratch);

  // Rows first..past of the image between, to `to` in the first block of a window.
  const auto make = [&](size_t n, size_t first, size_t past, std::byte* to, std::byte* memory) {
    const size_t at =
        n * channel_blocks(s.in_channels) * in_plane + first * s.in_width * kChannelBlock;
    const auto rows_of = [&](auto part) {
      part.shape.batch = 1;
      part.shape.in_height = part.shape.out_height = past - first;
      part.in_plane = in_plane;
      part.out_plane = cut.plane / pixel * kChannelBlock;
      return part;
    };
    if (!c.narrow) {
      Conv part = rows_of(c.points);
      part.input += at;
      part.output = reinterpret_cast<float*>(to);
      return conv(part, memory, pool);
    }
    ConvBf16 part = rows_of(*c.narrow);
    part.input = static_cast<const std::byte*>(part.input) +
                 at * (part.input_bf16 ? sizeof(uint16_t) : sizeof(float));
    part.output = to;
    conv_bf16(part, memory, pool);
  };
  const auto run_bands = [&](size_t n, size_t begin, size_t end) {
    for (size_t band = begin; band < end; ++band) {
      std::byte* window = scratch + cut.window_at + band * cut.window;
      std::byte* memory = scratch + cut.constants + band * cut.points;
      const size_t past = (band + 1) * t.out_height / cut.bands;
      size_t y = band * t.out_height / cut.bands;
      // Rows first..last of the image between are in the window.
      for (size_t first = needed.first(y), last = first; y < past;) {
        // What no row needs any more leaves, and what follows comes.
        const size_t from = needed.first(y), kept = std::max(last, from) - from;
        for (size_t b = 0; b < blocks && from > first && kept > 0; ++b)
          std::memmove(window + b * cut.plane, window + b * cut.plane + (from - first) * row,
                       kept * row);
        first = from;
        last = from + kept;
        const size_t end_row = std::min(first + cut.rows, needed.past(past - 1));
        if (end_row > last) make(n, last, end_row, window + (last - first) * row, memory);
        last = std::max(last, end_row);
        size_t next = y;
        while (next < past && needed.past(next) <= last) ++next;
        const std::byte* top = window - static_cast<ptrdiff_t>(first * row);
        for (size_t b = 0; b < blocks; ++b) result.run(n, b, y, next - y, top + b * cut.plane);
        y = next;
      }
    }
  };
  // Bands have memory of their own, samples do not.
  for (size_t n = 0; n < t.batch; ++n) {
    if (!cut.apart) {
      pool.parallel_for(cut.bands, 1, [&](size_t begin, size_t end) { run_bands(n, begin, end); });
      continue;
    }
    std::byte* window = scratch + cut.window_at;
    make(n, 0, s.in_height, window, scratch + cut.constants);
    for_image_rows(pool, blocks, t.out_height, t.out_width, 0,
                   [&](size_t block, size_t y, size_t count) {
                     result.run(n, block, y, count, window + block * cut.plane);
                   });
  }
}

}  // namespace hologram::backends::dense
