#include "cli/inspect/describe.h"

#include <set>
#include <utility>

#include "backends/cpu/kernels/attribute.h"
#include "isa/binary.h"
#include "isa/text.h"

namespace hologram::cli {
namespace {

using nlohmann::ordered_json;

std::string text(const flatbuffers::String* string) { return string ? string->str() : ""; }

const char* name_of(archive::SectionKind kind) {
  switch (kind) {
    case archive::SectionKind::plan:
      return "plan";
    case archive::SectionKind::constants:
      return "constants";
    case archive::SectionKind::kernels:
      return "kernels";
    case archive::SectionKind::code:
      return "native code";
    case archive::SectionKind::weights:
      return "weights";
    case archive::SectionKind::hashes:
      return "hashes";
  }
  return "other";
}

std::string type_text(const archive::Model& model, const archive::Type* type) {
  if (!type) return "unknown";
  if (type->kind() == 2) return "sequence of " + type_text(model, type->element());
  if (type->kind() == 3) return "optional " + type_text(model, type->element());
  std::string result(hologram::name_of(static_cast<DType>(type->dtype())));
  if (!type->has_shape()) return result + " [...]";
  result += " [";
  if (type->dims())
    for (const archive::Dim* dim : *type->dims()) {
      if (result.back() != '[') result += ", ";
      result += dim->text() < 0 ? std::to_string(dim->value())
                                : model.texts()->Get(static_cast<uint32_t>(dim->text()))->str();
    }
  return result + "]";
}

ordered_json attribute(const archive::Attribute& a) {
  using Kind = kernels::Attribute::Kind;
  constexpr size_t kShown = 64;
  const auto list = [](const auto* items, auto each) {
    ordered_json result = ordered_json::array();
    if (!items) return result;
    for (const auto& item : *items) {
      if (result.size() == kShown) {
        result.push_back(fmt::format("... {} in all", items->size()));
        break;
      }
      result.push_back(each(item));
    }
    return result;
  };
  const auto same = [](auto item) { return item; };
  switch (static_cast<Kind>(a.kind())) {
    case Kind::integer:
      return a.integer();
    case Kind::number:
      return a.number();
    case Kind::text:
      return text(a.text());
    case Kind::integers:
      return list(a.integers(), same);
    case Kind::numbers:
      return list(a.numbers(), same);
    case Kind::texts:
      return list(a.texts(), [](const flatbuffers::String* item) { return text(item); });
    case Kind::tensor:
      return fmt::format("constant {}", a.constant());
  }
  return nullptr;
}

ordered_json numbers(const flatbuffers::Vector<uint32_t>* ids) {
  ordered_json result = ordered_json::array();
  if (ids)
    for (const uint32_t id : *ids)
      result.push_back(id == 0xffffffff ? ordered_json() : ordered_json(id));
  return result;
}

ordered_json plan_of(const archive::Model& model, const archive::Plan& plan) {
  ordered_json result;
  result["name"] = text(plan.name());
  result["arena"] = plan.arena();
  if (plan.blocks() && plan.blocks()->size() > 0) result["blocks"] = plan.blocks()->size();
  ordered_json& values = result["values"] = ordered_json::array();
  if (plan.values())
    for (const archive::Value* value : *plan.values()) {
      ordered_json entry{{"name", text(value->name())},
                         {"type", type_text(model, model.types()->Get(value->type()))},
                         {"storage", archive::EnumNameStorage(value->storage())}};
      if (value->storage() == archive::Storage::constant) entry["constant"] = value->constant();
      if (value->storage() == archive::Storage::view) entry["source"] = value->source();
      if (value->storage() == archive::Storage::arena && value->block() >= 0) {
        entry["block"] = value->block();
      } else if (value->storage() == archive::Storage::arena) {
        entry["offset"] = value->offset();
        entry["size"] = value->size();
      }
      values.push_back(std::move(entry));
    }
  result["inputs"] = numbers(plan.inputs());
  result["outputs"] = numbers(plan.outputs());
  ordered_json& steps = result["steps"] = ordered_json::array();
  if (plan.steps())
    for (const archive::Step* step : *plan.steps()) {
      ordered_json entry{{"name", text(step->name())},
                         {"kernel", text(step->kernel())},
                         {"kind", archive::EnumNameStepKind(step->kind())}};
      if (step->program() >= 0) entry["program"] = step->program();
      entry["inputs"] = numbers(step->inputs());
      entry["outputs"] = numbers(step->outputs());
      if (step->attributes() && step->attributes()->size() > 0)
        for (const archive::Attribute* a : *step->attributes())
          entry["attributes"][text(a->name())] = attribute(*a);
      std::set<uint32_t> captures;
      if (step->subplans())
        for (const archive::Subplan* subplan : *step->subplans()) {
          if (subplan->outer()) captures.insert(subplan->outer()->begin(), subplan->outer()->end());
          if (subplan->plan())
            entry["subplans"].push_back(
                {{"name", text(subplan->name())}, {"plan", plan_of(model, *subplan->plan())}});
        }
      if (!captures.empty()) entry["captures"] = captures;
      steps.push_back(std::move(entry));
    }
  return result;
}

ordered_json ports(const ordered_json& plan, const char* side,
                   const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* names) {
  ordered_json result = ordered_json::array();
  flatbuffers::uoffset_t index = 0;
  for (const ordered_json& id : plan[side]) {
    const ordered_json& value = plan["values"][id.get<size_t>()];
    const std::string name =
        names && index < names->size() ? text(names->Get(index)) : value["name"].get<std::string>();
    result.push_back({{"name", name}, {"type", value["type"]}});
    ++index;
  }
  return result;
}

}  // namespace

ordered_json describe(const archive::Archive& archive, const std::string& file) {
  const archive::Model& model = archive.model();
  ordered_json document;
  document["file"] = file;
  document["version"] = archive::kVersion;
  document["producer"] = text(model.producer());
  ordered_json& sections = document["sections"] = ordered_json::array();
  for (const archive::Section& section : archive.sections())
    sections.push_back(
        {{"kind", name_of(section.kind)}, {"offset", section.offset}, {"size", section.size}});
  const ordered_json plan = plan_of(model, *model.plan());
  document["inputs"] = ports(plan, "inputs", nullptr);
  document["outputs"] = ports(plan, "outputs", model.plan()->output_names());
  ordered_json& constants = document["constants"] = ordered_json::array();
  if (model.constants())
    for (const archive::Constant* constant : *model.constants()) {
      std::vector<int64_t> dims;
      if (constant->dims()) dims.assign(constant->dims()->begin(), constant->dims()->end());
      constants.push_back(
          {{"type", fmt::format("{} [{}]", hologram::name_of(static_cast<DType>(constant->dtype())),
                                fmt::join(dims, ", "))},
           {"offset", constant->offset()},
           {"size", constant->size()}});
      if (constant->tensor() >= 0) constants.back()["fragments_of"] = constant->tensor();
    }
  ordered_json& programs = document["programs"] = ordered_json::array();
  if (model.programs())
    for (const archive::Program* program : *model.programs()) {
      const auto bytes =
          program->code()
              ? std::as_bytes(std::span(program->code()->data(), program->code()->size()))
              : std::span<const std::byte>();
      const auto decoded = isa::decode(bytes);
      programs.push_back({{"bytes", bytes.size()},
                          {"text", decoded ? isa::disassemble(*decoded) : std::string()}});
    }
  document["plan"] = plan;
  return document;
}

void add_times(ordered_json& document, std::span<const runtime::StepTime> times) {
  ordered_json& steps = document["plan"]["steps"];
  size_t step = 0;  // of the outermost plan; those of its subplans follow it
  double milliseconds = 0;
  for (size_t i = 0; i < times.size() && step < steps.size(); ++i) {
    milliseconds += times[i].milliseconds;
    if (i + 1 < times.size() && times[i + 1].depth > 0) continue;
    steps[step++]["milliseconds"] = std::exchange(milliseconds, 0.0);
  }
}

}  // namespace hologram::cli
