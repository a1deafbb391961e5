#include "runtime/session/loaded_plan.h"

#include "isa/binary.h"

namespace hologram::runtime {
namespace {

using kernels::Attribute;
using kernels::Dims;
using kernels::Tensor;

std::string text(const flatbuffers::String* s) { return s ? s->str() : std::string(); }

template <typename T>
std::vector<T> list(const flatbuffers::Vector<T>* v) {
  return v ? std::vector<T>(v->begin(), v->end()) : std::vector<T>();
}
std::vector<std::string> texts(
    const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* v) {
  std::vector<std::string> result;
  if (v)
    for (const flatbuffers::String* s : *v) result.push_back(text(s));
  return result;
}

DType innermost(const archive::Type* type) {
  while (type->element()) type = type->element();
  return static_cast<DType>(type->dtype());
}

PortInfo port(const archive::Type* type, std::string name) {
  PortInfo info{std::move(name), static_cast<PortInfo::Kind>(type->kind()), innermost(type),
                std::nullopt};
  if (!type->has_shape()) return info;
  std::vector<Dim> dims;
  if (type->dims())
    for (const archive::Dim* dim : *type->dims()) {
      if (dim->symbol() && dim->symbol()->size() > 0)
        dims.emplace_back(dim->symbol()->str());
      else
        dims.emplace_back(dim->value());
    }
  info.shape = Shape(std::move(dims));
  return info;
}

class Loader {
 public:
  explicit Loader(LoadedModel& model) : model_(model) {}

  Status run() {
    const archive::Model& m = model_.archive.model();
    if (m.constants())
      for (const archive::Constant* c : *m.constants()) {
        const auto dims = list(c->dims());
        Tensor tensor{static_cast<DType>(c->dtype()), Dims(dims)};
        if (tensor.dtype == DType::string) {
          HOLOGRAM_TRY(tensor, Tensor::from_strings(tensor.dims, texts(c->strings())));
        } else if (c->tensor() < 0) {  // weights are put in place by Frame::use
          // Kernels never write to an input; the map is read-only.
          tensor.data = const_cast<std::byte*>(model_.archive.constants().data()) + c->offset();
        }
        model_.constants.push_back(std::move(tensor));
      }
    if (m.programs())
      for (const archive::Program* p : *m.programs()) {
        const auto bytes = p->code() ? std::span(p->code()->data(), p->code()->size())
                                     : std::span<const uint8_t>();
        HOLOGRAM_TRY(const isa::Program program, isa::decode(std::as_bytes(bytes)));
        HOLOGRAM_TRY(kernels::Pointwise pointwise, kernels::Pointwise::prepare(program));
        model_.programs.push_back(std::move(pointwise));
      }
    HOLOGRAM_TRY(model_.plan, load(*m.plan()));
    return {};
  }

 private:
  Result<std::unique_ptr<LoadedPlan>> load(const archive::Plan& from) {
    auto plan = std::make_unique<LoadedPlan>();
    plan->arena = from.arena();
    if (from.values())
      for (const archive::Value* v : *from.values()) {
        plan->values.push_back({v->storage(), v->offset(), v->size(), innermost(v->type())});
        plan->initial.emplace_back();
        if (v->storage() != archive::Storage::constant) continue;
        plan->initial.back() = kernels::Value(model_.constants[v->constant()]);
        const int32_t tensor = model_.archive.model().constants()->Get(v->constant())->tensor();
        if (tensor >= 0)
          plan->weights.push_back(
              {static_cast<uint32_t>(plan->values.size() - 1), static_cast<uint32_t>(tensor)});
      }
    plan->inputs = list(from.inputs());
    plan->outputs = list(from.outputs());
    const auto output_names = texts(from.output_names());
    for (uint32_t id : plan->inputs)
      plan->input_ports.push_back(
          port(from.values()->Get(id)->type(), text(from.values()->Get(id)->name())));
    for (size_t i = 0; i < plan->outputs.size(); ++i) {
      const archive::Value* v = from.values()->Get(plan->outputs[i]);
      plan->output_ports.push_back(
          port(v->type(), i < output_names.size() ? output_names[i] : text(v->name())));
    }
    if (from.steps())
      for (const archive::Step* s : *from.steps()) {
        HOLOGRAM_TRY(LoadedStep step, load(*s, *plan));
        plan->steps.push_back(std::move(step));
      }
    return plan;
  }

  Result<LoadedStep> load(const archive::Step& from, LoadedPlan& plan) {
    LoadedStep step;
    step.name = text(from.name());
    step.label = text(from.kernel());
    step.inputs = list(from.inputs());
    step.outputs = list(from.outputs());
    step.release = list(from.release());
    for (uint32_t id : step.outputs) {
      if (id == kNoValue) return fail(ErrorCode::corrupt, "the plan is wrong: an output left out");
      step.output_types.push_back(plan.values[id].dtype);
    }
    switch (from.kind()) {
      case archive::StepKind::program: {
        step.program = &model_.programs[from.program()];
        if (step.program->input_count() != step.inputs.size() ||
            step.program->output_count() != step.outputs.size())
          return fail(ErrorCode::corrupt, "the plan is wrong: a program with other operands");
        for (size_t i = 0; i < step.outputs.size(); ++i)
          if (step.program->output_type(i) != step.output_types[i])
            return fail(ErrorCode::corrupt, "the plan is wrong: a program with other types");
        break;
      }
      case archive::StepKind::kernel:
        step.kernel = kernels::find_kernel(step.label);
        if (!step.kernel)
          return fail(ErrorCode::unsupported,
                      "this runtime has no kernel '{}'; compile the model with the same version",
                      step.label);
        break;
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
    if (from.attributes())
      for (const archive::Attribute* a : *from.attributes()) {
        Attribute attribute{.name = text(a->name()),
                            .kind = static_cast<Attribute::Kind>(a->kind()),
                            .integer = a->integer(),
                            .number = a->number(),
                            .text = text(a->text()),
                            .integers = list(a->integers()),
                            .numbers = list(a->numbers()),
                            .texts = texts(a->texts())};
        if (attribute.kind == Attribute::Kind::tensor)
          attribute.tensor = model_.constants[a->constant()];
        step.attributes.put(std::move(attribute));
      }
    step.first_frame = plan.child_frames;
    if (from.subplans())
      for (const archive::Subplan* s : *from.subplans()) {
        LoadedSubplan sub{text(s->name()), nullptr, list(s->outer()), list(s->inner())};
        HOLOGRAM_TRY(sub.plan, load(*s->plan()));
        step.subplans.push_back(std::move(sub));
        ++plan.child_frames;
      }
    return step;
  }

  LoadedModel& model_;
};

}  // namespace

Result<std::unique_ptr<LoadedModel>> LoadedModel::load(archive::Archive archive) {
  auto model = std::make_unique<LoadedModel>();
  model->archive = std::move(archive);
  HOLOGRAM_CHECK(Loader(*model).run());
  return model;
}

}  // namespace hologram::runtime
