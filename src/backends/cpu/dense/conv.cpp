#include "backends/cpu/dense/conv.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/dense/conv_ordered.h"
#include "backends/cpu/dense/conv_pack.h"
#include "backends/cpu/dense/conv_plan.h"
#include "backends/cpu/dense/depthwise.h"
#include "backends/cpu/dense/exact_tile.h"
#include "backends/cpu/dense/row_tiles.h"
#include "backends/cpu/dense/tile.h"
#include "backends/cpu/dense/winograd.h"
#include "support/aligned.h"

namespace hologram::backends::dense {
namespace {

// The image of a block of tiles stays in L2 beside a panel of weights; where all weights fit there,
// it stays in L1 and the weights pass by.
constexpr size_t kBlockBytes = 384 * 1024, kSmallBlockBytes = 16 * 1024;
constexpr size_t kSmallWeights = 256 * 1024;
constexpr size_t kSmallWork = 512 * 1024;
// Weights of a panel that do not stay in L2 from tile to tile are taken in passes over some kernel
// positions each, between which sums are put down.
constexpr size_t kPassBytes = 256 * 1024;
constexpr size_t kManyTerms = 256;  // of a sum
// Networks that end in a close decision (text recognisers) make a thousand times more of the errors
// of sums, so these are in parts of 16 terms: of more where sums are long, as each part takes time,
// or short, as the last one is waited for. Most sums of such networks are over one kernel position;
// those over several are in parts of 128. Of an image of one pixel parts cost nothing.
size_t part_chunks(const ConvPlan& plan, size_t terms) {
  if (plan.shape.out_height * plan.shape.out_width == 1) return 1;
  if (terms <= 32) return 0;
  if (plan.shape.kernel_height * plan.shape.kernel_width > 1) return 8;
  if (terms <= 64) return 2;
  return terms <= kManyTerms ? 1 : terms <= 2 * kManyTerms ? 2 : 4;
}

// Kernel positions of a pass over `columns` outputs; all where there is one.
size_t pass_taps(const ConvPlan& plan, bool exact, size_t taps, size_t columns) {
  const size_t tap_bytes = plan.run * columns * sizeof(float);
  if (exact || taps * tap_bytes <= kPassBytes) return taps;
  return std::clamp<size_t>(kPassBytes / 2 / tap_bytes, 1, taps);
}

// Scratch: the image, the tap table, the bias padded to whole blocks, what sums begin with padded
// to a whole block after any of its values, sums between passes and what of them is put aside.
struct Scratch {
  size_t image, taps, bias, start, sums = 0;
  Scratch(const ConvPlan& plan, bool exact)
      : image(plan.in_place ? 0 : plan.shape.groups * plan.group_floats * sizeof(float)),
        taps(align_up(plan.shape.kernel_height * plan.shape.kernel_width * sizeof(ptrdiff_t),
                      kAlignment)),
        bias(align_up(plan.shape.out_channels, kChannelBlock) * sizeof(float)),
        start(bias + kChannelBlock * sizeof(float)) {
    image = align_up(image, kAlignment);
    start = align_up(bias + start, kAlignment) - bias;
    size_t most_taps = 0;
    for (size_t p = 0; p < plan.phase_count(); ++p)
      most_taps = std::max(most_taps, plan.phase(p).tap_count);
    if (pass_taps(plan, exact, most_taps, kWideColumns) < most_taps)
      sums = plan.shape.groups * align_up(plan.group_outputs, kPanelColumns) *
             plan.shape.out_height * plan.shape.out_width * sizeof(float);
  }
  size_t total() const { return image + taps + bias + start + (1 + kMostAside) * sums; }
};

// The strides of an output sample.
struct OutputForm {
  size_t pixel, block, channel, floats;
  OutputForm(const ConvShape& s, Layout layout, size_t plane) {
    const size_t pixels = s.out_height * s.out_width;
    pixel = layout == Layout::blocked ? kChannelBlock : 1;
    channel = layout == Layout::blocked ? 1 : pixels;
    block = plane ? plane : pixels * kChannelBlock;
    floats = layout == Layout::blocked ? channel_blocks(s.out_channels) * block
                                       : s.out_channels * pixels;
  }
};

// The positions of a kernel along one axis that meet the image for some pixel of the output. Those
// around them meet its margin alone, as most of a kernel does on an image of one pixel.
struct Reach {
  size_t first, last;
  Reach(size_t in, size_t out, size_t kernel, size_t stride, size_t pad, size_t dilation)
      : first(0), last(kernel) {
    while (first + 1 < last && (out - 1) * stride + first * dilation < pad) ++first;
    while (first + 1 < last && (last - 1) * dilation >= in + pad) --last;
  }
};

class PhaseRun {
 public:
  PhaseRun(const ConvPlan& plan, const Conv& conv, const Epilogue& epilogue, const float* start,
           float* sums, size_t index, ptrdiff_t* taps)
      : plan_(plan),
        phase_(plan.phase(index)),
        epilogue_(epilogue),
        start_(start),
        sums_(sums),
        form_(plan.shape, conv.output_layout, conv.out_plane),
        weights_(conv.packed_weights),
        exact_weights_(conv.exact_weights),
        part_(conv.long_sums ? 0 : part_chunks(plan, phase_.depth)),
        taps_(taps),
        rows_(phase_.rows),
        kernel_(exact_weights_ ? exact_tile_kernel() : tile_kernel()),
        // A blocked output has whole blocks; the lanes beyond the channels receive what falls out.
        outputs_(conv.output_layout == Layout::blocked ? align_up(plan.group_outputs, kChannelBlock)
                                                       : plan.group_outputs),
        pairs_(kernel_.wide_rows != 0 && conv.output_layout == Layout::blocked
                   ? outputs_ / kWideColumns
                   : 0),
        tile_rows_(pairs_ != 0 ? kernel_.wide_rows : kernel_.rows),
        columns_(phase_.columns, tile_rows_) {
    size_t count = 0;
    plan.for_each_tap(index, [&](const ConvPlan::Tap& tap) { taps[count++] = tap.offset; });
    if (!plan.transposed && phase_.rows * phase_.columns != 0) skip_margins(plan.shape);
    // Where rows follow each other without a gap on both sides they are one long row.
    if (plan.in_step_y * plan.width == phase_.columns * plan.in_step_x &&
        plan.out_step_y * plan.shape.out_width == phase_.columns * plan.out_step_x) {
      columns_ = RowTiles(phase_.rows * phase_.columns, tile_rows_);
      rows_ = 1;
    }
  }

  void run(const float* image, float* output, const float* residual, size_t offset,
           ThreadPool& pool) const {
    if (phase_.rows == 0 || phase_.columns == 0) return;
    const size_t tiles = rows_ * columns_.tiles;
    // Pairs of panels, then single ones.
    const size_t strides = (outputs_ + kPanelColumns - 1) / kPanelColumns - pairs_;
    const size_t pixels = phase_.rows * phase_.columns;
    const size_t weights = phase_.depth * outputs_ * sizeof(float);
    // What is read of the image, where a 1 x 1 kernel leaves pixels out as well.
    const size_t image_bytes = std::min(plan_.group_floats, pixels * phase_.depth) * sizeof(float);
    const bool small = weights <= kSmallWeights;
    const size_t budget = small ? kSmallBlockBytes : kBlockBytes;
    size_t block = std::clamp<size_t>(budget * tiles / std::max<size_t>(image_bytes, 1), 1, tiles);
    // Each block reads all weights, and each panel the image of a block.
    if (strides * image_bytes < ((tiles + block - 1) / block - 1) * weights && !small)
      block = tiles;
    const size_t wanted = pool.size() == 1 ? 1 : 4 * pool.size();
    const size_t groups = plan_.shape.groups;
    if (groups * strides * ((tiles + block - 1) / block) < wanted)
      block = std::max<size_t>(tiles * strides * groups / wanted, 1);
    const size_t blocks = (tiles + block - 1) / block;  // of nearly as many tiles each
    const auto body = [&](size_t begin, size_t end) {
      for (size_t job = begin; job < end; ++job) {
        const size_t stride = job % strides, at = job / strides % blocks;
        const size_t first = tiles * at / blocks, past = tiles * (at + 1) / blocks;
        const size_t group = job / strides / blocks;
        // The next weights come from memory while these are multiplied.
        const size_t lines = !small && !exact_weights_ && past - first > 1 && stride + 1 < strides
                                 ? lines_ahead(kPanelColumns, past - first)
                                 : 0;
        const size_t width = stride < pairs_ ? kWideColumns : kPanelColumns;
        const size_t taps = pass_taps(plan_, exact_weights_ != nullptr, phase_.tap_count, width);
        size_t tap = 0;  // where no position meets the output there is a bias at least
        do {
          const size_t past_tap = std::min(tap + taps, phase_.tap_count);
          for (size_t t = first; t < past; ++t)
            run_tile(image, output, residual, offset, {group, stride, t},
                     {tap, past_tap, t - first, lines});
          tap = past_tap;
        } while (tap < phase_.tap_count);
      }
    };
    const size_t work = tiles * tile_rows_ * outputs_ * phase_.depth * groups;
    pool.parallel_for(groups * strides * blocks, 1, body, Schedule::dynamic,
                      work < kSmallWork ? 1 : 0);
  }

 private:
  // Rows of taps, or the taps of a kernel that is one row, which would add zeros.
  void skip_margins(const ConvShape& s) {
    const size_t row = plan_.interleaved ? 1 : s.kernel_width;
    const Reach rows(s.in_height, s.out_height, s.kernel_height, s.stride_height, s.pad_top,
                     s.dilation_height);
    Reach taps(s.in_width, s.out_width, row, s.stride_width, s.pad_left, s.dilation_width);
    if (plan_.interleaved || s.kernel_height > 1) taps.first = 0, taps.last = row;
    skipped_ = rows.first * row + taps.first;
    taps_ += skipped_;
    phase_.tap_count = (rows.last - 1) * row + taps.last - skipped_;
  }

  struct Place {
    size_t group, stride, tile;
  };
  // Kernel positions of a tile, and what it brings near of the weights of the next pass: the share
  // of the `index`-th tile of a block.
  struct Pass {
    size_t tap, past, index, lines;
  };

  void run_tile(const float* image, float* output, const float* residual, size_t offset,
                const Place& place, const Pass& pass) const {
    const auto [group, stride, index] = place;
    // A division takes as long as the shortest sums.
    const size_t y = rows_ == 1 ? 0 : index / columns_.tiles, t = index - y * columns_.tiles;
    const bool wide = stride < pairs_;
    const size_t x = columns_.begin(t),
                 column = (wide ? 2 * stride : stride + pairs_) * kPanelColumns;
    Tile tile;
    tile.a = image + group * plan_.group_floats +
             (y * plan_.in_step_y * plan_.width + x * plan_.in_step_x) * plan_.pixel;
    tile.a_row = static_cast<ptrdiff_t>(plan_.in_step_x * plan_.pixel);
    tile.a_chunk = static_cast<ptrdiff_t>(plan_.interleaved ? kChunk : plan_.block);
    tile.taps = taps_ + pass.tap;
    tile.tap_count = pass.past - pass.tap;
    tile.chunks = (plan_.run + kChunk - 1) / kChunk;
    tile.last = plan_.run - (tile.chunks - 1) * kChunk;
    tile.part = part_;
    tile.aside = phase_.depth > kManyTerms ? kMostAside : 1;
    tile.b_stride =
        std::min<size_t>(kPanelColumns, align_up(plan_.group_outputs, kChannelBlock) - column);
    const size_t from = phase_.weight_offset + group * plan_.group_weights + column * phase_.depth +
                        (skipped_ + pass.tap) * plan_.run * tile.b_stride;
    if (exact_weights_)
      tile.exact_b = exact_weights_ + from;
    else
      tile.b = weights_ + from;
    tile.b_panel = kPanelColumns * phase_.depth;
    tile.rows = columns_.height(t);
    tile.columns = std::min(wide ? kWideColumns : kPanelColumns, outputs_ - column);
    tile.ahead_lines = pass.lines;
    const bool last = pass.past == phase_.tap_count;
    const size_t brought = tile.tap_count * plan_.run * tile.b_stride;
    tile.ahead =
        tile.b + pass.index * pass.lines * tile.tap_count * tile.chunks * kChunk +
        (last ? (wide ? 2 : 1) * tile.b_panel - pass.tap * plan_.run * tile.b_stride : brought);
    tile.column = group * plan_.group_outputs + column;
    tile.start = start_ ? start_ + tile.column : nullptr;
    if (tile.tap_count < phase_.tap_count) {
      const size_t pixels = plan_.shape.out_height * plan_.shape.out_width;
      const size_t panels = align_up(plan_.group_outputs, kPanelColumns);
      const size_t width = align_up(tile.columns, kChunk);
      const size_t at = (group * panels + column) * pixels + (y * phase_.columns + x) * width;
      if (pass.tap != 0) {
        tile.start = sums_ + at;
        tile.start_row = static_cast<ptrdiff_t>(width);
        tile.before = pass.tap * tile.chunks;
      }
      tile.paused = last ? nullptr : sums_ + at;
      tile.parts = sums_ + plan_.shape.groups * panels * pixels + kMostAside * at;
    }
    const size_t pixel = (phase_.first_row + y * plan_.out_step_y) * plan_.shape.out_width +
                         phase_.first_column + x * plan_.out_step_x;
    const size_t to = tile.column / kChannelBlock * form_.block +
                      tile.column % kChannelBlock * form_.channel + pixel * form_.pixel;
    tile.c = output + to;
    tile.c_row = static_cast<ptrdiff_t>(plan_.out_step_x * form_.pixel);
    tile.c_block = static_cast<ptrdiff_t>(form_.block);
    tile.c_column = static_cast<ptrdiff_t>(form_.channel);
    tile.residual = residual ? residual + to : nullptr;
    tile.residual_row = tile.c_row;
    tile.offset = offset + to;
    tile.epilogue = &epilogue_;
    kernel_.run(tile);
  }

  const ConvPlan& plan_;
  ConvPhase phase_;
  const Epilogue& epilogue_;
  const float* start_;
  float* sums_;  // between passes
  OutputForm form_;
  const float* weights_;
  const double* exact_weights_;  // instead, or null
  size_t part_;                  // chunks, or 0
  const ptrdiff_t* taps_;
  size_t skipped_ = 0;  // taps
  size_t rows_;
  TileKernel kernel_;
  size_t outputs_, pairs_, tile_rows_;  // pairs: of panels that wide tiles take
  RowTiles columns_;
};

void run_plan(const ConvPlan& plan, const Conv& conv, std::byte* scratch, ThreadPool& pool) {
  const ConvShape& s = plan.shape;
  if (s.batch * s.out_channels * s.out_height * s.out_width == 0) return;
  const Scratch parts(plan, conv.exact_weights != nullptr);
  float* image = reinterpret_cast<float*>(scratch);
  auto* taps = reinterpret_cast<ptrdiff_t*>(scratch + parts.image);
  auto* bias = reinterpret_cast<float*>(scratch + parts.image + parts.taps);
  Epilogue epilogue = conv.epilogue;
  if (epilogue.bias && conv.output_layout == Layout::blocked && s.out_channels % kChannelBlock) {
    std::memset(bias, 0, parts.bias);
    std::memcpy(bias, epilogue.bias, s.out_channels * sizeof(float));
    epilogue.bias = bias;
  }
  float* start = nullptr;
  if (conv.bias_rest) {
    start = reinterpret_cast<float*>(scratch + parts.image + parts.taps + parts.bias);
    std::memset(start, 0, parts.start);
    std::memcpy(start, conv.bias_rest, s.out_channels * sizeof(float));
  }
  auto* sums =
      reinterpret_cast<float*>(scratch + parts.image + parts.taps + parts.bias + parts.start);
  const size_t in_floats =
      (conv.input_layout == Layout::blocked ? channel_blocks(s.in_channels) * kChannelBlock
                                            : s.in_channels) *
      s.in_height * s.in_width;
  const size_t out_floats = OutputForm(s, conv.output_layout, conv.out_plane).floats;
  for (size_t n = 0; n < s.batch; ++n) {
    const float* input = conv.input + n * in_floats;
    if (!plan.in_place) pack_image(plan, conv.input_layout, input, image, pool);
    for (size_t p = 0; p < plan.phase_count(); ++p) {
      const PhaseRun phase(plan, conv, epilogue, start, sums, p, taps);
      phase.run(plan.in_place ? input : image, conv.output + n * out_floats,
                epilogue.residual ? epilogue.residual + n * out_floats : nullptr, n * out_floats,
                pool);
    }
  }
}

}  // namespace

bool conv_supported(const ConvShape& s, Layout input, Layout output) {
  if (s.algorithm == ConvAlgorithm::ordered) return ordered_conv_supported(s, input, output);
  if (s.algorithm == ConvAlgorithm::winograd)
    return is_winograd(s) && input == Layout::blocked && output == Layout::blocked;
  return output == Layout::nchw || s.groups == 1 || is_depthwise(s) ||
         s.out_channels / s.groups % kChannelBlock == 0;
}

size_t packed_conv_weight_bytes(const ConvShape& shape, Layout input) {
  if (shape.algorithm == ConvAlgorithm::ordered) return packed_ordered_conv_bytes(shape);
  if (shape.algorithm == ConvAlgorithm::winograd) return packed_winograd_bytes(shape);
  if (is_depthwise(shape)) return packed_depthwise_bytes(shape);
  return ConvPlan(shape, input, false).group_weights * shape.groups * sizeof(float);
}

void pack_conv_weights(const ConvShape& shape, Layout input, const float* weights, float* packed) {
  if (shape.algorithm == ConvAlgorithm::ordered) return pack_ordered_conv(shape, weights, packed);
  if (shape.algorithm == ConvAlgorithm::winograd) return pack_winograd(shape, weights, packed);
  if (is_depthwise(shape)) return pack_depthwise(shape, weights, packed);
  pack_weights(ConvPlan(shape, input, false), weights, packed);
}

size_t conv_scratch_bytes(const Conv& conv) {
  if (conv.shape.algorithm == ConvAlgorithm::ordered) return ordered_conv_scratch_bytes(conv);
  if (conv.shape.algorithm == ConvAlgorithm::winograd) return winograd_scratch_bytes(conv);
  if (is_depthwise(conv.shape)) return depthwise_scratch_bytes(conv);
  return Scratch(ConvPlan(conv.shape, conv.input_layout, false), conv.exact_weights != nullptr)
      .total();
}

void conv(const Conv& conv, std::byte* scratch, ThreadPool& pool) {
  if (conv.shape.algorithm == ConvAlgorithm::ordered) return ordered_conv(conv, scratch, pool);
  if (conv.shape.algorithm == ConvAlgorithm::winograd) return winograd(conv, scratch, pool);
  if (is_depthwise(conv.shape)) return depthwise(conv, scratch, pool);
  ConvPlan plan(conv.shape, conv.input_layout, false);
  if (conv.in_plane) plan.block = conv.in_plane;
  run_plan(plan, conv, scratch, pool);
}

size_t packed_conv_transpose_weight_bytes(const ConvShape& shape) {
  return ConvPlan(shape, Layout::nchw, true).group_weights * shape.groups * sizeof(float);
}

void pack_conv_transpose_weights(const ConvShape& shape, const float* weights, float* packed) {
  pack_weights(ConvPlan(shape, Layout::nchw, true), weights, packed);
}

size_t conv_transpose_scratch_bytes(const Conv& conv) {
  return Scratch(ConvPlan(conv.shape, Layout::nchw, true), false).total();
}

void conv_transpose(const Conv& conv, std::byte* scratch, ThreadPool& pool) {
  run_plan(ConvPlan(conv.shape, Layout::nchw, true), conv, scratch, pool);
}

}  // namespace hologram::backends::dense
