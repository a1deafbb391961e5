#include "holotensor/fault_tolerant_decoder.h"

namespace hologram::holotensor {

std::string_view name_of(Validation validation) {
  switch (validation) {
    case Validation::valid:
      return "valid";
    case Validation::corrupted:
      return "corrupted";
    case Validation::missing:
      return "missing";
    case Validation::duplicate:
      return "duplicate";
  }
  return "unknown";
}

Result<FaultTolerantDecoder> FaultTolerantDecoder::create(TensorInfo info, FaultOptions options,
                                                          ThreadPool* pool) {
  HOLOGRAM_TRY(auto decoder, Decoder::create(std::move(info), pool));
  FaultTolerantDecoder made(std::move(decoder), options);
  made.state_.assign(made.decoder_.info().fragment_count, Validation::missing);
  return made;
}

Result<Validation> FaultTolerantDecoder::add(uint16_t index, SharedBytes bytes) {
  if (index >= state_.size())
    return fail(ErrorCode::out_of_range, "fragment {} of {}", index, state_.size());
  const auto note = [&](Validation validation, uint64_t& count) {
    ++count;
    // A second copy, or a bad copy after a good one, changes nothing.
    if (state_[index] != Validation::valid) state_[index] = validation;
    return validation;
  };
  const auto fragment = parse_fragment(bytes);
  if (!fragment || fragment->index != index)
    return note(Validation::corrupted, statistics_.corrupted);
  const auto added = decoder_.add_fragment(std::move(bytes));
  if (!added) return note(Validation::corrupted, statistics_.corrupted);
  if (*added == Added::duplicate) return note(Validation::duplicate, statistics_.duplicate);
  return note(Validation::valid, statistics_.valid);
}

Result<Validation> FaultTolerantDecoder::add_missing(uint16_t index) {
  if (index >= state_.size())
    return fail(ErrorCode::out_of_range, "fragment {} of {}", index, state_.size());
  ++statistics_.missing;
  return Validation::missing;
}

Status FaultTolerantDecoder::fetch_all(const Fetch& fetch, const QualityTarget& target) {
  for (uint16_t index = 0; index < state_.size(); ++index) {
    if (decoder_.has(index)) continue;
    if (decoder_.can_reconstruct() && target.met_by(quality())) break;
    for (unsigned attempt = 0; attempt <= options_.retries; ++attempt) {
      if (attempt > 0) ++statistics_.retries;
      auto bytes = fetch(index);
      HOLOGRAM_TRY(const Validation validation,
                   bytes ? add(index, *std::move(bytes)) : add_missing(index));
      if (validation != Validation::valid) continue;
      statistics_.recovered += attempt > 0;
      break;
    }
  }
  return {};
}

Result<std::vector<std::byte>> FaultTolerantDecoder::reconstruct(DType type) const {
  if (!decoder_.can_reconstruct() || !options_.minimum.met_by(quality()))
    return fail(ErrorCode::corrupt,
                "tensor '{}' reaches {:.1f} dB with {} good fragments of {} ({} corrupted, {} "
                "missing), less than the minimum",
                decoder_.info().name, quality().snr_db(), decoder_.received(), state_.size(),
                statistics_.corrupted, statistics_.missing);
  return decoder_.reconstruct(type);
}

}  // namespace hologram::holotensor
