#include "graph/passes/fold_batch_norm.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/passes/value_uses.h"

namespace hologram::graph {
namespace {

// The values of an f32 constant that broadcasts along channels: one, or one a channel of a tensor
// of `rank` axes.
std::optional<std::vector<double>> per_channel(const Graph& graph, ValueId id, int64_t channels,
                                               size_t rank) {
  const Tensor* t = constant_of(graph, id);
  if (!t || t->dtype != DType::f32 || t->dims.rank() > rank) return std::nullopt;
  if (t->count() == 1) return std::vector<double>(static_cast<size_t>(channels), *t->as<float>());
  if (t->count() != channels || t->dims.rank() + 1 < rank) return std::nullopt;
  if (t->dims[t->dims.rank() - (rank - 1)] != channels) return std::nullopt;
  return std::vector<double>(t->as<float>(), t->as<float>() + channels);
}

// What `node` does to the channels of `x`, its only operand that is not constant.
std::optional<ChannelAffine> affine_of(const Graph& graph, const Node& node, ValueId x,
                                       int64_t channels, size_t rank) {
  if (node.op == "BatchNormalization") {
    if (node.inputs[0] != x) return std::nullopt;
    return batch_norm_affine(graph, node);
  }
  const bool mul = node.op == "Mul", add = node.op == "Add", sub = node.op == "Sub";
  const bool div = node.op == "Div";
  if (!mul && !add && !sub && !div) return std::nullopt;
  const size_t side = node.inputs[0] == x ? 0 : 1;
  if ((sub || div) && side != 0) return std::nullopt;
  auto values = per_channel(graph, node.inputs[1 - side], channels, rank);
  if (!values) return std::nullopt;
  ChannelAffine a{std::vector<double>(values->size(), 1), std::vector<double>(values->size(), 0)};
  for (size_t i = 0; i < values->size(); ++i) {
    const double v = (*values)[i];
    if (mul) a.scale[i] = v;
    if (div) a.scale[i] = 1 / v;
    if (add) a.shift[i] = v;
    if (sub) a.shift[i] = -v;
  }
  return a;
}

// Takes out the affine nodes that follow `node` one after another; it makes what the last of them
// made. They become one, so that weights are rounded once, not once a node.
std::optional<ChannelAffine> take_affines(Graph& graph, const ValueUses& uses, Node& node,
                                          int64_t channels, size_t rank) {
  std::optional<ChannelAffine> all;
  for (;;) {
    const size_t reader = uses.only_reader(node.outputs[0]);
    if (reader == ValueUses::kNone || !graph.nodes[reader].domain.empty()) return all;
    Node& next = graph.nodes[reader];
    const auto affine = affine_of(graph, next, node.outputs[0], channels, rank);
    const Shape *before = shape_of(graph, node.outputs[0]),
                *after = next.outputs.empty() ? nullptr : shape_of(graph, next.outputs[0]);
    if (!affine || !before || !after || before->rank() != after->rank()) return all;
    if (!all) {
      all = affine;
    } else {
      for (size_t c = 0; c < all->scale.size(); ++c) {
        all->scale[c] *= affine->scale[c];
        all->shift[c] = all->shift[c] * affine->scale[c] + affine->shift[c];
      }
    }
    node.outputs[0] = next.outputs[0];
    ValueUses::remove(next);
  }
}

// The weights with each channel multiplied by its factor. What rounding takes from a tap is given
// to the next: neighbouring pixels are much alike, and an error of a tap is the same for all of
// them.
Result<Tensor> scaled_weights(const Tensor& w, const std::vector<double>& scale, bool transposed) {
  HOLOGRAM_TRY(Tensor weights, w.clone());
  const int64_t inner = w.dims.product(transposed ? 2 : 1, w.dims.rank());
  const int64_t taps = w.dims.product(2, w.dims.rank());
  double rest = 0;
  for (int64_t i = 0; i < w.count(); ++i) {
    if (i % taps == 0) rest = 0;
    float& weight = weights.as<float>()[i];
    const double exact = weight * scale[static_cast<size_t>(i / inner) % scale.size()];
    weight = static_cast<float>(exact + rest);
    rest += exact - static_cast<double>(weight);
    if (!std::isfinite(rest)) rest = 0;
  }
  return weights;
}

// The new bias, and what rounding took from it as [channels, 1, ..], of `rank` axes in all.
struct Bias {
  Tensor values, rest;
};
Result<Bias> moved_bias(const Tensor* b, const ChannelAffine& affine, size_t rank) {
  const auto channels = static_cast<int64_t>(affine.scale.size());
  std::vector<int64_t> dims(rank - 1, 1);
  dims[0] = channels;
  Bias bias;
  HOLOGRAM_TRY(bias.values, Tensor::allocate(DType::f32, {channels}));
  HOLOGRAM_TRY(bias.rest, Tensor::allocate(DType::f32, kernels::Dims(dims)));
  for (int64_t c = 0; c < channels; ++c) {
    const auto i = static_cast<size_t>(c);
    const double old = b ? static_cast<double>(b->as<float>()[c]) : 0;
    const double exact = old * affine.scale[i] + affine.shift[i];
    const float value = static_cast<float>(exact);
    bias.values.as<float>()[c] = value;
    bias.rest.as<float>()[c] =
        std::isfinite(value) ? static_cast<float>(exact - static_cast<double>(value)) : 0.0f;
  }
  return bias;
}

bool all(const std::vector<double>& values, double number) {
  return std::ranges::all_of(values, [&](double v) { return v == number; });
}
bool same(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data, b.data, a.bytes()) == 0;
}

// Whether anything has changed.
Result<bool> fold_once(Graph& graph) {
  ValueUses uses(graph);
  std::vector<std::pair<size_t, Node>> added;  // behind which node
  bool changed = false;
  for (size_t index = 0; index < graph.nodes.size(); ++index) {
    Node& conv = graph.nodes[index];
    const bool transposed = conv.op == "ConvTranspose";
    if (!conv.domain.empty() || (conv.op != "Conv" && !transposed)) continue;
    const Tensor *w = constant_of(graph, conv.inputs[1]), *b = constant_of(graph, conv.input(2));
    if (!w || w->dtype != DType::f32 || (conv.input(2) != kNoValue && !b)) continue;
    if (transposed && conv.attributes.integer("group", 1) != 1) continue;
    const int64_t channels = w->dims[transposed ? 1 : 0];
    const size_t rank = w->dims.rank();
    const std::optional<ChannelAffine> affine = take_affines(graph, uses, conv, channels, rank);
    if (!affine) continue;
    const std::string name = graph.value(conv.inputs[1]).name;
    HOLOGRAM_TRY(Bias bias, moved_bias(b, *affine, rank));
    // What was taken out may have been no more than the rest of a bias.
    if (!b || !same(*b, bias.values) || !all(affine->scale, 1)) {
      HOLOGRAM_TRY(Tensor weights, scaled_weights(*w, affine->scale, transposed));
      conv.inputs.resize(3);
      conv.inputs[1] = graph.add_constant(std::move(weights), name);
      conv.inputs[2] = graph.add_constant(std::move(bias.values), name + "/bias");
      changed = true;
    }
    // Nothing makes it part of other convolutions.
    const float* rest = bias.rest.as<float>();
    if (transposed || rank > 4 ||
        std::all_of(rest, rest + channels, [](float r) { return r == 0; }))
      continue;
    Node add{.op = "Add", .opset = conv.opset};
    add.outputs = {conv.outputs[0]};
    conv.outputs[0] = graph.add_value("", graph.value(conv.outputs[0]).type);
    add.inputs = {conv.outputs[0], graph.add_constant(std::move(bias.rest), name + "/rest")};
    added.emplace_back(index, std::move(add));
  }
  for (size_t i = added.size(); i-- > 0;)
    graph.nodes.insert(graph.nodes.begin() + static_cast<ptrdiff_t>(added[i].first) + 1,
                       std::move(added[i].second));
  uses.sweep();
  return changed;
}

}  // namespace

std::optional<ChannelAffine> batch_norm_affine(const Graph& graph, const Node& node) {
  if (node.op != "BatchNormalization" || !node.domain.empty() || node.outputs.size() != 1 ||
      node.attributes.integer("training_mode") != 0)
    return std::nullopt;
  const Tensor* p[4];
  for (size_t i = 0; i < 4; ++i) {
    p[i] = constant_of(graph, node.input(i + 1));
    if (!p[i] || p[i]->dtype != DType::f32 || p[i]->count() != p[0]->count()) return std::nullopt;
  }
  const double epsilon = node.attributes.number("epsilon", 1e-5);
  ChannelAffine a;
  for (int64_t i = 0; i < p[0]->count(); ++i) {
    const auto at = [&](int parameter) {
      return static_cast<double>(p[parameter]->as<float>()[i]);
    };
    a.scale.push_back(at(0) / std::sqrt(at(3) + epsilon));
    a.shift.push_back(at(1) - at(2) * a.scale.back());
  }
  return a;
}

Status fold_batch_norm(Graph& graph) {
  for (Node& node : graph.nodes)
    for (Subgraph& sub : node.subgraphs) HOLOGRAM_CHECK(fold_batch_norm(*sub.graph));
  for (bool changed = true; changed;) {
    HOLOGRAM_TRY(changed, fold_once(graph));
  }
  return {};
}

}  // namespace hologram::graph
