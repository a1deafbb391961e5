#include "graph/passes/identities.h"

#include <cstring>

#include "graph/dim.h"
#include "graph/operator.h"
#include "graph/passes/replacements.h"

namespace hologram::graph {
namespace {

// Every element of a tensor of a computing type is the number `value` with the sign of `value`.
bool all_are(const Tensor& tensor, double value) {
  auto check = [&]<typename T>(T wanted) {
    for (int64_t i = 0; i < tensor.count(); ++i)
      if (std::memcmp(tensor.as<T>() + i, &wanted, sizeof(T)) != 0) return false;
    return tensor.count() > 0;
  };
  const auto f = static_cast<float>(value);
  switch (tensor.dtype) {
    case DType::f64:
      return check(value);
    case DType::f32:
      return check(f);
    case DType::f16:
      return check(Half(f));
    case DType::bf16:
      return check(BFloat16(f));
    case DType::boolean:
    case DType::u8:
    case DType::i8:
      return check(static_cast<int8_t>(value));
    case DType::u16:
    case DType::i16:
      return check(static_cast<int16_t>(value));
    case DType::u32:
    case DType::i32:
      return check(static_cast<int32_t>(value));
    case DType::u64:
    case DType::i64:
      return check(static_cast<int64_t>(value));
    default:
      return false;
  }
}

// Every number of `from` is one of `to`, so that there and back changes nothing.
bool holds(DType to, DType from) {
  if (from == DType::boolean) return is_integer(to) || is_float(to);
  if (is_float(from))
    return to == DType::f64 || (to == DType::f32 && (from == DType::f16 || from == DType::bf16));
  if (!is_integer(from) || !is_integer(to)) return false;
  if (is_signed_integer(from)) return is_signed_integer(to) && bits_of(to) >= bits_of(from);
  return bits_of(to) > bits_of(from) || (is_unsigned_integer(to) && bits_of(to) == bits_of(from));
}

class IdentityRemover {
 public:
  explicit IdentityRemover(Graph& graph) : graph_(graph) {}

  Status run() {
    makers_.assign(graph_.value_count(), nullptr);
    for (Node& node : graph_.nodes) {
      replacements_.apply(node);
      for (Subgraph& sub : node.subgraphs) HOLOGRAM_CHECK(remove_identities(*sub.graph));
      shorten(node);
      const ValueId same = equal_input(node);
      if (same != kNoValue && may_replace(node.outputs[0], same)) {
        replacements_.replace(node.outputs[0], same);
        if (is_output(graph_, node.outputs[0])) taken_.push_back(same);
      }
      for (ValueId id : node.outputs)
        if (id != kNoValue) makers_[id] = &node;
    }
    replacements_.apply_outputs(graph_);
    return {};
  }

 private:
  const ValueInfo& info(ValueId id) const { return graph_.value(id); }
  const Tensor* constant(const Node& node, size_t index) const {
    const ValueId id = node.input(index);
    return id != kNoValue && info(id).constant ? &*info(id).constant : nullptr;
  }
  // The node that made an input of a node, if it is of this kind.
  const Node* maker(const Node& node, size_t index, std::string_view op) const {
    const ValueId id = node.input(index);
    const Node* found = id == kNoValue ? nullptr : makers_[id];
    return found && found->domain.empty() && found->op == op ? found : nullptr;
  }
  // Only the shape changes.
  static bool keeps_order(const Node& node) {
    return node.domain.empty() && (node.op == "Reshape" || node.op == "Flatten" ||
                                   node.op == "Squeeze" || node.op == "Unsqueeze");
  }
  bool same_shape(ValueId a, ValueId b) const {
    const auto &x = info(a).type.shape, &y = info(b).type.shape;
    return x && y && equal_shapes(*x, *y);
  }
  bool may_replace(ValueId output, ValueId by) const {
    if (info(output).type.kind != info(by).type.kind) return false;
    if (!is_output(graph_, output)) return true;
    return makers_[by] && !is_output(graph_, by) && std::ranges::find(taken_, by) == taken_.end();
  }

  // The input with this index where it equals the output in shape.
  ValueId whole(const Node& node, size_t index) const {
    const ValueId id = node.input(index);
    return id != kNoValue && same_shape(id, node.outputs[0]) ? id : kNoValue;
  }
  // The other operand of a binary operator of which one is `neutral`.
  ValueId beside(const Node& node, double neutral, bool also_left) const {
    if (const Tensor* right = constant(node, 1); right && all_are(*right, neutral))
      return whole(node, 0);
    if (const Tensor* left = constant(node, 0); also_left && left && all_are(*left, neutral))
      return whole(node, 1);
    return kNoValue;
  }
  bool all_numbers(const Node& node, size_t index, int64_t value) const {
    if (node.input(index) == kNoValue) return false;
    const auto& contents = info(node.inputs[index]).contents;
    if (!contents) return false;
    for (const Dim& dim : *contents)
      if (dim.is_symbol() || dim.value() != value) return false;
    return true;
  }

  // The input that output 0 of a node equals bit for bit; kNoValue where there is none.
  ValueId equal_input(const Node& node) const {
    if (!node.domain.empty() || node.inputs.empty() || node.inputs[0] == kNoValue ||
        node.outputs.empty() || node.outputs[0] == kNoValue)
      return kNoValue;
    const std::string& op = node.op;
    const ValueId x = node.inputs[0];
    const ValueType& type = info(x).type;
    if (op == "Identity") return x;
    if (!type.is_tensor()) return kNoValue;
    const bool real = is_float(type.dtype);
    if (op == "Dropout") {
      const Tensor* training = constant(node, 2);
      const bool off = node.input(2) == kNoValue || (training && all_are(*training, 0));
      return off && node.outputs.size() == 1 ? x : kNoValue;
    }
    if (op == "Cast") {
      const DType to = info(node.outputs[0]).type.dtype;
      if (to == type.dtype) return x;
      const Node* before = maker(node, 0, "Cast");
      if (!before || info(before->inputs[0]).type.dtype != to) return kNoValue;
      return holds(type.dtype, to) ? before->inputs[0] : kNoValue;
    }
    if (op == "Mul") return beside(node, 1, true);
    if (op == "Div" || op == "Pow") return beside(node, 1, false);
    if (op == "Add") return beside(node, real ? -0.0 : 0, true);
    if (op == "Sub" || op == "BitShift") return beside(node, 0, false);
    if (op == "BitwiseOr" || op == "BitwiseXor" || op == "Or" || op == "Xor")
      return beside(node, 0, true);
    if (op == "And") return beside(node, 1, true);
    if (op == "BitwiseAnd") return beside(node, -1, true);
    if (op == "Not" || op == "BitwiseNot" || op == "Neg") {
      const Node* before = maker(node, 0, op);
      return before ? before->inputs[0] : kNoValue;
    }
    if (op == "Relu" || op == "Abs") return maker(node, 0, op) ? x : kNoValue;
    if (op == "Where") {
      const Tensor* condition = constant(node, 0);
      if (!condition) return kNoValue;
      if (all_are(*condition, 1)) return whole(node, 1);
      return all_are(*condition, 0) ? whole(node, 2) : kNoValue;
    }
    if (op == "Min" || op == "Max" || op == "Sum" || op == "Mean" || op == "Concat")
      return node.inputs.size() == 1 ? x : kNoValue;
    if (op == "Split") return node.outputs.size() == 1 ? whole(node, 0) : kNoValue;
    if (op == "Clip") return node.input(1) == kNoValue && node.input(2) == kNoValue ? x : kNoValue;
    if (op == "Transpose") {
      const auto perm = node.attributes.integers("perm");
      if (perm.empty()) return type.shape && type.shape->rank() <= 1 ? x : kNoValue;
      for (size_t i = 0; i < perm.size(); ++i)
        if (perm[i] != static_cast<int64_t>(i)) return kNoValue;
      return x;
    }
    if (op == "Expand") return whole(node, 0);
    if (keeps_order(node)) {
      // Back to a shape that a value before had.
      const Node* at = &node;
      for (int steps = 0; at && keeps_order(*at) && steps < 8; ++steps) {
        if (same_shape(at->inputs[0], node.outputs[0])) return at->inputs[0];
        at = makers_[at->inputs[0]];
      }
      return kNoValue;
    }
    if (op == "Slice")
      return node.input(4) == kNoValue || all_numbers(node, 4, 1) ? whole(node, 0) : kNoValue;
    if (op == "Pad") return all_numbers(node, 1, 0) ? whole(node, 0) : kNoValue;
    if (op == "Tile") return all_numbers(node, 1, 1) ? whole(node, 0) : kNoValue;
    return kNoValue;
  }

  // Makes a node read what its producer reads, where it does for both.
  void shorten(Node& node) const {
    if (!node.domain.empty()) return;
    if (node.op == "Transpose") {
      const Node* before = maker(node, 0, "Transpose");
      if (!before || !info(before->inputs[0]).type.shape) return;
      const size_t rank = info(before->inputs[0]).type.shape->rank();
      auto axis = [&](const Node& n, size_t i) {
        const auto perm = n.attributes.integers("perm");
        if (perm.empty()) return rank - 1 - i;
        return static_cast<size_t>(perm[i] < 0 ? perm[i] + static_cast<int64_t>(rank) : perm[i]);
      };
      std::vector<int64_t> perm;
      for (size_t i = 0; i < rank; ++i)
        perm.push_back(static_cast<int64_t>(axis(*before, axis(node, i))));
      node.inputs[0] = before->inputs[0];
      node.attributes.set("perm", std::move(perm));
    } else if (node.op == "Reshape") {
      // A 0 would copy a dimension of what is between.
      const auto& target = info(node.inputs[1]).contents;
      if (!target) return;
      for (const Dim& dim : *target)
        if (dim.is_symbol() || dim.value() == 0) return;
      if (const Node* before = makers_[node.inputs[0]]; before && keeps_order(*before))
        node.inputs[0] = before->inputs[0];
    }
  }

  Graph& graph_;
  Replacements replacements_;
  std::vector<const Node*> makers_;  // of each value; null for inputs and constants
  std::vector<ValueId> taken_;       // what outputs of the graph were replaced by
};

}  // namespace

Status remove_identities(Graph& graph) { return IdentityRemover(graph).run(); }

}  // namespace hologram::graph
