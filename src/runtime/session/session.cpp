#include "runtime/session/session.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "archive/expression.h"
#include "backends/cpu/kernels/alignment.h"
#include "runtime/session/frame.h"
#include "support/function_ref.h"

namespace hologram::runtime {

using kernels::Dims;
using kernels::Tensor;
using kernels::Value;

namespace {

struct Run {
  std::unique_ptr<Frame> frame;
  std::vector<int64_t> symbols;  // of the inputs at hand
  std::shared_ptr<const Binding> binding;
  std::vector<Tensor> results;  // of run_into; without data where they have to be copied
  RunContext context;
};

std::string shape_text(const PortInfo& port) {
  return port.shape ? port.shape->to_string() : "[...]";
}

// The input is what the port says; `dims` is null where it has no shape.
Result<const Dims*> check_type(const PortInfo& port, StaticType type, const Value& value) {
  if (port.kind == PortInfo::Kind::optional && value.kind == Value::Kind::none) return nullptr;
  if (type.without_optional().form == StaticType::kSequence) {
    if (!value.is_sequence()) return fail(ErrorCode::type_mismatch, "a sequence is expected");
    for (const Value& element : *value.sequence)
      if (!element.is_tensor() || element.tensor.dtype != port.dtype)
        return fail(ErrorCode::type_mismatch, "a sequence of {} is expected, not of {}",
                    name_of(port.dtype),
                    element.is_tensor() ? name_of(element.tensor.dtype) : "sequences");
    for (const Value& element : *value.sequence)
      HOLOGRAM_CHECK(kernels::check_dims(element.tensor.dims));
    return nullptr;
  }
  if (!value.is_tensor()) return fail(ErrorCode::type_mismatch, "a tensor is expected");
  if (value.tensor.dtype != port.dtype)
    return fail(ErrorCode::type_mismatch, "{} is expected, not {}", name_of(port.dtype),
                name_of(value.tensor.dtype));
  HOLOGRAM_CHECK(kernels::check_dims(value.tensor.dims));
  if (port.kind == PortInfo::Kind::optional) return nullptr;
  return &value.tensor.dims;
}

Status check_alignment(const Value& value) {
  if (!value.is_tensor() || kernels::is_aligned(value.tensor)) return {};
  return fail(
      ErrorCode::invalid_argument,
      "the {} elements do not lie at a multiple of their size: copy them to memory that does",
      name_of(value.tensor.dtype));
}

bool overlap(const Tensor& a, const Tensor& b) {
  const auto x = reinterpret_cast<uintptr_t>(a.data), y = reinterpret_cast<uintptr_t>(b.data);
  return x < y + b.bytes() && y < x + a.bytes();
}

// Whether results can be made in the caller's memory while the inputs are still read.
bool is_writable_at_once(const Tensor& result, std::span<const Value> inputs,
                         std::span<const Tensor> results) {
  if (reinterpret_cast<uintptr_t>(result.data) % kAlignment != 0) return false;
  for (const Value& input : inputs)
    if (input.is_sequence() || (input.is_tensor() && overlap(result, input.tensor))) return false;
  for (const Tensor& other : results)
    if (&other != &result && overlap(result, other)) return false;
  return true;
}

}  // namespace

struct Session::Impl {
  std::unique_ptr<LoadedModel> model;
  ThreadPool* threads = nullptr;
  uint64_t most_steps = ~uint64_t{0};
  mutable BindingCache bindings;
  mutable std::mutex mutex;  // guards `idle`
  mutable std::vector<std::unique_ptr<Run>> idle;
  std::unique_ptr<Weights> weights;  // last: its thread uses `idle` and ends first

  // Runs that wait to be used again let go of the version before.
  void improve(const std::shared_ptr<const WeightSet>& set) {
    std::lock_guard lock(mutex);
    for (auto& run : idle) run->frame->use(set);
  }

  // A run of its own for as long as this lives; then it is cleared and kept for the next.
  class Lease {
   public:
    Lease(const Impl& impl, std::unique_ptr<Run> run) : impl_(impl), run_(std::move(run)) {}
    Lease(Lease&& other) noexcept : impl_(other.impl_), run_(std::move(other.run_)) {}
    ~Lease() {
      if (!run_) return;
      run_->frame->clear();
      run_->results.clear();
      std::lock_guard lock(impl_.mutex);
      impl_.idle.push_back(std::move(run_));
    }
    Run* operator->() const { return run_.get(); }

   private:
    const Impl& impl_;
    std::unique_ptr<Run> run_;
  };

  ThreadPool& pool() const { return threads ? *threads : ThreadPool::shared(); }

  Result<Lease> take() const {
    {
      std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto run = std::move(idle.back());
        idle.pop_back();
        return Lease(*this, std::move(run));
      }
    }
    HOLOGRAM_CHECK(model->prepare(pool()));
    auto run = std::make_unique<Run>();
    HOLOGRAM_TRY(run->frame, Frame::create(*model->plan));
    run->results.reserve(model->plan->outputs.size());
    return Lease(*this, std::move(run));
  }

  // The shape is what the port says, and symbols mean one number throughout.
  Status check_shape(size_t input, const Dims& dims, std::vector<int64_t>& symbols) const {
    const PortInfo& port = model->plan->input_ports[input];
    const PortDims& expected = model->input_dims[input];
    if (!port.shape) return {};
    bool fits = expected.size() == dims.rank();
    for (size_t i = 0; fits && i < dims.rank(); ++i) {
      if (expected[i].expression < 0) {
        fits = expected[i].value < 0 || expected[i].value == dims[i];
        continue;
      }
      int64_t& symbol =
          symbols[model->expressions[static_cast<size_t>(expected[i].expression)].a()];
      if (symbol == archive::kUndefined) symbol = dims[i];
      fits = symbol == dims[i];
    }
    if (fits) return {};
    // An earlier input has said what a symbol is: name it, or the shape looks right.
    std::string bound;
    for (size_t i = 0; i < std::min<size_t>(expected.size(), dims.rank()); ++i) {
      if (expected[i].expression < 0) continue;
      const auto& expression = model->expressions[static_cast<size_t>(expected[i].expression)];
      const int64_t symbol = symbols[expression.a()];
      if (symbol != archive::kUndefined && symbol != dims[i])
        bound += fmt::format("; dimension {} is {} by an earlier one", i, symbol);
    }
    return fail(ErrorCode::shape_mismatch, "shape {} where {} is expected{}", dims.to_string(),
                shape_text(port), bound);
  }

  Status bind(Run& run) const {
    if (!run.binding || run.binding->symbols != run.symbols) {
      run.binding = bindings.find_or_make(*model, run.symbols);
    }
    return run.frame->bind(*run.binding);
  }

  // Runs, then hands each output to `receive` while its memory is still the run's.
  Status execute(std::span<const Value> inputs, std::span<const Tensor> results, Profile* profile,
                 FunctionRef<Status(size_t, const Value&)> receive) const {
    const LoadedPlan& plan = *model->plan;
    if (inputs.size() != plan.inputs.size())
      return fail(ErrorCode::invalid_argument, "{} inputs where the model has {}", inputs.size(),
                  plan.inputs.size());
    HOLOGRAM_TRY(const Lease run, take());
    run->symbols.assign(model->symbols, archive::kUndefined);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto place = [&] { return "input '" + plan.input_ports[i].name + "'"; };
      const StaticType type = plan.values[plan.inputs[i]].type;
      HOLOGRAM_TRY(const Dims* dims,
                   in_context(check_type(plan.input_ports[i], type, inputs[i]), place));
      HOLOGRAM_CHECK(in_context(check_alignment(inputs[i]), place));
      if (dims) HOLOGRAM_CHECK(in_context(check_shape(i, *dims, run->symbols), place));
    }
    HOLOGRAM_CHECK(bind(*run.operator->()));
    if (weights) run->frame->use(weights->current());
    for (size_t i = 0; i < inputs.size(); ++i) run->frame->value(plan.inputs[i]) = inputs[i];
    for (const Tensor& result : results) {
      run->results.push_back(result);
      if (!is_writable_at_once(result, inputs, results)) run->results.back().data = nullptr;
    }
    run->frame->set_outputs(run->results);
    run->context.profile = profile;
    run->context.threads = &pool();
    run->context.steps_left = most_steps;
    run->context.window.begin(model->archive.page_release());
    run->context.unverified = model->archive.is_verified() ? nullptr : &model->archive;
    HOLOGRAM_CHECK(run->frame->run(run->context));
    run->context.window.end();
    // What no step has read; later calls cost a load.
    HOLOGRAM_CHECK(model->archive.verify(pool()));
    for (size_t i = 0; i < plan.outputs.size(); ++i)
      HOLOGRAM_CHECK(receive(i, run->frame->value(plan.outputs[i])));
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

void Session::use(ThreadPool& threads) { impl_->threads = &threads; }

void Session::limit_steps(uint64_t steps) { impl_->most_steps = steps; }

bool Session::has_native_code() const { return impl_->model->code().data() != nullptr; }
std::span<const PortInfo> Session::inputs() const {
  impl_->model->load_ports();
  return impl_->model->plan->input_ports;
}
std::span<const PortInfo> Session::outputs() const {
  impl_->model->load_ports();
  return impl_->model->plan->output_ports;
}
uint64_t Session::bindings_made() const { return impl_->bindings.made(); }

Result<BoundShapes> Session::bind(std::span<const Dims> shapes) const {
  const LoadedModel& model = *impl_->model;
  if (shapes.size() != inputs().size())
    return fail(ErrorCode::invalid_argument, "{} shapes where the model has {} inputs",
                shapes.size(), inputs().size());
  HOLOGRAM_TRY(const Impl::Lease run, impl_->take());
  run->symbols.assign(model.symbols, archive::kUndefined);
  for (size_t i = 0; i < shapes.size(); ++i)
    if (inputs()[i].kind == PortInfo::Kind::tensor) {
      const auto place = [&] { return "input '" + inputs()[i].name + "'"; };
      HOLOGRAM_CHECK(in_context(kernels::check_dims(shapes[i]), place));
      HOLOGRAM_CHECK(in_context(impl_->check_shape(i, shapes[i], run->symbols), place));
    }
  HOLOGRAM_CHECK(impl_->bind(*run.operator->()));
  BoundShapes bound;
  bound.activation_bytes = run->frame->arena_bytes();
  for (size_t i = 0; i < outputs().size(); ++i) {
    Dims dims;
    bool known = outputs()[i].kind == PortInfo::Kind::tensor && outputs()[i].shape;
    for (const PortDim& dim : model.output_dims[i]) {
      dims.push_back(dim.expression < 0 ? dim.value : run->binding->expressions[dim.expression]);
      known = known && dims.back() >= 0;
    }
    bound.outputs.push_back(known ? std::optional(dims) : std::nullopt);
  }
  return bound;
}

Result<std::vector<Value>> Session::profile(std::span<const Value> inputs,
                                            std::vector<StepTime>& times) const {
  std::vector<Value> results(outputs().size());
  times.clear();
  Profile profile{.times = times};
  HOLOGRAM_CHECK(impl_->execute(inputs, {}, &profile, [&](size_t i, const Value& value) -> Status {
    HOLOGRAM_TRY(results[i], value.clone());
    return {};
  }));
  return results;
}

Result<std::vector<Value>> Session::run(std::span<const Value> inputs) const {
  std::vector<Value> results(outputs().size());
  HOLOGRAM_CHECK(impl_->execute(inputs, {}, nullptr, [&](size_t i, const Value& value) -> Status {
    HOLOGRAM_TRY(results[i], value.clone());
    return {};
  }));
  return results;
}

Status Session::run_into(std::span<const Value> inputs, std::span<const Tensor> results) const {
  if (results.size() != outputs().size())
    return fail(ErrorCode::invalid_argument, "{} outputs where the model has {}", results.size(),
                outputs().size());
  return impl_->execute(inputs, results, nullptr, [&](size_t i, const Value& value) -> Status {
    const Tensor &from = value.tensor, &to = results[i];
    if (!value.is_tensor() || from.dtype != to.dtype || !(from.dims == to.dims) ||
        from.dtype == DType::string)
      return fail(ErrorCode::shape_mismatch, "output '{}' is {}{}; the buffer is {}{}",
                  outputs()[i].name, name_of(from.dtype), from.dims.to_string(), name_of(to.dtype),
                  to.dims.to_string());
    if (from.data != to.data && from.bytes() > 0) std::memcpy(to.data, from.data, from.bytes());
    return {};
  });
}

}  // namespace hologram::runtime
