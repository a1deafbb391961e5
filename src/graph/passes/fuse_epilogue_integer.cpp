#include "graph/passes/fuse_epilogue_integer.h"

#include "graph/passes/fuse_epilogue.h"
#include "graph/passes/value_uses.h"

namespace hologram::graph {
namespace {

bool is_byte(DType type) { return type == DType::u8 || type == DType::i8; }

class Fuser {
 public:
  explicit Fuser(Graph& graph) : graph_(graph), uses_(graph) {}

  Status run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].op == "MatMulInteger" && graph_.nodes[i].domain.empty())
        HOLOGRAM_CHECK(fuse(i));
    uses_.sweep();
    return {};
  }

 private:
  // How many elements the value surely has; 0 where that is not known.
  int64_t known_count(ValueId id) const {
    const Shape* shape = shape_of(graph_, id);
    if (!shape || !shape->is_static()) return 0;
    const auto count = shape->element_count();
    return count ? static_cast<int64_t>(*count) : 0;
  }
  // One number, or one a column.
  bool is_scale(ValueId id, int64_t n) const {
    if (!is_f32(graph_, id)) return false;
    const int64_t count = known_count(id);
    const Shape* shape = shape_of(graph_, id);
    return count == 1 || (count == n && shape->dims().back() == Dim(n));
  }
  // The zero points of B, a value a column; kNoValue in `zeros` where all are 0.
  Result<bool> column_zeros(ValueId id, int64_t n, ValueId& zeros) {
    zeros = kNoValue;
    if (id == kNoValue) return true;
    const Tensor* t = constant_of(graph_, id);
    if (!t || !is_byte(t->dtype) || (t->count() != 1 && t->count() != n)) return false;
    HOLOGRAM_TRY(Tensor wide, Tensor::allocate(DType::i32, {n}));
    bool any = false;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = t->count() == 1 ? 0 : i;
      wide.as<int32_t>()[i] = t->dtype == DType::i8 ? t->as<int8_t>()[at] : t->as<uint8_t>()[at];
      any |= wide.as<int32_t>()[i] != 0;
    }
    if (any) zeros = graph_.add_constant(std::move(wide), graph_.value(id).name);
    return true;
  }

  Status fuse(size_t index) {
    const Node& node = graph_.nodes[index];
    const Tensor* b = constant_of(graph_, node.inputs[1]);
    const Shape* a = shape_of(graph_, node.inputs[0]);
    if (!b || b->dims.rank() != 2 || !is_byte(b->dtype) || b->count() == 0 || !a || a->rank() < 2 ||
        a->dims().back() != Dim(b->dims[0]) || !is_byte(graph_.value(node.inputs[0]).type.dtype) ||
        (node.input(2) != kNoValue && known_count(node.input(2)) != 1))
      return {};
    const int64_t k = b->dims[0], n = b->dims[1];
    ValueId zeros;
    HOLOGRAM_TRY(const bool zeroed, column_zeros(node.input(3), n, zeros));
    if (!zeroed) return {};
    Node made{.op = "MatMulInteger",
              .domain = "hologram",
              .name = node.name,
              .opset = node.opset,
              .inputs = {node.inputs[0], node.inputs[1], node.input(2), zeros}};
    made.attributes.set("k", k);
    made.attributes.set("n", n);
    const size_t last = extend(index, n, made);
    made.outputs = {graph_.nodes[last].outputs[0]};
    if (last != index) ValueUses::remove(graph_.nodes[index]);
    graph_.nodes[last] = std::move(made);
    return {};
  }

  // The node that alone reads the result of `index`, if its operator is `op`.
  size_t reader(size_t index, std::string_view op) const {
    const size_t next = uses_.only_reader(graph_.nodes[index].outputs[0]);
    if (next == ValueUses::kNone || graph_.nodes[next].op != op ||
        !graph_.nodes[next].domain.empty())
      return ValueUses::kNone;
    return next;
  }
  ValueId other_operand(const Node& node, ValueId id) const {
    return node.inputs[node.inputs[0] == id ? 1 : 0];
  }

  // Takes what follows into `made`; says which node it takes the place of.
  size_t extend(size_t index, int64_t n, Node& made) {
    const size_t cast = reader(index, "Cast");
    if (cast == ValueUses::kNone || !is_f32(graph_, graph_.nodes[cast].outputs[0])) return index;
    const size_t mul = reader(cast, "Mul");
    if (mul == ValueUses::kNone) return index;
    const ValueId scale = other_operand(graph_.nodes[mul], graph_.nodes[cast].outputs[0]);
    if (!is_scale(scale, n)) return index;
    made.inputs.push_back(scale);
    ValueUses::remove(graph_.nodes[cast]);
    size_t last = mul;
    const auto take = [&](size_t next) {
      ValueUses::remove(graph_.nodes[last]);
      last = next;
    };
    if (const size_t add = reader(last, "Add"); add != ValueUses::kNone) {
      const ValueId bias = other_operand(graph_.nodes[add], graph_.nodes[last].outputs[0]);
      const Tensor* t = constant_of(graph_, bias);
      if (t && t->dtype == DType::f32 && t->dims.rank() == 1 && t->count() == n) {
        made.inputs.push_back(bias);
        take(add);
      }
    }
    const size_t next = uses_.only_reader(graph_.nodes[last].outputs[0]);
    if (next != ValueUses::kNone && graph_.nodes[next].inputs[0] == graph_.nodes[last].outputs[0] &&
        describe_activation(graph_, graph_.nodes[next], made.attributes))
      take(next);
    return last;
  }

  Graph& graph_;
  ValueUses uses_;
};

}  // namespace

Status fuse_epilogue_integer(Graph& graph) {
  for (Node& node : graph.nodes)
    for (Subgraph& sub : node.subgraphs) HOLOGRAM_CHECK(fuse_epilogue_integer(*sub.graph));
  return Fuser(graph).run();
}

}  // namespace hologram::graph
