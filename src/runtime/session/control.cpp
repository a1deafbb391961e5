// If and Loop: plans inside plans.
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

// The parts one after another along a new first axis.
Result<Value> stack(const std::vector<Value>& parts, const PortInfo& port) {
  Dims dims;
  DType dtype = port.dtype;
  if (!parts.empty()) {
    dims = parts[0].tensor.dims;
  } else if (port.shape) {
    for (const Dim& dim : *port.shape) dims.push_back(dim.is_symbol() ? 0 : dim.value());
  }
  for (const Value& part : parts)
    if (!part.is_tensor() || !(part.tensor.dims == dims))
      return fail(ErrorCode::shape_mismatch, "scan outputs of different shapes");
  dims.insert(0, static_cast<int64_t>(parts.size()));
  HOLOGRAM_TRY(Tensor result, Tensor::allocate(dtype, dims));
  if (dtype != DType::string && size_of(dtype) == 0)
    return fail(ErrorCode::unsupported, "scan outputs of type {}", name_of(dtype));
  std::byte* at = result.data;
  for (const Value& part : parts) {
    if (dtype == DType::string) {
      std::copy_n(part.tensor.as<std::string>(), part.tensor.count(),
                  reinterpret_cast<std::string*>(at));
    } else if (part.tensor.bytes() > 0) {
      std::memcpy(at, part.tensor.data, part.tensor.bytes());
    }
    at += part.tensor.bytes();
  }
  return Value(std::move(result));
}

Status run_loop(Frame& frame, const LoadedStep& step, RunContext& context) {
  auto input = [&](size_t i) {
    return i < step.inputs.size() && step.inputs[i] != kNoValue ? frame.value(step.inputs[i])
                                                                : Value();
  };
  int64_t trips = std::numeric_limits<int64_t>::max();
  if (const Value limit = input(0); limit.is_tensor()) trips = *limit.tensor.as<int64_t>();
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
    HOLOGRAM_CHECK(body->run(context));
    HOLOGRAM_TRY(going, condition(body->value(plan.outputs[0])));
    // The next iteration uses the body's memory again.
    for (size_t i = 0; i < carried; ++i) {
      HOLOGRAM_TRY(state[i], body->value(plan.outputs[1 + i]).clone());
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

}  // namespace

Status run_control(Frame& frame, const LoadedStep& step, RunContext& context) {
  switch (step.control) {
    case Control::if_:
      return run_if(frame, step, context);
    case Control::loop:
      return run_loop(frame, step, context);
    default:
      return fail(ErrorCode::internal, "control operator '{}'", step.label);
  }
}

}  // namespace hologram::runtime
