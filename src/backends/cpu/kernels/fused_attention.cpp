// hologram.Attention: softmax(scale * Q K^T + mask) V by heads, reading queries, keys and values
// where the projections left them and writing what the next projection reads.
#include <algorithm>

#include "backends/cpu/dense/attention.h"
#include "backends/cpu/kernels/fused.h"

namespace hologram::kernels {
namespace {

namespace dense = backends::dense;

// How an operand lies in its tensor: floats to its first value, and from sample to sample, head to
// head and row to row. A sample stride of -1: the tensor is [batch, rows, ...]; a head stride of -1
// as well: [batch, heads, rows, depth].
struct View {
  int64_t offset = 0, batch = 0, head = 0, row = 0;
  int64_t extent = 0;  // what the rows fill
};

Result<View> read_view(const KernelContext& c, std::string_view name, const Tensor& x,
                       int64_t batch, int64_t heads) {
  const auto list = c.integers(name);
  if (list.size() != 4)
    return fail(ErrorCode::invalid_argument, "'{}' has {} of 4 numbers", name, list.size());
  View view{list[0], list[1], list[2], list[3], 0};
  view.extent = batch > 0 ? x.count() / batch : 0;
  if (view.batch == -1) view.batch = view.extent;
  if (view.head == -1) view.head = view.extent /= heads;
  if (view.offset < 0 || view.batch < 0 || view.head < 0 || view.row < 0)
    return fail(ErrorCode::invalid_argument, "'{}' has negative strides", name);
  return view;
}

// The rows of an operand whose number the compiler did not know.
int64_t derived_rows(const View& view) { return view.row > 0 ? view.extent / view.row : 0; }

Status check_reach(std::string_view name, const View& v, const Tensor& x, int64_t batch,
                   int64_t heads, int64_t rows, int64_t depth) {
  // A plan may name any numbers: none is multiplied that would leave the tensor.
  const int64_t count = x.count(), counts[] = {batch, heads, rows};
  if (rows == 0 && v.offset <= count) return {};
  const int64_t strides[] = {v.batch, v.head, v.row};
  bool inside = v.offset <= count && depth <= count && rows <= count;
  int64_t last = inside ? v.offset + depth : 0;
  for (size_t i = 0; inside && i < 3; ++i) {
    if (counts[i] <= 1 || strides[i] == 0) continue;
    inside = counts[i] - 1 <= count / strides[i];
    if (inside) last += (counts[i] - 1) * strides[i];
  }
  if (!inside || last > count)
    return fail(ErrorCode::shape_mismatch, "'{}' reaches beyond {}", name, x.dims.to_string());
  return {};
}

dense::HeadStrides strides(const View& v) {
  return {static_cast<size_t>(v.batch), static_cast<size_t>(v.head), static_cast<size_t>(v.row)};
}

// A mask that broadcasts to [batch, heads, queries, keys]; one without all its keys is stretched.
Status set_mask(KernelContext& c, dense::Attention& a) {
  const Tensor& mask = c.input(3);
  Dims dims = mask.dims;
  while (dims.rank() < 4) dims.insert(0, 1);
  const Dims full = {static_cast<int64_t>(a.batch), static_cast<int64_t>(a.heads),
                     static_cast<int64_t>(a.queries), static_cast<int64_t>(a.keys)};
  for (size_t i = 0; i < 4; ++i)
    if (dims.rank() != 4 || (dims[i] != 1 && dims[i] != full[i]))
      return fail(ErrorCode::shape_mismatch, "mask {} for scores {}", mask.dims.to_string(),
                  full.to_string());
  a.mask = mask.as<float>();
  if (dims[3] != full[3]) {
    HOLOGRAM_TRY(auto wide, c.scratch<float>(dims.count() * full[3]));
    for (int64_t i = 0; i < dims.count(); ++i)
      std::fill_n(wide.data() + i * full[3], full[3], mask.as<float>()[i]);
    a.mask = wide.data();
    dims[3] = full[3];
  }
  const Dims steps = dims.strides();
  auto step = [&](size_t axis) { return static_cast<size_t>(dims[axis] == 1 ? 0 : steps[axis]); };
  a.mask_strides = {step(0), step(1), step(2)};
  return {};
}

}  // namespace

// Inputs Q, K, V, mask?. `queries`, `keys` and `batch` of -1 come from the tensors. The result is
// [batch, queries, heads, depth] in memory when `rows_first`, else [batch, heads, queries, depth];
// its shape is `shape` where given, and [batch, queries, heads * depth] when `merged`.
Status fused_attention(KernelContext& c) {
  const Tensor &q = c.input(0), &k = c.input(1), &v = c.input(2);
  int64_t batch = c.integer("batch", -1), queries = c.integer("queries", -1);
  int64_t keys = c.integer("keys", -1);
  const int64_t heads = c.integer("heads"), kv_heads = c.integer("kv_heads");
  const int64_t depth = c.integer("depth"), value_depth = c.integer("value_depth");
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0 || depth < 1 || value_depth < 1)
    return fail(ErrorCode::invalid_argument, "{} heads of {} over {}", heads, depth, kv_heads);
  if (batch < 0) batch = q.dims.rank() > 0 ? q.dims[0] : 1;
  HOLOGRAM_TRY(const View qs, read_view(c, "q", q, batch, heads));
  HOLOGRAM_TRY(const View ks, read_view(c, "k", k, batch, kv_heads));
  HOLOGRAM_TRY(const View vs, read_view(c, "v", v, batch, kv_heads));
  if (queries < 0) queries = derived_rows(qs);
  if (keys < 0) keys = derived_rows(ks);
  const bool rows_first = c.integer("rows_first") != 0;
  Dims dims(c.integers("shape"));
  if (!c.attributes().has("shape")) {
    if (c.integer("merged") != 0)
      dims = {batch, queries, Dims{heads, value_depth}.count()};
    else if (rows_first)
      dims = {batch, queries, heads, value_depth};
    else
      dims = {batch, heads, queries, value_depth};
  }
  HOLOGRAM_CHECK(check_dims({batch, queries, heads, value_depth}));
  if (dims.count() != batch * queries * heads * value_depth)
    return fail(ErrorCode::shape_mismatch, "{} for {} heads of {} x {}", dims.to_string(), heads,
                queries, value_depth);
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  if (y.count() == 0) return {};
  HOLOGRAM_CHECK(check_reach("q", qs, q, batch, heads, queries, depth));
  HOLOGRAM_CHECK(check_reach("k", ks, k, batch, kv_heads, keys, depth));
  HOLOGRAM_CHECK(check_reach("v", vs, v, batch, kv_heads, keys, value_depth));
  const View out =
      rows_first ? View{0, queries * heads * value_depth, value_depth, heads * value_depth, 0}
                 : View{0, queries * heads * value_depth, queries * value_depth, value_depth, 0};
  dense::Attention a{.batch = static_cast<size_t>(batch),
                     .heads = static_cast<size_t>(heads),
                     .kv_heads = static_cast<size_t>(kv_heads),
                     .queries = static_cast<size_t>(queries),
                     .keys = static_cast<size_t>(keys),
                     .depth = static_cast<size_t>(depth),
                     .value_depth = static_cast<size_t>(value_depth),
                     .q = q.as<float>() + qs.offset,
                     .k = k.as<float>() + ks.offset,
                     .v = v.as<float>() + vs.offset,
                     .out = y.as<float>(),
                     .q_strides = strides(qs),
                     .k_strides = strides(ks),
                     .v_strides = strides(vs),
                     .out_strides = strides(out),
                     .scale = static_cast<float>(c.number("scale", 1)),
                     .causal = c.integer("causal") != 0,
                     .causal_offset = keys - queries,
                     .ordered = c.integer("ordered") != 0,
                     .parts = static_cast<size_t>(c.integer("parts")),
                     .shorts = c.integer("digits") == 1};
  if (a.parts > 2 || ((a.ordered || a.shorts) && a.parts != 0))
    return fail(ErrorCode::unsupported, "attention of {} parts", a.parts);
  if ((a.shorts && a.ordered) || c.integer("digits") != (a.shorts ? 1 : 0) ||
      c.integer("digit_bits") != (a.shorts ? 16 : 0))
    return fail(ErrorCode::unsupported, "attention of {} digits of {} bits", c.integer("digits"),
                c.integer("digit_bits"));
  if (c.has_input(3)) HOLOGRAM_CHECK(set_mask(c, a));
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(dense::attention_scratch_bytes(a)));
  dense::attention(a, scratch.data(), c.threads());
  return {};
}

// X [batch, rows, heads * depth] turned by tables [rows, depth]: x * cos + [-x2, x1] * sin, where
// x1 and x2 are the halves of a head.
Status fused_rotary(KernelContext& c) {
  const Tensor &x = c.input(0), &cos = c.input(1), &sin = c.input(2);
  const int64_t heads = c.integer("heads");
  if (x.dims.rank() != 3 || heads < 1 || heads > x.dims[2] || x.dims[2] % (2 * heads) != 0 ||
      !(cos.dims == Dims{x.dims[1], x.dims[2] / heads}) || !(sin.dims == cos.dims))
    return fail(ErrorCode::shape_mismatch, "{} in {} heads, turned by {} and {}",
                x.dims.to_string(), heads, cos.dims.to_string(), sin.dims.to_string());
  HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
  const int64_t rows = x.dims[1], depth = cos.dims[1], half = depth / 2;
  c.threads().parallel_for(x.dims[0] * rows, 16, [&](size_t begin, size_t end) {
    for (int64_t row = begin; row < static_cast<int64_t>(end); ++row)
      for (int64_t head = 0; head < heads; ++head) {
        const float* __restrict from = x.as<float>() + (row * heads + head) * depth;
        const float* __restrict cosines = cos.as<float>() + row % rows * depth;
        const float* __restrict sines = sin.as<float>() + row % rows * depth;
        float* __restrict to = y.as<float>() + (row * heads + head) * depth;
        for (int64_t i = 0; i < half; ++i) {
          to[i] = from[i] * cosines[i] - from[i + half] * sines[i];
          to[i + half] = from[i + half] * cosines[i + half] + from[i] * sines[i + half];
        }
      }
  });
  return {};
}

}  // namespace hologram::kernels
