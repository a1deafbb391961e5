// Movement, pooling and scaling in the channel-blocked layout.
#include <algorithm>

#include "backends/cpu/dense/bf16_values.h"
#include "backends/cpu/dense/channel_scale.h"
#include "backends/cpu/kernels/fused.h"
#include "backends/cpu/kernels/pointwise.h"
#include "backends/cpu/kernels/pooling.h"

namespace hologram::kernels {

namespace dense = backends::dense;

Dims plain_dims(const Dims& blocked, int64_t channels) {
  Dims dims = blocked;
  if (dims.rank() < 3) return dims;
  dims.erase(dims.rank() - 1);
  dims[1] = channels;
  return dims;
}

Dims blocked_dims(const Dims& plain) {
  Dims dims = plain;
  dims[1] = static_cast<int64_t>(dense::channel_blocks(static_cast<size_t>(plain[1])));
  dims.push_back(dense::kChannelBlock);
  return dims;
}

namespace {

Status check_blocked(const Dims& x, int64_t channels) {
  if (x.rank() < 4 || channels < 1 || !(blocked_dims(plain_dims(x, channels)) == x))
    return fail(ErrorCode::shape_mismatch, "{} is not {} channels in blocks", x.to_string(),
                channels);
  return {};
}

}  // namespace

Status to_blocked(KernelContext& c) {
  const Tensor& x = c.input(0);
  if (x.dims.rank() < 3 || x.dims.rank() == kMaxRank)
    return fail(ErrorCode::shape_mismatch, "{} has no spatial axes, or too many",
                x.dims.to_string());
  HOLOGRAM_TRY(Tensor y, c.output(0, blocked_dims(x.dims)));
  dense::to_blocked(x.dims[0], x.dims[1], x.dims.product(2, x.dims.rank()), x.as<float>(),
                    y.as<float>(), c.threads());
  return {};
}

// `channels` says how many there are.
Status from_blocked(KernelContext& c) {
  const Tensor& x = c.input(0);
  const int64_t channels = c.integer("channels");
  HOLOGRAM_CHECK(check_blocked(x.dims, channels));
  const Dims dims = plain_dims(x.dims, channels);
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  dense::from_blocked(dims[0], channels, dims.product(2, dims.rank()), x.as<float>(), y.as<float>(),
                      c.threads());
  return {};
}

// MaxPool and AveragePool (`kind`: "max", "average") with the attributes of those.
Status blocked_pool(KernelContext& c) {
  const Tensor& x = c.input(0);
  const auto size = c.integers("kernel_shape");
  const int64_t channels = x.dims.rank() < 4 ? 0 : x.dims[1] * int64_t(dense::kChannelBlock);
  HOLOGRAM_CHECK(check_blocked(x.dims, channels));
  const Dims in = plain_dims(x.dims, channels);
  const size_t rank = size.size();
  if (rank + 2 != in.rank() || rank > 2)
    return fail(ErrorCode::shape_mismatch, "kernel_shape of {} axes for {}", rank,
                x.dims.to_string());
  HOLOGRAM_TRY(const Window w,
               make_window(c, spatial_dims(in), Dims(size), c.integer("ceil_mode") != 0));
  Dims out = {in[0], in[1]};
  for (int64_t d : w.output) out.push_back(d);
  HOLOGRAM_TRY(Tensor y, c.output(0, blocked_dims(out)));
  if (y.count() == 0) return {};
  dense::Pool pool = dense_pool(c, w, in[0], in[1]);
  pool.kind = c.text("kind") == "max" ? dense::PoolKind::max : dense::PoolKind::average;
  pool.layout = dense::Layout::blocked;
  if (x.dtype != y.dtype)
    return fail(ErrorCode::type_mismatch, "{} pooled to {}", name_of(x.dtype), name_of(y.dtype));
  if (x.dtype == DType::bf16) {
    pool.x_bf16 = x.as<uint16_t>();
    pool.y_bf16 = y.as<uint16_t>();
  } else {
    pool.x = x.as<float>();
    pool.y = y.as<float>();
  }
  dense::pool(pool, c.threads());
  return {};
}

Status blocked_global_average(KernelContext& c) {
  const Tensor& x = c.input(0);
  const size_t rank = x.dims.rank();
  HOLOGRAM_CHECK(check_blocked(x.dims, rank < 4 ? 0 : x.dims[1] * int64_t(dense::kChannelBlock)));
  Dims dims = Dims::filled(rank, 1);
  dims[0] = x.dims[0];
  dims[1] = x.dims[1];
  dims[rank - 1] = x.dims[rank - 1];
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  if (x.dtype == DType::bf16) {
    dense::global_average_bf16(x.dims[0], x.dims[1] * dense::kChannelBlock,
                               x.dims.product(2, rank - 1), x.as<uint16_t>(), y.as<float>(),
                               c.threads());
    return {};
  }
  dense::global_average(dense::Layout::blocked, x.dims[0], x.dims[1] * dense::kChannelBlock,
                        x.dims.product(2, rank - 1), x.as<float>(), y.as<float>(), c.threads());
  return {};
}

// Inputs scale, bias?, X...: the X side by side along the channels, times a number a channel and
// plus another, through an activation. scale and bias are [batch or 1, blocks, 1, ..., 16]. With
// `plus_one`, which has no bias, the number is one more than scale says.
Status blocked_scale(KernelContext& c) {
  const size_t parts = c.input_count() < 2 ? 0 : c.input_count() - 2;
  if (parts == 0 || parts > dense::ChannelScale::kMostParts)
    return fail(ErrorCode::invalid_argument, "{} tensors to scale", parts);
  dense::ChannelScale s;
  const Dims& first = c.input(2).dims;
  const size_t rank = first.rank();
  if (rank < 4 || first.back() != int64_t(dense::kChannelBlock))
    return fail(ErrorCode::shape_mismatch, "{} is not blocked", first.to_string());
  Dims out = first;
  out[1] = 0;
  for (size_t i = 0; i < parts; ++i) {
    const Dims& dims = c.input(2 + i).dims;
    bool fits = dims.rank() == rank && dims[0] == first[0];
    for (size_t axis = 2; fits && axis < rank; ++axis) fits = dims[axis] == first[axis];
    if (!fits)
      return fail(ErrorCode::shape_mismatch, "{} beside {}", dims.to_string(), first.to_string());
    const Tensor& x = c.input(2 + i);
    const bool narrow = x.dtype == DType::bf16;
    s.parts[i] = {narrow ? nullptr : x.as<float>(), static_cast<size_t>(dims[1]),
                  narrow ? x.as<uint16_t>() : nullptr};
    out[1] += dims[1];
  }
  const int64_t channels = out[1] * int64_t(dense::kChannelBlock);
  for (size_t i = 0; i < 2; ++i) {
    if (!c.has_input(i)) continue;
    const int64_t count = c.input(i).count();
    if (count != channels && (i != 0 || count != channels * out[0]))
      return fail(ErrorCode::shape_mismatch, "{} for {}", c.input(i).dims.to_string(),
                  out.to_string());
  }
  HOLOGRAM_TRY(s.activation, activation_named(c.text("activation")));
  s.first = static_cast<float>(c.number("activation_first"));
  s.second = static_cast<float>(c.number("activation_second"));
  s.plus_one = c.integer("plus_one") != 0;
  if (s.plus_one && (!c.has_input(0) || c.has_input(1)))
    return fail(ErrorCode::invalid_argument, "plus_one is for a scale without a bias");
  s.part_count = parts;
  s.batch = static_cast<size_t>(out[0]);
  s.pixels = static_cast<size_t>(out.product(2, rank - 1));
  if (c.has_input(0)) {
    s.scale = c.input(0).as<float>();
    s.scale_batch = c.input(0).count() != channels ? static_cast<size_t>(channels) : 0;
  }
  if (c.has_input(1)) s.bias = c.input(1).as<float>();
  HOLOGRAM_TRY(Tensor y, c.output(0, out));
  if (y.dtype == DType::bf16)
    s.y_bf16 = y.as<uint16_t>();
  else
    s.y = y.as<float>();
  dense::channel_scale(s, c.threads());
  return {};
}

namespace {

void add_values(const float* added, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] += added[i];
}
void add_values(const uint16_t* added, size_t count, uint16_t* to) {
  constexpr size_t kSome = 64 * dense::kChannelBlock;
  float values[kSome], others[kSome];
  for (size_t i = 0; i < count; i += kSome) {
    const size_t some = std::min(kSome, count - i);
    dense::widen_values(to + i, some, values);
    dense::widen_values(added + i, some, others);
    add_values(others, some, values);
    dense::narrow_values(values, some, to + i);
  }
}

}  // namespace

// Each pixel becomes `times` (rows, columns) pixels. They come from so many groups of the channels,
// the one at row i and column j from group i * columns + j, or with `repeat` they are all the same.
// What is repeated may be added to a second input, one broadcast to the other.
Status blocked_spread(KernelContext& c) {
  const Tensor& x = c.input(0);
  const auto times = c.integers("times");
  constexpr int64_t kMost = 1 << 10;
  if (x.dims.rank() != 5 || x.dims.back() != int64_t(dense::kChannelBlock) || times.size() != 2 ||
      std::ranges::any_of(times, [](int64_t t) { return t < 1 || t > kMost; }))
    return fail(ErrorCode::shape_mismatch, "{} is not a blocked image to be spread",
                x.dims.to_string());
  const bool repeat = c.integer("repeat") != 0;
  const int64_t rows = times[0], columns = times[1], groups = repeat ? 1 : rows * columns;
  const int64_t height = x.dims[2], width = x.dims[3], blocks = x.dims[1] / groups;
  if (x.dims[1] % groups != 0)
    return fail(ErrorCode::shape_mismatch, "{} blocks of channels in {} groups", x.dims[1], groups);
  const Dims grown = {x.dims[0], blocks, Dims{height, rows}.count(), Dims{width, columns}.count(),
                      x.dims.back()};
  const Tensor* added = c.has_input(1) ? &c.input(1) : nullptr;
  Dims dims = grown;
  if (added) {
    if (!repeat || added->dims.rank() != 5 || added->dims[1] != blocks ||
        added->dims.back() != x.dims.back())
      return fail(ErrorCode::shape_mismatch, "{} added to {}", added->dims.to_string(),
                  grown.to_string());
    HOLOGRAM_TRY(dims, broadcast_dims(grown, added->dims));
  }
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  if (x.dtype != y.dtype || (added && added->dtype != y.dtype))
    return fail(ErrorCode::type_mismatch, "{} spread to {}", name_of(x.dtype), name_of(y.dtype));
  const bool same = dims == grown && (!added || dims == added->dims);
  const auto run = [&]<typename Pixel>() {
    const auto* from = reinterpret_cast<const Pixel*>(x.data);
    const auto* other = added ? reinterpret_cast<const Pixel*>(added->data) : nullptr;
    auto* to = reinterpret_cast<Pixel*>(y.data);
    const int64_t group = repeat ? 0 : blocks * height * width;
    const auto spread_rows = [&](int64_t row) {
      const int64_t sample = row / (blocks * height);
      const Pixel* first = from + (row + sample * (groups - 1) * blocks * height) * width;
      for (int64_t i = 0; i < rows; ++i) {
        Pixel* line = to + (row * rows + i) * width * columns;
        for (int64_t w = 0; w < width; ++w)
          for (int64_t j = 0; j < columns; ++j)
            line[w * columns + j] = first[(i * columns + j) * group + w];
        if (other)
          add_values(other[line - to].values,
                     static_cast<size_t>(width * columns) * dense::kChannelBlock, line->values);
      }
    };
    // A row of the result where one image is broadcast to the other.
    const auto broadcast_row = [&](int64_t row) {
      const int64_t plane = row / dims[2], n = plane / blocks, b = plane % blocks;
      const auto at = [&](const Dims& of, int64_t h) {
        return (n % of[0] * blocks + b) * of[2] + h % of[2];
      };
      const int64_t h = row % dims[2] % grown[2] / rows;
      for (int64_t w = 0; w < dims[3]; ++w) {
        Pixel& pixel = to[row * dims[3] + w];
        pixel = from[at(x.dims, h) * width + w % grown[3] / columns];
        add_values(
            other[at(added->dims, row % dims[2]) * added->dims[3] + w % added->dims[3]].values,
            dense::kChannelBlock, pixel.values);
      }
    };
    c.threads().parallel_for(
        static_cast<size_t>(dims[0] * blocks * (same ? height : dims[2])), 8,
        [&](size_t begin, size_t end) {
          for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row)
            same ? spread_rows(row) : broadcast_row(row);
        },
        Schedule::dynamic);
  };
  struct Wide {
    float values[dense::kChannelBlock];
  };
  struct Narrow {
    uint16_t values[dense::kChannelBlock];
  };
  if (y.count() == 0) return {};
  if (x.dtype == DType::bf16)
    run.template operator()<Narrow>();
  else
    run.template operator()<Wide>();
  return {};
}

}  // namespace hologram::kernels
