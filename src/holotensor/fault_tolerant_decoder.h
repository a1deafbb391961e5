// FaultTolerantDecoder: decodes from fragments that may be damaged, missing or repeated.
#pragma once

#include <functional>
#include <vector>

#include "holotensor/decoder.h"
#include "support/result.h"

namespace hologram::holotensor {

enum class Validation { valid, corrupted, missing, duplicate };
std::string_view name_of(Validation validation);

struct FaultOptions {
  unsigned retries = 2;                              // further fetches of a fragment that failed
  QualityTarget minimum = QualityTarget::nmse(1.0);  // reconstruct() refuses to give less
};

struct FaultStatistics {
  uint64_t valid = 0, corrupted = 0, missing = 0, duplicate = 0;
  uint64_t retries = 0;    // fetches after the first
  uint64_t recovered = 0;  // fragments that a retry brought in
};

// A damaged fragment never changes the result, it only lowers the quality. Not thread-safe.
class FaultTolerantDecoder {
 public:
  static Result<FaultTolerantDecoder> create(TensorInfo info, FaultOptions options = {},
                                             ThreadPool* pool = nullptr);

  // What came for place `index`; its own header must agree. An error is only for misuse (an index
  // past the end).
  Result<Validation> add(uint16_t index, SharedBytes fragment);
  // Notes that nothing came.
  Result<Validation> add_missing(uint16_t index);
  // Fetches every fragment not yet in until the target is met, each at most 1 + retries times.
  using Fetch = std::function<Result<SharedBytes>(uint16_t index)>;
  Status fetch_all(const Fetch& fetch, const QualityTarget& target = QualityTarget::lossless());

  // The last word on every fragment; those never tried are missing.
  std::vector<Validation> report() const { return state_; }
  const FaultStatistics& statistics() const { return statistics_; }
  Quality quality() const { return decoder_.quality(); }
  // Refuses (`corrupt`, with the counts) when the minimum quality is not reached.
  Result<std::vector<std::byte>> reconstruct(DType type) const;
  const Decoder& decoder() const { return decoder_; }

 private:
  explicit FaultTolerantDecoder(Decoder decoder, FaultOptions options)
      : decoder_(std::move(decoder)), options_(options) {}
  Decoder decoder_;
  FaultOptions options_;
  FaultStatistics statistics_;
  std::vector<Validation> state_;
};

}  // namespace hologram::holotensor
