#include "graph/pointwise.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "backends/cpu/kernels/pointwise.h"
#include "graph/dim.h"
#include "graph/operator.h"

namespace hologram::graph {
namespace {

bool is_number(const ValueInfo& info) { return info.constant && info.constant->count() == 1; }

// Writes the instructions of nodes; registers are known by the ids of the graph they are in.
class Writer {
 public:
  using Registers = std::map<ValueId, isa::Register>;

  Writer(isa::Builder& builder, const Graph& graph, Registers& registers)
      : b_(builder), graph_(graph), registers_(registers) {}

  Result<isa::Register> find(ValueId id) {
    if (id == kNoValue) return isa::Register{};
    if (auto found = registers_.find(id); found != registers_.end()) return found->second;
    const ValueInfo& info = graph_.value(id);
    if (!is_number(info)) return fail(ErrorCode::internal, "'{}' is not at hand", info.name);
    uint64_t bits = 0;
    std::memcpy(&bits, info.constant->data, size_of(info.constant->dtype));
    return registers_[id] = b_.bits(info.constant->dtype, bits);
  }

  Status write(const Node& node) {
    if (const Graph* body = node.subgraph("body")) return write_body(node, *body);
    HOLOGRAM_TRY(const Operator* entry, operator_of(node));
    if (!entry->pointwise) return fail(ErrorCode::internal, "{} is not pointwise", node.op);
    std::vector<isa::Register> operands;
    for (ValueId id : node.inputs) {
      HOLOGRAM_TRY(const isa::Register operand, find(id));
      operands.push_back(operand);
    }
    const DType result = graph_.value(node.outputs[0]).type.dtype;
    PointwiseContext context(b_, operands, result, node.attributes);
    registers_[node.outputs[0]] = entry->pointwise(context);
    return {};
  }

 private:
  Status write_body(const Node& node, const Graph& body) {
    Registers inner;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      HOLOGRAM_TRY(inner[body.inputs[i]], find(node.inputs[i]));
    }
    Writer writer(b_, body, inner);
    for (const Node& member : body.nodes) HOLOGRAM_CHECK(writer.write(member));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      HOLOGRAM_TRY(registers_[node.outputs[i]], writer.find(body.outputs[i]));
    }
    return {};
  }

  isa::Builder& b_;
  const Graph& graph_;
  Registers& registers_;
};

}  // namespace

std::vector<ValueId> pointwise_inputs(const Graph& graph, const Node& node) {
  std::vector<ValueId> all, kept;
  for (ValueId id : node.inputs)
    if (id != kNoValue && std::ranges::find(all, id) == all.end()) all.push_back(id);
  // The operands give the result its shape; a number left out must not be what gives it its rank.
  std::optional<size_t> rank;
  for (ValueId id : all)
    if (!is_number(graph.value(id))) {
      const auto& shape = graph.value(id).type.shape;
      rank = std::max(rank.value_or(0), shape ? shape->rank() : 0);
    }
  for (ValueId id : all)
    if (!rank || !is_number(graph.value(id)) || graph.value(id).constant->dims.rank() > *rank)
      kept.push_back(id);
  return kept;
}

Result<isa::Program> pointwise_program(const Graph& graph, std::span<const Node> nodes,
                                       std::span<const ValueId> inputs,
                                       std::span<const ValueId> outputs) {
  isa::Builder b("pointwise");
  std::vector<isa::Builder::Array> arrays, results;
  for (size_t i = 0; i < inputs.size(); ++i)
    arrays.push_back(
        b.array("in" + std::to_string(i), graph.value(inputs[i]).type.dtype, isa::Access::read));
  for (size_t i = 0; i < outputs.size(); ++i)
    results.push_back(
        b.array("out" + std::to_string(i), graph.value(outputs[i]).type.dtype, isa::Access::write));
  const isa::Register index = b.id(isa::Opcode::global_id, 0, DType::u64);
  Writer::Registers registers;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!registers.contains(inputs[i])) registers[inputs[i]] = b.load(arrays[i], index);
  Writer writer(b, graph, registers);
  for (const Node& node : nodes) HOLOGRAM_CHECK(writer.write(node));
  for (size_t i = 0; i < outputs.size(); ++i) {
    HOLOGRAM_TRY(const isa::Register result, writer.find(outputs[i]));
    b.store(results[i], index, result);
  }
  return b.finish();
}

std::vector<uint32_t> native_variants(const Graph& graph, std::span<const ValueId> inputs,
                                      ValueId output) {
  const auto& out = graph.value(output).type.shape;
  if (!out || inputs.size() > kernels::Pointwise::kMaxInputs) return {0};
  auto is_one = [](const Dim& dim) { return !dim.is_symbol() && dim.value() == 1; };
  size_t behind = 1;  // the last axis that is not 1, counted from the end
  while (behind <= out->rank() && is_one((*out)[out->rank() - behind])) ++behind;
  if (behind > out->rank()) return {0};
  const Dim& last = (*out)[out->rank() - behind];
  uint32_t uniform = 0;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const auto& in = graph.value(inputs[k]).type.shape;
    if (!in) return {0};
    if (in->rank() < behind || is_one((*in)[in->rank() - behind]))
      uniform |= uint32_t{1} << k;
    else if (!equal_dims((*in)[in->rank() - behind], last))
      return {0};
  }
  if (uniform == 0) return {0};
  const bool certain = !last.is_symbol() && last.value() >= kernels::Pointwise::kShortRun;
  return certain ? std::vector{uniform} : std::vector{uniform, 0u};
}

isa::Program with_uniform_inputs(const isa::Program& program, uint32_t uniform) {
  isa::Program result = program;
  if (uniform == 0) return result;
  const isa::Register zero{static_cast<uint32_t>(result.registers.size())};
  result.registers.push_back(DType::u64);
  for (isa::Instruction& in : result.body)
    if (in.op == isa::Opcode::load && (uniform >> in.symbol & 1) != 0) in.a = zero;
  isa::Instruction first{.op = isa::Opcode::imm, .type = DType::u64, .dst = zero};
  result.body.insert(result.body.begin(), first);
  return result;
}

std::string pointwise_label(const Node& node) {
  const Graph* body = node.subgraph("body");
  if (!body) return node.op;
  constexpr size_t kNamed = 4;
  std::string label;
  for (size_t i = 0; i < std::min(kNamed, body->nodes.size()); ++i)
    label += (i ? "+" : "") + body->nodes[i].op;
  const size_t rest = body->nodes.size() - std::min(kNamed, body->nodes.size());
  return rest == 0 ? label : label + "+" + std::to_string(rest);
}

}  // namespace hologram::graph
