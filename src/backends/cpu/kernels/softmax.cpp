// Softmax, LogSoftmax and Hardmax along one axis.
#include "backends/cpu/kernels/softmax.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/dense/normalize.h"
#include "backends/cpu/kernels/convert.h"
#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"

namespace hologram::kernels {
namespace {

enum class Kind { soft, log, hard };

template <typename T>
void along(Kind kind, const T* x, T* y, int64_t n, int64_t stride) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i)
    if (x[i * stride] > x[best * stride]) best = i;
  if (kind == Kind::hard) {
    for (int64_t i = 0; i < n; ++i) y[i * stride] = i == best ? T(1) : T(0);
    return;
  }
  const T top = x[best * stride];
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T e = std::exp(x[i * stride] - top);
    sum += e;
    y[i * stride] = kind == Kind::soft ? e : x[i * stride] - top;
  }
  const T log_sum = std::log(sum);
  for (int64_t i = 0; i < n; ++i) {
    T& value = y[i * stride];
    value = kind == Kind::soft ? value / sum : value - log_sum;
  }
}

template <Kind kind>
Status softmax(KernelContext& c) {
  const Tensor& in = c.input(0);
  HOLOGRAM_TRY(const size_t axis, c.axis("axis", -1, in.dims.rank()));
  HOLOGRAM_TRY(Tensor out, c.output(0, in.dims));
  const int64_t n = in.dims[axis], inner = in.dims.product(axis + 1, in.dims.rank());
  const int64_t lines = n == 0 ? 0 : in.count() / n;
  if (kind != Kind::hard && in.dtype == DType::f32 && lines > 0) {
    const auto run = kind == Kind::soft ? backends::dense::softmax : backends::dense::log_softmax;
    run(static_cast<size_t>(lines / inner), static_cast<size_t>(n), static_cast<size_t>(inner),
        in.as<float>(), out.as<float>(), c.threads());
    return {};
  }
  return dispatch_float(in.dtype, [&]<typename T>() -> Status {
    c.threads().parallel_for(lines, 64, [&](size_t begin, size_t end) {
      for (size_t line = begin; line < end; ++line) {
        const int64_t start = line / inner * n * inner + line % inner;
        along(kind, in.as<T>() + start, out.as<T>() + start, n, inner);
      }
    });
    return {};
  });
}

// Half types round at each step; the others once.
Status softmax_any(KernelContext& c) {
  const Tensor& in = c.input(0);
  if (in.dtype != DType::f16 && in.dtype != DType::bf16) return softmax<Kind::soft>(c);
  HOLOGRAM_TRY(const size_t axis, c.axis("axis", -1, in.dims.rank()));
  HOLOGRAM_TRY(Tensor out, c.output(0, in.dims));
  Tensor wide{DType::f32, in.dims};
  HOLOGRAM_TRY(wide.data, c.memory().scratch(wide.bytes()));
  convert_half_to_float(in, wide);
  const int64_t n = in.dims[axis], inner = in.dims.product(axis + 1, in.dims.rank());
  c.threads().parallel_for(n == 0 ? 0 : in.count() / n, 64, [&](size_t begin, size_t end) {
    for (size_t line = begin; line < end; ++line) {
      float* x = wide.as<float>() + line / inner * n * inner + line % inner;
      softmax_in(in.dtype, x, x, n, inner);
    }
  });
  convert_float_to_half(wide, out);
  return {};
}

constexpr Kernel kKernels[] = {
    {"Hardmax", softmax<Kind::hard>, true},
    {"LogSoftmax", softmax<Kind::log>, true},
    {"Softmax", softmax_any},
};

}  // namespace

float rounded_to(DType type, float value) {
  if (type == DType::f16) return f16_to_f32(f32_to_f16(value));
  if (type == DType::bf16) return bf16_to_f32(f32_to_bf16(value));
  return value;
}

void softmax_in(DType type, const float* x, float* y, int64_t n, int64_t stride) {
  constexpr int64_t kTerms = 32;
  float top = x[0];
  for (int64_t i = 1; i < n; ++i) top = std::max(top, x[i * stride]);
  float sum = 0;
  for (int64_t i = 0; i < n;) {
    float part = 0;
    for (const int64_t end = std::min(n, i + kTerms); i < end; ++i) {
      const float e = rounded_to(type, std::exp(rounded_to(type, x[i * stride] - top)));
      part = type == DType::bf16 ? rounded_to(type, part + e) : part + e;
      y[i * stride] = e;
    }
    sum += part;
  }
  sum = rounded_to(type, sum);
  for (int64_t i = 0; i < n; ++i) y[i * stride] = rounded_to(type, y[i * stride] / sum);
}

std::span<const Kernel> softmax_kernels() { return kKernels; }

}  // namespace hologram::kernels
