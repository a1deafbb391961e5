#include "backends/cpu/dense/conv_digits.h"

#include "backends/cpu/dense/conv_integers-inl.h"
#include "backends/cpu/dense/digit_values.h"
#include "backends/cpu/dense/gemm_narrow.h"

namespace hologram::backends::dense {
namespace {

struct DigitForm {
  static constexpr size_t kDigits = 2, kBytes = 1;
  using Size = int32_t;  // the largest magnitude, as bits of an f32
  DigitFunctions digits = digit_functions();

  Size larger(Size a, Size b) const { return std::max(a, b); }
  DigitScale scale(Size largest) const { return DigitScale(largest); }
  Size size_of(const IntegerPixels& p) const {
    alignas(64) int32_t most[kDigitRun] = {};
    digits.collect(p.from, p.step, p.pixels, p.count, most, 0);
    return digits.most(most);
  }
  void sizes_of(const IntegerPixels& p, Size* sizes) const {
    alignas(64) int32_t most[kMaxUnitRows * kDigitRun] = {};
    for (size_t first = 0; first < p.count; first += kDigitRun)
      digits.collect(p.from + first / kDigitRun * p.block, p.step, p.pixels,
                     std::min(kDigitRun, p.count - first), most, kDigitRun);
    for (size_t i = 0; i < p.pixels; ++i) sizes[i] = digits.most(most + i * kDigitRun);
  }
  void write(const IntegerRuns& r) const {
    digits.pixels({.from = r.values.from,
                   .block = r.values.block,
                   .step = r.values.step,
                   .pixels = r.values.pixels,
                   .runs = r.runs,
                   .count = r.values.count,
                   .factors = r.factors,
                   .factor_step = r.factor_step,
                   .upper = reinterpret_cast<uint8_t*>(r.to),
                   .lower = reinterpret_cast<uint8_t*>(r.to + r.digit),
                   .chunk = r.chunk * sizeof(uint32_t)});
  }
  UnitFunction tile() const { return unit_kernels().digits; }
  void finish(void* sums, size_t rows, size_t width, const float* row_scales, size_t row_step,
              const float* scales) const {
    digits.scale(sums, rows, width, row_scales, row_step, scales);
  }
};
using Driver = IntegerConv<DigitForm>;

}  // namespace

bool conv_digits_supported(const ConvShape& s) {
  return s.groups == 1 && s.algorithm == ConvAlgorithm::direct &&
         s.in_channels * s.kernel_height * s.kernel_width <= kMostDigitTerms;
}

bool conv_digits_pays(const ConvShape& s) {
  // In nanoseconds beside a busy hyperthread, for 32 pixels: loads and products of tiles for 32
  // outputs, what digits cost more to finish, and a block of 16 channels to find the largest values
  // of and to take apart. The latter two were found by `dense_bench "conv forms"`.
  constexpr size_t kLoad = 13, kProduct = 15, kFinish = 185, kBlock = 100;
  constexpr size_t kDigitsStep = 12 * kLoad + 12 * kProduct, kPartsStep = 8 * kLoad + 12 * kProduct;
  const size_t panels = (s.out_channels + kPanelColumns - 1) / kPanelColumns;
  const size_t parts = (s.in_channels + 2 * kChannelBlock - 1) / (2 * kChannelBlock) *
                       s.kernel_height * s.kernel_width;
  return panels * (DigitOrder(s).steps() * kDigitsStep + kFinish) +
             channel_blocks(s.in_channels) * kBlock <
         panels * parts * kPartsStep;
}

size_t packed_conv_digits_bytes(const ConvShape& s) {
  return packed_b_digits_bytes(Driver::depth(s), s.out_channels);
}

void pack_conv_digits(const ConvShape& s, const float* weights, std::byte* packed) {
  pack_b_digits(Driver::depth(s), s.out_channels, Driver::weight_rows(s, weights).data(),
                s.out_channels, false, packed);
}

size_t conv_digits_scratch_bytes(const ConvDigits& conv) {
  return Driver::scratch_bytes(conv.shape);
}

void conv_digits(const ConvDigits& conv, std::byte* memory, ThreadPool& pool) {
  Driver::run({conv.shape, conv.input, conv.packed_weights, conv.output, conv.epilogue}, memory,
              pool);
}

}  // namespace hologram::backends::dense
