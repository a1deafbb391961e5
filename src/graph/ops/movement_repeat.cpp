// Elements that appear several times, or in blocks, or backwards.
#include "graph/infer.h"
#include "graph/ops/movement.h"
#include "graph/ops/rank.h"

namespace hologram::graph::ops {
namespace {

Status expand(InferContext& c) {
  const Shape* in = c.shape(0);
  const auto* target = c.contents(1);
  if (!in) return {};
  if (!target) {
    if (const Shape* s = c.shape(1); s && s->rank() == 1 && !(*s)[0].is_symbol())
      return set_rank(c, std::max(static_cast<int64_t>(in->rank()), (*s)[0].value()));
    return {};
  }
  for (const Dim& dim : *target)
    if (!dim.is_symbol() && dim.value() < 0)
      return fail(ErrorCode::invalid_argument, "dimension {} in the shape", dim.value());
  HOLOGRAM_TRY(Shape shape, broadcast_shapes(*in, Shape(*target)));
  c.set_shape(0, std::move(shape));
  return {};
}

Status tile(InferContext& c) {
  const Shape* in = c.shape(0);
  if (!in) return {};
  std::vector<Dim> dims = in->dims();
  const auto* repeats = c.contents(1);
  if (repeats && repeats->size() != dims.size())
    return fail(ErrorCode::shape_mismatch, "{} repeats for {}", repeats->size(), in->to_string());
  for (size_t i = 0; i < dims.size(); ++i) {
    dims[i] = repeats ? dims[i] * (*repeats)[i] : unknown_dim();
    if (!dims[i].is_symbol() && dims[i].value() < 0)
      return fail(ErrorCode::invalid_argument, "a negative number of repeats in axis {}", i);
  }
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

template <bool to_space>
Status blocks(InferContext& c) {
  const int64_t block = c.integer("blocksize");
  if (block < 1 || block > (int64_t{1} << 20))
    return fail(ErrorCode::invalid_argument, "blocksize {}", block);
  const Shape* in = c.shape(0);
  if (!in) return {};
  if (in->rank() != 4)
    return fail(ErrorCode::shape_mismatch, "input {}; [N, C, H, W] expected", in->to_string());
  const Dim b = block, bb = block * block;
  const Dim &n = (*in)[0], &depth = (*in)[1], &h = (*in)[2], &w = (*in)[3];
  c.set_shape(0, to_space ? Shape(std::vector<Dim>{n, depth / bb, h * b, w * b})
                          : Shape(std::vector<Dim>{n, depth * bb, h / b, w / b}));
  return {};
}

}  // namespace

void add_repeats(OperatorTable& table) {
  table.add("Expand")
      .signature("input:T, shape:i64 -> output:T")
      .where("T", kAll)
      .infer(expand)
      .kernel();
  table.add("Tile")
      .signature("input:T, repeats:i64 -> output:T")
      .where("T", kAll)
      .infer(tile)
      .kernel();
  table.add("DepthToSpace")
      .signature("input:T -> output:T")
      .where("T", kAll)
      .attributes("blocksize:i, mode:s")
      .infer(blocks<true>)
      .kernel();
  table.add("SpaceToDepth")
      .signature("input:T -> output:T")
      .where("T", kAll)
      .attributes("blocksize:i, mode:s")
      .infer(blocks<false>)
      .kernel();
  table.add("ReverseSequence")
      .signature("input:T, sequence_lens:i64 -> Y:T")
      .where("T", kAll)
      .attributes("batch_axis:i, time_axis:i")
      .infer(same_shape_as_first)
      .kernel();
}

}  // namespace hologram::graph::ops
