// What every step of every run goes through: the memory of its results and the call of its kernel.
// Compiled for speed, unlike the rest of Frame: a small model takes a hundred steps in 50 us.
#include <utility>

#include "runtime/session/frame.h"

namespace hologram::runtime {

using kernels::Dims;
using kernels::Tensor;
using kernels::Value;

namespace {

class StepMemory : public kernels::KernelMemory {
 public:
  StepMemory(Frame& frame, const LoadedStep& step, Scratch& scratch)
      : frame_(frame), step_(step), scratch_(scratch) {}
  Result<Tensor> output(size_t index, DType dtype, const Dims& dims) override {
    return frame_.allocate(step_.outputs[index], dtype, dims);
  }
  Result<std::byte*> scratch(size_t bytes) override { return scratch_.take(bytes); }
  std::shared_ptr<std::vector<Value>> sequence() override { return frame_.sequences().list(); }
  Result<Tensor> element(DType dtype, const Dims& dims) override {
    return frame_.sequences().take(dtype, dims);
  }

 private:
  Frame& frame_;
  const LoadedStep& step_;
  Scratch& scratch_;
};

// An input left out; also where a hostile plan leaves out one that the kernel needs, so it is empty
// and has memory.
const Value& left_out() {
  alignas(kAlignment) static std::byte zeros[256];
  static const Value value = [] {
    Value empty;
    empty.tensor = Tensor{DType::f32, {0}, zeros};
    return empty;
  }();
  return value;
}

}  // namespace

Result<Tensor> Frame::allocate(uint32_t id, DType dtype, const Dims& dims) {
  const LoadedValue& value = plan_->values[id];
  if (dtype == DType::string) {
    std::shared_ptr<std::vector<std::string>>& list = strings_[id];
    values_[id] = Value();  // its own claim on the list ends here
    if (!list || list.use_count() > 1) list = std::make_shared<std::vector<std::string>>();
    return empty_strings(list, dims);
  }
  Tensor tensor;  // a list of its members would clear all of the dimensions first
  tensor.dtype = dtype;
  tensor.dims = dims;
  const uint64_t bytes = tensor.bytes();
  if (value.storage == archive::Storage::view) {
    const Value& source = values_[value.source];
    if (source.is_tensor() && source.tensor.dtype != DType::string &&
        source.tensor.bytes() == bytes) {
      tensor.data = source.tensor.data;
      tensor.owner = source.tensor.owner;
      return tensor;
    }
  }
  if (value.output >= 0 && !given_.empty()) {
    const Tensor& given = given_[value.output];
    if (given.data && given.dtype != DType::string && given.bytes() == bytes) {
      tensor.data = given.data;
      return tensor;
    }
  }
  if (value.storage == archive::Storage::arena) {
    const Place& place = layout_->places[id];
    if (place.size == bytes) {
      tensor.data = bytes > 0 ? arena_.data() + place.offset : kernels::no_elements();
      return tensor;
    }
    if (plan_->layout < 0)
      return fail(ErrorCode::internal,
                  "a result of shape {} ({} bytes) where {} bytes were planned", dims.to_string(),
                  bytes, place.size);
    // A name in the model means two numbers: memory of its own serves as well.
  }
  values_[id] = Value();  // its own claim on the block ends here
  HOLOGRAM_TRY(const std::shared_ptr<AlignedBytes> block, pooled(id, bytes));
  tensor.data = block->data();
  tensor.owner = block;
  return tensor;
}

Result<Frame*> Frame::child(const LoadedStep& step, size_t index) {
  std::unique_ptr<Frame>& child = children_[step.first_frame + index];
  const LoadedSubplan& sub = step.subplans[index];
  if (!child) {
    HOLOGRAM_TRY(child, create(*sub.plan));
  }
  child->in_use_ = true;
  if (weights_) child->use(weights_);
  HOLOGRAM_CHECK(child->bind(*binding_));
  for (size_t i = 0; i < sub.outer.size(); ++i)
    child->values_[sub.inner[i]] = values_[sub.outer[i]];
  return child.get();
}

Status Frame::run_program(const LoadedStep& step, RunContext& context) {
  Dims dims;
  operands_.clear();
  for (uint32_t id : step.inputs) {
    operands_.push_back(values_[id].tensor);
    HOLOGRAM_TRY(dims, kernels::broadcast_dims(dims, values_[id].tensor.dims));
  }
  HOLOGRAM_CHECK(kernels::check_dims(dims));
  const size_t inputs = operands_.size();
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    HOLOGRAM_TRY(Tensor out, allocate(step.outputs[i], step.output_types[i], dims));
    values_[step.outputs[i]] = Value(out);
    operands_.push_back(std::move(out));
  }
  const std::span<const Tensor> all(operands_);
  Status status = step.program->run(all.first(inputs), all.subspan(inputs), dims, *context.threads);
  operands_.clear();  // their claims on the blocks of values end here
  return status;
}

Status Frame::run_kernel(const LoadedStep& step, RunContext& context) {
  inputs_.clear();
  for (uint32_t id : step.inputs) inputs_.push_back(id == kNoValue ? &left_out() : &values_[id]);
  outputs_.resize(step.outputs.size());
  StepMemory memory(*this, step, context.scratch);
  for (uint32_t id : step.outputs)
    if (values_[id].sequence) values_[id] = Value();  // its claim on the list ends here
  const bool other_seed = step.random && context.turn != 0;
  kernels::KernelContext kernel(inputs_, outputs_, step.output_types,
                                other_seed ? reseeded(step, context.turn) : step.attributes, memory,
                                *context.threads);
  Status status = kernels::run_kernel(*step.kernel, kernel);
  context.scratch.reset();
  if (!status) {
    outputs_.clear();
    return status;
  }
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (!outputs_[i].is_tensor() && plan_->values[step.outputs[i]].type.is_tensor())
      return fail(ErrorCode::corrupt, "result {} was not made", i);
    values_[step.outputs[i]] = std::move(outputs_[i]);
    outputs_[i].kind = Value::Kind::none;  // as the next step expects it
  }
  inputs_.clear();
  return {};
}

Status Frame::run_step(const LoadedStep& step, RunContext& context) {
  if (step.program) return run_program(step, context);
  if (step.kernel) return run_kernel(step, context);
  return run_control(*this, step, context);
}

Status Frame::run(RunContext& context) {
  if (arena_is_fresh_) bring_in(*context.threads);
  // In a turn after the first, the claims of the last turn's values end here: their memory serves
  // for this one's.
  if (std::exchange(has_run_, true))
    for (const LoadedStep& step : plan_->steps)
      for (uint32_t id : step.outputs)
        if (values_[id].tensor.owner || values_[id].sequence) values_[id] = Value();
  for (const LoadedStep& step : plan_->steps) {
    HOLOGRAM_CHECK(context.count_step());
    Status status = context.profile      ? run_timed(step, context)
                    : context.unverified ? run_checking(step, context)
                                         : run_step(step, context);
    if (!status)
      return fail(std::move(status).error(), fmt::format("step '{}' ({})", step.name, step.label));
    if (context.window.is_open()) let_go(step, context);
    for (uint32_t id : step.release) values_[id] = Value();
  }
  return context.unverified ? verify(plan_->outputs, context, archive::Reading::whole) : Status();
}

}  // namespace hologram::runtime
