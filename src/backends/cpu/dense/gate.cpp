#include "backends/cpu/dense/gate.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "backends/cpu/dense/channel_scale.h"
#include "backends/cpu/dense/conv.h"
#include "backends/cpu/dense/means.h"
#include "backends/cpu/dense/tile.h"
#include "support/aligned.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/gate.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/bf16_values-inl.h"

HWY_BEFORE_NAMESPACE();
#include "backends/cpu/dense/oldest_level-inl.h"
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {

// Sixteen columns of a panel: sums[j] = sum of in[k] * weights[k * width + j].
void gate_sums(size_t inputs, size_t width, const float* weights, const double* in, double* sums) {
#if HWY_TARGET == HWY_WASM
  std::fill_n(sums, kChannelBlock, 0.0);
  for (size_t k = 0; k < inputs; ++k, weights += width)
    for (size_t j = 0; j < kChannelBlock; ++j) sums[j] += in[k] * weights[j];
#else
  const hn::CappedTag<double, kChannelBlock> d;
  constexpr size_t kLanes = hn::MaxLanes(d), kVectors = kChannelBlock / kLanes;
  using V = hn::Vec<decltype(d)>;
  V all[kVectors];
#pragma GCC unroll 8
  for (size_t v = 0; v < kVectors; ++v) all[v] = hn::Zero(d);
  for (size_t k = 0; k < inputs; ++k, weights += width) {
    const V a = hn::Set(d, in[k]);
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v)
      all[v] = hn::MulAdd(a, load_wide(d, weights + v * kLanes), all[v]);
  }
#pragma GCC unroll 8
  for (size_t v = 0; v < kVectors; ++v) hn::StoreU(all[v], d, sums + v * kLanes);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(gate_sums);

namespace {

constexpr size_t kSmallWork = 256 * 1024;  // products that one thread makes

// NaN stays what it is.
double clamped(double x, double low, double high) { return x < low ? low : x > high ? high : x; }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double activated(const Epilogue& e, double x) {
  switch (e.activation) {
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::clip:
      return clamped(x, e.first, e.second);
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::silu:
      return x * sigmoid(e.first * x);
    case Activation::hard_sigmoid:
      return clamped(e.first * x + e.second, 0, 1);
    case Activation::hard_swish:
      if (e.second != 0) return x * clamped(x + 3, 0, 6) / 6;
      return x * clamped((e.first != 0 ? e.first : 1.0f / 6) * x + 0.5, 0, 1);
    default:
      return x;
  }
}

double finished(const Gate::Layer& layer, double sum, size_t column) {
  const Epilogue& e = layer.epilogue;
  if (e.bias) sum += e.bias[column];
  if (layer.bias_rest) sum += layer.bias_rest[column];
  sum = activated(e, sum);
  if (e.post) {
    sum = e.post_scale * sum + e.post_shift;
    if (sum < e.post_low) sum = e.post_low;
  }
  return sum;
}

// Two f32 whose sum is the value within 2^-47. Both have its sign and neither is zero where the
// value is not, so that infinity times them stays what it is.
std::pair<float, float> halves(double value) {
  auto high = static_cast<float>(value);
  if (!std::isfinite(high)) return {high, high};
  if (value != 0 && std::abs(double{high}) >= std::abs(value)) high = std::nextafter(high, 0.0f);
  return {high, static_cast<float>(value - high)};
}

class GateRun {
 public:
  GateRun(const Gate& gate, std::byte* scratch)
      : gate_(gate),
        channels_(align_up(gate.channels, kChannelBlock)),
        hidden_(align_up(gate.hidden, kChannelBlock)),
        means_(reinterpret_cast<double*>(scratch)),
        inner_(means_ + gate.batch * channels_),
        scale_(reinterpret_cast<float*>(inner_ + gate.batch * hidden_)),
        rest_(scale_ + gate.batch * channels_) {}

  static size_t bytes(const Gate& gate) {
    const size_t channels = align_up(gate.channels, kChannelBlock);
    const size_t hidden = align_up(gate.hidden, kChannelBlock);
    return gate.batch * (channels * (sizeof(double) + 2 * sizeof(float)) + hidden * sizeof(double));
  }

  void run(ThreadPool& pool) const {
    const size_t blocks = channels_ / kChannelBlock;
    block_means({.planes = gate_.batch * blocks,
                 .pixels = gate_.pixels,
                 .x = gate_.x,
                 .x_bf16 = gate_.x_bf16,
                 .y = means_},
                pool);
    product(gate_.squeeze, gate_.channels, means_, channels_, gate_.hidden, hidden_, pool,
            [&](size_t at, double value) { inner_[at] = value; });
    product(gate_.excite, gate_.hidden, inner_, hidden_, gate_.channels, channels_, pool,
            [&](size_t at, double value) {
              std::tie(scale_[at], rest_[at]) = halves(gate_.plus_one ? value + 1 : value);
            });
    ChannelScale s;
    s.parts[0] = {gate_.x, blocks, gate_.x_bf16};
    s.part_count = 1;
    s.batch = gate_.batch;
    s.pixels = gate_.pixels;
    s.scale = scale_;
    s.scale_rest = rest_;
    s.scale_batch = channels_;
    s.activation = gate_.activation;
    s.first = gate_.first;
    s.second = gate_.second;
    s.y = gate_.y;
    s.y_bf16 = gate_.y_bf16;
    channel_scale(s, pool);
  }

 private:
  // give(place, value) for the results of all samples; those beyond `outputs` are zero.
  template <typename Give>
  void product(const Gate::Layer& layer, size_t inputs, const double* in, size_t in_stride,
               size_t outputs, size_t out_stride, ThreadPool& pool, const Give& give) const {
    const auto sums_of = HWY_DYNAMIC_DISPATCH(gate_sums);
    const size_t blocks = out_stride / kChannelBlock;
    const auto body = [&](size_t begin, size_t end) {
      for (size_t job = begin; job < end; ++job) {
        const size_t sample = job / blocks, column = job % blocks * kChannelBlock;
        const size_t panel = column / kPanelColumns * kPanelColumns;
        double sums[kChannelBlock];
        sums_of(inputs, std::min(kPanelColumns, out_stride - panel),
                layer.weights + panel * inputs + column % kPanelColumns, in + sample * in_stride,
                sums);
        for (size_t i = 0; i < kChannelBlock; ++i)
          give(sample * out_stride + column + i,
               column + i < outputs ? finished(layer, sums[i], column + i) : 0);
      }
    };
    pool.parallel_for(gate_.batch * blocks, 1, body, Schedule::dynamic,
                      gate_.batch * inputs * outputs < kSmallWork ? 1 : 0);
  }

  const Gate& gate_;
  size_t channels_, hidden_;
  double *means_, *inner_;
  float *scale_, *rest_;
};

}  // namespace

bool is_gate_activation(Activation activation) {
  switch (activation) {
    case Activation::none:
    case Activation::relu:
    case Activation::clip:
    case Activation::sigmoid:
    case Activation::silu:
    case Activation::hard_sigmoid:
    case Activation::hard_swish:
      return true;
    default:
      return false;
  }
}

size_t gate_weight_bytes(size_t inputs, size_t outputs) {
  return packed_conv_weight_bytes({.in_channels = inputs, .out_channels = outputs},
                                  Layout::blocked);
}

size_t gate_scratch_bytes(const Gate& gate) { return GateRun::bytes(gate); }

void gate(const Gate& gate, std::byte* scratch, ThreadPool& pool) {
  if (gate.batch * gate.channels * gate.pixels == 0) return;
  GateRun(gate, scratch).run(pool);
}

}  // namespace hologram::backends::dense
#endif
