#include "holotensor/policy/quality_controller.h"

#include <algorithm>
#include <cstdio>
#include <queue>

#include "holotensor/policy/glob.h"

namespace hologram::holotensor {
namespace {

// Fragments 0..k-1: a good estimate for `any` too, whose fragments have nearly one size.
uint64_t bytes_of(const TensorInfo& info, size_t fragments) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < fragments; ++i) bytes += info.fragments[i].size;
  return bytes;
}

size_t fewest(const TensorInfo& info) { return info.min_fragments; }

// The next step of one tensor that removes the most error a byte. Looking at all further counts,
// not only the next, a fragment that helps little alone does not hide the ones behind it.
struct Step {
  double gain = 0;  // error energy a byte; energy is counted in weights
  size_t tensor = 0, from = 0, to = 0;
  uint64_t bytes = 0;
  bool operator<(const Step& other) const { return gain < other.gain; }
};

Step best_step(std::span<const TensorInfo> tensors, size_t tensor, size_t from, uint64_t budget) {
  const TensorInfo& info = tensors[tensor];
  const double weights = static_cast<double>(std::max<uint64_t>(1, info.elements()));
  Step best;
  uint64_t bytes = 0;
  for (size_t to = from + 1; to <= info.fragment_count; ++to) {
    bytes += info.fragments[to - 1].size;
    if (bytes > budget) break;
    const double removed = info.curve[from].nmse - info.curve[to].nmse;
    const double gain = removed * weights / static_cast<double>(std::max<uint64_t>(1, bytes));
    if (gain > best.gain) best = {gain, tensor, from, to, bytes};
  }
  return best;
}

void spend(std::span<const TensorInfo> tensors, QualityPlan& plan) {
  std::priority_queue<Step> steps;
  const auto offer = [&](size_t tensor) {
    const Step step = best_step(tensors, tensor, plan.fragments[tensor], plan.budget - plan.bytes);
    if (step.gain > 0) steps.push(step);
  };
  for (size_t i = 0; i < tensors.size(); ++i) offer(i);
  while (!steps.empty()) {
    const Step step = steps.top();
    steps.pop();
    if (step.bytes <= plan.budget - plan.bytes) {
      plan.fragments[step.tensor] = step.to;
      plan.bytes += step.bytes;
    }
    // Either its next step, or a smaller one that fits what is left.
    offer(step.tensor);
  }
}

}  // namespace

QualityController::QualityController(ControllerOptions options)
    : options_(std::move(options)),
      memory_bytes_(options_.memory_bytes),
      bytes_per_second_(options_.bytes_per_second) {}

std::optional<QualityTarget> QualityController::target_for(std::string_view name) const {
  for (const QualityRule& rule : options_.rules) {
    if (glob_matches(rule.pattern, name)) return rule.target;
  }
  return options_.target;
}

uint64_t QualityController::budget() const {
  std::lock_guard lock(mutex_);
  switch (options_.policy) {
    case QualityPolicy::memory:
      return memory_bytes_.value_or(available_memory() / 2);
    case QualityPolicy::latency:
      return static_cast<uint64_t>(std::min(
          1e18, std::max(0.0, bytes_per_second_ *
                                  std::chrono::duration<double>(options_.deadline).count())));
    case QualityPolicy::fixed:
    case QualityPolicy::best_effort:
      break;
  }
  return UINT64_MAX;
}

Result<QualityPlan> QualityController::plan(std::span<const TensorInfo> tensors) const {
  QualityPlan plan{.budget = budget()};
  const bool adaptive =
      options_.policy == QualityPolicy::memory || options_.policy == QualityPolicy::latency;
  for (const TensorInfo& info : tensors) {
    size_t count = adaptive ? fewest(info) : info.fragment_count;
    const auto target = target_for(info.name);
    if (target && options_.policy != QualityPolicy::best_effort) {
      count = fragments_for(info.curve, *target);
      if (count > info.fragment_count) {
        return fail(ErrorCode::unsupported,
                    "tensor '{}' was stored with an NMSE of {:.3g} and cannot reach its target",
                    info.name, info.curve.back().nmse);
      }
      count = std::max(count, fewest(info));
    }
    plan.fragments.push_back(count);
    plan.bytes += bytes_of(info, count);
  }
  if (plan.bytes > plan.budget) {
    return fail(ErrorCode::resource_exhausted,
                "the least quality of {} tensors takes {} bytes, and there are {} ({})",
                tensors.size(), plan.bytes, plan.budget,
                options_.policy == QualityPolicy::memory ? "give more memory, or lower targets"
                                                         : "give more time, or lower targets");
  }
  if (adaptive) spend(tensors, plan);
  return plan;
}

void QualityController::observe_transfer(uint64_t bytes, std::chrono::nanoseconds took) {
  const double seconds = std::chrono::duration<double>(took).count();
  if (bytes == 0 || seconds <= 0) return;
  const double speed = static_cast<double>(bytes) / seconds;
  std::lock_guard lock(mutex_);
  bytes_per_second_ = observed_ ? 0.7 * bytes_per_second_ + 0.3 * speed : speed;
  observed_ = true;
}

double QualityController::bytes_per_second() const {
  std::lock_guard lock(mutex_);
  return bytes_per_second_;
}

void QualityController::set_memory(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  memory_bytes_ = bytes;
}

bool QualityController::accepts(std::string_view name, const Quality& quality) const {
  if (options_.policy == QualityPolicy::best_effort) return true;
  const auto target = target_for(name);
  return !target || target->met_by(quality);
}

uint64_t available_memory() {
  // Line by line: files of /proc have no size.
  std::FILE* file = std::fopen("/proc/meminfo", "re");
  if (!file) return 0;
  unsigned long long kibibytes = 0;
  char line[256];
  while (std::fgets(line, sizeof line, file) &&
         std::sscanf(line, "MemAvailable: %llu", &kibibytes) != 1) {
  }
  std::fclose(file);
  return uint64_t{kibibytes} * 1024;
}

}  // namespace hologram::holotensor
