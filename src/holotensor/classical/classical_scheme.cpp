#include "holotensor/classical/classical_scheme.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "holotensor/classical/classical_decoder.h"
#include "holotensor/classical/exact_residual.h"
#include "holotensor/classical/integer_stream.h"
#include "holotensor/fragment.h"
#include "holotensor/packed.h"

namespace hologram::holotensor {
namespace {

// Without a target: 40 dB before the residual makes it exact.
constexpr double kDefaultNmse = 1e-4;
// Fewer weights than this do not pay for a fragment's header.
constexpr size_t kLeastWeightsAFragment = 512;

using Parts = std::vector<std::vector<int32_t>>;

// One tensor on its way through the encoder.
class Encoding {
 public:
  Encoding(const TensorView& tensor, const Matrix& matrix, const Analysis& analysis,
           size_t fragments, bool exact, ThreadPool& pool)
      : tensor_(tensor),
        matrix_(matrix),
        analysis_(analysis),
        fragments_(fragments),
        exact_(exact),
        pool_(pool) {
    for (size_t part = 0; part <= fragments; ++part) {
      numbers_.emplace_back(analysis.synthesis().part_size(part));
      analysis.numbers(part, numbers_.back());
      for (const float number : numbers_.back()) largest_ = std::max(largest_, std::abs(number));
    }
  }

  // A step whose numbers fit comfortably into 31 bits.
  double usable_step(double step) const {
    return std::max({step, double{largest_} * 0x1p-30, 1e-300});
  }

  Parts round(double step) const {
    Parts parts;
    for (const auto& numbers : numbers_) {
      std::vector<int32_t>& part = parts.emplace_back(numbers.size());
      const double inverse = 1 / step;
      pool_.parallel_for(numbers.size(), 1 << 14, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          part[i] = static_cast<int32_t>(std::nearbyint(numbers[i] * inverse));
        }
      });
    }
    return parts;
  }

  std::vector<std::vector<std::byte>> payloads(const Parts& parts) const {
    std::vector<std::byte> essential;
    encode_integers(parts[fragments_], essential, pool_);
    std::vector<std::vector<std::byte>> out(fragments_);
    for (size_t f = 0; f < fragments_; ++f) {
      std::vector<std::byte> own;
      encode_integers(parts[f], own, pool_);
      ByteWriter writer(out[f]);
      writer.varint(essential.size());
      writer.bytes(essential);
      writer.varint(own.size());
      writer.bytes(own);
    }
    return out;
  }

  // The reconstruction from the fragments in `chosen`.
  Status reconstruct(const Parts& parts, std::span<const size_t> chosen, double step,
                     std::span<float> out) const {
    std::vector<Part> present(fragments_ + 1);
    present[fragments_] = parts[fragments_];
    for (const size_t f : chosen) present[f] = parts[f];
    HOLOGRAM_CHECK(analysis_.synthesis().synthesise(present, step, out, pool_));
    unscale(out, matrix_.exponent, pool_);
    return {};
  }

  Result<double> nmse(double step) const {
    std::vector<size_t> all(fragments_);
    std::iota(all.begin(), all.end(), 0);
    std::vector<float> values(matrix_.source.size());
    HOLOGRAM_CHECK(reconstruct(round(step), all, step, values));
    return measure(matrix_.source, values, pool_).quality(false).nmse;
  }

  double bits_a_weight(double step, size_t parameters) const {
    uint64_t bytes = parameters + fragments_ * kFragmentHeaderSize;
    for (const auto& payload : payloads(round(step))) bytes += payload.size();
    return 8.0 * static_cast<double>(bytes) / static_cast<double>(matrix_.source.size());
  }

  // Fills in the curve, and the residual where the result is to be exact. Subsets are nested, and
  // begin with the fragments that carry the least energy: each point is the worst of its size.
  Status finish(double step, const Parts& parts, SchemeOutput& out) const {
    std::vector<double> energy(fragments_);
    for (size_t f = 0; f < fragments_; ++f) {
      energy[f] = sum_in_chunks(parts[f].size(), pool_, [&](size_t begin, size_t end) {
        double sum = 0;
        for (size_t i = begin; i < end; ++i) sum += double(parts[f][i]) * parts[f][i];
        return sum;
      });
    }
    std::vector<size_t> order(fragments_);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return energy[a] < energy[b]; });

    std::vector<float> values(matrix_.source.size());
    out.curve.push_back(measure(matrix_.source, values, pool_).quality(false));
    for (size_t k = 1; k <= fragments_; ++k) {
      HOLOGRAM_CHECK(reconstruct(parts, std::span(order).first(k), step, values));
      out.curve.push_back(measure(matrix_.source, values, pool_).quality(false));
    }
    if (!exact_) return {};
    const size_t width = size_of(tensor_.dtype);
    for (size_t f = 0; f < fragments_; ++f) {
      const ElementRange range = residual_range(values.size(), fragments_, f);
      HOLOGRAM_TRY(const auto residual,
                   encode_residual(tensor_.dtype,
                                   tensor_.bytes.subspan(range.begin * width, range.size() * width),
                                   std::span(values).subspan(range.begin, range.size()), pool_));
      ByteWriter(out.fragments[f]).bytes(residual);
    }
    out.curve.back() = {.nmse = 0, .max_error = 0, .exact = true};
    return {};
  }

 private:
  const TensorView& tensor_;
  const Matrix& matrix_;
  const Analysis& analysis_;
  size_t fragments_;
  bool exact_;
  ThreadPool& pool_;
  std::vector<std::vector<float>> numbers_;
  float largest_ = 0;
};

// The largest step that meets the error. The error goes with the square of the step, so a few
// corrections do.
Result<double> step_for_nmse(const Encoding& encoding, double target, double step) {
  double best = 0, nearest = INFINITY;
  for (int trial = 0; trial < 12; ++trial) {
    step = encoding.usable_step(step);
    HOLOGRAM_TRY(const double nmse, encoding.nmse(step));
    nearest = std::min(nearest, nmse);
    if (nmse <= target) best = std::max(best, step);
    if (nmse <= target && nmse >= 0.9 * target) break;
    const double factor = nmse > 0 ? std::sqrt(0.96 * target / nmse) : 4;
    step *= std::clamp(factor, 1 / 64.0, 64.0);
    if (best > 0 && step <= best) break;
  }
  if (best > 0) return best;
  return fail(ErrorCode::unsupported,
              "the scheme gets to an NMSE of {:.3g} at best and not to {:.3g}; use refine, or no "
              "target for an exact residual",
              nearest, target);
}

// The smallest step that keeps within the size: found between one that does and one that does not,
// on the scale of its logarithm, where a step twice as large saves at most a bit a number.
Result<double> step_for_bits(const Encoding& encoding, double target, double step,
                             size_t parameters) {
  double fits = INFINITY, fits_bits = 0, exceeds = 0, exceeds_bits = INFINITY;
  double stride = 0.5;
  for (int trial = 0; trial < 24; ++trial) {
    step = encoding.usable_step(step);
    const double bits = encoding.bits_a_weight(step, parameters);
    if (bits <= target) {
      fits = step, fits_bits = bits;
      if (bits >= target - std::max(0.01, 0.004 * target)) break;
      if (step == encoding.usable_step(0)) break;  // no finer step is possible
    } else {
      exceeds = step, exceeds_bits = bits;
    }
    if (fits == INFINITY || exceeds == 0) {
      step *= std::exp2(std::clamp(bits - target, -8.0, 8.0) + (bits > target ? stride : -stride));
      stride *= 2;
      continue;
    }
    const double span = std::log2(fits / exceeds);
    if (span < 0.002) break;
    const double part = (exceeds_bits - target) / (exceeds_bits - fits_bits);
    step = exceeds * std::exp2(span * std::clamp(part + 0.02, 0.05, 0.95));
  }
  if (fits < INFINITY) return fits;
  return fail(ErrorCode::unsupported,
              "{:.3g} bits a weight are too few for this tensor: it takes {:.3g} at least", target,
              exceeds_bits);
}

}  // namespace

Result<SchemeOutput> ClassicalScheme::encode(const TensorView& tensor,
                                             const EncoderOptions& options,
                                             ThreadPool& pool) const {
  if (!converts_to_f32(tensor.dtype)) {
    if (options.target_bits || options.target) {
      return fail(ErrorCode::unsupported, "{} does not take elements of {}", name_of(id()),
                  name_of(tensor.dtype));
    }
    HOLOGRAM_TRY(auto output, packed_scheme().encode(tensor, options, pool));
    output.scheme = SchemeId::packed;
    return output;
  }
  HOLOGRAM_TRY(const Matrix matrix, to_matrix(tensor, pool));
  const bool exact = !options.target_bits && (!options.target || options.target->exact);
  if (!matrix.finite && !exact) {
    return fail(ErrorCode::invalid_argument,
                "the tensor has NaN or infinite values, which {} keeps only when exact: give no "
                "target, or use refine",
                name_of(id()));
  }
  const size_t count = matrix.source.size();
  const size_t fragments = std::clamp<size_t>(count / kLeastWeightsAFragment, 1, options.fragments);
  const double root_mean_square = std::sqrt(matrix.mean_square);
  double step = std::sqrt(12 * kDefaultNmse) * root_mean_square;
  if (options.target && !exact) {
    step = std::sqrt(12 * std::max(options.target->max_nmse, 1e-14)) * root_mean_square;
  } else if (options.target_bits) {
    step = std::exp2(2.05 - *options.target_bits) * root_mean_square;
  }

  HOLOGRAM_TRY(const auto analysis,
               transform_.analyse(matrix, fragments, options, step, exact, pool));
  const Encoding encoding(tensor, matrix, *analysis, fragments, exact, pool);
  SchemeOutput out;
  out.distribution = Distribution::any;
  ByteWriter parameters(out.parameters);
  parameters.put(kClassicalVersion);
  parameters.put(static_cast<uint8_t>(exact));
  parameters.put(static_cast<int16_t>(matrix.exponent));
  parameters.put(double{0});  // the step, known last
  analysis->write_parameters(parameters);

  if (count > 0 && options.target_bits) {
    HOLOGRAM_TRY(step, step_for_bits(encoding, *options.target_bits, step, out.parameters.size()));
  } else if (count > 0 && options.target && !exact) {
    HOLOGRAM_TRY(step, step_for_nmse(encoding, options.target->max_nmse, step));
  }
  step = encoding.usable_step(step);
  std::memcpy(out.parameters.data() + 4, &step, sizeof step);
  const Parts parts = encoding.round(step);
  out.fragments = encoding.payloads(parts);
  HOLOGRAM_CHECK(encoding.finish(step, parts, out));
  return out;
}

}  // namespace hologram::holotensor
