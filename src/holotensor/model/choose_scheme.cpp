#include "holotensor/model/choose_scheme.h"

#include <algorithm>
#include <utility>

namespace hologram::holotensor {
namespace {

// What a scheme takes, in bits a weight; with a target size less what its quality is worth, at the
// 6.02 dB a bit of rate-distortion theory: a scheme that stops short of the size is not blamed for
// bits it did not use.
double cost_of(const SchemeTrial& trial, double weights, bool target_is_size) {
  const double bits = 8.0 * static_cast<double>(trial.bytes) / weights;
  if (!target_is_size) return bits;
  const double decibels = trial.quality.exact ? 200 : std::min(200.0, trial.quality.snr_db());
  return bits - decibels / 6.0206;
}

// `any` is asked for because fragments will be missing: what some of them give counts as well.
bool no_worse_in_part(const TensorInfo& info, const TensorInfo& than) {
  if (info.curve.size() != than.curve.size()) return false;
  for (size_t k = than.min_fragments; k < info.curve.size(); ++k)
    if (info.curve[k].nmse > than.curve[k].nmse) return false;
  return true;
}

}  // namespace

Result<SchemeChoice> choose_scheme(const TensorView& tensor, const EncoderOptions& options,
                                   std::span<const SchemeId> candidates) {
  SchemeChoice choice;
  const SchemeTrial* best = nullptr;
  choice.trials.reserve(candidates.size());
  HOLOGRAM_TRY(const uint64_t elements, element_count(tensor.shape, tensor.dtype));
  const double weights = static_cast<double>(std::max<uint64_t>(1, elements));
  const bool target_is_size = options.target_bits.has_value();
  const auto clearly_better = [&](const SchemeTrial& a, const SchemeTrial& b) {
    const double bits = 8.0 * static_cast<double>(b.bytes) / weights;
    const double margin = target_is_size ? 0.25 : std::min(0.25, 0.1 * bits);
    return cost_of(a, weights, target_is_size) < cost_of(b, weights, target_is_size) - margin;
  };
  for (const SchemeId scheme : candidates) {
    EncoderOptions with_scheme = options;
    with_scheme.scheme = scheme;
    auto encoded = Encoder(std::move(with_scheme)).encode(tensor);
    SchemeTrial& trial = choice.trials.emplace_back();
    trial.scheme = scheme;
    if (!encoded) {
      trial.error = std::move(encoded).error();
      continue;
    }
    trial.bytes = encoded->info.stored_bytes() + encoded->info.parameters.size();
    trial.quality = encoded->info.curve.back();
    const bool serves = !best || options.distribution != Distribution::any ||
                        no_worse_in_part(encoded->info, choice.encoded.info);
    if (!best || (serves && clearly_better(trial, *best))) {
      best = &trial;
      choice.encoded = *std::move(encoded);
    }
  }
  if (best) return choice;
  if (choice.trials.empty()) return fail(ErrorCode::invalid_argument, "no scheme to choose from");
  return std::unexpected(*choice.trials.front().error);
}

}  // namespace hologram::holotensor
