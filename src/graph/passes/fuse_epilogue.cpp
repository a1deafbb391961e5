#include "graph/passes/fuse_epilogue.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/dense/epilogue.h"
#include "graph/dim.h"
#include "graph/passes/value_uses.h"

namespace hologram::graph {
namespace {

// Shapes that are the same whatever the symbols become; "?" is not the same as "?".
bool surely_same(const Shape* a, const Shape* b) {
  if (!a || !b || !(*a == *b)) return false;
  for (const Dim& dim : *a)
    if (dim.is_symbol() && dim.symbol() == "?") return false;
  return true;
}

class Fuser {
 public:
  explicit Fuser(Graph& graph) : graph_(graph), uses_(graph) {}

  Status run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.domain == "hologram" && node.op == "MatMul") HOLOGRAM_CHECK(fuse_quantised(i));
      if (!node.domain.empty() || node.outputs.size() != 1 || !is_f32(graph_, node.outputs[0]))
        continue;
      if (node.op == "Conv") fuse_conv(i);
      if (node.op == "MatMul" || node.op == "Gemm") HOLOGRAM_CHECK(fuse_product(i));
    }
    uses_.sweep();
    return {};
  }

 private:
  // The operator being made, where it has come to, and what its epilogue holds so far.
  struct Chain {
    Node node;
    size_t last;    // the node whose place it takes
    ValueId value;  // the result so far
    size_t channel_axis_from_end;
    int64_t channels;
    bool product = false, activated = false, reshaped = false;
    std::vector<size_t> taken;

    bool has(size_t input) const { return node.input(input) != kNoValue; }
    void set(size_t input, ValueId id) {
      if (node.inputs.size() <= input) node.inputs.resize(input + 1, kNoValue);
      node.inputs[input] = id;
    }
  };

  // A constant with a value for each channel, as a vector.
  ValueId as_bias(ValueId id, const Chain& chain) {
    const Tensor* t = constant_of(graph_, id);
    const size_t from_end = chain.channel_axis_from_end;
    if (!t || t->dtype != DType::f32 || t->count() != chain.channels || t->dims.rank() < from_end ||
        t->dims[t->dims.rank() - from_end] != chain.channels)
      return kNoValue;
    const Shape* shape = shape_of(graph_, chain.value);
    if (!shape || shape->rank() < t->dims.rank() || shape->rank() < from_end ||
        (*shape)[shape->rank() - from_end] != Dim(chain.channels))
      return kNoValue;
    if (t->dims.rank() == 1) return id;
    Tensor flat = *t;
    flat.dims = {chain.channels};
    return graph_.add_constant(std::move(flat), graph_.value(id).name);
  }

  // Of a convolution a second one too, which is what rounding took from the first (see
  // fold_batch_norm.h).
  bool add_bias(Chain& chain, ValueId bias) {
    if (!chain.has(2)) {
      chain.set(2, bias);
      return true;
    }
    const Tensor* first = constant_of(graph_, chain.node.inputs[2]);
    const Tensor* rest = constant_of(graph_, bias);
    if (!first || first->count() != chain.channels) return false;
    auto both = Tensor::allocate(DType::f32, {2, chain.channels});
    if (!both) return false;
    std::copy_n(first->as<float>(), chain.channels, both->as<float>());
    std::copy_n(rest->as<float>(), chain.channels, both->as<float>() + chain.channels);
    chain.set(2, graph_.add_constant(*std::move(both), graph_.value(chain.node.inputs[2]).name));
    return true;
  }

  // Takes one more node into the chain; false where it ends.
  bool extend(Chain& chain) {
    const size_t reader = uses_.only_reader(chain.value);
    if (reader == ValueUses::kNone) return false;
    const Node& next = graph_.nodes[reader];
    if ((!next.domain.empty() && !clip_bounds(graph_, next)) || next.outputs.size() != 1 ||
        !is_f32(graph_, next.outputs[0]))
      return false;
    if (chain.activated && !chain.has(3) && extend_post(chain, next)) return take(chain, reader);
    if (next.op == "Add") {
      const ValueId other = next.inputs[next.inputs[0] == chain.value ? 1 : 0];
      const bool plain = !chain.activated && !chain.has(3);
      if (plain && !(chain.product && chain.has(2))) {
        if (const ValueId bias = as_bias(other, chain); bias != kNoValue && add_bias(chain, bias))
          return take(chain, reader);
      }
      if (chain.has(3) || other == chain.value ||
          !surely_same(shape_of(graph_, other), shape_of(graph_, chain.value)))
        return false;
      chain.set(3, other);
      if (chain.activated) chain.node.attributes.set("residual_last", int64_t{1});
      return take(chain, reader);
    }
    if (next.inputs[0] == chain.value && chain.product && is_reshape(graph_, next)) {
      chain.reshaped = true;
      return take(chain, reader);
    }
    if (chain.activated || next.inputs[0] != chain.value ||
        !describe_activation(graph_, next, chain.node.attributes))
      return false;
    chain.activated = true;
    return take(chain, reader);
  }
  // Arithmetic with one number after the activation.
  bool extend_post(Chain& chain, const Node& next) {
    if (next.inputs.size() != 2) return false;
    const size_t side = next.inputs[0] == chain.value ? 0 : 1;
    const auto number = scalar_constant(graph_, next.inputs[1 - side]);
    const Shape *before = shape_of(graph_, chain.value), *after = shape_of(graph_, next.outputs[0]);
    Attributes& a = chain.node.attributes;
    if (!number || !before || !after || before->rank() != after->rank() || a.has("post_low"))
      return false;
    const bool mul = next.op == "Mul", div = next.op == "Div" && side == 0;
    if (mul || div) {
      const double factor = mul ? *number : 1.0 / *number;
      a.set("post_scale", a.number("post_scale", 1) * factor);
      if (a.has("post_shift")) a.set("post_shift", a.number("post_shift") * factor);
      return true;
    }
    if (next.op == "Add" || (next.op == "Sub" && side == 0)) {
      a.set("post_shift", a.number("post_shift") + (next.op == "Add" ? *number : -*number));
      return true;
    }
    if (next.op != "Max") return false;
    a.set("post_low", double{*number});
    return true;
  }
  bool take(Chain& chain, size_t reader) {
    chain.taken.push_back(reader);
    chain.last = reader;
    chain.value = graph_.nodes[reader].outputs[0];
    return true;
  }

  void finish(Chain& chain, size_t start) {
    while (extend(chain)) {
    }
    chain.node.outputs = {chain.value};
    ValueUses::remove(graph_.nodes[start]);
    for (size_t index : chain.taken) ValueUses::remove(graph_.nodes[index]);
    graph_.nodes[chain.last] = std::move(chain.node);
  }

  void fuse_conv(size_t index) {
    Node& conv = graph_.nodes[index];
    const ValueId output = conv.outputs[0];
    const Shape *x = shape_of(graph_, conv.inputs[0]), *w = shape_of(graph_, conv.inputs[1]);
    if (!w || !w->is_static() || (x && w->rank() != x->rank()) || w->rank() < 3 || w->rank() > 4)
      return;
    for (const Dim& dim : *w)
      if (dim.value() == 0) return;
    const auto weights = w->to_vector();
    if (!weights) return;
    const int64_t groups = conv.attributes.integer("group", 1);
    const Dim channels = x ? (*x)[1] : unknown_dim();
    // A mistake of the model is left for the plain operator to name.
    if (groups < 1 || (*weights)[0] % groups != 0 ||
        (!channels.is_symbol() && channels.value() != (*weights)[1] * groups))
      return;
    const Tensor* bias = constant_of(graph_, conv.input(2));
    if (conv.input(2) != kNoValue && (!bias || bias->count() != (*weights)[0])) return;
    Chain chain{.node = std::move(conv),
                .last = index,
                .value = output,
                .channel_axis_from_end = w->rank() - 1,
                .channels = (*weights)[0]};
    chain.node.domain = "hologram";
    chain.node.attributes.set("weight_shape", *weights);
    finish(chain, index);
  }

  Status fuse_product(size_t index) {
    const Node& node = graph_.nodes[index];
    const bool gemm = node.op == "Gemm";
    const Tensor* b = constant_of(graph_, node.inputs[1]);
    const Shape *a = shape_of(graph_, node.inputs[0]), *y = shape_of(graph_, node.outputs[0]);
    if (!b || b->dims.rank() != 2 || b->count() == 0 || !a || a->rank() < 2 || !y) return {};
    const bool transposed = gemm && node.attributes.integer("transB") != 0;
    const int64_t k = b->dims[transposed ? 1 : 0], n = b->dims[transposed ? 0 : 1];
    if (a->dims().back() != Dim(k)) return {};
    Chain chain{.node = {.op = "MatMul",
                         .domain = "hologram",
                         .name = node.name,
                         .opset = node.opset,
                         .inputs = {node.inputs[0], node.inputs[1]}},
                .last = index,
                .value = node.outputs[0],
                .channel_axis_from_end = 1,
                .channels = n,
                .product = true};
    Attributes& attributes = chain.node.attributes;
    attributes.set("k", k);
    attributes.set("n", n);
    if (transposed) attributes.set("transposed", int64_t{1});
    if (gemm) {
      if (node.attributes.integer("transA") != 0) return {};
      if (const double alpha = node.attributes.number("alpha", 1); alpha != 1)
        attributes.set("alpha", alpha);
      if (node.input(2) != kNoValue) {
        const Tensor* c = constant_of(graph_, node.input(2));
        if (node.attributes.number("beta", 1) != 1 || !c || c->dtype != DType::f32) return {};
        const ValueId bias = as_bias(node.input(2), chain);
        if (bias == kNoValue) return {};
        chain.set(2, bias);
      }
    }
    // Rows are rows, whatever the axes before them are called.
    for (const Node* from = uses_.maker(chain.node.inputs[0]);
         from && is_reshape(graph_, *from) && shape_of(graph_, from->inputs[0])->rank() > 0 &&
         shape_of(graph_, from->inputs[0])->dims().back() == Dim(k);
         from = uses_.maker(chain.node.inputs[0])) {
      chain.node.inputs[0] = from->inputs[0];
      chain.reshaped = true;
    }
    return finish_product(chain, index);
  }

  // A product by codes (see quantised_weights.h).
  Status fuse_quantised(size_t index) {
    const ValueId value = graph_.nodes[index].outputs[0];
    const int64_t n = graph_.nodes[index].attributes.integer("n");
    Chain chain{.node = std::move(graph_.nodes[index]),
                .last = index,
                .value = value,
                .channel_axis_from_end = 1,
                .channels = n,
                .product = true};
    return finish_product(chain, index);
  }

  // The chain is finished before the shape can be named, so its value is read again here.
  Status finish_product(Chain& chain, size_t index) {
    while (extend(chain)) {
    }
    if (chain.reshaped) {
      HOLOGRAM_TRY(auto shape, shape_of(graph_, chain.value)->to_vector());
      chain.node.attributes.set("shape", std::move(shape));
    }
    finish(chain, index);
    return {};
  }

  Graph& graph_;
  ValueUses uses_;
};

}  // namespace

std::optional<ClipBounds> clip_bounds(const Graph& graph, const Node& node) {
  if (node.op == "ClipToNumbers" && node.domain == "hologram")
    return ClipBounds{node.attributes.number("min", -HUGE_VAL),
                      node.attributes.number("max", HUGE_VAL)};
  if (node.op != "Clip" || !node.domain.empty()) return std::nullopt;
  const auto low = scalar_constant(graph, node.input(1)),
             high = scalar_constant(graph, node.input(2));
  if ((node.input(1) != kNoValue && !low) || (node.input(2) != kNoValue && !high))
    return std::nullopt;
  return ClipBounds{low ? *low : -HUGE_VAL, high ? *high : HUGE_VAL};
}

bool describe_activation(const Graph& graph, const Node& node, Attributes& attributes) {
  const auto clip = clip_bounds(graph, node);
  if (!node.domain.empty() && !clip) return false;
  std::string name = node.op;
  double first = 0, second = 0;
  const Attributes& a = node.attributes;
  if (clip) {
    name = "Clip";
    first = clip->low;
    second = clip->high;
    if (!(first <= second)) return false;
  } else if (name == "Max" || name == "Min") {
    const auto bound =
        node.inputs.size() == 2 ? scalar_constant(graph, node.inputs[1]) : std::nullopt;
    const Shape *x = shape_of(graph, node.inputs[0]), *y = shape_of(graph, node.outputs[0]);
    if (!bound || !x || !y || x->rank() != y->rank()) return false;
    first = name == "Max" ? *bound : -HUGE_VAL;
    second = name == "Max" ? HUGE_VAL : *bound;
    name = "Clip";
  } else if (name == "LeakyRelu") {
    first = a.number("alpha", 0.01);
  } else if (name == "Elu") {
    first = a.number("alpha", 1);
  } else if (name == "Swish") {
    first = a.number("alpha", 1);
  } else if (name == "Gelu") {
    if (a.text("approximate", "none") == "tanh") name = "GeluTanh";
  } else if (name == "HardSigmoid") {
    first = a.number("alpha", 0.2);
    second = a.number("beta", 0.5);
  } else if (name == "HardSwish") {
    first = a.number("alpha", 1.0f / 6);
    if (first == 1.0 / 6) {
      first = double{backends::dense::kSixth};
      second = double{backends::dense::kSixthRest};
    }
  } else if (name != "Relu" && name != "Sigmoid" && name != "Tanh" && name != "Softplus" &&
             name != "Exp") {
    return false;
  }
  attributes.set("activation", name);
  if (first != 0) attributes.set("activation_first", first);
  if (second != 0) attributes.set("activation_second", second);
  return true;
}

Status fuse_epilogue(Graph& graph) {
  for (Node& node : graph.nodes)
    for (Subgraph& sub : node.subgraphs) HOLOGRAM_CHECK(fuse_epilogue(*sub.graph));
  return Fuser(graph).run();
}

}  // namespace hologram::graph
