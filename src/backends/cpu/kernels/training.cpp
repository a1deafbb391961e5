// Optimiser steps of ai.onnx.preview.training. Inputs are R, T, then every X, every G and so on.
#include <cmath>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"

namespace hologram::kernels {
namespace {

struct Step {
  double rate;
  int64_t iteration;
};

Result<Step> read_step(KernelContext& c) {
  HOLOGRAM_TRY(const Dims iteration, c.input_integers(1));
  if (iteration.size() != 1 || c.input(0).count() != 1)
    return fail(ErrorCode::shape_mismatch, "R and T are single numbers");
  const Tensor& rate = c.input(0);
  return Step{
      rate.dtype == DType::f64 ? rate.as<double>()[0] : static_cast<double>(rate.as<float>()[0]),
      iteration[0]};
}

// `groups` tensors belong to each optimised tensor. body(element, i) gets pointers to one element
// of each and writes results of the first and of those after the second.
template <size_t groups, typename Body>
Status for_each(KernelContext& c, Body body) {
  if ((c.input_count() - 2) % groups != 0 || c.input_count() <= 2)
    return fail(ErrorCode::invalid_argument,
                "{} tensors after R and T; {} belong to each optimised one", c.input_count() - 2,
                groups);
  const size_t tensors = (c.input_count() - 2) / groups;
  for (size_t t = 0; t < tensors; ++t) {
    const Tensor& x = c.input(2 + t);
    for (size_t g = 1; g < groups; ++g)
      if (c.input(2 + g * tensors + t).dims != x.dims ||
          c.input(2 + g * tensors + t).dtype != x.dtype)
        return fail(ErrorCode::shape_mismatch,
                    "the tensors that belong to one another have different shapes or types");
    Tensor out[groups];
    for (size_t g = 0; g + 1 < groups; ++g) {
      HOLOGRAM_TRY(out[g], c.output(g * tensors + t, x.dims));
      if (out[g].dtype != x.dtype)
        return fail(ErrorCode::type_mismatch, "a result of type {} for a tensor of {}",
                    name_of(out[g].dtype), name_of(x.dtype));
    }
    HOLOGRAM_CHECK(dispatch_float(x.dtype, [&]<typename T>() -> Status {
      for (int64_t i = 0; i < x.count(); ++i) {
        double values[groups];
        for (size_t g = 0; g < groups; ++g)
          values[g] = static_cast<double>(c.input(2 + g * tensors + t).as<T>()[i]);
        double results[groups - 1];
        body(values, results);
        for (size_t g = 0; g + 1 < groups; ++g)
          out[g].template as<T>()[i] = static_cast<T>(results[g]);
      }
      return {};
    }));
  }
  return {};
}

Status adagrad(KernelContext& c) {
  HOLOGRAM_TRY(const Step step, read_step(c));
  const double norm = c.number("norm_coefficient"), epsilon = c.number("epsilon", 1e-6f);
  const double rate =
      step.rate / (1 + static_cast<double>(step.iteration) * c.number("decay_factor"));
  return for_each<3>(c, [&](const double(&v)[3], double(&r)[2]) {  // X, G, H
    const double gradient = norm * v[0] + v[1];
    r[1] = v[2] + gradient * gradient;
    r[0] = v[0] - rate * gradient / (std::sqrt(r[1]) + epsilon);
  });
}

Status adam(KernelContext& c) {
  HOLOGRAM_TRY(const Step step, read_step(c));
  const double alpha = c.number("alpha", 0.9f), beta = c.number("beta", 0.999f),
               epsilon = c.number("epsilon", 1e-6f);
  const double norm = c.number("norm_coefficient"), post = c.number("norm_coefficient_post");
  const auto t = static_cast<double>(step.iteration);
  const double rate = step.iteration > 0
                          ? step.rate * std::sqrt(1 - std::pow(beta, t)) / (1 - std::pow(alpha, t))
                          : step.rate;
  return for_each<4>(c, [&](const double(&v)[4], double(&r)[3]) {  // X, G, V, H
    const double gradient = norm * v[0] + v[1];
    r[1] = alpha * v[2] + (1 - alpha) * gradient;
    r[2] = beta * v[3] + (1 - beta) * gradient * gradient;
    r[0] = (1 - post) * (v[0] - rate * r[1] / (std::sqrt(r[2]) + epsilon));
  });
}

Status momentum(KernelContext& c) {
  HOLOGRAM_TRY(const Step step, read_step(c));
  const std::string_view mode = c.text("mode");
  if (mode != "standard" && mode != "nesterov")
    return fail(ErrorCode::invalid_argument, "mode '{}'; supported: standard, nesterov", mode);
  const double alpha = c.number("alpha"), norm = c.number("norm_coefficient");
  const double beta = step.iteration > 0 ? c.number("beta") : 1;
  return for_each<3>(c, [&](const double(&v)[3], double(&r)[2]) {  // X, G, V
    const double gradient = norm * v[0] + v[1];
    r[1] = alpha * v[2] + beta * gradient;
    r[0] = v[0] - step.rate * (mode == "nesterov" ? gradient + alpha * r[1] : r[1]);
  });
}

constexpr Kernel kKernels[] = {
    {"Adagrad", adagrad},
    {"Adam", adam},
    {"Momentum", momentum},
};

}  // namespace

std::span<const Kernel> training_kernels() { return kKernels; }

}  // namespace hologram::kernels
