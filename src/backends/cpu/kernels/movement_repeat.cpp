#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/movement.h"
#include "backends/cpu/kernels/pointwise.h"
#include "backends/cpu/kernels/strided.h"

namespace hologram::kernels {
namespace {

Status copy_view(KernelContext& c, const Tensor& in, const Strided& view, const Tensor& out) {
  return dispatch_size(in.dtype, [&]<typename T>() -> Status {
    copy_strided(in.as<T>(), view, out.as<T>(), c.threads());
    return {};
  });
}

// N, C, H, W and the block size of DepthToSpace and SpaceToDepth.
struct Blocks {
  int64_t n, c, h, w, block;
  bool depth_first;  // DCR: the block's position is the outer part of the channel
};
Result<Blocks> read_blocks(KernelContext& c) {
  const Dims& in = c.input(0).dims;
  const int64_t block = c.integer("blocksize");
  if (in.rank() != 4)
    return fail(ErrorCode::shape_mismatch, "input of rank {}; [N, C, H, W] expected", in.rank());
  if (block < 1 || block > (int64_t{1} << 20))
    return fail(ErrorCode::invalid_argument, "blocksize {}", block);
  const std::string_view mode = c.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return fail(ErrorCode::invalid_argument, "mode '{}'; supported: DCR, CRD", mode);
  return Blocks{in[0], in[1], in[2], in[3], block, mode == "DCR"};
}

}  // namespace

Status expand(KernelContext& c) {
  const Tensor& in = c.input(0);
  HOLOGRAM_TRY(const Dims shape, c.input_integers(1));
  HOLOGRAM_TRY(const Dims dims, broadcast_dims(in.dims, shape));
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  const Dims own = in.dims.strides();
  const size_t shift = dims.rank() - in.dims.rank();
  Strided view;
  for (size_t i = 0; i < dims.rank(); ++i) {
    const bool whole = i >= shift && in.dims[i - shift] != 1;
    view.push(dims[i], whole ? own[i - shift] : 0);
  }
  return copy_view(c, in, view, out);
}

Status tile(KernelContext& c) {
  const Tensor& in = c.input(0);
  HOLOGRAM_TRY(const Dims repeats, c.input_integers(1));
  if (repeats.rank() != in.dims.rank())
    return fail(ErrorCode::shape_mismatch, "{} repeats for a tensor of rank {}", repeats.rank(),
                in.dims.rank());
  Dims dims = in.dims;
  const Dims own = in.dims.strides();
  for (size_t i = 0; i < dims.rank(); ++i) {
    if (repeats[i] < 0) return fail(ErrorCode::invalid_argument, "{} repeats", repeats[i]);
    if (__builtin_mul_overflow(dims[i], repeats[i], &dims[i]))
      return fail(ErrorCode::resource_exhausted, "{} repeats", repeats[i]);
  }
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  if (out.count() == 0) return {};
  Strided view;
  for (size_t i = 0; i < dims.rank(); ++i) {
    view.push(repeats[i], 0);
    view.push(in.dims[i], own[i]);
  }
  return copy_view(c, in, view, out);
}

Status depth_to_space(KernelContext& c) {
  HOLOGRAM_TRY(const Blocks s, read_blocks(c));
  const int64_t b = s.block, area = s.h * s.w;
  if (s.c % (b * b) != 0)
    return fail(ErrorCode::shape_mismatch, "{} channels do not divide into blocks of {} x {}", s.c,
                b, b);
  const int64_t depth = s.c / (b * b);
  HOLOGRAM_TRY(Tensor out, c.output(0, {s.n, depth, s.h * b, s.w * b}));
  const int64_t channel = s.depth_first ? area : b * b * area;
  const int64_t column = s.depth_first ? depth * area : area;
  Strided view;
  view.push(s.n, s.c * area);
  view.push(depth, channel);
  view.push(s.h, s.w);
  view.push(b, b * column);
  view.push(s.w, 1);
  view.push(b, column);
  return copy_view(c, c.input(0), view, out);
}

Status space_to_depth(KernelContext& c) {
  HOLOGRAM_TRY(const Blocks s, read_blocks(c));
  const int64_t b = s.block, area = s.h * s.w;
  if (s.h % b != 0 || s.w % b != 0)
    return fail(ErrorCode::shape_mismatch, "{} x {} does not divide into blocks of {} x {}", s.h,
                s.w, b, b);
  HOLOGRAM_TRY(Tensor out, c.output(0, {s.n, Dims{s.c, b, b}.count(), s.h / b, s.w / b}));
  Strided view;
  view.push(s.n, s.c * area);
  if (!s.depth_first) view.push(s.c, area);
  view.push(b, s.w);
  view.push(b, 1);
  if (s.depth_first) view.push(s.c, area);
  view.push(s.h / b, b * s.w);
  view.push(s.w / b, b);
  return copy_view(c, c.input(0), view, out);
}

Status reverse_sequence(KernelContext& c) {
  const Tensor &in = c.input(0), &lengths = c.input(1);
  const int64_t batch_axis = c.integer("batch_axis", 1), time_axis = c.integer("time_axis", 0);
  if (in.dims.rank() < 2 || batch_axis < 0 || batch_axis > 1 || time_axis != 1 - batch_axis)
    return fail(ErrorCode::invalid_argument,
                "batch_axis {} and time_axis {} of a tensor of rank {}; one is 0, the other 1, and "
                "the rank at least 2",
                batch_axis, time_axis, in.dims.rank());
  const int64_t batches = in.dims[batch_axis], steps = in.dims[time_axis];
  if (lengths.dims.rank() != 1 || lengths.dims[0] != batches)
    return fail(ErrorCode::shape_mismatch, "sequence_lens {} for {} batches",
                lengths.dims.to_string(), batches);
  for (int64_t i = 0; i < batches; ++i)
    if (const int64_t length = integer_at(lengths, i); length < 0 || length > steps)
      return fail(ErrorCode::out_of_range, "sequence_lens holds {}; there are {} steps", length,
                  steps);
  HOLOGRAM_TRY(Tensor out, c.output(0, in.dims));
  const int64_t run = in.dims.product(2, in.dims.rank());
  return dispatch_size(in.dtype, [&]<typename T>() -> Status {
    auto at = [&](int64_t batch, int64_t step) {
      return (batch_axis == 0 ? batch * steps + step : step * batches + batch) * run;
    };
    for (int64_t batch = 0; batch < batches; ++batch) {
      const int64_t length = integer_at(lengths, batch);
      for (int64_t step = 0; step < steps; ++step)
        std::copy_n(in.as<T>() + at(batch, step < length ? length - 1 - step : step), run,
                    out.as<T>() + at(batch, step));
    }
    return {};
  });
}

}  // namespace hologram::kernels
