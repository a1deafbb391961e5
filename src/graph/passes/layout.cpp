#include "graph/passes/layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "backends/cpu/dense/channel_scale.h"
#include "backends/cpu/dense/conv.h"
#include "backends/cpu/kernels/alignment.h"
#include "graph/dim.h"
#include "graph/infer.h"
#include "graph/operator.h"
#include "graph/passes/fold_batch_norm.h"
#include "graph/passes/fuse_epilogue.h"
#include "graph/passes/value_uses.h"

namespace hologram::graph {
namespace {

namespace dense = backends::dense;
constexpr int64_t kBlock = dense::kChannelBlock;

Shape blocked_shape(const Shape& plain) {
  std::vector<Dim> dims = plain.dims();
  dims[1] = ceil_div(dims[1], kBlock);
  dims.push_back(kBlock);
  return Shape(std::move(dims));
}

// The last block padded with zeros. The tensor is [batch, channels, pixels...].
Result<Tensor> blocked_constant(const Tensor& constant, const Dims& as) {
  HOLOGRAM_TRY(const Tensor plain, kernels::aligned(constant));
  const int64_t channels = as[1], blocks = (channels + kBlock - 1) / kBlock;
  const int64_t pixels = as.product(2, as.rank());
  Dims dims = as;
  dims[1] = blocks;
  dims.push_back(kBlock);
  HOLOGRAM_TRY(Tensor result, Tensor::allocate(DType::f32, dims));
  std::memset(result.data, 0, result.bytes());
  for (int64_t n = 0; n < as[0]; ++n)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t p = 0; p < pixels; ++p)
        result.as<float>()[((n * blocks + c / kBlock) * pixels + p) * kBlock + c % kBlock] =
            plain.as<float>()[(n * channels + c) * pixels + p];
  return result;
}

// Pixels that one pixel becomes: rows, columns.
using Times = std::array<int64_t, 2>;
constexpr int64_t kMostTimes = 16;

bool all(std::span<const int64_t> list, int64_t value) {
  return std::ranges::all_of(list, [&](int64_t v) { return v == value; });
}

// A transposed convolution whose kernel is as large as its steps: the pixels that each pixel
// becomes meet no others.
std::optional<Times> spreads_pixels(const Graph& graph, const Node& node) {
  const Attributes& a = node.attributes;
  if (node.op != "ConvTranspose" || !node.domain.empty() || a.integer("group", 1) != 1 ||
      !all(a.integers("pads"), 0) || !all(a.integers("dilations"), 1) ||
      !all(a.integers("output_padding"), 0) || !a.integers("output_shape").empty() ||
      a.text("auto_pad", "NOTSET") != "NOTSET")
    return std::nullopt;
  const Tensor* weights = constant_of(graph, node.inputs[1]);
  const auto strides = a.integers("strides");
  if (!weights || weights->dtype != DType::f32 || weights->dims.rank() != 4 ||
      strides.size() != 2 || weights->dims.count() == 0)
    return std::nullopt;
  if (node.input(2) != kNoValue) {
    const Tensor* bias = constant_of(graph, node.input(2));
    if (!bias || bias->dtype != DType::f32 || bias->count() != weights->dims[1])
      return std::nullopt;
  }
  const auto kernel = a.integers("kernel_shape");
  for (size_t i = 0; i < 2; ++i)
    if (strides[i] != weights->dims[2 + i] || strides[i] > kMostTimes ||
        (i < kernel.size() && kernel[i] != strides[i]))
      return std::nullopt;
  return Times{strides[0], strides[1]};
}

// A Resize by whole numbers to the nearest pixel.
std::optional<Times> repeats_pixels(const Graph& graph, const Node& node) {
  const Attributes& a = node.attributes;
  if (node.op != "Resize" || !node.domain.empty() || a.text("mode", "nearest") != "nearest" ||
      a.has("axes") || a.text("keep_aspect_ratio_policy", "stretch") != "stretch")
    return std::nullopt;
  // Both take pixel i / times for pixel i; half pixels are never halfway between two.
  const std::string_view from = a.text("coordinate_transformation_mode", "half_pixel");
  const std::string_view to = a.text("nearest_mode", "round_prefer_floor");
  const bool half =
      from == "half_pixel" && (to == "round_prefer_floor" || to == "round_prefer_ceil");
  if (!half && !(from == "asymmetric" && to == "floor")) return std::nullopt;
  const Tensor* scales = constant_of(graph, node.input(2));
  if (!scales || scales->dtype != DType::f32 || scales->count() != 4) return std::nullopt;
  const float* s = scales->as<float>();
  for (size_t i = 2; i < 4; ++i)
    if (!(s[i] >= 1 && s[i] <= kMostTimes) || s[i] != std::floor(s[i])) return std::nullopt;
  if (s[0] != 1 || s[1] != 1) return std::nullopt;
  return Times{static_cast<int64_t>(s[2]), static_cast<int64_t>(s[3])};
}

class Assigner {
 public:
  explicit Assigner(Graph& graph) : graph_(graph), uses_(graph) {
    for (const Node& node : graph.nodes) {
      bool likes = likes_blocks(node);
      for (ValueId id : node.inputs)
        if (id != kNoValue && likes) liked_.emplace(id, true);
    }
  }

  Status run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    nodes_ = &nodes;
    for (size_t i = 0; i < nodes.size(); ++i) {
      Node& node = nodes[i];
      if (ValueUses::removed(node)) continue;
      HOLOGRAM_TRY(const bool done, place(node));
      if (done) continue;
      for (ValueId id : node.inputs) need_plain(id);
      for (const Subgraph& sub : node.subgraphs)
        for (const Graph::Capture& capture : sub.graph->captures) need_plain(capture.outer);
      graph_.nodes.push_back(std::move(node));
    }
    for (ValueId id : graph_.outputs) need_plain(id);
    return {};
  }

 private:
  static bool is_fused_conv(const Node& node) {
    return node.op == "Conv" && node.domain == "hologram";
  }
  bool likes_blocks(const Node& node) const {
    if (is_fused_conv(node)) return true;
    if (const Operator* entry = operators().find(node.op, node.domain); entry && entry->pointwise)
      return true;
    if (!node.domain.empty()) return false;
    if (node.op == "MaxPool" || node.op == "AveragePool" || node.op == "GlobalAveragePool" ||
        node.op == "ReduceMean" || node.op == "BatchNormalization" || node.op == "Concat")
      return true;
    return spreads_pixels(graph_, node) || repeats_pixels(graph_, node);
  }

  // An f32 image: batch, a known number of channels, one or two spatial axes.
  const Shape* image(ValueId id) const {
    const Shape* shape = is_f32(graph_, id) ? shape_of(graph_, id) : nullptr;
    if (!shape || shape->rank() < 3 || shape->rank() > 4 || (*shape)[1].is_symbol() ||
        (*shape)[1].value() < 1)
      return nullptr;
    return shape;
  }
  int64_t channels(ValueId id) const { return (*image(id))[1].value(); }
  bool is_blocked(ValueId id) const { return blocked_.contains(id); }

  // From here on the plain value exists.
  void need_plain(ValueId id) {
    if (id == kNoValue) return;
    auto found = blocked_.find(id);
    if (found == blocked_.end() || found->second.plain) return;
    found->second.plain = true;
    Node node{.op = "FromBlocked",
              .domain = "hologram",
              .name = graph_.value(id).name,
              .inputs = {found->second.id},
              .outputs = {id}};
    node.attributes.set("channels", channels(id));
    graph_.nodes.push_back(std::move(node));
  }

  // The blocked form of an image, made where there is none.
  Result<ValueId> need_blocked(ValueId id) {
    if (auto found = blocked_.find(id); found != blocked_.end()) return found->second.id;
    if (const Tensor* t = constant_of(graph_, id)) {
      HOLOGRAM_TRY(Tensor tensor, blocked_constant(*t, t->dims));
      const ValueId made = graph_.add_constant(std::move(tensor), graph_.value(id).name);
      blocked_[id] = {made, true};
      return made;
    }
    const ValueId made = new_blocked(id, true);
    graph_.nodes.push_back({.op = "ToBlocked",
                            .domain = "hologram",
                            .name = graph_.value(id).name,
                            .inputs = {id},
                            .outputs = {made}});
    return made;
  }
  // A value for the blocked form of `id`.
  ValueId new_blocked(ValueId id, bool plain) {
    const ValueInfo info = graph_.value(id);
    const ValueId made = graph_.add_value(
        info.name + "/blocked", ValueType::tensor(DType::f32, blocked_shape(*info.type.shape)));
    blocked_[id] = {made, plain};
    return made;
  }

  // Writes the node in the blocked layout where that is possible and pays.
  Result<bool> place(Node& node) {
    if (node.outputs.size() != 1 || !image(node.outputs[0])) return false;
    if (is_fused_conv(node)) return place_conv(node);
    if (std::ranges::none_of(node.inputs, [&](ValueId id) { return is_blocked(id); })) return false;
    if (const Operator* entry = operators().find(node.op, node.domain);
        entry && entry->pointwise && !node.domain.empty())
      return place_pointwise(node);
    if (!node.domain.empty()) return false;
    if (node.op == "MaxPool" || node.op == "AveragePool") return place_pool(node);
    if (node.op == "GlobalAveragePool" || node.op == "ReduceMean") return place_average(node);
    if (node.op == "BatchNormalization") return place_batch_norm(node);
    if (node.op == "Concat") return place_concat(node);
    if (const auto times = spreads_pixels(graph_, node)) return place_transposed(node, *times);
    if (const auto times = repeats_pixels(graph_, node)) return place_repeated(node, *times);
    HOLOGRAM_TRY(const bool scaled, place_scale(node));
    if (scaled) return true;
    const Operator* entry = operators().find(node.op, node.domain);
    if (entry && entry->pointwise) return place_pointwise(node);
    return false;
  }

  Result<bool> place_conv(Node& node) {
    if (node.attributes.integer("algorithm") != 0) return false;  // chosen, and of plain images
    const Shape* x = image(node.inputs[0]);
    const auto weights = node.attributes.integers("weight_shape");
    const size_t rank = weights.size() - 2;
    // What is known by the weights alone is enough where the input stays plain.
    const int64_t groups = node.attributes.integer("group", 1), in_channels = weights[1] * groups;
    const bool few = in_channels <= 8 && groups == 1;
    std::vector<Dim> unknown(weights.size(), unknown_dim());
    unknown[1] = in_channels;
    const Shape made_up(std::move(unknown));
    if (!x && few) x = &made_up;
    if (!x) return false;
    const auto at = [&](std::span<const int64_t> list, size_t axis, int64_t missing) {
      return static_cast<size_t>(list.empty() || axis + rank < 2 ? missing : list[axis + rank - 2]);
    };
    const Shape* y = shape_of(graph_, node.outputs[0]);
    // Sizes that are not known yet are taken for those of a picture.
    const auto size = [&](const Shape& s, size_t axis) -> size_t {
      if (axis + rank < 2) return 1;
      const Dim& dim = s[2 + axis + rank - 2];
      return dim.is_symbol() ? 56 : static_cast<size_t>(dim.value());
    };
    dense::ConvShape shape{.in_channels = static_cast<size_t>((*x)[1].value()),
                           .in_height = size(*x, 0),
                           .in_width = size(*x, 1),
                           .out_channels = static_cast<size_t>(weights[0]),
                           .out_height = size(*y, 0),
                           .out_width = size(*y, 1),
                           .kernel_height = at(weights.subspan(2), 0, 1),
                           .kernel_width = at(weights.subspan(2), 1, 1),
                           .stride_height = at(node.attributes.integers("strides"), 0, 1),
                           .stride_width = at(node.attributes.integers("strides"), 1, 1),
                           .dilation_height = at(node.attributes.integers("dilations"), 0, 1),
                           .dilation_width = at(node.attributes.integers("dilations"), 1, 1),
                           .groups = static_cast<size_t>(node.attributes.integer("group", 1))};
    const bool blocked_in = is_blocked(node.inputs[0]) || !few;
    const bool liked = liked_.contains(node.outputs[0]);
    const dense::Layout in = blocked_in ? dense::Layout::blocked : dense::Layout::nchw;
    const bool blocked_out = liked && dense::conv_supported(shape, in, dense::Layout::blocked);
    if (!blocked_out && !dense::conv_supported(shape, in, dense::Layout::nchw)) return false;
    if (blocked_in) {
      HOLOGRAM_TRY(node.inputs[0], need_blocked(node.inputs[0]));
      node.attributes.set("blocked_input", int64_t{1});
    } else {
      need_plain(node.inputs[0]);
    }
    for (size_t i = 1; i < std::min<size_t>(node.inputs.size(), 3); ++i) need_plain(node.inputs[i]);
    if (blocked_in && blocked_out) {
      if (const auto algorithm = static_cast<int64_t>(dense::best_conv_algorithm(shape)))
        node.attributes.set("algorithm", algorithm);
    }
    if (node.input(3) != kNoValue) {
      if (blocked_out) {
        HOLOGRAM_TRY(node.inputs[3], need_blocked(node.inputs[3]));
      } else {
        need_plain(node.inputs[3]);
      }
    }
    if (blocked_out) {
      node.attributes.set("blocked_output", int64_t{1});
      node.outputs[0] = new_blocked(node.outputs[0], false);
    }
    graph_.nodes.push_back(std::move(node));
    return true;
  }

  // The node reads `inputs` and writes the blocked form of its output.
  bool emit(Node& node, std::string op, std::vector<ValueId> inputs) {
    node.op = std::move(op);
    node.domain = "hologram";
    node.inputs = std::move(inputs);
    node.outputs[0] = new_blocked(node.outputs[0], false);
    graph_.nodes.push_back(std::move(node));
    return true;
  }

  Result<bool> place_pool(Node& node) {
    if (!image(node.inputs[0])) return false;
    const bool max = node.op == "MaxPool";
    node.attributes.erase("storage_order");
    node.attributes.set("kind", std::string(max ? "max" : "average"));
    HOLOGRAM_TRY(const ValueId x, need_blocked(node.inputs[0]));
    return emit(node, "Pool", {x});
  }

  Result<bool> place_average(Node& node) {
    const Shape* x = image(node.inputs[0]);
    if (!x) return false;
    if (node.op == "ReduceMean") {
      const Tensor* axes = constant_of(graph_, node.input(1));
      if (!axes || axes->dtype != DType::i64 || node.attributes.integer("keepdims", 1) != 1)
        return false;
      std::vector<int64_t> list;
      for (int64_t axis : axes->span<int64_t>())
        list.push_back(axis < 0 ? axis + static_cast<int64_t>(x->rank()) : axis);
      std::ranges::sort(list);
      std::vector<int64_t> spatial;
      for (size_t i = 2; i < x->rank(); ++i) spatial.push_back(static_cast<int64_t>(i));
      if (list != spatial) return false;
    }
    HOLOGRAM_TRY(const ValueId in, need_blocked(node.inputs[0]));
    node.attributes = Attributes();
    return emit(node, "GlobalAveragePool", {in});
  }

  // A value a channel, as [1, blocks, 1, ..., 16].
  Result<ValueId> channel_constant(std::span<const double> values, size_t rank, std::string name) {
    Dims dims = Dims::filled(rank, 1);
    dims[1] = static_cast<int64_t>(values.size());
    HOLOGRAM_TRY(Tensor plain, Tensor::allocate(DType::f32, dims));
    for (size_t i = 0; i < values.size(); ++i) plain.as<float>()[i] = static_cast<float>(values[i]);
    HOLOGRAM_TRY(Tensor tensor, blocked_constant(plain, dims));
    return graph_.add_constant(std::move(tensor), std::move(name));
  }

  // The activation that alone reads what `node` makes becomes part of it.
  void absorb_activation(Node& node) {
    const size_t reader = uses_.only_reader(node.outputs[0]);
    if (reader == ValueUses::kNone) return;
    Node& next = (*nodes_)[reader];
    if (next.inputs[0] != node.outputs[0] || next.outputs.size() != 1 ||
        !describe_activation(graph_, next, node.attributes))
      return;
    node.outputs[0] = next.outputs[0];
    ValueUses::remove(next);
  }

  // The other operand of the addition that alone reads what `node` makes; the addition's result is
  // then the node's. kNoValue where there is no such addition, or `fits` is false of its operand.
  template <typename Fits>
  ValueId absorb_addition(Node& node, Fits fits) {
    const size_t reader = uses_.only_reader(node.outputs[0]);
    if (reader == ValueUses::kNone) return kNoValue;
    Node& next = (*nodes_)[reader];
    if (next.op != "Add" || !next.domain.empty() || next.inputs.size() != 2) return kNoValue;
    const ValueId other = next.inputs[next.inputs[0] == node.outputs[0] ? 1 : 0];
    if (!fits(other)) return kNoValue;
    node.outputs[0] = next.outputs[0];
    ValueUses::remove(next);
    return other;
  }

  Result<bool> place_batch_norm(Node& node) {
    const Shape* x = image(node.inputs[0]);
    const auto affine = batch_norm_affine(graph_, node);
    if (!x || !affine) return false;
    const size_t rank = x->rank();
    const std::string name = graph_.value(node.inputs[1]).name;
    HOLOGRAM_TRY(const ValueId scale, channel_constant(affine->scale, rank, name + "/scale"));
    HOLOGRAM_TRY(const ValueId shift, channel_constant(affine->shift, rank, name + "/shift"));
    std::vector<ValueId> inputs = {scale, shift};
    // A concatenation that nothing else reads was left to be read here part by part.
    if (auto found = joined_.find(node.inputs[0]); found != joined_.end()) {
      inputs.insert(inputs.end(), found->second.begin(), found->second.end());
    } else {
      HOLOGRAM_TRY(const ValueId in, need_blocked(node.inputs[0]));
      inputs.push_back(in);
    }
    node.attributes = Attributes();
    absorb_activation(node);
    return emit(node, "Scale", std::move(inputs));
  }

  Result<bool> place_concat(Node& node) {
    const int64_t rank = static_cast<int64_t>(image(node.outputs[0])->rank());
    const int64_t axis = node.attributes.integer("axis");
    if (axis != 1 && axis != 1 - rank) return false;
    for (ValueId id : node.inputs)
      if (!image(id) || channels(id) % kBlock != 0) return false;
    std::vector<ValueId> inputs;
    for (ValueId id : node.inputs) {
      HOLOGRAM_TRY(const ValueId in, need_blocked(id));
      inputs.push_back(in);
    }
    const size_t reader = uses_.only_reader(node.outputs[0]);
    if (reader != ValueUses::kNone && inputs.size() <= dense::ChannelScale::kMostParts &&
        batch_norm_affine(graph_, (*nodes_)[reader])) {
      blocked_[node.outputs[0]] = {kNoValue, false};
      joined_[node.outputs[0]] = std::move(inputs);
      return true;
    }
    node.attributes.set("axis", int64_t{1});
    node.inputs = std::move(inputs);
    node.outputs[0] = new_blocked(node.outputs[0], false);
    graph_.nodes.push_back(std::move(node));
    return true;
  }

  // Mul of an image by a value a channel: [batch or 1, channels, 1, 1].
  Result<bool> place_scale(Node& node) {
    if (node.op != "Mul" || constant_of(graph_, node.inputs[0]) ||
        constant_of(graph_, node.inputs[1]))
      return false;
    for (size_t side = 0; side < 2; ++side) {
      const Shape *gate = image(node.inputs[side]), *x = image(node.inputs[1 - side]);
      if (!gate || !x || gate->rank() != x->rank() || (*gate)[0] != (*x)[0] ||
          is_unknown((*x)[0]) || (*gate)[1] != (*x)[1] || !is_blocked(node.inputs[1 - side]))
        continue;
      bool ones = true;
      for (size_t i = 2; i < x->rank(); ++i) ones &= (*gate)[i] == Dim(1);
      if (!ones) continue;
      HOLOGRAM_TRY(const ValueId scale, need_blocked(node.inputs[side]));
      const ValueId image = node.inputs[1 - side];
      HOLOGRAM_TRY(const ValueId in, need_blocked(image));
      node.attributes = Attributes();
      // x + x * gate.
      if (absorb_addition(node, [&](ValueId id) { return id == image; }) != kNoValue)
        node.attributes.set("plus_one", int64_t{1});
      absorb_activation(node);
      return emit(node, "Scale", {scale, kNoValue, in});
    }
    return false;
  }

  Result<bool> place_pointwise(Node& node) {
    const Shape* y = image(node.outputs[0]);
    std::vector<ValueId> inputs;
    // First whether all operands can come in blocks, then the nodes for it.
    for (ValueId id : node.inputs) {
      if (id == kNoValue || scalar_constant(graph_, id)) continue;
      const Shape* x = image(id);
      if (!x || x->rank() != y->rank() || (*x)[1] != (*y)[1]) return false;
      const Tensor* t = constant_of(graph_, id);
      if (t && t->dims.rank() != y->rank()) return false;
    }
    for (ValueId id : node.inputs) {
      if (id == kNoValue || scalar_constant(graph_, id)) {
        inputs.push_back(id);
        continue;
      }
      HOLOGRAM_TRY(const ValueId in, need_blocked(id));
      inputs.push_back(in);
    }
    node.inputs = std::move(inputs);
    node.outputs[0] = new_blocked(node.outputs[0], false);
    graph_.nodes.push_back(std::move(node));
    return true;
  }

  // A product of each pixel by the weights of all places that it is spread over.
  Result<bool> place_transposed(Node& node, Times times) {
    const Shape* x = image(node.inputs[0]);
    HOLOGRAM_TRY(const Tensor weights, kernels::aligned(*constant_of(graph_, node.inputs[1])));
    if (!x || weights.dims[0] != channels(node.inputs[0])) return false;
    Tensor bias;
    if (const Tensor* given = constant_of(graph_, node.input(2))) {
      HOLOGRAM_TRY(bias, kernels::aligned(*given));
    }
    const int64_t in = weights.dims[0], out = weights.dims[1], places = times[0] * times[1];
    // Few channels would be mostly padding: those are spread as a plain image.
    const bool blocked = out >= kBlock / 2;
    if (!blocked && times[0] != times[1]) return false;
    const int64_t padded = blocked ? (out + kBlock - 1) / kBlock * kBlock : out;
    HOLOGRAM_TRY(Tensor filters, Tensor::allocate(DType::f32, {places * padded, in, 1, 1}));
    HOLOGRAM_TRY(Tensor biases, Tensor::allocate(DType::f32, {places * padded}));
    std::memset(filters.data, 0, filters.bytes());
    std::memset(biases.data, 0, biases.bytes());
    for (int64_t p = 0; p < places; ++p)
      for (int64_t o = 0; o < out; ++o) {
        for (int64_t i = 0; i < in; ++i)
          filters.as<float>()[(p * padded + o) * in + i] =
              weights.as<float>()[(i * out + o) * places + p];
        if (bias.data) biases.as<float>()[p * padded + o] = bias.as<float>()[o];
      }
    std::vector<Dim> dims = x->dims();
    dims[1] = places * padded;
    const std::string name = graph_.value(node.outputs[0]).name + "/places";
    const ValueId made = graph_.add_value(name, ValueType::tensor(DType::f32, Shape(dims)));
    HOLOGRAM_TRY(const ValueId from, need_blocked(node.inputs[0]));
    Node conv{.op = "Conv",
              .domain = "hologram",
              .name = node.name,
              .inputs = {from, graph_.add_constant(std::move(filters), name + "/weights")},
              .outputs = {node.outputs[0]}};
    if (bias.data) conv.inputs.push_back(graph_.add_constant(std::move(biases), name + "/bias"));
    conv.attributes.set("weight_shape", std::vector<int64_t>{places * padded, in, 1, 1});
    conv.attributes.set("blocked_input", int64_t{1});
    absorb_activation(conv);
    const ValueId spread = conv.outputs[0];
    conv.outputs[0] = blocked ? new_blocked(made, false) : made;
    if (blocked) conv.attributes.set("blocked_output", int64_t{1});
    Node last{.name = node.name, .inputs = conv.outputs, .outputs = {spread}};
    graph_.nodes.push_back(std::move(conv));
    if (blocked) {
      last.attributes.set("times", std::vector<int64_t>(times.begin(), times.end()));
      return emit(last, "Spread", last.inputs);
    }
    last.op = "DepthToSpace";
    last.attributes.set("blocksize", times[0]);
    last.attributes.set("mode", std::string("DCR"));
    graph_.nodes.push_back(std::move(last));
    return true;
  }

  Result<bool> place_repeated(Node& node, Times times) {
    if (!image(node.inputs[0])) return false;
    HOLOGRAM_TRY(const ValueId from, need_blocked(node.inputs[0]));
    node.attributes = Attributes();
    node.attributes.set("times", std::vector<int64_t>(times.begin(), times.end()));
    node.attributes.set("repeat", int64_t{1});
    std::vector<ValueId> inputs = {from};
    const Shape* y = image(node.outputs[0]);
    const ValueId added = absorb_addition(node, [&](ValueId id) {
      const Shape* other = is_blocked(id) && !joined_.contains(id) ? image(id) : nullptr;
      return other && other->rank() == y->rank() && (*other)[1] == (*y)[1];
    });
    if (added != kNoValue) inputs.push_back(blocked_.at(added).id);
    return emit(node, "Spread", std::move(inputs));
  }

  struct Form {
    ValueId id = kNoValue;
    bool plain = false;  // whether the plain form exists as well
  };
  Graph& graph_;
  ValueUses uses_;
  std::vector<Node>* nodes_ = nullptr;
  std::map<ValueId, Form> blocked_;
  std::map<ValueId, bool> liked_;
  std::map<ValueId, std::vector<ValueId>> joined_;
};

}  // namespace

Status assign_layout(Graph& graph) {
  for (Node& node : graph.nodes)
    for (Subgraph& sub : node.subgraphs) HOLOGRAM_CHECK(assign_layout(*sub.graph));
  return Assigner(graph).run();
}

}  // namespace hologram::graph
