// What a run needs of a plan and opening does not.
#include <algorithm>

#include "backends/cpu/kernels/families.h"
#include "runtime/session/flat.h"
#include "runtime/session/loaded_plan.h"
#include "runtime/session/native_code.h"

namespace hologram::runtime {
namespace {

using kernels::Attribute;
using kernels::Dims;
using kernels::Tensor;

Result<std::vector<Tensor>> constants_of(const archive::Archive& archive, ThreadPool& threads) {
  std::vector<Tensor> constants;
  if (!archive.model().constants()) return constants;
  constants.reserve(archive.model().constants()->size());
  HOLOGRAM_TRY(const auto stored, archive.constants());
  for (const archive::Constant* c : *archive.model().constants()) {
    Tensor tensor{static_cast<DType>(c->dtype()), Dims(items(c->dims()))};
    if (tensor.dtype == DType::string) {
      HOLOGRAM_TRY(tensor, Tensor::from_strings(tensor.dims, copy(c->strings())));
    } else if (c->tensor() < 0) {  // weights are put in place by Frame::use
      // Kernels never write to an input; the map is read-only.
      tensor.data = c->size() > 0 ? const_cast<std::byte*>(stored.data()) + c->offset()
                                  : kernels::no_elements();
      const std::span<const std::byte> bytes(tensor.data, c->size());
      if (tensor.dtype == DType::boolean)
        HOLOGRAM_CHECK(archive.verify(bytes, threads, archive::Reading::whole));
      if (tensor.dtype == DType::boolean &&
          std::ranges::any_of(bytes, [](std::byte b) { return b > std::byte{1}; }))
        return fail(ErrorCode::corrupt, "the plan is wrong: a bool that is neither 0 nor 1");
    }
    constants.push_back(std::move(tensor));
  }
  return constants;
}

// Its attribute "seed" decides what it draws.
bool is_random(const kernels::Kernel& kernel) {
  const std::span<const kernels::Kernel> all = kernels::random_kernels();
  return &kernel >= all.data() && &kernel < all.data() + all.size();
}

// How a step's constants are checked. `once`: the step is not in a subplan.
archive::Reading reading_of(const LoadedStep& step, bool once) {
  // Results of fused kernels have the same size whatever their constants hold: damaged ones do no
  // harm before they are found. In a body they might keep it going for ever.
  if (once && step.label.starts_with("hologram.")) return archive::Reading::done;
  // Some elements: the rest need not stay in memory.
  if (step.label.starts_with("Gather") || step.label == "EmbedLayerNormalization")
    return archive::Reading::part;
  return archive::Reading::whole;
}

Status prepare_plan(LoadedPlan& plan, const archive::Archive& archive,
                    std::span<const Tensor> constants, ThreadPool& threads, bool once) {
  plan.initial.resize(plan.values.size());
  for (uint32_t id = 0; id < plan.values.size(); ++id)
    if (plan.values[id].storage == archive::Storage::constant)
      plan.initial[id] =
          kernels::Value(constants[static_cast<size_t>(plan.from->values()->Get(id)->constant())]);
  for (LoadedStep& step : plan.steps) {
    if (step.from->kind() == archive::StepKind::kernel) {
      step.kernel = kernels::find_kernel(step.label);
      if (!step.kernel) return fail(ErrorCode::internal, "no kernel '{}'", step.label);
      step.random = is_random(*step.kernel);
    }
    step.reading = reading_of(step, once);
    if (step.from->attributes())
      for (const archive::Attribute* a : *step.from->attributes()) {
        Attribute attribute{.name = std::string(text(a->name())),
                            .kind = static_cast<Attribute::Kind>(a->kind()),
                            .integer = a->integer(),
                            .number = a->number(),
                            .text = std::string(text(a->text())),
                            .integers = copy(a->integers()),
                            .numbers = copy(a->numbers()),
                            .texts = copy(a->texts())};
        if (attribute.kind == Attribute::Kind::tensor) {
          attribute.tensor = constants[static_cast<size_t>(a->constant())];
          if (attribute.tensor.dtype != DType::string)
            HOLOGRAM_CHECK(
                archive.verify(std::span(attribute.tensor.data, attribute.tensor.bytes()), threads,
                               archive::Reading::whole));
        }
        step.attributes.put(std::move(attribute));
      }
    for (LoadedSubplan& sub : step.subplans) {
      sub.plan->load_ports(archive.model());
      HOLOGRAM_CHECK(prepare_plan(*sub.plan, archive, constants, threads, false));
    }
  }
  return {};
}

}  // namespace

const backends::CodeMap& LoadedModel::code() {
  std::call_once(code_once_, [&] { code_ = attach_native_code(archive, programs); });
  return code_;
}

Status LoadedModel::prepare(ThreadPool& threads) {
  std::call_once(once_, [&] {
    load_ports();
    code();
    auto all = constants_of(archive, threads);
    if (!all) {
      prepared_ = std::unexpected(std::move(all).error());
      return;
    }
    constants = *std::move(all);
    prepared_ = prepare_plan(*plan, archive, constants, threads, true);
  });
  return prepared_;
}

}  // namespace hologram::runtime
