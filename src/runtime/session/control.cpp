// If, Loop, Scan and SequenceMap: plans inside plans.
#include <cstring>
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
  return *value.tensor.as<bool>();
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
        HOLOGRAM_TRY(frame.value(step.outputs[i]), branch->value(id).clone());
      } else {
        frame.value(step.outputs[i]) = branch->value(id);
      }
    }
    return {};
  }
  return fail(ErrorCode::corrupt, "no branch '{}'", name);
}

// Copies `rows` runs of `run` elements, `from_step` and `to_step` elements apart.
void copy_rows(const Tensor& from, int64_t from_at, int64_t from_step, const Tensor& to,
               int64_t to_at, int64_t to_step, int64_t rows, int64_t run) {
  if (run == 0) return;
  const int64_t size = from.dtype == DType::string ? 0 : size_of(from.dtype);
  for (int64_t row = 0; row < rows; ++row, from_at += from_step, to_at += to_step) {
    if (size == 0)
      std::copy_n(from.as<std::string>() + from_at, run, to.as<std::string>() + to_at);
    else
      std::memcpy(to.data + to_at * size, from.data + from_at * size, run * size);
  }
}

// The shape a body's output has where no iteration made one.
Dims known_dims(const PortInfo& port) {
  Dims dims;
  if (port.shape)
    for (const Dim& dim : *port.shape) dims.push_back(dim.is_symbol() ? 0 : dim.value());
  return dims;
}

Status check_addressable(DType dtype) {
  if (dtype == DType::string || size_of(dtype) > 0) return {};
  return fail(ErrorCode::unsupported, "scan inputs and outputs of type {}", name_of(dtype));
}

// The parts one after another along a new axis, the last one first where `reversed`. Places for
// `length` parts; those without a part are zero (strings: empty).
Result<Value> stack(const std::vector<Value>& parts, const PortInfo& port, int64_t given_axis = 0,
                    bool reversed = false, size_t length = 0) {
  Dims dims = parts.empty() ? known_dims(port) : parts[0].tensor.dims;
  for (const Value& part : parts)
    if (!part.is_tensor() || !(part.tensor.dims == dims))
      return fail(ErrorCode::shape_mismatch, "scan outputs of different shapes");
  if (dims.rank() == kernels::kMaxRank)
    return fail(ErrorCode::unsupported, "a scan output of rank {}", dims.rank() + 1);
  HOLOGRAM_CHECK(check_addressable(port.dtype));
  HOLOGRAM_TRY(const size_t axis, kernels::normalise_axis(given_axis, dims.rank() + 1));
  length = std::max(length, parts.size());
  const int64_t outer = dims.product(0, axis), run = dims.product(axis, dims.rank());
  dims.insert(axis, static_cast<int64_t>(length));
  HOLOGRAM_TRY(Tensor result, Tensor::allocate(port.dtype, dims));
  if (length > parts.size() && port.dtype != DType::string && result.bytes() > 0)
    std::memset(result.data, 0, result.bytes());
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t place = reversed ? parts.size() - 1 - i : i;
    copy_rows(parts[i].tensor, 0, run, result, static_cast<int64_t>(place) * run,
              static_cast<int64_t>(length) * run, outer, run);
  }
  return Value(std::move(result));
}

// Element `index` along an axis, without that axis.
Result<Tensor> element(const Tensor& of, size_t axis, int64_t index) {
  HOLOGRAM_CHECK(check_addressable(of.dtype));
  Dims dims = of.dims;
  const int64_t outer = dims.product(0, axis), run = dims.product(axis + 1, dims.rank());
  const int64_t length = dims[axis];
  dims.erase(axis);
  HOLOGRAM_TRY(Tensor result, Tensor::allocate(of.dtype, dims));
  copy_rows(of, index * run, length * run, result, 0, run, outer, run);
  return result;
}

// A value that the next run of the body leaves alone. Elements of sequences own their memory.
Result<Value> kept(const Value& value) {
  if (value.is_sequence()) return value;
  return value.clone();
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
  std::vector<Value> state;
  for (size_t i = 0; i < carried; ++i) state.push_back(input(2 + i));
  std::vector<std::vector<Value>> collected(scans);
  HOLOGRAM_TRY(Tensor counter, Tensor::allocate(DType::i64, {}));
  HOLOGRAM_TRY(Tensor proceed, Tensor::allocate(DType::boolean, {}));
  for (int64_t trip = 0; trip < trips && going; ++trip) {
    *counter.as<int64_t>() = trip;
    *proceed.as<bool>() = going;
    body->value(plan.inputs[0]) = Value(counter);
    body->value(plan.inputs[1]) = Value(proceed);
    for (size_t i = 0; i < carried; ++i) body->value(plan.inputs[2 + i]) = state[i];
    const Turn turn(context, trip);
    HOLOGRAM_CHECK(body->run(context));
    HOLOGRAM_TRY(going, condition(body->value(plan.outputs[0])));
    // The next iteration uses the body's memory again.
    for (size_t i = 0; i < carried; ++i) {
      HOLOGRAM_TRY(state[i], kept(body->value(plan.outputs[1 + i])));
    }
    for (size_t i = 0; i < scans; ++i) {
      HOLOGRAM_TRY(Value part, body->value(plan.outputs[1 + carried + i]).clone());
      collected[i].push_back(std::move(part));
    }
  }
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (i < carried) {
      frame.value(step.outputs[i]) = step.inputs.size() > 2 + i ? state[i] : Value();
      if (!state[i].tensor.owner && state[i].is_tensor()) {  // no iteration ran
        HOLOGRAM_TRY(frame.value(step.outputs[i]), state[i].clone());
      }
    } else {
      HOLOGRAM_TRY(frame.value(step.outputs[i]),
                   stack(collected[i - carried], plan.output_ports[1 + i]));
    }
  }
  return {};
}

int64_t listed(const LoadedStep& step, std::string_view name, size_t index) {
  const auto list = step.attributes.integers(name);
  return index < list.size() ? list[index] : 0;
}

// One scan: states become their last values, `collected` what the body gave in each iteration.
Status scan_once(Frame& body, const LoadedStep& step, RunContext& context,
                 std::vector<Value>& states, std::span<const Tensor> scanned, int64_t limit,
                 std::vector<std::vector<Value>>& collected) {
  const LoadedPlan& plan = body.plan();
  std::vector<size_t> axes;
  int64_t length = -1;
  for (size_t i = 0; i < scanned.size(); ++i) {
    HOLOGRAM_TRY(const size_t axis, kernels::normalise_axis(listed(step, "scan_input_axes", i),
                                                            scanned[i].dims.rank()));
    if (length >= 0 && scanned[i].dims[axis] != length)
      return fail(ErrorCode::shape_mismatch, "scan inputs of length {} and {}", length,
                  scanned[i].dims[axis]);
    length = scanned[i].dims[axis];
    axes.push_back(axis);
  }
  if (limit >= 0) {
    if (limit > length)
      return fail(ErrorCode::out_of_range, "sequence length {} of {}", limit, length);
    length = limit;
  }
  for (int64_t trip = 0; trip < length; ++trip) {
    for (size_t i = 0; i < states.size(); ++i) body.value(plan.inputs[i]) = states[i];
    for (size_t i = 0; i < scanned.size(); ++i) {
      const bool backward = listed(step, "scan_input_directions", i) == 1;
      HOLOGRAM_TRY(Tensor part, element(scanned[i], axes[i], backward ? length - 1 - trip : trip));
      body.value(plan.inputs[states.size() + i]) = Value(std::move(part));
    }
    const Turn turn(context, trip);
    HOLOGRAM_CHECK(body.run(context));
    for (size_t i = 0; i < states.size(); ++i) {
      HOLOGRAM_TRY(states[i], body.value(plan.outputs[i]).clone());
    }
    for (size_t i = 0; i < collected.size(); ++i) {
      HOLOGRAM_TRY(Value part, body.value(plan.outputs[states.size() + i]).clone());
      collected[i].push_back(std::move(part));
    }
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
  std::vector<std::vector<Value>> results(plan.outputs.size());
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<Value> states;
    std::vector<Tensor> scanned;
    for (size_t i = 1; i < step.inputs.size(); ++i) {
      HOLOGRAM_TRY(Tensor part, element(input(i), 0, b));
      if (i - 1 < state_count)
        states.emplace_back(std::move(part));
      else
        scanned.push_back(std::move(part));
    }
    const int64_t limit = lengths ? lengths->as<int64_t>()[b] : longest;
    if (limit < 0) return fail(ErrorCode::out_of_range, "sequence length {}", limit);
    std::vector<std::vector<Value>> collected(plan.outputs.size() - state_count);
    const Turn turn(context, b);
    HOLOGRAM_CHECK(scan_once(body, step, context, states, scanned, limit, collected));
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      if (i < state_count) {
        results[i].push_back(std::move(states[i]));
        continue;
      }
      HOLOGRAM_TRY(Value row, stack(collected[i - state_count], plan.output_ports[i], 0, false,
                                    static_cast<size_t>(longest)));
      results[i].push_back(std::move(row));
    }
  }
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    HOLOGRAM_TRY(frame.value(step.outputs[i]), stack(results[i], plan.output_ports[i]));
  }
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
  if (batched) return run_batched_scan(frame, step, context, *body, state_count);
  std::vector<Value> states;
  std::vector<Tensor> scanned;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const Value& value = frame.value(step.inputs[i]);
    if (i < state_count)
      states.push_back(value);
    else
      scanned.push_back(value.tensor);
  }
  std::vector<std::vector<Value>> collected(plan.outputs.size() - state_count);
  HOLOGRAM_CHECK(scan_once(*body, step, context, states, scanned, -1, collected));
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (i < state_count) {
      HOLOGRAM_TRY(frame.value(step.outputs[i]), states[i].clone());
      continue;
    }
    const size_t k = i - state_count;
    HOLOGRAM_TRY(frame.value(step.outputs[i]),
                 stack(collected[k], plan.output_ports[i], listed(step, "scan_output_axes", k),
                       listed(step, "scan_output_directions", k) == 1));
  }
  return {};
}

Status run_sequence_map(Frame& frame, const LoadedStep& step, RunContext& context) {
  HOLOGRAM_TRY(Frame * body, frame.child(step, 0));
  const LoadedPlan& plan = body->plan();
  if (plan.inputs.size() != step.inputs.size() || plan.outputs.size() < step.outputs.size() ||
      step.inputs.empty() || !frame.value(step.inputs[0]).is_sequence())
    return fail(ErrorCode::corrupt, "a sequence map of other operands than its body");
  const size_t length = frame.value(step.inputs[0]).sequence->size();
  std::vector<std::vector<Value>> results(step.outputs.size());
  for (size_t at = 0; at < length; ++at) {
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const Value& value = frame.value(step.inputs[i]);
      if (value.is_sequence() && value.sequence->size() != length)
        return fail(ErrorCode::shape_mismatch, "sequences of {} and {} elements", length,
                    value.sequence->size());
      body->value(plan.inputs[i]) = value.is_sequence() ? (*value.sequence)[at] : value;
    }
    const Turn turn(context, static_cast<int64_t>(at));
    HOLOGRAM_CHECK(body->run(context));
    for (size_t i = 0; i < results.size(); ++i) {
      HOLOGRAM_TRY(Value part, body->value(plan.outputs[i]).clone());
      results[i].push_back(std::move(part));
    }
  }
  for (size_t i = 0; i < results.size(); ++i)
    frame.value(step.outputs[i]) = Value(std::move(results[i]));
  return {};
}

}  // namespace

Status run_control(Frame& frame, const LoadedStep& step, RunContext& context) {
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
