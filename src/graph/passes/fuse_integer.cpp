#include "graph/passes/fuse_integer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include "graph/passes/fuse_epilogue.h"
#include "graph/passes/value_uses.h"

namespace hologram::graph {
namespace {

bool is_byte(DType type) { return type == DType::u8 || type == DType::i8; }

// A scale and a zero point for a whole tensor of bytes.
struct Scheme {
  float scale = 1;
  int32_t zero = 0;
  DType type = DType::u8;
  bool operator==(const Scheme&) const = default;
};

class Fuser {
 public:
  Fuser(Graph& graph, FusionReport& report) : graph_(graph), report_(report), uses_(graph) {}

  Status run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (!node.domain.empty()) continue;
      const std::string& op = node.op;
      if (op == "QLinearConv") HOLOGRAM_CHECK(fuse_qlinear(i, true));
      if (op == "QLinearMatMul") HOLOGRAM_CHECK(fuse_qlinear(i, false));
      if (op == "ConvInteger") HOLOGRAM_CHECK(fuse_conv_integer(i));
      if (op == "Conv" || op == "MatMul" || op == "Gemm") HOLOGRAM_CHECK(fuse_dequantised(i));
      if (op == "QuantizeLinear") move_before(i);
    }
    uses_.sweep();
    return {};
  }

 private:
  // The constants of bytes that a product or convolution multiplies by.
  struct Weights {
    ValueId id = kNoValue;
    std::vector<float> scales;   // one a column or filter
    std::vector<int32_t> zeros;  // the same
  };

  const Tensor* constant(ValueId id) const { return constant_of(graph_, id); }
  DType type_of(ValueId id) const { return graph_.value(id).type.dtype; }

  static int32_t byte_at(const Tensor& t, int64_t i) {
    return t.dtype == DType::i8 ? t.as<int8_t>()[i] : t.as<uint8_t>()[i];
  }

  // What inputs `scale` and `scale + 1` say about a whole tensor of `type`.
  std::optional<Scheme> scheme(const Node& node, size_t scale, DType type) const {
    const Tensor *s = constant(node.input(scale)), *z = constant(node.input(scale + 1));
    if (!is_byte(type) || !s || s->dtype != DType::f32 || s->count() != 1 ||
        node.attributes.integer("block_size") != 0 ||
        (node.input(scale + 1) != kNoValue && (!z || z->count() != 1 || z->dtype != type)))
      return std::nullopt;
    return Scheme{*s->as<float>(), z ? byte_at(*z, 0) : 0, type};
  }

  // Scales and zeros spread over n columns or filters.
  bool spread(const Tensor* scale, const Tensor* zero, int64_t n, Weights& w) const {
    if (!scale || scale->dtype != DType::f32 || (scale->count() != 1 && scale->count() != n) ||
        (zero && (!is_byte(zero->dtype) || (zero->count() != 1 && zero->count() != n))))
      return false;
    for (int64_t i = 0; i < n; ++i) {
      float value;  // large constants of a file may lie askew
      std::memcpy(&value, scale->data + (scale->count() == 1 ? 0 : i) * sizeof(value),
                  sizeof(value));
      w.scales.push_back(value);
      w.zeros.push_back(zero ? byte_at(*zero, zero->count() == 1 ? 0 : i) : 0);
    }
    return true;
  }

  ValueId constant_floats(const std::vector<float>& values) {
    return graph_.add_constant(*Tensor::from<float>({static_cast<int64_t>(values.size())}, values),
                               "scale");
  }
  // kNoValue where all are 0.
  ValueId constant_integers(const std::vector<int32_t>& values, const char* name) {
    if (std::ranges::all_of(values, [](int32_t v) { return v == 0; })) return kNoValue;
    return graph_.add_constant(
        *Tensor::from<int32_t>({static_cast<int64_t>(values.size())}, values), name);
  }
  ValueId constant_zero(const Scheme& s) {
    if (s.zero == 0) return kNoValue;
    return s.type == DType::i8 ? graph_.constant(static_cast<int8_t>(s.zero))
                               : graph_.constant(static_cast<uint8_t>(s.zero));
  }

  static void set_input(Node& node, size_t index, ValueId id) {
    if (id == kNoValue) return;
    if (node.inputs.size() <= index) node.inputs.resize(index + 1, kNoValue);
    node.inputs[index] = id;
  }

  // The node without what says how its result is made: x by the weights.
  Node make(const Node& from, ValueId x, ValueId x_zero, const Weights& w, bool conv) {
    Node node{.op = conv ? "ConvInteger" : "MatMulInteger",
              .domain = "hologram",
              .name = from.name,
              .opset = from.opset,
              .inputs = {x, w.id}};
    set_input(node, 2, x_zero);
    set_input(node, 3, constant_integers(w.zeros, "zero"));
    const Dims& dims = constant(w.id)->dims;
    if (conv) {
      for (const char* name : {"dilations", "pads", "strides"})
        if (from.attributes.has(name)) {
          const auto list = from.attributes.integers(name);
          node.attributes.set(name, std::vector<int64_t>(list.begin(), list.end()));
        }
      node.attributes.set("group", from.attributes.integer("group", 1));
      node.attributes.set("auto_pad", std::string(from.attributes.text("auto_pad", "NOTSET")));
      node.attributes.set("weight_shape", std::vector<int64_t>(dims.begin(), dims.end()));
    } else {
      node.attributes.set("k", dims[0]);
      node.attributes.set("n", dims[1]);
    }
    return node;
  }

  void set_output(Node& node, const Scheme& s, bool scaled) {
    node.attributes.set("output", static_cast<int64_t>(s.type));
    if (!scaled) node.attributes.set("output_scale", double{s.scale});
    node.attributes.set("output_zero", int64_t{s.zero});
  }

  // Whether x and a constant w make a convolution that the kernel has.
  const char* why_not_conv(const Node& node, ValueId x, ValueId w) const {
    const Shape* shape = shape_of(graph_, x);
    const Tensor* t = constant(w);
    if (!t || !is_byte(t->dtype) || t->count() == 0) return "its weights are no constant bytes";
    if (!shape || shape->rank() != t->dims.rank()) return "the rank of its input is not known";
    if (shape->rank() < 3 || shape->rank() > 4) return "it has more than two spatial axes";
    const int64_t groups = node.attributes.integer("group", 1);
    if (groups < 1 || t->dims[0] % groups != 0 || (*shape)[1] != Dim(t->dims[1] * groups))
      return "its channels are not known";
    const auto kernel = node.attributes.integers("kernel_shape");
    for (size_t i = 0; i < kernel.size(); ++i)
      if (i + 2 >= t->dims.rank() || kernel[i] != t->dims[i + 2]) return "its kernel_shape differs";
    return nullptr;
  }
  const char* why_not_product(ValueId x, ValueId w) const {
    const Shape* shape = shape_of(graph_, x);
    const Tensor* t = constant(w);
    if (!t || !is_byte(t->dtype) || t->count() == 0) return "its weights are no constant bytes";
    if (t->dims.rank() != 2 || !shape || shape->rank() < 2 ||
        shape->dims().back() != Dim(t->dims[0]))
      return "its weights are no matrix";
    return nullptr;
  }

  // x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias (i32)
  Status fuse_qlinear(size_t index, bool conv) {
    const Node& node = graph_.nodes[index];
    const auto x = scheme(node, 1, type_of(node.inputs[0]));
    const auto y = scheme(node, 6, type_of(node.outputs[0]));
    Weights w{.id = node.inputs[3]};
    const char* reason =
        conv ? why_not_conv(node, node.inputs[0], w.id) : why_not_product(node.inputs[0], w.id);
    if (!reason && (!x || !y)) reason = "its scales are no constants";
    const Tensor* bias = constant(node.input(8));
    if (!reason && node.input(8) != kNoValue && !bias) reason = "its bias is no constant";
    if (!reason) {
      const Dims& dims = constant(w.id)->dims;
      const int64_t n = conv ? dims[0] : dims[1];
      if (!spread(constant(node.inputs[4]), constant(node.inputs[5]), n, w) ||
          (bias && bias->count() != n))
        reason = "the scales of its weights are neither one nor one a column";
    }
    if (reason) return keep(node, reason);
    Node made = make(node, node.inputs[0], constant_zero(*x), w, conv);
    // One factor, as the definition has it: nothing comes between the sums and the result.
    for (float& scale : w.scales)
      scale = static_cast<float>(static_cast<double>(x->scale) * scale / y->scale);
    set_input(made, 4, constant_floats(w.scales));
    set_input(made, 7, node.input(8));
    set_output(made, *y, true);
    made.outputs = node.outputs;
    graph_.nodes[index] = std::move(made);
    return {};
  }

  Status fuse_conv_integer(size_t index) {
    const Node& node = graph_.nodes[index];
    Weights w{.id = node.inputs[1]};
    if (const char* reason = why_not_conv(node, node.inputs[0], w.id)) return keep(node, reason);
    const Tensor* zero = constant(node.input(3));
    const Tensor one = *Tensor::from<float>({}, std::vector<float>{1.0f});
    if ((node.input(3) != kNoValue && !zero) || !spread(&one, zero, constant(w.id)->dims[0], w))
      return keep(node, "the zero points of its weights are no constants");
    Node made = make(node, node.inputs[0], node.input(2), w, true);
    made.outputs = node.outputs;
    graph_.nodes[index] = std::move(made);
    return {};
  }

  Status keep(const Node& node, const char* reason) {
    report_.apart.push_back({node.name, node.op, std::string("not in integers: ") + reason});
    return {};
  }

  // The bytes behind an operand of f32, where it is dequantised by one scale.
  const Node* dequantised(ValueId id) const { return uses_.maker(id, "DequantizeLinear"); }

  Status fuse_dequantised(size_t index) {
    const Node& node = graph_.nodes[index];
    const Node *dx = dequantised(node.inputs[0]), *dw = dequantised(node.inputs[1]);
    if (!dx || !dw || !is_byte(type_of(dx->inputs[0])) || constant(dx->inputs[0])) return {};
    const bool conv = node.op == "Conv", gemm = node.op == "Gemm";
    const auto x = scheme(*dx, 1, type_of(dx->inputs[0]));
    if (!x) return keep(node, "its input has more than one scale");
    Weights w{.id = dw->inputs[0]};
    if (gemm && (node.attributes.integer("transA") != 0 ||
                 node.attributes.number("alpha", 1) != 1 || node.attributes.number("beta", 1) != 1))
      return keep(node, "it has alpha, beta or transA");
    const Tensor* t = constant(w.id);
    const bool transposed = gemm && node.attributes.integer("transB") != 0;
    // The axis of w along which scales may differ.
    const int64_t axis = conv || transposed ? 0 : 1;
    const Tensor* scale = constant(dw->inputs[1]);
    int64_t given = dw->attributes.integer("axis", 1);
    if (t && given < 0) given += static_cast<int64_t>(t->dims.rank());
    if (!t || !scale || dw->attributes.integer("block_size") != 0 ||
        (scale->count() != 1 && given != axis))
      return keep(node, "its weights do not have a scale a column");
    if (transposed) {
      HOLOGRAM_TRY(w.id, transpose(*t, graph_.value(w.id).name));
    }
    const ValueId input = dx->inputs[0];
    if (const char* reason = conv ? why_not_conv(node, input, w.id) : why_not_product(input, w.id))
      return keep(node, reason);
    const Dims dims = constant(w.id)->dims;
    const int64_t n = conv ? dims[0] : dims[1];
    if (!spread(scale, constant(dw->input(2)), n, w))
      return keep(node, "its weights do not have a scale a column");
    ValueId bias = conv || gemm ? node.input(2) : kNoValue;
    if (bias != kNoValue) {
      const Tensor* b = constant(bias);
      if (!b || b->dtype != DType::f32 || b->count() != n || b->dims.rank() != 1)
        return keep(node, "its bias is no constant vector");
    }
    Node made = make(node, input, constant_zero(*x), w, conv);
    for (float& s : w.scales) s = static_cast<float>(static_cast<double>(x->scale) * s);
    set_input(made, 4, constant_floats(w.scales));
    size_t last = index;
    const auto next = [&] { return uses_.only_reader(graph_.nodes[last].outputs[0]); };
    const auto take = [&](size_t reader) {
      ValueUses::remove(graph_.nodes[last]);
      last = reader;
    };
    if (bias == kNoValue && !conv && next() != ValueUses::kNone &&
        graph_.nodes[next()].op == "Add" && graph_.nodes[next()].domain.empty()) {
      const Node& add = graph_.nodes[next()];
      const ValueId other = add.inputs[add.inputs[0] == graph_.nodes[last].outputs[0] ? 1 : 0];
      const Tensor* b = constant(other);
      if (b && b->dtype == DType::f32 && b->dims.rank() == 1 && b->count() == n) {
        bias = other;
        take(next());
      }
    }
    set_input(made, 5, bias);
    if (const size_t reader = next();
        reader != ValueUses::kNone &&
        graph_.nodes[reader].inputs[0] == graph_.nodes[last].outputs[0] &&
        describe_activation(graph_, graph_.nodes[reader], made.attributes))
      take(reader);
    made.attributes.set("output", static_cast<int64_t>(DType::f32));
    if (const size_t reader = next(); reader != ValueUses::kNone) {
      const Node& q = graph_.nodes[reader];
      if (q.op == "QuantizeLinear" && q.domain.empty() && !q.attributes.has("precision") &&
          q.inputs[0] == graph_.nodes[last].outputs[0])
        if (const auto y = scheme(q, 1, type_of(q.outputs[0]))) {
          set_output(made, *y, false);
          take(reader);
        }
    }
    made.outputs = {graph_.nodes[last].outputs[0]};
    graph_.nodes[last] = std::move(made);
    return {};
  }

  Result<ValueId> transpose(const Tensor& t, const std::string& name) {
    HOLOGRAM_TRY(Tensor turned, Tensor::allocate(t.dtype, {t.dims[1], t.dims[0]}));
    for (int64_t i = 0; i < t.dims[0]; ++i)
      for (int64_t j = 0; j < t.dims[1]; ++j)
        turned.as<uint8_t>()[j * t.dims[0] + i] = t.as<uint8_t>()[i * t.dims[1] + j];
    return graph_.add_constant(std::move(turned), name);
  }

  // QuantizeLinear(op(DequantizeLinear(x))) by one scheme, where op only chooses and moves: op(x).
  void move_before(size_t index) {
    const Node& q = graph_.nodes[index];
    const size_t at = uses_.maker_index(q.inputs[0]);
    if (at == ValueUses::kNone || q.attributes.has("precision")) return;
    Node& op = graph_.nodes[at];
    static constexpr std::string_view kMovers[] = {"MaxPool",   "Reshape", "Transpose", "Flatten",
                                                   "Unsqueeze", "Squeeze", "Expand",    "Slice"};
    if (!op.domain.empty() || op.outputs.size() != 1 || op.inputs.empty() ||
        std::ranges::find(kMovers, op.op) == std::end(kMovers) ||
        uses_.only_reader(op.outputs[0]) != index)
      return;
    const Node* d = dequantised(op.inputs[0]);
    if (!d || constant(d->inputs[0])) return;
    const auto from = scheme(*d, 1, type_of(d->inputs[0]));
    const auto to = scheme(q, 1, type_of(q.outputs[0]));
    if (!from || !to || !(*from == *to)) return;
    op.inputs[0] = d->inputs[0];
    op.outputs[0] = q.outputs[0];
    ValueUses::remove(graph_.nodes[index]);
  }

  Graph& graph_;
  FusionReport& report_;
  ValueUses uses_;
};

}  // namespace

Status fuse_integer(Graph& graph, FusionReport& report) {
  for (Node& node : graph.nodes)
    for (Subgraph& sub : node.subgraphs) HOLOGRAM_CHECK(fuse_integer(*sub.graph, report));
  return Fuser(graph, report).run();
}

}  // namespace hologram::graph
