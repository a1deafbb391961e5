#include "compiler/lower.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "compiler/expressions.h"
#include "compiler/placement.h"
#include "graph/operator.h"
#include "graph/pointwise.h"
#include "isa/binary.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Tensor;
using graph::ValueId;
using graph::ValueType;

// Tensors, sequences of tensors, and optionals of either: what an archive has types for.
bool is_storable(const ValueType& type) {
  if (type.is_tensor()) return true;
  if (!type.element || !is_storable(*type.element)) return false;
  return type.element->is_tensor() || (type.kind == ValueType::Kind::optional &&
                                       type.element->kind == ValueType::Kind::sequence);
}

// What a convolution's kernel takes for granted where it is not said. Exporters write all of it,
// and every attribute of an archive is checked whenever it is opened.
bool is_default(std::string_view kernel, const graph::Attribute& a) {
  if (kernel != "hologram.Conv") return false;
  const auto all = [&](int64_t value) {
    return std::ranges::all_of(a.integers, [&](int64_t i) { return i == value; });
  };
  return (a.name == "auto_pad" && a.text == "NOTSET") || (a.name == "group" && a.integer == 1) ||
         ((a.name == "dilations" || a.name == "strides") && all(1)) || (a.name == "pads" && all(0));
}

// Leaves out the values that nothing names any more: what folding and fusion have made obsolete.
void drop_unused_values(archive::PlanT& plan, std::span<std::vector<uint32_t>*> named_outside) {
  std::vector<bool> used(plan.values.size());
  const auto for_each_list = [&](auto visit) {
    for (std::vector<uint32_t>* ids : named_outside) visit(*ids);
    visit(plan.inputs);
    visit(plan.outputs);
    for (auto& step : plan.steps) {
      visit(step->inputs);
      visit(step->outputs);
      visit(step->release);
      for (auto& sub : step->subplans) visit(sub->outer);
    }
  };
  for_each_list([&](const std::vector<uint32_t>& ids) {
    for (uint32_t id : ids)
      if (id != kNoValue) used[id] = true;
  });
  std::vector<uint32_t> number(plan.values.size());
  std::vector<std::unique_ptr<archive::ValueT>> kept;
  for (uint32_t id = 0; id < used.size(); ++id) {
    number[id] = static_cast<uint32_t>(kept.size());
    if (used[id]) kept.push_back(std::move(plan.values[id]));
  }
  plan.values = std::move(kept);
  for_each_list([&](std::vector<uint32_t>& ids) {
    for (uint32_t& id : ids)
      if (id != kNoValue) id = number[id];
  });
  for (auto& value : plan.values)  // a view's source is an input of the step that makes it
    if (value->source >= 0) value->source = static_cast<int32_t>(number[value->source]);
  for (auto& step : plan.steps)
    for (auto& sub : step->subplans) {
      std::vector<uint32_t>* inner = &sub->inner;
      drop_unused_values(*sub->plan, std::span(&inner, 1));
    }
}

class Lowerer {
 public:
  Lowered take() { return std::move(result_); }

  Result<std::unique_ptr<archive::PlanT>> plan(const Graph& graph) {
    auto plan = std::make_unique<archive::PlanT>();
    plan->name = graph.name;
    // Constants that passes have replaced stay behind.
    std::vector<bool> used(graph.value_count(), false);
    for (const Node& node : graph.nodes)
      for (ValueId id : node.inputs)
        if (id != kNoValue) used[id] = true;
    for (ValueId id : graph.outputs) used[id] = true;
    for (ValueId id = 0; id < graph.value_count(); ++id) {
      const graph::ValueInfo& info = graph.value(id);
      if (info.type.is_known() && !is_storable(info.type))
        return fail(ErrorCode::unsupported,
                    "'{}' is {}; supported: tensors, sequences of tensors, optionals of either",
                    info.name, info.type.to_string());
      auto value = std::make_unique<archive::ValueT>();
      value->name = info.name;
      types_of_[value.get()] = &info.type;
      if (info.constant && used[id]) {
        value->storage = archive::Storage::constant;
        value->constant = add_constant(*info.constant);
      }
      plan->values.push_back(std::move(value));
    }
    for (ValueId id : graph.inputs) plan->values[id]->storage = archive::Storage::input;
    for (const Graph::Capture& c : graph.captures)
      if (!graph.value(c.inner).constant)
        plan->values[c.inner]->storage = archive::Storage::capture;
    plan->inputs = graph.inputs;
    plan->outputs = graph.outputs;
    plan->output_names = graph.output_names;
    for (const Node& node : graph.nodes) {
      auto step = lower_node(graph, node);
      if (!step) return fail(std::move(step).error(), node.describe());
      plan->steps.push_back(*std::move(step));
    }
    place_values(graph, *plan, expressions_);
    return plan;
  }

  Result<void> root(const Graph& graph) {
    for (ValueId id : graph.inputs)
      if (const ValueType& type = graph.value(id).type; type.is_tensor() && type.shape)
        for (const Dim& dim : *type.shape) expressions_.input_dim(dim);
    HOLOGRAM_TRY(result_.model.plan, plan(graph));
    drop_unused_values(*result_.model.plan, {});
    add_types(*result_.model.plan);
    result_.model.producer = "hologram";
    return {};
  }

 private:
  // The types of the values that are left.
  void add_types(archive::PlanT& plan) {
    static const ValueType kUnknown = ValueType::tensor(DType::f32);
    for (auto& value : plan.values) {
      const ValueType& type = *types_of_.at(value.get());
      value->type = add_type(type.is_known() ? type : kUnknown);
    }
    for (auto& step : plan.steps)
      for (auto& sub : step->subplans) add_types(*sub->plan);
  }

  uint32_t add_type(const ValueType& type) {
    std::vector<int64_t> key;
    auto lowered = lower_type(type, key);
    auto [found, fresh] =
        types_.try_emplace(std::move(key), static_cast<uint32_t>(result_.model.types.size()));
    if (fresh) result_.model.types.push_back(std::move(lowered));
    return found->second;
  }

  // All that a type is goes into `key` too.
  std::unique_ptr<archive::TypeT> lower_type(const ValueType& type, std::vector<int64_t>& key) {
    auto result = std::make_unique<archive::TypeT>();
    result->kind = static_cast<uint8_t>(type.kind);
    result->dtype = static_cast<uint8_t>(type.dtype);
    result->has_shape = type.shape.has_value();
    key.insert(key.end(), {result->kind, result->dtype, result->has_shape});
    if (type.shape)
      for (const Dim& dim : *type.shape) {
        result->dims.push_back(dim.is_symbol()
                                   ? archive::Dim(0, add_text(dim.symbol()), expressions_.dim(dim))
                                   : archive::Dim(dim.value(), -1, -1));
        const archive::Dim& last = result->dims.back();
        key.insert(key.end(), {last.value(), last.text(), last.expression()});
      }
    if (type.element) result->element = lower_type(*type.element, key);
    return result;
  }

  int32_t add_text(const std::string& text) {
    auto [found, fresh] =
        texts_.try_emplace(text, static_cast<int32_t>(result_.model.texts.size()));
    if (fresh) result_.model.texts.push_back(text);
    return found->second;
  }

  int32_t add_constant(const Tensor& tensor) {
    // The same view is the same constant; equal bytes elsewhere are merged by the writer.
    const auto key = std::tuple(tensor.data, tensor.dtype,
                                std::vector<int64_t>(tensor.dims.begin(), tensor.dims.end()));
    auto [found, fresh] = seen_.try_emplace(key, static_cast<int32_t>(result_.constants.size()));
    if (!fresh) return found->second;
    auto entry = std::make_unique<archive::ConstantT>();
    entry->dtype = static_cast<uint8_t>(tensor.dtype);
    entry->dims.assign(tensor.dims.begin(), tensor.dims.end());
    if (tensor.dtype == DType::string)
      entry->strings.assign(tensor.strings().begin(), tensor.strings().end());
    result_.model.constants.push_back(std::move(entry));
    result_.constants.push_back(tensor);
    return found->second;
  }

  Result<std::unique_ptr<archive::StepT>> lower_node(const Graph& graph, const Node& node) {
    auto step = std::make_unique<archive::StepT>();
    HOLOGRAM_TRY(const graph::Operator* entry, graph::operator_of(node));
    HOLOGRAM_TRY(const graph::Way way, graph::way_of(graph, node, *entry));
    step->name = node.name;
    step->outputs = node.outputs;
    if (way == graph::Way::pointwise) {
      step->inputs = graph::pointwise_inputs(graph, node);
      step->kind = archive::StepKind::program;
      step->kernel = graph::pointwise_label(node);
      HOLOGRAM_TRY(isa::Program program, graph::pointwise_program(graph, std::span(&node, 1),
                                                                  step->inputs, step->outputs));
      step->program = add_program(program);
      for (uint32_t uniform : graph::native_variants(graph, step->inputs, step->outputs[0]))
        result_.variants[step->program].insert(uniform);
      return step;
    }
    if (way == graph::Way::composition)
      return fail(ErrorCode::internal, "a composition that was not expanded");
    step->kind =
        way == graph::Way::control_flow ? archive::StepKind::control : archive::StepKind::kernel;
    step->kernel = way == graph::Way::control_flow ? node.op : entry->kernel;
    step->inputs = node.inputs;
    for (const graph::Attribute& a : node.attributes) {
      if (is_default(step->kernel, a)) continue;
      auto attribute = std::make_unique<archive::AttributeT>();
      attribute->name = a.name;
      attribute->kind = static_cast<uint8_t>(a.kind);
      attribute->integer = a.integer;
      attribute->number = a.number;
      attribute->text = a.text;
      attribute->integers = a.integers;
      attribute->numbers = a.numbers;
      attribute->texts = a.texts;
      if (a.kind == graph::Attribute::Kind::tensor) attribute->constant = add_constant(a.tensor);
      step->attributes.push_back(std::move(attribute));
    }
    for (const graph::Subgraph& s : node.subgraphs) {
      auto sub = std::make_unique<archive::SubplanT>();
      sub->name = s.name;
      HOLOGRAM_TRY(sub->plan, plan(*s.graph));
      for (const Graph::Capture& c : s.graph->captures) {
        if (s.graph->value(c.inner).constant) continue;
        sub->outer.push_back(c.outer);
        sub->inner.push_back(c.inner);
      }
      step->subplans.push_back(std::move(sub));
    }
    return step;
  }

  int32_t add_program(const isa::Program& program) {
    const std::vector<std::byte> bytes = isa::encode(program);
    auto [found, fresh] =
        programs_.try_emplace(bytes, static_cast<int32_t>(result_.model.programs.size()));
    if (!fresh) return found->second;
    auto entry = std::make_unique<archive::ProgramT>();
    for (std::byte b : bytes) entry->code.push_back(static_cast<uint8_t>(b));
    result_.model.programs.push_back(std::move(entry));
    result_.variants.emplace_back();
    return found->second;
  }

  Lowered result_;
  Expressions expressions_{result_.model};
  std::map<std::tuple<std::byte*, DType, std::vector<int64_t>>, int32_t> seen_;
  std::map<std::vector<std::byte>, int32_t> programs_;
  std::unordered_map<const archive::ValueT*, const ValueType*> types_of_;  // the graph's
  std::map<std::vector<int64_t>, uint32_t> types_;
  std::map<std::string, int32_t> texts_;
};

}  // namespace

std::vector<std::span<const std::byte>> Lowered::constant_bytes() const {
  std::vector<std::span<const std::byte>> result;
  for (const Tensor& t : constants)
    result.push_back(t.dtype == DType::string ? std::span<const std::byte>()
                                              : std::span<const std::byte>(t.data, t.bytes()));
  return result;
}

Result<Lowered> lower(const Graph& graph) {
  Lowerer lowerer;
  HOLOGRAM_CHECK(lowerer.root(graph));
  return lowerer.take();
}

}  // namespace hologram::compiler
