// Weights: the constants of a session that are stored as HoloTensor fragments (`hologram compile
// --weights`). A session opens with some of them and gets better while it runs: improvements are
// decoded in the background into memory that no run sees, and published as a whole set.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "archive/archive.h"
#include "backends/cpu/kernels/tensor.h"
#include "support/result.h"

namespace hologram::runtime {

// How much of the weights a session waits for before it opens. Ignored by archives whose constants
// are plain.
struct WeightQuality {
  enum class Kind : uint8_t {
    exact,      // every bit
    fraction,   // the fragments that lie in this fraction of the section's bytes, 0..1
    fragments,  // so many of every tensor, or all of those that have fewer
    decibels,   // every tensor at least at this signal-to-noise ratio
  };
  Kind kind = Kind::exact;
  double value = 0;

  // "exact", "0.5" or "50%" of the bytes, "4fragments", "20dB".
  static Result<WeightQuality> parse(std::string_view text);
};

struct WeightOptions {
  WeightQuality quality;
  // Go on to every bit in the background; otherwise the session stays as it opened.
  bool improve = true;
};

// What the weights are worth that a run started now would use.
struct WeightStatus {
  uint64_t version = 0;               // 0: the archive's constants are plain; grows as they improve
  uint64_t bytes = 0, all_bytes = 0;  // of the section: used, and stored
  size_t tensors = 0, exact_tensors = 0;
  double snr_db = 0;         // of the worst tensor, as measured when it was encoded
  std::string worst_tensor;  // empty when all are exact
  bool exact = true;         // results are those of the model as it was compiled
  bool improving = false;
};

// One version of all weights, in the order of the section's directory; never changes.
struct WeightSet {
  std::vector<kernels::Tensor> tensors;
};

// Every method is safe from any thread.
class Weights {
 public:
  // Waits for the asked quality. Fails when the archive cannot give it: what is damaged or cut off
  // lowers a quality that was asked for by bytes or fragments, and fails one that was asked for as
  // such. `published` is called with each set, on the thread that made it.
  using Published = std::function<void(const std::shared_ptr<const WeightSet>&)>;
  static Result<std::unique_ptr<Weights>> open(const archive::Archive& archive,
                                               const WeightOptions& options, Published published);
  ~Weights();

  std::shared_ptr<const WeightSet> current() const;
  WeightStatus status() const;
  // Until nothing gets better any more; fails when that is not all there should be.
  Status wait() const;

 private:
  struct Impl;
  explicit Weights(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hologram::runtime
