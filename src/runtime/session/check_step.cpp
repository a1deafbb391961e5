// What a step takes and makes is what its kernel, program or body takes and makes. Checked once,
// while opening: by induction over the steps every value is of its declared type from then on.
#include <algorithm>
#include <array>

#include "runtime/session/flat.h"
#include "runtime/session/loaded_plan.h"

namespace hologram::runtime {
namespace {

[[gnu::cold, gnu::noinline]] Status bad(const char* what) {
  return fail(ErrorCode::corrupt, "the plan is wrong: {}", what);
}

using Types = std::span<const StaticType>;

// The types of values, in order. Most steps have a few: those take no allocation.
class TypeList {
 public:
  TypeList(const LoadedPlan& plan, Ids ids) : count_(ids.size()) {
    if (count_ > few_.size()) many_.resize(count_);
    StaticType* types = count_ > few_.size() ? many_.data() : few_.data();
    for (uint32_t id : ids) *types++ = id == kNoValue ? StaticType() : plan.values[id].type;
  }
  operator Types() const { return {count_ > few_.size() ? many_.data() : few_.data(), count_}; }

 private:
  size_t count_;
  std::array<StaticType, 8> few_;
  std::vector<StaticType> many_;
};

bool all_tensors(Types types) {
  for (StaticType type : types)
    if (!type.is_tensor()) return false;
  return true;
}

// What is of type `from` may be used as `to`: the same, or an optional of it.
bool fits(StaticType from, StaticType to) { return from == to || from == to.without_optional(); }
bool all_fit(Types from, Types to) { return std::ranges::equal(from, to, fits); }

Status check_program(const kernels::Pointwise& program, Types inputs, Types outputs) {
  if (program.input_count() != inputs.size() || program.output_count() != outputs.size())
    return bad("a program with other operands");
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].is_tensor_of(program.input_type(i))) return bad("a program with other types");
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i].is_tensor_of(program.output_type(i))) return bad("a program with other types");
  return {};
}

Status check_if(const LoadedStep& step, Types inputs, Types outputs) {
  if (inputs.size() != 1 || !inputs[0].is_tensor_of(DType::boolean))
    return bad("a condition that is no bool");
  for (const char* name : {"then_branch", "else_branch"}) {
    const LoadedSubplan* branch = step.subplan(name);
    if (!branch || !branch->plan->inputs.empty() || branch->plan->outputs.size() < outputs.size())
      return bad("a branch of other operands");
    if (!all_fit(TypeList(*branch->plan, branch->plan->outputs.first(outputs.size())), outputs))
      return bad("a branch of other types");
  }
  return {};
}

// The types of a body's inputs and outputs, or nothing where there is not one body.
struct Body {
  std::vector<StaticType> inputs, outputs;
};
Result<Body> body_of(const LoadedStep& step) {
  if (step.subplans.size() != 1) return fail(ErrorCode::corrupt, "the plan is wrong: not one body");
  const LoadedPlan& plan = *step.subplans[0].plan;
  const auto all = [](Types types) { return std::vector(types.begin(), types.end()); };
  return Body{all(TypeList(plan, plan.inputs)), all(TypeList(plan, plan.outputs))};
}

Status check_loop(const LoadedStep& step, Types inputs, Types outputs) {
  HOLOGRAM_TRY(const Body body, body_of(step));
  const auto is_absent_or = [&](size_t input, DType type) {
    return inputs.size() <= input || inputs[input].form == StaticType::kLeftOut ||
           inputs[input].is_tensor_of(type);
  };
  if (!is_absent_or(0, DType::i64) || !is_absent_or(1, DType::boolean))
    return bad("a trip count or condition of another type");
  if (body.inputs.size() < 2 || !body.inputs[0].is_tensor_of(DType::i64) ||
      !body.inputs[1].is_tensor_of(DType::boolean) || body.outputs.empty() ||
      !body.outputs[0].is_tensor_of(DType::boolean))
    return bad("a loop body without counter and condition");
  const size_t carried = body.inputs.size() - 2;
  if (inputs.size() != 2 + carried && !(carried == 0 && inputs.size() < 2))
    return bad("a loop of other operands than its body");
  if (body.outputs.size() < 1 + carried || outputs.size() > body.outputs.size() - 1)
    return bad("a loop of other results than its body");
  const Types state = Types(body.inputs).subspan(2), made = Types(body.outputs).subspan(1);
  if (carried > 0 && !all_fit(inputs.subspan(2), state)) return bad("a loop of other types");
  const size_t kept = std::min(carried, outputs.size());
  if (!all_fit(made.first(carried), state) || !all_fit(state.first(kept), outputs.first(kept)) ||
      !all_fit(made.first(outputs.size()), outputs) || !all_tensors(made.subspan(carried)) ||
      !all_tensors(outputs.subspan(kept)))
    return bad("a loop body of other types");
  return {};
}

Status check_scan(const LoadedStep& step, Types inputs, Types outputs) {
  HOLOGRAM_TRY(const Body body, body_of(step));
  int64_t scanned = 0;
  bool batched = false;
  if (step.from->attributes())
    for (const archive::Attribute* attribute : *step.from->attributes()) {
      if (text(attribute->name()) == "num_scan_inputs") scanned = attribute->integer();
      if (text(attribute->name()) == "batched") batched = attribute->integer() != 0;
    }
  if (batched && (inputs.empty() ||
                  (inputs[0].form != StaticType::kLeftOut && !inputs[0].is_tensor_of(DType::i64))))
    return bad("sequence lengths of another type");
  const Types given = inputs.subspan(batched ? 1 : 0);
  if (scanned < 1 || static_cast<size_t>(scanned) > body.inputs.size() ||
      given.size() != body.inputs.size() || outputs.size() > body.outputs.size() ||
      body.outputs.size() < body.inputs.size() - static_cast<size_t>(scanned))
    return bad("a scan of other operands than its body");
  const size_t states = body.inputs.size() - static_cast<size_t>(scanned);
  if (!all_tensors(given) || !all_tensors(body.outputs) || !all_fit(given, body.inputs) ||
      !all_fit(Types(body.outputs).first(outputs.size()), outputs) ||
      !all_fit(Types(body.outputs).first(states), given.first(states)))
    return bad("a scan of other types than its body");
  return {};
}

Status check_sequence_map(const LoadedStep& step, Types inputs, Types outputs) {
  HOLOGRAM_TRY(const Body body, body_of(step));
  if (inputs.empty() || inputs[0].form != StaticType::kSequence ||
      inputs.size() != body.inputs.size() || outputs.size() > body.outputs.size())
    return bad("a sequence map of other operands than its body");
  const auto element = [](StaticType type) {
    return type.form == StaticType::kSequence ? StaticType{StaticType::kTensor, type.dtype} : type;
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    if (body.inputs[i] != element(inputs[i])) return bad("a sequence map of other types");
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].form != StaticType::kSequence || body.outputs[i] != element(outputs[i]))
      return bad("a sequence map of other types");
  return {};
}

}  // namespace

Status LoadedModel::check_step(const LoadedPlan& plan, const LoadedStep& step) const {
  const TypeList inputs(plan, step.inputs), outputs(plan, step.outputs);
  for (const LoadedSubplan& sub : step.subplans)
    if (!all_fit(TypeList(plan, sub.outer), TypeList(*sub.plan, sub.inner)))
      return bad("a capture of another type");
  switch (step.control) {
    case Control::none:
      return step.program ? check_program(*step.program, inputs, outputs)
                          : check_signature(*step.from, inputs, outputs);
    case Control::if_:
      return check_if(step, inputs, outputs);
    case Control::loop:
      return check_loop(step, inputs, outputs);
    case Control::scan:
      return check_scan(step, inputs, outputs);
    case Control::sequence_map:
      return check_sequence_map(step, inputs, outputs);
  }
  return bad("an unknown kind of step");
}

}  // namespace hologram::runtime
