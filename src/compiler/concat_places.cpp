#include "compiler/concat_places.h"

#include "support/aligned.h"

namespace hologram::compiler {
namespace {

using graph::kNoValue;

// The operands lie one behind the other in the result's memory.
bool is_in_one_piece(const graph::Graph& graph, const archive::StepT& step) {
  const graph::ValueType& type = graph.value(step.outputs[0]).type;
  const auto& shape = type.shape;
  if (!shape || !shape->is_static() || bits_of(type.dtype) < 8) return false;
  int64_t axis = 0;
  for (const auto& attribute : step.attributes)
    if (attribute->name == "axis") axis = attribute->integer;
  const auto rank = static_cast<int64_t>(shape->rank());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return false;
  for (int64_t i = 0; i < axis; ++i)
    if ((*shape)[static_cast<size_t>(i)].value() != 1) return false;
  return true;
}

}  // namespace

std::vector<ConcatPlace> place_concats(const graph::Graph& graph, const archive::PlanT& plan,
                                       FunctionRef<uint32_t(uint32_t)> root_of,
                                       FunctionRef<uint64_t(uint32_t)> size_of) {
  std::vector<ConcatPlace> places;
  for (uint32_t id = 0; id < plan.values.size(); ++id) places.push_back({id, 0});
  // From the last on: the longest of growing lists decides where their elements lie.
  for (size_t at = plan.steps.size(); at-- > 0;) {
    const archive::StepT& step = *plan.steps[at];
    if (step.kind != archive::StepKind::kernel || step.kernel != "Concat" || step.inputs.empty())
      continue;
    const uint32_t out = step.outputs[0];
    if (out == kNoValue || size_of(out) == 0 || !is_in_one_piece(graph, step)) continue;
    std::vector<uint32_t> inputs;
    for (uint32_t id : step.inputs) inputs.push_back(id == kNoValue ? id : root_of(id));
    bool in_line = !places[out].grouped && size_of(inputs[0]) > 0;
    uint64_t end = 0;
    for (uint32_t id : inputs) {
      if (!in_line || size_of(id) == 0) {
        in_line = false;
        break;
      }
      const ConcatPlace &first = places[inputs[0]], &place = places[id];
      in_line = place.grouped && place.owner == first.owner && place.offset == first.offset + end;
      end += size_of(id);
    }
    if (in_line && end == size_of(out)) {
      places[out] = places[inputs[0]];
      continue;
    }
    uint64_t offset = 0;
    for (uint32_t id : inputs) {
      const uint64_t size = size_of(id);
      if (size == 0) break;  // where the next ones begin is not known
      if (!places[id].grouped && id != out && offset % kAlignment == 0) {
        places[id] = {places[out].owner, places[out].offset + offset, true};
        places[out].grouped = true;
      }
      offset += size;
    }
  }
  return places;
}

}  // namespace hologram::compiler
