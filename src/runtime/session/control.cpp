// If, Loop, Scan and SequenceMap: plans inside plans.
#include <limits>

#include "runtime/session/frame.h"

namespace hologram::runtime {
namespace {

using kernels::Dims;
using kernels::Tensor;
using kernels::Value;

Result<bool> condition(const Value& value) {
  if (!value.is_tensor() || value.tensor.dtype != DType::boolean || value.tensor.count() != 1)
    return fail(ErrorCode::shape_mismatch, "a condition must be one bool");
  return *value.tensor.as<uint8_t>() != 0;
}

Status run_if(Frame& frame, const LoadedStep& step, RunContext& context) {
  HOLOGRAM_TRY(const bool taken, condition(frame.value(step.inputs[0])));
  const std::string_view name = taken ? "then_branch" : "else_branch";
  for (size_t index = 0; index < step.subplans.size(); ++index) {
    if (step.subplans[index].name != name) continue;
    HOLOGRAM_TRY(Frame * branch, frame.child(step, index));
    HOLOGRAM_CHECK(branch->run(context));
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const uint32_t id = branch->plan().outputs[i];
      // What the branch only passes on may lie in memory that is used again before it is read.
      if (branch->plan().values[id].storage == archive::Storage::capture) {
        BlockPool& pool = frame.control(step).pool;
        HOLOGRAM_TRY(Value copy, pool.copy(branch->value(id)));
        frame.value(step.outputs[i]) = std::move(copy);
      } else {
        frame.value(step.outputs[i]) = branch->value(id);
      }
    }
    return {};
  }
  return fail(ErrorCode::corrupt, "no branch '{}'", name);
}

// The shape a body's output has where no iteration made one.
Dims known_dims(const PortInfo& port) {
  Dims dims;
  if (port.shape)
    for (const Dim& dim : *port.shape) dims.push_back(dim.is_symbol() ? 0 : dim.value());
  return dims;
}

// What is collected becomes the step's output `index`, in the frame's memory.
Status finish(const Stack& stack, Frame& frame, const LoadedStep& step, size_t index,
              Stack::Form form) {
  const uint32_t id = step.outputs[index];
  HOLOGRAM_TRY(Tensor result, stack.finish(form, [&](DType dtype, const Dims& dims) {
    return frame.allocate(id, dtype, dims);
  }));
  frame.value(id) = Value(std::move(result));
  return {};
}

// Element `index` along an axis, without that axis.
Result<Tensor> element(BlockPool& pool, const Tensor& of, size_t axis, int64_t index) {
  HOLOGRAM_CHECK(check_addressable(of.dtype));
  Dims dims = of.dims;
  const int64_t outer = dims.product(0, axis), run = dims.product(axis + 1, dims.rank());
  const int64_t length = dims[axis];
  dims.erase(axis);
  HOLOGRAM_TRY(Tensor result, pool.take(of.dtype, dims));
  copy_rows(of, index * run, length * run, result, 0, run, outer, run);
  return result;
}

Status run_loop(Frame& frame, const LoadedStep& step, RunContext& context) {
  auto input = [&](size_t i) {
    return i < step.inputs.size() && step.inputs[i] != kNoValue ? frame.value(step.inputs[i])
                                                                : Value();
  };
  int64_t trips = std::numeric_limits<int64_t>::max();
  if (const Value limit = input(0); limit.is_tensor()) {
    if (limit.tensor.count() != 1)
      return fail(ErrorCode::shape_mismatch, "a trip count of shape {}; one number expected",
                  limit.tensor.dims.to_string());
    trips = *limit.tensor.as<int64_t>();
  }
  bool going = true;
  if (const Value start = input(1); start.is_tensor()) {
    HOLOGRAM_TRY(going, condition(start));
  }
  HOLOGRAM_TRY(Frame * body, frame.child(step, 0));
  const LoadedPlan& plan = body->plan();
  if (plan.inputs.size() < 2 || plan.outputs.empty())
    return fail(ErrorCode::corrupt, "a loop body without counter and condition");
  const size_t carried = plan.inputs.size() - 2, scans = plan.outputs.size() - 1 - carried;
  ControlState& kept = frame.control(step);
  kept.clear();
  for (size_t i = 0; i < carried; ++i) kept.carried.push_back(input(2 + i));
  ControlState::begin(kept.collected, scans);
  HOLOGRAM_TRY(const Tensor counter, kept.pool.take(DType::i64, {}));
  HOLOGRAM_TRY(const Tensor proceed, kept.pool.take(DType::boolean, {}));
  for (int64_t trip = 0; trip < trips && going; ++trip) {
    HOLOGRAM_CHECK(context.count_step());
    *counter.as<int64_t>() = trip;
    *proceed.as<bool>() = going;
    body->value(plan.inputs[0]) = Value(counter);
    body->value(plan.inputs[1]) = Value(proceed);
    for (size_t i = 0; i < carried; ++i) body->value(plan.inputs[2 + i]) = kept.carried[i];
    const Turn turn(context, trip);
    HOLOGRAM_CHECK(body->run(context));
    HOLOGRAM_TRY(going, condition(body->value(plan.outputs[0])));
    // The next iteration uses the body's memory again.
    for (size_t i = 0; i < carried; ++i) {
      HOLOGRAM_TRY(Value copy, kept.pool.copy(body->value(plan.outputs[1 + i])));
      kept.carried[i] = std::move(copy);
    }
    for (size_t i = 0; i < scans; ++i)
      HOLOGRAM_CHECK(kept.collected[i].add(body->value(plan.outputs[1 + carried + i])));
  }
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (i < carried) {
      Value last = step.inputs.size() > 2 + i ? kept.carried[i] : Value();
      if (last.is_tensor() && !last.tensor.owner) {  // no iteration ran
        HOLOGRAM_TRY(last, kept.pool.copy(last));
      }
      frame.value(step.outputs[i]) = std::move(last);
    } else {
      const PortInfo& port = plan.output_ports[1 + i];
      HOLOGRAM_CHECK(finish(kept.collected[i - carried], frame, step, i,
                            {.dtype = port.dtype, .empty = known_dims(port)}));
    }
  }
  kept.clear();
  return {};
}

int64_t listed(const LoadedStep& step, std::string_view name, size_t index) {
  const auto list = step.attributes.integers(name);
  return index < list.size() ? list[index] : 0;
}

// One scan of kept.scanned: kept.carried become their last values, kept.collected what the body
// gave in each iteration.
Status scan_once(Frame& body, const LoadedStep& step, RunContext& context, ControlState& kept,
                 int64_t limit) {
  const LoadedPlan& plan = body.plan();
  const size_t states = kept.carried.size();
  kept.axes.clear();
  int64_t length = -1;
  for (size_t i = 0; i < kept.scanned.size(); ++i) {
    const Dims& dims = kept.scanned[i].dims;
    HOLOGRAM_TRY(const size_t axis,
                 kernels::normalise_axis(listed(step, "scan_input_axes", i), dims.rank()));
    if (length >= 0 && dims[axis] != length)
      return fail(ErrorCode::shape_mismatch, "scan inputs of length {} and {}", length, dims[axis]);
    length = dims[axis];
    kept.axes.push_back(axis);
  }
  if (limit >= 0) {
    if (limit > length)
      return fail(ErrorCode::out_of_range, "sequence length {} of {}", limit, length);
    length = limit;
  }
  ControlState::begin(kept.collected, plan.outputs.size() - states);
  for (int64_t trip = 0; trip < length; ++trip) {
    HOLOGRAM_CHECK(context.count_step());
    for (size_t i = 0; i < states; ++i) body.value(plan.inputs[i]) = kept.carried[i];
    for (size_t i = 0; i < kept.scanned.size(); ++i) {
      const bool backward = listed(step, "scan_input_directions", i) == 1;
      HOLOGRAM_TRY(Tensor part, element(kept.pool, kept.scanned[i], kept.axes[i],
                                        backward ? length - 1 - trip : trip));
      body.value(plan.inputs[states + i]) = Value(std::move(part));
    }
    const Turn turn(context, trip);
    HOLOGRAM_CHECK(body.run(context));
    for (size_t i = 0; i < states; ++i) {
      HOLOGRAM_TRY(Value copy, kept.pool.copy(body.value(plan.outputs[i])));
      kept.carried[i] = std::move(copy);
    }
    for (size_t i = 0; i < kept.collected.size(); ++i)
      HOLOGRAM_CHECK(kept.collected[i].add(body.value(plan.outputs[states + i])));
  }
  return {};
}

// Opset 8: every input has a batch axis in front, and input 0 may say how long each sequence is.
Status run_batched_scan(Frame& frame, const LoadedStep& step, RunContext& context, Frame& body,
                        size_t state_count) {
  const LoadedPlan& plan = body.plan();
  auto input = [&](size_t i) -> const Tensor& { return frame.value(step.inputs[i]).tensor; };
  for (size_t i = 1; i < step.inputs.size(); ++i)
    if (input(i).dims.rank() < (i - 1 < state_count ? 1 : 2) ||
        input(i).dims[0] != input(1).dims[0])
      return fail(ErrorCode::shape_mismatch, "input {} of shape {} where a batch of {} is expected",
                  i, input(i).dims.to_string(), input(1).dims.to_string());
  const int64_t batch = input(1).dims[0], longest = input(state_count + 1).dims[1];
  const Tensor* lengths = step.inputs[0] == kNoValue ? nullptr : &input(0);
  if (lengths && (lengths->dtype != DType::i64 || lengths->count() != batch))
    return fail(ErrorCode::shape_mismatch, "sequence_lens must be {} i64", batch);
  ControlState& kept = frame.control(step);
  ControlState::begin(kept.batches, plan.outputs.size());
  for (int64_t b = 0; b < batch; ++b) {
    kept.carried.clear();
    kept.scanned.clear();
    for (size_t i = 1; i < step.inputs.size(); ++i) {
      HOLOGRAM_TRY(Tensor part, element(kept.pool, input(i), 0, b));
      if (i - 1 < state_count)
        kept.carried.emplace_back(std::move(part));
      else
        kept.scanned.push_back(std::move(part));
    }
    const int64_t limit = lengths ? lengths->as<int64_t>()[b] : longest;
    if (limit < 0) return fail(ErrorCode::out_of_range, "sequence length {}", limit);
    const Turn turn(context, b);
    HOLOGRAM_CHECK(scan_once(body, step, context, kept, limit));
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      if (i < state_count) {
        HOLOGRAM_CHECK(kept.batches[i].add(kept.carried[i]));
        continue;
      }
      const PortInfo& port = plan.output_ports[i];
      HOLOGRAM_TRY(Tensor row,
                   kept.collected[i - state_count].finish(
                       {.dtype = port.dtype,
                        .empty = known_dims(port),
                        .length = static_cast<size_t>(longest)},
                       [&](DType dtype, const Dims& dims) { return kept.pool.take(dtype, dims); }));
      HOLOGRAM_CHECK(kept.batches[i].add(Value(std::move(row))));
    }
  }
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const PortInfo& port = plan.output_ports[i];
    HOLOGRAM_CHECK(
        finish(kept.batches[i], frame, step, i, {.dtype = port.dtype, .empty = known_dims(port)}));
  }
  kept.clear();
  return {};
}

Status run_scan(Frame& frame, const LoadedStep& step, RunContext& context) {
  const bool batched = step.attributes.integer("batched") != 0;
  HOLOGRAM_TRY(Frame * body, frame.child(step, 0));
  const LoadedPlan& plan = body->plan();
  const size_t first = batched ? 1 : 0;
  const auto count = static_cast<size_t>(step.attributes.integer("num_scan_inputs"));
  if (count < 1 || count > plan.inputs.size() || step.inputs.size() != first + plan.inputs.size() ||
      plan.outputs.size() < plan.inputs.size() - count || step.outputs.size() > plan.outputs.size())
    return fail(ErrorCode::corrupt, "a scan of other operands than its body");
  const size_t state_count = plan.inputs.size() - count;
  for (size_t i = first; i < step.inputs.size(); ++i)
    if (step.inputs[i] == kNoValue || !frame.value(step.inputs[i]).is_tensor())
      return fail(ErrorCode::corrupt, "input {} of a scan is no tensor", i);
  ControlState& kept = frame.control(step);
  kept.clear();
  if (batched) return run_batched_scan(frame, step, context, *body, state_count);
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const Value& value = frame.value(step.inputs[i]);
    if (i < state_count)
      kept.carried.push_back(value);
    else
      kept.scanned.push_back(value.tensor);
  }
  HOLOGRAM_CHECK(scan_once(*body, step, context, kept, -1));
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (i < state_count) {
      HOLOGRAM_TRY(Value copy, kept.pool.copy(kept.carried[i]));
      frame.value(step.outputs[i]) = std::move(copy);
      continue;
    }
    const size_t k = i - state_count;
    const PortInfo& port = plan.output_ports[i];
    HOLOGRAM_CHECK(finish(kept.collected[k], frame, step, i,
                          {.dtype = port.dtype,
                           .empty = known_dims(port),
                           .axis = listed(step, "scan_output_axes", k),
                           .reversed = listed(step, "scan_output_directions", k) == 1}));
  }
  kept.clear();
  return {};
}

Status run_sequence_map(Frame& frame, const LoadedStep& step, RunContext& context) {
  HOLOGRAM_TRY(Frame * body, frame.child(step, 0));
  const LoadedPlan& plan = body->plan();
  if (plan.inputs.size() != step.inputs.size() || plan.outputs.size() < step.outputs.size() ||
      step.inputs.empty() || !frame.value(step.inputs[0]).is_sequence())
    return fail(ErrorCode::corrupt, "a sequence map of other operands than its body");
  const size_t length = frame.value(step.inputs[0]).sequence->size();
  ControlState& kept = frame.control(step);
  kept.clear();
  for (size_t i = 0; i < step.outputs.size(); ++i) kept.sequences.push_back(kept.pool.list());
  for (size_t at = 0; at < length; ++at) {
    HOLOGRAM_CHECK(context.count_step());
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const Value& value = frame.value(step.inputs[i]);
      if (value.is_sequence() && value.sequence->size() != length)
        return fail(ErrorCode::shape_mismatch, "sequences of {} and {} elements", length,
                    value.sequence->size());
      body->value(plan.inputs[i]) = value.is_sequence() ? (*value.sequence)[at] : value;
    }
    const Turn turn(context, static_cast<int64_t>(at));
    HOLOGRAM_CHECK(body->run(context));
    for (size_t i = 0; i < kept.sequences.size(); ++i) {
      HOLOGRAM_TRY(Value part, kept.pool.copy(body->value(plan.outputs[i])));
      kept.sequences[i]->push_back(std::move(part));
    }
  }
  for (size_t i = 0; i < kept.sequences.size(); ++i) {
    Value& result = frame.value(step.outputs[i]);
    result.kind = Value::Kind::sequence;
    result.sequence = std::move(kept.sequences[i]);
  }
  kept.sequences.clear();
  return {};
}

}  // namespace

Status run_control(Frame& frame, const LoadedStep& step, RunContext& context) {
  // The claims of the last turn's results end here: their memory serves for this one's.
  for (uint32_t id : step.outputs) frame.value(id) = Value();
  switch (step.control) {
    case Control::if_:
      return run_if(frame, step, context);
    case Control::loop:
      return run_loop(frame, step, context);
    case Control::scan:
      return run_scan(frame, step, context);
    case Control::sequence_map:
      return run_sequence_map(frame, step, context);
    default:
      return fail(ErrorCode::internal, "control operator '{}'", step.label);
  }
}

}  // namespace hologram::runtime
