// Every operator with too few and too many inputs and outputs: refused by an error of the user's,
// or run; never an internal error.
#include <set>

#include "compiler/test_session.h"
#include "graph/operator.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::Operator;
using graph::ValueId;
using graph::ValueType;
using kernels::Tensor;
using kernels::Value;

DType type_of(const Operator& entry, std::string_view name) {
  if (const auto fixed = dtype_from_name(name)) return *fixed;
  const auto constraint = entry.constraints.find(name);
  if (constraint == entry.constraints.end() || constraint->second.has(DType::f32))
    return DType::f32;
  for (unsigned code = 0; code < 64; ++code)
    if (const auto dtype = dtype_from_code(static_cast<uint8_t>(code));
        dtype && constraint->second.has(*dtype))
      return *dtype;
  return DType::f32;
}

ValueType value_type(const Operator& entry, const std::vector<Operator::Formal>& formals,
                     size_t index) {
  const std::vector<Dim> dims{Dim(2), Dim(3)};
  if (formals.empty()) return ValueType::tensor(DType::f32, Shape(dims));
  std::string_view name = formals[std::min(index, formals.size() - 1)].type;
  const bool sequence = name.starts_with("seq("), optional = name.starts_with("opt(");
  if (sequence || optional) name = name.substr(4, name.size() - 5);
  const ValueType tensor = ValueType::tensor(type_of(entry, name), Shape(dims));
  return sequence ? ValueType::sequence(tensor) : optional ? ValueType::optional(tensor) : tensor;
}

Value value_of(const runtime::PortInfo& port) {
  Tensor tensor = *Tensor::allocate(port.dtype, {2, 3});
  if (port.dtype != DType::string) std::memset(tensor.data, 0, tensor.bytes());
  if (port.kind == runtime::PortInfo::Kind::sequence) return Value(std::vector{Value(tensor)});
  return Value(tensor);
}

// Compiles and runs one node.
Status attempt(const Operator& entry, size_t inputs, size_t outputs) {
  Graph g;
  Node node{.op = entry.name, .domain = entry.domain, .name = "node", .opset = 21};
  for (size_t i = 0; i < inputs; ++i)
    node.inputs.push_back(g.add_input("x" + std::to_string(i), value_type(entry, entry.inputs, i)));
  for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(g.add_value("y" + std::to_string(i)));
  g.outputs = node.outputs;
  for (const ValueId id : g.outputs) g.output_names.push_back(g.value(id).name);
  g.nodes.push_back(std::move(node));
  HOLOGRAM_TRY(const auto bytes, compile(std::move(g)));
  HOLOGRAM_TRY(const runtime::Session session, open_bytes(bytes));
  std::vector<Value> values;
  for (const auto& port : session.inputs()) values.push_back(value_of(port));
  HOLOGRAM_CHECK(session.run(values));
  return {};
}

TEST(Arity, NoNumberOfOperandsIsAnInternalError) {
  size_t attempts = 0, refused = 0;
  for (const Operator* entry : graph::operators().all()) {
    // Bodies are part of those; tests/error draws them.
    if (entry->control_flow || entry->pointwise_body || entry->domain == "hologram") continue;
    const std::set<size_t> inputs{0, entry->inputs.size() / 2, entry->inputs.size(),
                                  entry->inputs.size() + 2, entry->inputs.size() + 4};
    const std::set<size_t> outputs{1, entry->outputs.size(), entry->outputs.size() + 2};
    for (const size_t in : inputs)
      for (const size_t out : outputs) {
        ++attempts;
        const Status status = attempt(*entry, in, out);
        refused += !status;
        if (!status) {
          EXPECT_NE(status.error().code(), ErrorCode::internal)
              << entry->domain << "." << entry->name << " of " << in << " inputs and " << out
              << " outputs: " << status.error().to_string();
        }
      }
  }
  EXPECT_GT(attempts, 2000u);
  EXPECT_GT(refused, attempts / 2);
}

}  // namespace
}  // namespace hologram::compiler
