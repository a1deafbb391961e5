#include "runtime/session/session.h"

#include <cstring>
#include <mutex>

#include "runtime/session/frame.h"
#include "support/function_ref.h"

namespace hologram::runtime {

using kernels::Tensor;
using kernels::Value;

namespace {

// What each symbol is in this run; few, so looked up by walking them.
using Bindings = std::vector<std::pair<std::string_view, int64_t>>;

// The number a symbol is bound to, which `value` becomes if there is none yet.
int64_t bound_value(Bindings& bindings, std::string_view symbol, int64_t value) {
  for (const auto& [name, bound] : bindings)
    if (name == symbol) return bound;
  bindings.emplace_back(symbol, value);
  return value;
}

struct Run {
  std::unique_ptr<Frame> frame;
  Bindings bindings;
  RunContext context;
};

std::string shape_text(const PortInfo& port) {
  return port.shape ? port.shape->to_string() : "[...]";
}

// The input is what the port says, and symbols mean one number throughout.
Status check_input(const PortInfo& port, const Value& value, Bindings& bindings) {
  if (port.kind == PortInfo::Kind::optional) return {};
  if (port.kind == PortInfo::Kind::sequence) {
    if (!value.is_sequence()) return fail(ErrorCode::type_mismatch, "a sequence is expected");
    for (const Value& element : *value.sequence)
      if (element.is_tensor() && element.tensor.dtype != port.dtype)
        return fail(ErrorCode::type_mismatch, "a sequence of {} is expected, not {}",
                    name_of(port.dtype), name_of(element.tensor.dtype));
    return {};
  }
  if (!value.is_tensor()) return fail(ErrorCode::type_mismatch, "a tensor is expected");
  const Tensor& tensor = value.tensor;
  if (tensor.dtype != port.dtype)
    return fail(ErrorCode::type_mismatch, "{} is expected, not {}", name_of(port.dtype),
                name_of(tensor.dtype));
  if (!port.shape) return {};
  bool fits = port.shape->rank() == tensor.dims.rank();
  for (size_t i = 0; fits && i < tensor.dims.rank(); ++i) {
    const Dim& dim = (*port.shape)[i];
    if (!dim.is_symbol())
      fits = dim.value() == tensor.dims[i];
    else if (dim.symbol() != "?")
      fits = bound_value(bindings, dim.symbol(), tensor.dims[i]) == tensor.dims[i];
  }
  if (fits) return {};
  return fail(ErrorCode::shape_mismatch, "shape {} where {} is expected", tensor.dims.to_string(),
              shape_text(port));
}

}  // namespace

struct Session::Impl {
  std::unique_ptr<LoadedModel> model;
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Run>> idle;
  std::unique_ptr<Weights> weights;  // last: its thread uses `idle` and ends first

  // Runs that wait to be used again let go of the version before.
  void improve(const std::shared_ptr<const WeightSet>& set) {
    std::lock_guard lock(mutex);
    for (auto& run : idle) run->frame->use(set);
  }

  Result<std::unique_ptr<Run>> take() const {
    {
      std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto run = std::move(idle.back());
        idle.pop_back();
        return run;
      }
    }
    auto run = std::make_unique<Run>();
    HOLOGRAM_TRY(run->frame, Frame::create(*model->plan));
    return run;
  }
  void give_back(std::unique_ptr<Run> run) const {
    std::lock_guard lock(mutex);
    idle.push_back(std::move(run));
  }

  // Runs, then hands each output to `receive` while its memory is still the run's.
  Status execute(std::span<const Value> inputs, std::vector<StepTime>* times,
                 FunctionRef<Status(size_t, const Value&)> receive) const {
    const LoadedPlan& plan = *model->plan;
    if (inputs.size() != plan.inputs.size())
      return fail(ErrorCode::invalid_argument, "{} inputs where the model has {}", inputs.size(),
                  plan.inputs.size());
    HOLOGRAM_CHECK(model->archive.verify());  // before the first step; later calls cost a load
    HOLOGRAM_TRY(std::unique_ptr<Run> run, take());
    run->bindings.clear();
    for (size_t i = 0; i < inputs.size(); ++i)
      HOLOGRAM_CHECK(in_context(check_input(plan.input_ports[i], inputs[i], run->bindings),
                                [&] { return "input '" + plan.input_ports[i].name + "'"; }));
    if (weights) run->frame->use(weights->current());
    for (size_t i = 0; i < inputs.size(); ++i) run->frame->value(plan.inputs[i]) = inputs[i];
    run->context.times = times;
    HOLOGRAM_CHECK(run->frame->run(run->context));
    for (size_t i = 0; i < plan.outputs.size(); ++i)
      HOLOGRAM_CHECK(receive(i, run->frame->value(plan.outputs[i])));
    for (uint32_t id : plan.inputs) run->frame->value(id) = Value();
    give_back(std::move(run));
    return {};
  }
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::open(archive::Archive archive, const WeightOptions& weights) {
  auto impl = std::make_unique<Impl>();
  HOLOGRAM_TRY(impl->model, LoadedModel::load(std::move(archive)));
  if (!impl->model->archive.weights().empty()) {
    const auto published = [raw = impl.get()](const auto& set) { raw->improve(set); };
    HOLOGRAM_TRY(impl->weights, Weights::open(impl->model->archive, weights, published));
  }
  return Session(std::move(impl));
}

Result<Session> Session::open(const std::filesystem::path& path,
                              const archive::OpenOptions& options, const WeightOptions& weights) {
  HOLOGRAM_TRY(archive::Archive archive, archive::Archive::open(path, options));
  return in_context(open(std::move(archive), weights), [&] { return path.string(); });
}

WeightStatus Session::weights() const {
  return impl_->weights ? impl_->weights->status() : WeightStatus{};
}
Status Session::wait_for_weights() const {
  return impl_->weights ? impl_->weights->wait() : Status{};
}

std::span<const PortInfo> Session::inputs() const { return impl_->model->plan->input_ports; }
std::span<const PortInfo> Session::outputs() const { return impl_->model->plan->output_ports; }

Result<std::vector<Value>> Session::profile(std::span<const Value> inputs,
                                            std::vector<StepTime>& times) const {
  std::vector<Value> results(outputs().size());
  times.clear();
  HOLOGRAM_CHECK(impl_->execute(inputs, &times, [&](size_t i, const Value& value) -> Status {
    HOLOGRAM_TRY(results[i], value.clone());
    return {};
  }));
  return results;
}

Result<std::vector<Value>> Session::run(std::span<const Value> inputs) const {
  std::vector<Value> results(outputs().size());
  HOLOGRAM_CHECK(impl_->execute(inputs, nullptr, [&](size_t i, const Value& value) -> Status {
    HOLOGRAM_TRY(results[i], value.clone());
    return {};
  }));
  return results;
}

Status Session::run_into(std::span<const Value> inputs, std::span<const Tensor> results) const {
  if (results.size() != outputs().size())
    return fail(ErrorCode::invalid_argument, "{} outputs where the model has {}", results.size(),
                outputs().size());
  return impl_->execute(inputs, nullptr, [&](size_t i, const Value& value) -> Status {
    const Tensor &from = value.tensor, &to = results[i];
    if (!value.is_tensor() || from.dtype != to.dtype || !(from.dims == to.dims) ||
        from.dtype == DType::string)
      return fail(ErrorCode::shape_mismatch, "output '{}' is {}{}; the buffer is {}{}",
                  outputs()[i].name, name_of(from.dtype), from.dims.to_string(), name_of(to.dtype),
                  to.dims.to_string());
    if (from.bytes() > 0) std::memcpy(to.data, from.data, from.bytes());
    return {};
  });
}

}  // namespace hologram::runtime
