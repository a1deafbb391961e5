// QualityController: decides how many fragments of each tensor to load.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holotensor/quality.h"
#include "holotensor/tensor.h"
#include "support/result.h"

namespace hologram::holotensor {

enum class QualityPolicy {
  fixed,        // every tensor to its target, whatever it costs
  memory,       // the best that fits into a number of bytes
  latency,      // the best that arrives in a time, at the speed measured
  best_effort,  // everything, and content with what comes
};

// Targets by name: the first rule whose pattern matches holds. `attention.*`, `*mlp*`.
struct QualityRule {
  std::string pattern;
  QualityTarget target;
};

struct ControllerOptions {
  QualityPolicy policy = QualityPolicy::fixed;
  // Of tensors that no rule names. With memory and latency, targets are what every tensor gets
  // first; what is left of the budget then goes where it helps most.
  std::optional<QualityTarget> target;
  std::vector<QualityRule> rules;
  // memory: for the fragments; empty: half of what the machine has free when a plan is made.
  std::optional<uint64_t> memory_bytes;
  // latency: for a whole load.
  std::chrono::milliseconds deadline{1000};
  // latency: assumed until a transfer was observed.
  double bytes_per_second = 100e6;
};

// How much of each tensor to load.
struct QualityPlan {
  std::vector<size_t> fragments;  // as the curve counts them, of each tensor
  uint64_t bytes = 0;
  uint64_t budget = UINT64_MAX;
};

// Safe from any thread.
class QualityController {
 public:
  explicit QualityController(ControllerOptions options);

  // The target of a tensor by its name; empty when neither a rule nor the default gives one.
  std::optional<QualityTarget> target_for(std::string_view name) const;

  // fixed: a target that a tensor cannot reach is an error (unsupported).
  // memory and latency: targets that do not fit the budget are an error (resource_exhausted) that
  // says how much they need. Without targets every tensor gets at least its first fragments.
  // best_effort: everything, and never an error.
  Result<QualityPlan> plan(std::span<const TensorInfo> tensors) const;

  // What was measured: a moving average decides what fits into a deadline.
  void observe_transfer(uint64_t bytes, std::chrono::nanoseconds took);
  double bytes_per_second() const;
  // Changes the budget of the memory policy from now on.
  void set_memory(uint64_t bytes);

  // Whether a result is good enough: for best_effort any is, else its target must be met.
  bool accepts(std::string_view name, const Quality& quality) const;

 private:
  uint64_t budget() const;

  ControllerOptions options_;
  mutable std::mutex mutex_;  // guards what follows
  std::optional<uint64_t> memory_bytes_;
  double bytes_per_second_;
  bool observed_ = false;
};

// Bytes of memory that the machine could give to a program now.
uint64_t available_memory();

}  // namespace hologram::holotensor
