#include "compiler/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace hologram::compiler {
namespace {

void describe_plan(const archive::PlanT& plan, CompileReport& report,
                   std::map<std::string, size_t>& steps) {
  report.arena_bytes += plan.arena;
  for (const auto& value : plan.values)
    if (value->storage == archive::Storage::arena) report.value_bytes += value->size;
  for (const auto& step : plan.steps) {
    ++steps[step->kind == archive::StepKind::program ? "program" : step->kernel];
    for (const auto& sub : step->subplans) describe_plan(*sub->plan, report, steps);
  }
}

// Equal lines once, with how many they are, the first one's name and shape.
class Table {
 public:
  void add(const std::string& what, const std::string& shape, const std::string& name) {
    auto [found, fresh] = index_.try_emplace(what, lines_.size());
    if (fresh) lines_.push_back({what, shape, name, 0});
    ++lines_[found->second].count;
  }
  std::string to_text(size_t width) const {
    std::string text;
    for (const Line& line : lines_)
      text += fmt::format("  {:>5} x {:<{}} {}{}{}\n", line.count, line.what, width, line.shape,
                          line.shape.empty() ? "" : " ", line.name);
    return text;
  }

 private:
  struct Line {
    std::string what, shape, name;
    size_t count;
  };
  std::vector<Line> lines_;
  std::map<std::string, size_t> index_;
};

}  // namespace

std::string megabytes(uint64_t bytes) {
  return fmt::format("{:.2f} MB", static_cast<double>(bytes) / 1e6);
}

size_t count_nodes(const graph::Graph& graph) {
  size_t count = graph.nodes.size();
  for (const graph::Node& node : graph.nodes)
    for (const graph::Subgraph& sub : node.subgraphs)
      if (node.op != "Pointwise") count += count_nodes(*sub.graph);  // a fused node is one
  return count;
}

void CompileReport::describe_dense(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes) {
    for (const graph::Subgraph& sub : node.subgraphs) describe_dense(*sub.graph);
    if (node.domain != "hologram") continue;
    std::string operators = node.op;
    if (node.op == "Conv" || node.op == "MatMul") {
      if (node.input(2) != graph::kNoValue) operators += ", bias";
      if (node.input(3) != graph::kNoValue) operators += ", residual";
      if (const auto activation = node.attributes.text("activation"); !activation.empty())
        operators += ", " + std::string(activation);
      if (const int64_t bits = node.attributes.integer("bits"); bits != 0)
        operators = fmt::format("{} by weights of {} bits{}", node.op, bits,
                                operators.substr(node.op.size()));
      if (operators == node.op) continue;
    } else if (node.op == "ConvInteger" || node.op == "MatMulInteger") {
      const auto type = [&](graph::ValueId id) { return name_of(graph.value(id).type.dtype); };
      operators =
          fmt::format("{} {} x {} -> i32", node.op, type(node.inputs[0]), type(node.inputs[1]));
      if (node.input(5) != graph::kNoValue || node.input(7) != graph::kNoValue)
        operators += ", bias";
      if (node.input(6) != graph::kNoValue) operators += ", residual";
      if (const auto activation = node.attributes.text("activation"); !activation.empty())
        operators += ", " + std::string(activation);
      if (node.attributes.has("output_zero")) operators += ", QuantizeLinear";
    } else if (node.op == "Attention") {
      operators = "MatMul, scale, Softmax, MatMul";
    } else {
      continue;
    }
    fusion.fused.push_back(
        {node.name, std::move(operators), graph.value(node.outputs[0]).type.to_string()});
  }
}

void CompileReport::describe(const archive::ModelT& model) {
  std::map<std::string, size_t> steps;
  describe_plan(*model.plan, *this, steps);
  for (const auto& [name, count] : steps) kernels.push_back({name, count});
  std::ranges::stable_sort(kernels, std::greater(), &Kernel::steps);
  for (const auto& constant : model.constants) constant_bytes += constant->size;
  programs = model.programs.size();
}

std::string CompileReport::to_text() const {
  std::string text = fmt::format("{:<28} {:>9} {:>16}\n", "step", "ms", "nodes");
  for (const Pass& pass : passes)
    text += fmt::format("{:<28} {:>9.2f} {:>7} -> {:<5}\n", pass.name, pass.milliseconds,
                        pass.nodes_before, pass.nodes_after);
  text += fmt::format("\nfused: {} groups\n", fusion.fused.size());
  Table fused;
  for (const auto& group : fusion.fused) fused.add(group.operators, group.shape, group.name);
  text += fused.to_text(48);
  text += fmt::format("\nnot fused: {} operators\n", fusion.apart.size());
  Table apart;
  for (const auto& node : fusion.apart) apart.add(node.op + ": " + node.reason, "", node.name);
  text += apart.to_text(90);
  text +=
      fmt::format("\nmemory: {} planned for activations ({} without sharing), {} of constants\n",
                  megabytes(arena_bytes), megabytes(value_bytes), megabytes(constant_bytes));
  if (!precision_note.empty()) text += fmt::format("precision: {}\n", precision_note);
  if (!code_note.empty()) text += fmt::format("native code: {}\n", code_note);
  text += "\nkernels:\n";
  for (const Kernel& kernel : kernels)
    text +=
        fmt::format("  {:>5} x {}{}\n", kernel.steps, kernel.name,
                    kernel.name == "program" ? fmt::format(" ({} different ones)", programs) : "");
  return text;
}

}  // namespace hologram::compiler
