#include "graph/passes/quantised_weights.h"

#include <algorithm>

#include "backends/cpu/kernels/convert.h"
#include "graph/evaluate.h"
#include "graph/passes/value_uses.h"

namespace hologram::graph {
namespace {

// More rows than this are multiplied faster by f32 weights than by codes.
constexpr int64_t kManyRows = 32;
// What stays dequantised at every run, because a constant of f32 would be larger by this.
constexpr uint64_t kLargestGrowth = 1 << 30;

bool is_byte(DType type) { return type == DType::u8 || type == DType::i8; }
bool is_nibble(DType type) { return type == DType::u4 || type == DType::i4; }
bool stays(const Tensor& t, int64_t from) { return is_byte(t.dtype) && t.count() >= from; }
bool is_signed(DType type) { return type == DType::i8 || type == DType::i4; }

// Elements as codes 0..2^bits - 1: signed ones have half of that added.
Result<Tensor> codes_of(const Tensor& t) {
  HOLOGRAM_TRY(Tensor codes, Tensor::allocate(DType::u8, t.dims));
  auto* to = codes.as<uint8_t>();
  if (is_nibble(t.dtype)) {
    kernels::unpack_sub_byte(t.dtype, t.data, t.count(), to);
    if (is_signed(t.dtype))
      for (int64_t i = 0; i < t.count(); ++i) to[i] = static_cast<uint8_t>((to[i] + 8) & 15);
  } else {
    const uint8_t flip = is_signed(t.dtype) ? 0x80 : 0;
    for (int64_t i = 0; i < t.count(); ++i) to[i] = t.as<uint8_t>()[i] ^ flip;
  }
  return codes;
}

// What DequantizeLinear `node` says of a matrix: k x n, or n x k where `transposed`.
Result<std::optional<QuantisedMatrix>> matrix_of(const Graph& graph, const Node& node,
                                                 bool transposed) {
  const Tensor* x = constant_of(graph, node.inputs[0]);
  const Tensor* stored = constant_of(graph, node.inputs[1]);
  const Tensor* zero = constant_of(graph, node.input(2));
  if (!x || !stored) return std::nullopt;
  HOLOGRAM_TRY(const Tensor aligned, stored->clone());  // see onnx/tensor.cpp
  const Tensor* scale = &aligned;
  if ((node.input(2) != kNoValue && !zero) || x->dims.rank() != 2 || x->count() == 0 ||
      scale->dtype != DType::f32 || !is_f32(graph, node.outputs[0]))
    return std::nullopt;
  QuantisedMatrix m{.k = x->dims[transposed ? 1 : 0],
                    .n = x->dims[transposed ? 0 : 1],
                    .bits = is_byte(x->dtype) ? 8 : 4,
                    .transposed = transposed};
  const int64_t block = node.attributes.integer("block_size");
  int64_t axis = node.attributes.integer("axis", 1);
  if (axis < 0) axis += 2;
  const int64_t k_axis = transposed ? 1 : 0;
  int64_t column_step = 0, group_step = 0;  // in `scale`
  if (block != 0) {
    if (axis != k_axis || (m.bits == 4 && block % 8 != 0)) return std::nullopt;
    m.group = block;
    const int64_t groups = (m.k + block - 1) / block;
    column_step = transposed ? groups : 1;
    group_step = transposed ? 1 : m.n;
    if (scale->count() != groups * m.n) return std::nullopt;
  } else if (scale->count() != 1 || scale->dims.rank() > 1) {
    if (axis == k_axis || scale->count() != m.n) return std::nullopt;
    column_step = 1;
  }
  const int64_t groups = m.group == 0 ? 1 : (m.k + m.group - 1) / m.group;
  HOLOGRAM_TRY(m.codes, codes_of(*x));
  HOLOGRAM_TRY(m.scales, Tensor::allocate(DType::f32, {m.n, groups}));
  HOLOGRAM_TRY(Tensor zeros, Tensor::allocate(DType::f32, {m.n, groups}));
  const auto middle = static_cast<float>(1 << (m.bits - 1));
  Tensor zero_codes;
  if (zero) {
    if (zero->count() != scale->count()) return std::nullopt;
    HOLOGRAM_TRY(zero_codes, codes_of(*zero));
  }
  bool any = false;
  for (int64_t j = 0; j < m.n; ++j)
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t from = j * column_step + g * group_step, to = j * groups + g;
      m.scales.as<float>()[to] = scale->as<float>()[from];
      const float z = zero ? zero_codes.as<uint8_t>()[from] : is_signed(x->dtype) ? middle : 0.0f;
      zeros.as<float>()[to] = z;
      any |= z != middle;
    }
  if (any) m.zeros = std::move(zeros);
  return m;
}

// The weights of MatMulNBits, n x k; nothing where its kernel has to run as it is.
Result<std::optional<QuantisedMatrix>> bits_matrix(const Graph& graph, const Node& node) {
  const Attributes& a = node.attributes;
  const Tensor *b = constant_of(graph, node.inputs[1]), *scale = constant_of(graph, node.inputs[2]);
  const Tensor* zero = constant_of(graph, node.input(3));
  QuantisedMatrix m{.k = a.integer("K"),
                    .n = a.integer("N"),
                    .bits = a.integer("bits", 4),
                    .group = a.integer("block_size"),
                    .transposed = true};
  if ((m.bits != 4 && m.bits != 8) || !b || !scale || scale->dtype != DType::f32 ||
      (node.input(3) != kNoValue && !zero) || node.input(4) != kNoValue)
    return std::nullopt;
  const int64_t groups = (m.k + m.group - 1) / m.group, blob = m.group * m.bits / 8;
  const int64_t zero_row = (groups * m.bits + 7) / 8;
  if (b->count() != m.n * groups * blob || scale->count() != m.n * groups) return std::nullopt;
  if (zero && zero->count() != m.n * (zero->dtype == DType::u8 ? zero_row : groups))
    return std::nullopt;
  const auto field = [&](const uint8_t* bytes, int64_t index) -> uint8_t {
    return m.bits == 8 ? bytes[index] : (bytes[index / 2] >> (index % 2 * 4)) & 15;
  };
  HOLOGRAM_TRY(m.codes, Tensor::allocate(DType::u8, {m.n, m.k}));
  for (int64_t j = 0; j < m.n; ++j)
    for (int64_t i = 0; i < m.k; ++i)
      m.codes.as<uint8_t>()[j * m.k + i] = field(b->as<uint8_t>() + j * groups * blob, i);
  HOLOGRAM_TRY(m.scales, scale->clone());
  m.scales.dims = {m.n, groups};
  if (!zero) return m;
  if (zero->dtype == DType::f32) {
    HOLOGRAM_TRY(m.zeros, zero->clone());
    m.zeros->dims = {m.n, groups};
  } else if (zero->dtype == DType::u8) {
    HOLOGRAM_TRY(m.zeros, Tensor::allocate(DType::f32, {m.n, groups}));
    for (int64_t j = 0; j < m.n; ++j)
      for (int64_t g = 0; g < groups; ++g)
        m.zeros->as<float>()[j * groups + g] = field(zero->as<uint8_t>() + j * zero_row, g);
  } else {
    return std::nullopt;
  }
  return m;
}

class User {
 public:
  User(Graph& graph, int64_t stay_from) : graph_(graph), uses_(graph), stay_from_(stay_from) {}

  Status run() {
    for (Node& node : graph_.nodes) {
      if (node.op == "MatMulNBits" && node.domain == "com.microsoft") {
        HOLOGRAM_CHECK(use_bits(node));
        continue;
      }
      if (!node.domain.empty()) continue;
      if (node.op == "MatMul" || node.op == "Gemm") HOLOGRAM_CHECK(use(node));
      if (node.op == "Gather") gather_first(node);
    }
    return {};
  }

 private:
  // Whether all rows are known to be so many that f32 weights are worth their memory.
  bool has_many_rows(ValueId a) const {
    const Shape* shape = shape_of(graph_, a);
    if (!shape) return false;
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < shape->rank(); ++i) {
      if ((*shape)[i].is_symbol()) return false;
      rows *= (*shape)[i].value();
    }
    return rows > kManyRows;
  }

  Status use_bits(Node& node) {
    if (!is_f32(graph_, node.outputs[0]) || !is_f32(graph_, node.inputs[0])) return {};
    HOLOGRAM_TRY(auto matrix, bits_matrix(graph_, node));
    if (matrix) replace(node, *std::move(matrix), node.input(5));
    return {};
  }

  Status use(Node& node) {
    const bool gemm = node.op == "Gemm";
    const Shape* a = shape_of(graph_, node.inputs[0]);
    if (!a || a->rank() < 2 || !is_f32(graph_, node.outputs[0]) || has_many_rows(node.inputs[0]))
      return {};
    bool transposed = gemm && node.attributes.integer("transB") != 0;
    const Node* from = uses_.maker(node.inputs[1]);
    if (from && from->op == "Transpose" && from->domain.empty()) {
      const auto perm = from->attributes.integers("perm");
      if (!perm.empty() && !(perm.size() == 2 && perm[0] == 1)) return {};
      transposed = !transposed;
      from = uses_.maker(from->inputs[0]);
    }
    if (!from || from->op != "DequantizeLinear" || !from->domain.empty()) return {};
    const Tensor* codes = constant_of(graph_, from->inputs[0]);
    if (!codes || stays(*codes, stay_from_)) return {};
    ValueId bias = kNoValue;
    HOLOGRAM_TRY(auto matrix, matrix_of(graph_, *from, transposed));
    if (!matrix || a->dims().back() != Dim(matrix->k)) return {};
    if (gemm) {
      const Tensor* c = constant_of(graph_, node.input(2));
      if (node.attributes.integer("transA") != 0 || node.attributes.number("alpha", 1) != 1 ||
          (node.input(2) != kNoValue && (node.attributes.number("beta", 1) != 1 || !c ||
                                         c->dims.rank() != 1 || c->count() != matrix->n)))
        return {};
      bias = node.input(2);
    }
    replace(node, *std::move(matrix), bias);
    return {};
  }

  void replace(Node& node, QuantisedMatrix matrix, ValueId bias) {
    Node made = std::move(matrix).product(graph_, node, node.inputs[0], bias);
    made.outputs = node.outputs;
    node = std::move(made);
  }

  // A row of codes is a quarter of a row of numbers, and the others need no numbers at all.
  void gather_first(Node& node) {
    Node* from = uses_.maker(node.inputs[0], "DequantizeLinear");
    if (!from || from->attributes.integer("block_size") != 0 ||
        !constant_of(graph_, from->inputs[0]) || uses_.count(from->outputs[0]) != 1)
      return;
    const Tensor* scale = constant_of(graph_, from->inputs[1]);
    if (!scale || scale->count() != 1 || scale->dims.rank() > 1) return;
    const ValueInfo& result = graph_.value(node.outputs[0]);
    ValueType type = result.type;
    type.dtype = graph_.value(from->inputs[0]).type.dtype;
    const ValueId rows = graph_.add_value(result.name + "_codes", type);
    // The first node only makes way: its place comes before whatever the indices need.
    Node dequantise = std::move(*from);
    ValueUses::remove(*from);
    Node gather = std::move(node);
    gather.inputs[0] = dequantise.inputs[0];
    dequantise.inputs[0] = rows;
    dequantise.outputs[0] = gather.outputs[0];
    gather.outputs[0] = rows;
    node = std::move(gather);
    after_.emplace_back(&node - graph_.nodes.data(), std::move(dequantise));
  }

 public:
  void sweep() {
    for (size_t i = after_.size(); i-- > 0;)
      graph_.nodes.insert(graph_.nodes.begin() + after_[i].first + 1, std::move(after_[i].second));
    uses_.sweep();
  }

 private:
  Graph& graph_;
  ValueUses uses_;
  int64_t stay_from_;
  std::vector<std::pair<ptrdiff_t, Node>> after_;  // by where they go
};

}  // namespace

Node QuantisedMatrix::product(Graph& graph, const Node& from, ValueId a, ValueId bias) && {
  Node node{.op = "MatMul", .domain = "hologram", .name = from.name, .opset = from.opset};
  node.attributes.set("k", k);
  node.attributes.set("n", n);
  node.attributes.set("bits", bits);
  node.attributes.set("group", group);
  if (transposed) node.attributes.set("transposed", int64_t{1});
  const std::string name = from.name.empty() ? "weights" : from.name;
  node.inputs = {a, graph.add_constant(std::move(codes), name + "_codes"), bias, kNoValue,
                 graph.add_constant(std::move(scales), name + "_scales")};
  if (zeros) node.inputs.push_back(graph.add_constant(*std::move(zeros), name + "_zeros"));
  return node;
}

namespace {

// By DequantizeLinear, or by a Cast and what follows it.
bool is_dequantised_constant(const Graph& graph, const Node& node) {
  if ((node.op != "DequantizeLinear" && node.op != "Cast") || !node.domain.empty()) return false;
  const Tensor* x = constant_of(graph, node.inputs[0]);
  return x && x->dims.rank() >= 2 && (is_byte(x->dtype) || is_nibble(x->dtype)) &&
         is_f32(graph, node.outputs[0]);
}

}  // namespace

bool is_quantised_weight(const Graph& graph, const Node& node) {
  return is_dequantised_constant(graph, node) &&
         std::ranges::find(graph.outputs, node.outputs[0]) == graph.outputs.end();
}

Status use_quantised_weights(Graph& graph, int64_t stay_from) {
  for (Node& node : graph.nodes)
    for (Subgraph& sub : node.subgraphs)
      HOLOGRAM_CHECK(use_quantised_weights(*sub.graph, stay_from));
  User user(graph, stay_from);
  HOLOGRAM_CHECK(user.run());
  user.sweep();
  return {};
}

Result<bool> fold_dequantised(Graph& graph, int64_t stay_from) {
  bool folded = false;
  for (Node& node : graph.nodes) {
    for (Subgraph& sub : node.subgraphs) {
      HOLOGRAM_TRY(const bool inside, fold_dequantised(*sub.graph, stay_from));
      folded |= inside;
    }
    if (!is_dequantised_constant(graph, node) ||
        stays(*constant_of(graph, node.inputs[0]), stay_from))
      continue;
    std::vector<kernels::Value> inputs;
    bool constant = true;
    for (ValueId id : node.inputs) {
      const Tensor* t = constant_of(graph, id);
      constant &= t || id == kNoValue;
      inputs.emplace_back();
      if (!t) continue;
      HOLOGRAM_TRY(Tensor aligned, t->clone());
      inputs.back() = kernels::Value(std::move(aligned));
    }
    if (!constant) continue;
    const Tensor& x = inputs[0].tensor;
    if (static_cast<uint64_t>(x.count()) * sizeof(float) - x.bytes() > kLargestGrowth) continue;
    auto outputs = evaluate_node(graph, node, inputs);
    if (!outputs) return fail(std::move(outputs).error(), node.describe());
    graph.mark_constant(node.outputs[0], (*outputs)[0].tensor);
    ValueUses::remove(node);
    folded = true;
  }
  std::erase_if(graph.nodes, [](const Node& node) { return ValueUses::removed(node); });
  return folded;
}

}  // namespace hologram::graph
