// Random tensors. The generator is MT19937 with 53-bit uniforms and the polar method for normals:
// NumPy's legacy sequence, so a seed means the same numbers as numpy.random.seed(seed) gives.
//
// Without a seed the seed is 0 (reading a model gives one to each node): the same archive gives the
// same bits, also here.
#include <cmath>
#include <random>

#include "backends/cpu/kernels/arena.h"
#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"

namespace hologram::kernels {
namespace {

class Generator {
 public:
  explicit Generator(KernelContext& c) {
    const auto* seed = c.attributes().find("seed");
    if (!seed) return;
    const double value =
        seed->kind == Attribute::Kind::number ? seed->number : static_cast<double>(seed->integer);
    if (std::fabs(value) < 9e18) engine_.seed(static_cast<uint32_t>(static_cast<int64_t>(value)));
  }

  double uniform() {
    const uint32_t high = static_cast<uint32_t>(engine_()) >> 5,
                   low = static_cast<uint32_t>(engine_()) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

  double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    while (true) {
      const double x = 2 * uniform() - 1, y = 2 * uniform() - 1, square = x * x + y * y;
      if (square >= 1 || square == 0) continue;
      const double factor = std::sqrt(-2 * std::log(square) / square);
      spare_ = factor * x;
      has_spare_ = true;
      return factor * y;
    }
  }

 private:
  std::mt19937 engine_{0};
  double spare_ = 0;
  bool has_spare_ = false;
};

template <bool normal>
Status fill(KernelContext& c, const Dims& dims) {
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  Generator generator(c);
  const double low = c.number("low"), high = c.number("high", 1), mean = c.number("mean"),
               scale = c.number("scale", 1);
  return dispatch_float(out.dtype, [&]<typename T>() -> Status {
    for (T& value : out.span<T>())
      value = static_cast<T>(normal ? mean + scale * generator.normal()
                                    : low + (high - low) * generator.uniform());
    return {};
  });
}

template <bool normal>
Status random_of_shape(KernelContext& c) {
  for (const int64_t dim : c.integers("shape"))
    if (dim < 0)
      return fail(ErrorCode::invalid_argument, "shape has the negative dimension {}", dim);
  return fill<normal>(c, Dims(c.integers("shape")));
}

template <bool normal>
Status random_like(KernelContext& c) {
  return fill<normal>(c, c.input(0).dims);
}

Status bernoulli(KernelContext& c) {
  const Tensor& chance = c.input(0);
  HOLOGRAM_TRY(Tensor out, c.output(0, chance.dims));
  Generator generator(c);
  List<bool> ones(static_cast<size_t>(chance.count()));
  HOLOGRAM_CHECK(dispatch_float(chance.dtype, [&]<typename T>() -> Status {
    for (size_t i = 0; i < ones.size(); ++i) {
      const double p = static_cast<double>(chance.as<T>()[i]);
      if (!(p >= 0 && p <= 1))
        return fail(ErrorCode::out_of_range, "a probability is {}; it must be in [0, 1]", p);
      ones[i] = generator.uniform() < p;
    }
    return {};
  }));
  const auto write = [&]<typename T>() -> Status {
    for (size_t i = 0; i < ones.size(); ++i) out.as<T>()[i] = ones[i] ? T(1) : T(0);
    return {};
  };
  if (out.dtype == DType::boolean) return write.template operator()<uint8_t>();
  return dispatch_number(out.dtype, write);
}

// Rows of unnormalised log probabilities; draws with replacement.
Status multinomial(KernelContext& c) {
  const Tensor& logits = c.input(0);
  const int64_t samples = c.integer("sample_size", 1);
  if (logits.dims.rank() != 2 || samples < 0)
    return fail(ErrorCode::shape_mismatch,
                "the input is {}, sample_size {}: [batch, classes] and at least 0 are needed",
                logits.dims.to_string(), samples);
  const int64_t rows = logits.dims[0], classes = logits.dims[1];
  if (classes == 0 && samples > 0 && rows > 0)
    return fail(ErrorCode::shape_mismatch, "there is no class to draw");
  HOLOGRAM_TRY(Tensor out, c.output(0, Dims{rows, samples}));
  if (out.count() == 0) return {};
  Generator generator(c);
  List<double> cumulative(static_cast<size_t>(classes));
  return dispatch_float(logits.dtype, [&]<typename T>() -> Status {
    for (int64_t row = 0; row < rows; ++row) {
      const T* x = logits.as<T>() + row * classes;
      double top = -INFINITY, sum = 0;
      for (int64_t k = 0; k < classes; ++k) top = std::max(top, static_cast<double>(x[k]));
      for (int64_t k = 0; k < classes; ++k)
        cumulative[static_cast<size_t>(k)] = sum += std::exp(static_cast<double>(x[k]) - top);
      for (int64_t i = 0; i < samples; ++i) {
        const double u = generator.uniform() * sum;
        const int64_t drawn = std::min<int64_t>(
            classes - 1,
            std::upper_bound(cumulative.begin(), cumulative.end(), u) - cumulative.begin());
        if (out.dtype == DType::i32)
          out.as<int32_t>()[row * samples + i] = static_cast<int32_t>(drawn);
        else
          out.as<int64_t>()[row * samples + i] = drawn;
      }
    }
    return {};
  });
}

// Outside training the data passes through and the mask is all ones.
Status dropout(KernelContext& c) {
  const Tensor& x = c.input(0);
  const bool training =
      c.has_input(2) && c.input(2).count() == 1 && c.input(2).as<uint8_t>()[0] != 0;
  double ratio = 0.5;
  if (c.has_input(1) && size_of(c.input(1).dtype) == 1) {
    if (c.input(1).count() == 1)
      ratio = small_float_to_f32(c.input(1).dtype, c.input(1).as<uint8_t>()[0]);
  } else if (c.has_input(1)) {
    HOLOGRAM_CHECK(dispatch_float(c.input(1).dtype, [&]<typename T>() -> Status {
      if (c.input(1).count() == 1) ratio = static_cast<double>(c.input(1).as<T>()[0]);
      return {};
    }));
  }
  if (!(ratio >= 0 && ratio < 1))
    return fail(ErrorCode::out_of_range, "ratio is {}; it must be in [0, 1)", ratio);
  HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
  uint8_t* mask = nullptr;
  if (c.wants_output(1)) {
    HOLOGRAM_TRY(const Tensor kept, c.output(1, x.dims));
    mask = kept.as<uint8_t>();
  }
  Generator generator(c);
  if (size_of(x.dtype) == 1) {  // 8-bit floats
    for (int64_t i = 0; i < x.count(); ++i) {
      const bool keep = !training || ratio == 0 || generator.uniform() >= ratio;
      const uint8_t bits = x.as<uint8_t>()[i];
      const double scaled = keep ? small_float_to_f32(x.dtype, bits) / (1 - ratio) : 0;
      y.as<uint8_t>()[i] =
          training ? f32_to_small_float(x.dtype, static_cast<float>(scaled)) : bits;
      if (mask) mask[i] = keep;
    }
    return {};
  }
  return dispatch_float(x.dtype, [&]<typename T>() -> Status {
    const T scale = static_cast<T>(1 / (1 - ratio));
    for (int64_t i = 0; i < x.count(); ++i) {
      const bool keep = !training || ratio == 0 || generator.uniform() >= ratio;
      y.as<T>()[i] = !training ? x.as<T>()[i] : keep ? x.as<T>()[i] * scale : T(0);
      if (mask) mask[i] = keep;
    }
    return {};
  });
}

constexpr Kernel kKernels[] = {
    {"Bernoulli", bernoulli, true},
    {"Dropout", dropout, true},
    {"Multinomial", multinomial, true},
    {"RandomNormal", random_of_shape<true>, true},
    {"RandomNormalLike", random_like<true>, true},
    {"RandomUniform", random_of_shape<false>, true},
    {"RandomUniformLike", random_like<false>, true},
};

}  // namespace

std::span<const Kernel> random_kernels() { return kKernels; }

}  // namespace hologram::kernels
