// Loader: loads tensors from a source to a quality, in the background.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holotensor/fault_tolerant_decoder.h"
#include "holotensor/source/fragment_source.h"
#include "support/result.h"

namespace hologram::holotensor {

struct LoadProgress {
  size_t tensors = 0, tensors_done = 0;
  uint64_t fragments_wanted = 0, fragments_loaded = 0;
  uint64_t fragments_failed = 0;  // attempts that brought nothing usable
  uint64_t bytes_wanted = 0, bytes_loaded = 0;
  std::chrono::nanoseconds elapsed{0};
  bool finished = false;
};

struct LoadOptions {
  // Empty: everything.
  std::optional<QualityTarget> target;
  // Overrides `target` for a tensor, by how many fragments to load (see QualityController); null:
  // not used.
  std::function<size_t(const TensorInfo&)> fragments_for = nullptr;
  // Which tensors; empty: all.
  std::vector<std::string> tensors;
  // Fragments that this quality needs come before all others.
  std::optional<QualityTarget> first;
  // The same by how many fragments; null: not used.
  std::function<size_t(const TensorInfo&)> first_fragments_for = nullptr;
  // Further rounds for fragments that failed (a source may have retried by itself before).
  unsigned retries = 1;
  // Both are called on the loading thread, and hold it up.
  std::function<void(const LoadProgress&)> on_progress = nullptr;
  // A tensor (its index in the source) can now be had at this quality.
  std::function<void(size_t tensor, const Quality&)> on_improved = nullptr;
  ThreadPool* pool = nullptr;
};

// Every method is safe from any thread. What is worst gets its next fragment first, so the first
// fragments of all tensors come before any second one, and quality grows evenly. A damaged or
// missing fragment is replaced by another where the tensor's distribution allows it, and never
// changes a value.
class Loader {
 public:
  // Fails on a name that the source does not have. Loading begins at once.
  static Result<std::unique_ptr<Loader>> start(std::unique_ptr<FragmentSource> source,
                                               LoadOptions options = {});
  // Cancels and waits.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Until it has ended. Fails when cancelled, and when a tensor did not reach its target: the error
  // says which and why. What was loaded can be used all the same.
  Status wait();
  // False when it has not ended by then.
  bool wait_for(std::chrono::milliseconds time);
  // Stops soon; does not wait.
  void cancel();
  LoadProgress progress() const;

  const std::vector<TensorInfo>& tensors() const;
  // The best that can be had now, while loading too. The quality is that of these very bytes.
  struct Loaded {
    Quality quality;
    DType type = DType::f32;
    std::vector<std::byte> bytes;
  };
  Result<Loaded> get(std::string_view name, std::optional<DType> type = std::nullopt) const;
  // Into `out`, which has the size of the tensor as `type`.
  Result<Quality> get_into(size_t tensor, DType type, std::span<std::byte> out) const;
  Result<Quality> quality(std::string_view name) const;
  // What became of a tensor's fragments.
  Result<FaultStatistics> statistics(std::string_view name) const;

 private:
  struct Impl;
  explicit Loader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hologram::holotensor
