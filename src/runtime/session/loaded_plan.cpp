#include "runtime/session/loaded_plan.h"

#include <algorithm>

#include "backends/cpu/kernels/view.h"
#include "isa/binary.h"
#include "runtime/session/flat.h"

namespace hologram::runtime {
namespace {

PortInfo port(const archive::Model& model, const archive::Value& value, std::string_view name) {
  const archive::Type& type = *model.types()->Get(value.type());
  PortInfo info{std::string(name), static_cast<PortInfo::Kind>(type.kind()),
                static_type(type).dtype, std::nullopt};
  if (!type.has_shape()) return info;
  std::vector<Dim> dims;
  dims.reserve(type.dims() ? type.dims()->size() : 0);
  if (type.dims())
    for (const archive::Dim* dim : *type.dims()) {
      if (dim->text() >= 0)
        dims.emplace_back(model.texts()->Get(static_cast<uint32_t>(dim->text()))->str());
      else
        dims.emplace_back(dim->value());
    }
  info.shape = Shape(std::move(dims));
  return info;
}

PortDims port_dims(const archive::Model& model, const archive::Value& value) {
  const archive::Type& type = *model.types()->Get(value.type());
  PortDims dims;
  if (type.kind() == 1 && type.has_shape() && type.dims()) {
    dims.reserve(type.dims()->size());
    for (const archive::Dim* dim : *type.dims())
      dims.push_back(dim->text() < 0 ? PortDim{dim->value(), -1} : PortDim{-1, dim->expression()});
  }
  return dims;
}

[[gnu::cold, gnu::noinline]] Status bad(const char* what) {
  return fail(ErrorCode::corrupt, "the plan is wrong: {}", what);
}

class Loader {
 public:
  explicit Loader(LoadedModel& model) : model_(model) {}

  Status run() {
    const archive::Model& m = model_.archive.model();
    if (m.types()) {
      types_.reserve(m.types()->size());
      for (const archive::Type* type : *m.types()) types_.push_back(static_type(*type));
    }
    if (m.programs()) {
      model_.programs.reserve(m.programs()->size());
      isa::Program program;  // its memory is used again
      program.registers.reserve(64);
      program.body.reserve(64);
      for (const archive::Program* p : *m.programs()) {
        HOLOGRAM_CHECK(isa::decode(std::as_bytes(items(p->code())), program));
        HOLOGRAM_TRY(kernels::Pointwise pointwise, kernels::Pointwise::prepare(program));
        model_.programs.push_back(std::move(pointwise));
      }
    }
    model_.symbols = m.symbols() ? m.symbols()->size() : 0;
    if (m.expressions())
      model_.expressions = {reinterpret_cast<const archive::Expression*>(m.expressions()->Data()),
                            m.expressions()->size()};
    HOLOGRAM_TRY(model_.plan, load(*m.plan()));
    return check_ports(m);
  }

 private:
  Result<std::unique_ptr<LoadedPlan>> load(const archive::Plan& from) {
    auto plan = std::make_unique<LoadedPlan>();
    plan->from = &from;
    const size_t count = from.values() ? from.values()->size() : 0;
    plan->values.reserve(count);
    const auto* values = from.values();
    const auto* constants = model_.archive.model().constants();
    for (uint32_t id = 0; id < count; ++id) {
      const archive::Value* v = values->Get(id);
      plan->values.push_back({v->storage(), types_[v->type()], v->source()});
      if (v->storage() != archive::Storage::constant) continue;
      const int32_t tensor = constants->Get(static_cast<uint32_t>(v->constant()))->tensor();
      if (tensor >= 0) plan->weights.push_back({id, static_cast<uint32_t>(tensor)});
    }
    load_memory(from, *plan);
    plan->inputs = items(from.inputs());
    plan->outputs = items(from.outputs());
    if (!from.steps()) return plan;
    size_t outputs = 0;
    for (const archive::Step* s : *from.steps()) outputs += items(s->outputs()).size();
    plan->output_types.reserve(outputs);  // steps keep spans of it
    plan->steps.reserve(from.steps()->size());
    for (const archive::Step* s : *from.steps())
      HOLOGRAM_CHECK(load(*s, *plan, plan->steps.emplace_back()));
    HOLOGRAM_CHECK(find_output_memory(*plan));
    return plan;
  }

  // Where planned values lie, or what it takes to lay them out once shapes are known.
  void load_memory(const archive::Plan& from, LoadedPlan& plan) {
    const bool symbolic = from.blocks() && from.blocks()->size() > 0;
    if (!symbolic) plan.fixed.places.resize(plan.values.size());
    plan.fixed.arena = from.arena();
    if (symbolic)
      plan.planned.reserve(static_cast<size_t>(
          std::ranges::count(plan.values, archive::Storage::arena, &LoadedValue::storage)));
    for (uint32_t id = 0; id < plan.values.size(); ++id) {
      if (plan.values[id].storage != archive::Storage::arena) continue;
      const archive::Value* v = from.values()->Get(id);
      if (symbolic)
        plan.planned.push_back({id, static_cast<uint32_t>(v->block()), v->elements(),
                                plan.values[id].type.dtype, v->size()});
      else
        plan.fixed.places[id] = {v->offset(), v->size()};
    }
    if (!symbolic) return;
    plan.blocks.reserve(from.blocks()->size());
    for (const archive::Block* block : *from.blocks())
      plan.blocks.push_back(items(block->beside()));
    plan.layout = static_cast<int32_t>(model_.symbolic_plans.size());
    model_.symbolic_plans.push_back(&plan);
  }

  // The value whose memory is an output's: what the output, if a view, looks at in the end.
  static Status find_output_memory(LoadedPlan& plan) {
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      uint32_t id = plan.outputs[i];
      for (size_t hops = 0; plan.values[id].storage == archive::Storage::view; ++hops) {
        if (hops == plan.values.size()) return bad("a view of itself");
        id = static_cast<uint32_t>(plan.values[id].source);
      }
      LoadedValue& value = plan.values[id];
      const bool made =
          value.storage == archive::Storage::arena || value.storage == archive::Storage::pool;
      if (made && value.output < 0) value.output = static_cast<int32_t>(i);
    }
    return {};
  }

  // The dimensions of inputs are numbers and symbols, and each symbol is one of them.
  Status check_ports(const archive::Model& m) {
    std::vector<bool> bound(model_.symbols);
    for (uint32_t id : model_.plan->inputs) {
      const archive::Type& type = *m.types()->Get(m.plan()->values()->Get(id)->type());
      if (type.kind() != 1 || !type.has_shape() || !type.dims()) continue;
      for (const archive::Dim* dim : *type.dims()) {
        if (dim->text() < 0 || dim->expression() < 0) continue;
        const archive::Expression& e = model_.expressions[static_cast<size_t>(dim->expression())];
        if (e.operation() != archive::Operation::symbol) return bad("an input that is computed");
        bound[e.a()] = true;
      }
    }
    if (std::ranges::find(bound, false) != bound.end()) return bad("a symbol that no input binds");
    return {};
  }

  Status load(const archive::Step& from, LoadedPlan& plan, LoadedStep& step) {
    step.name = text(from.name());
    step.label = text(from.kernel());
    step.inputs = items(from.inputs());
    step.outputs = items(from.outputs());
    step.release = items(from.release());
    const size_t first_type = plan.output_types.size();
    for (uint32_t id : step.outputs) {
      if (id == kNoValue) return fail(ErrorCode::corrupt, "the plan is wrong: an output left out");
      const LoadedValue& value = plan.values[id];
      const auto is_view = [&] {
        return from.kind() == archive::StepKind::kernel && kernels::is_view_kernel(step.label) &&
               step.inputs.size() > 0 && step.inputs[0] == static_cast<uint32_t>(value.source);
      };
      if (value.storage == archive::Storage::view ? !is_view()
                                                  : value.storage > archive::Storage::arena)
        return fail(ErrorCode::corrupt,
                    "the plan is wrong: a step that writes what is not its own");
      plan.output_types.push_back(value.type.dtype);
    }
    step.output_types = std::span(plan.output_types).subspan(first_type);
    switch (from.kind()) {
      case archive::StepKind::program:
        step.program = &model_.programs[from.program()];
        break;
      case archive::StepKind::kernel:
        break;  // found before the first run; that it is there, its signature tells
      case archive::StepKind::control:
        step.control = step.label == "If"            ? Control::if_
                       : step.label == "Loop"        ? Control::loop
                       : step.label == "Scan"        ? Control::scan
                       : step.label == "SequenceMap" ? Control::sequence_map
                                                     : Control::none;
        if (step.control == Control::none)
          return fail(ErrorCode::unsupported, "this runtime has no control operator '{}'",
                      step.label);
        break;
    }
    step.from = &from;
    step.first_frame = plan.child_frames;
    if (from.subplans()) {
      step.subplans.reserve(from.subplans()->size());
      for (const archive::Subplan* s : *from.subplans()) {
        step.subplans.push_back({text(s->name()), nullptr, items(s->outer()), items(s->inner())});
        HOLOGRAM_TRY(step.subplans.back().plan, load(*s->plan()));
        ++plan.child_frames;
      }
    }
    return in_context(model_.check_step(plan, step),
                      [&] { return fmt::format("step '{}' ({})", step.name, step.label); });
  }

  LoadedModel& model_;
  std::vector<StaticType> types_;  // the model's
};

}  // namespace

void LoadedPlan::load_ports(const archive::Model& model) {
  const auto* names = from->output_names();
  input_ports.reserve(inputs.size());
  for (uint32_t id : inputs) {
    const archive::Value* v = from->values()->Get(id);
    input_ports.push_back(port(model, *v, text(v->name())));
  }
  output_ports.reserve(outputs.size());
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    const archive::Value* v = from->values()->Get(outputs[i]);
    output_ports.push_back(
        port(model, *v, text(names && i < names->size() ? names->Get(i) : v->name())));
  }
}

void LoadedModel::load_ports() {
  std::call_once(ports_once_, [&] {
    const archive::Model& m = archive.model();
    plan->load_ports(m);
    const auto dims_of = [&](Ids ids) {
      std::vector<PortDims> dims;
      for (uint32_t id : ids) dims.push_back(port_dims(m, *m.plan()->values()->Get(id)));
      return dims;
    };
    input_dims = dims_of(plan->inputs);
    output_dims = dims_of(plan->outputs);
  });
}

Result<std::unique_ptr<LoadedModel>> LoadedModel::load(archive::Archive archive) {
  auto model = std::make_unique<LoadedModel>();
  model->archive = std::move(archive);
  HOLOGRAM_CHECK(Loader(*model).run());
  return model;
}

}  // namespace hologram::runtime
