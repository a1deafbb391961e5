#include "backends/cpu/dense/conv_shorts.h"

#include <cmath>

#include "backends/cpu/dense/conv_integers-inl.h"
#include "backends/cpu/dense/gemm_narrow.h"
#include "backends/cpu/dense/short_values.h"

namespace hologram::backends::dense {
namespace {

struct ShortForm {
  static constexpr size_t kDigits = 1, kBytes = sizeof(int16_t);
  using Size = float;  // the unit of integers
  ShortFunctions shorts = short_functions();

  Size larger(Size a, Size b) const { return a >= b || std::isnan(a) ? a : b; }  // a NaN stays
  ShortScale scale(Size unit) const { return ShortScale(unit); }
  Size size_of(const IntegerPixels& p) const {
    constexpr size_t kPixels = 64;
    float units[kPixels], most = 0;
    for (size_t first = 0; first < p.pixels; first += kPixels) {
      const size_t count = std::min(kPixels, p.pixels - first);
      shorts.units({p.from + first * p.step, p.block, p.step, count, p.count}, units);
      for (size_t i = 0; i < count; ++i) most = larger(most, units[i]);
    }
    return most;
  }
  void sizes_of(const IntegerPixels& p, Size* sizes) const {
    shorts.units({p.from, p.block, p.step, p.pixels, p.count}, sizes);
  }
  void write(const IntegerRuns& r) const {
    const IntegerPixels& v = r.values;
    shorts.runs({.values = {v.from, v.block, v.step, v.pixels, v.count},
                 .runs = r.runs,
                 .factors = r.factors,
                 .factor_step = r.factor_step,
                 .to = reinterpret_cast<int16_t*>(r.to),
                 .chunk = r.chunk * sizeof(uint32_t)});
  }
  UnitFunction tile() const { return unit_kernels().shorts; }
  void finish(void* sums, size_t rows, size_t width, const float* row_scales, size_t row_step,
              const float* scales) const {
    shorts.scale(static_cast<float*>(sums), rows, width, row_scales, row_step, scales);
  }
};
using Driver = IntegerConv<ShortForm>;

}  // namespace

bool conv_shorts_supported(const ConvShape& s) {
  return s.groups == 1 && s.algorithm == ConvAlgorithm::direct;
}

bool conv_shorts_pays(const ConvShape& s) {
  const size_t terms =
      channel_blocks(s.in_channels) * kChannelBlock * s.kernel_height * s.kernel_width;
  return Driver::order(s).steps() * kChunk * 4 <= terms * 3;
}

size_t packed_conv_shorts_bytes(const ConvShape& s) {
  return packed_b_shorts_bytes(Driver::depth(s), s.out_channels);
}

void pack_conv_shorts(const ConvShape& s, const float* weights, std::byte* packed) {
  pack_b_shorts(Driver::depth(s), s.out_channels, Driver::weight_rows(s, weights).data(),
                s.out_channels, false, packed);
}

size_t conv_shorts_scratch_bytes(const ConvShorts& conv) {
  return Driver::scratch_bytes(conv.shape);
}

void conv_shorts(const ConvShorts& conv, std::byte* memory, ThreadPool& pool) {
  Driver::run({conv.shape, conv.input, conv.packed_weights, conv.output, conv.epilogue}, memory,
              pool);
}

}  // namespace hologram::backends::dense
