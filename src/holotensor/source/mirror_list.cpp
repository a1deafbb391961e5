#include "holotensor/source/mirror_list.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace hologram::holotensor {

MirrorList::MirrorList(std::vector<Mirror> mirrors, std::chrono::milliseconds cool_off)
    : mirrors_(std::move(mirrors)), states_(mirrors_.size()), cool_off_(cool_off) {
  for (size_t i = 0; i < mirrors_.size(); ++i) states_[i].stats.url = mirrors_[i].url;
}

size_t MirrorList::choose(Clock::time_point now, std::span<const size_t> avoid) const {
  const bool explore = requests_ % 8 == 7;
  const auto rank = [&](size_t i) {
    const State& state = states_[i];
    const bool avoided = std::ranges::find(avoid, i) != avoid.end();
    const bool resting = state.resting_until > now;
    const double speed = state.stats.bytes_per_second > 0 ? state.stats.bytes_per_second
                                                          : std::numeric_limits<double>::infinity();
    const auto rest = resting ? state.resting_until.time_since_epoch() : Clock::duration::zero();
    const double worth =
        explore ? -static_cast<double>(state.requests) : speed / (1.0 + state.in_flight);
    return std::tuple(avoided, resting, rest, mirrors_[i].priority, -worth, state.in_flight, i);
  };
  size_t best = 0;
  for (size_t i = 1; i < mirrors_.size(); ++i) {
    if (rank(i) < rank(best)) best = i;
  }
  return best;
}

void MirrorList::succeeded(size_t mirror, uint64_t bytes, std::chrono::nanoseconds took) {
  State& state = states_[mirror];
  --state.in_flight;
  state.failures_in_a_row = 0;
  state.resting_until = {};
  ++state.stats.successes;
  state.stats.bytes += bytes;
  const double seconds = std::max(1e-9, std::chrono::duration<double>(took).count());
  const double speed = static_cast<double>(bytes) / seconds;
  double& average = state.stats.bytes_per_second;
  average = average == 0 ? speed : 0.7 * average + 0.3 * speed;
}

void MirrorList::failed(size_t mirror, Clock::time_point now, std::string error) {
  State& state = states_[mirror];
  --state.in_flight;
  ++state.stats.failures;
  state.stats.last_error = std::move(error);
  const unsigned doublings = std::min(state.failures_in_a_row++, 6u);
  state.resting_until = now + cool_off_ * (1u << doublings);
}

std::vector<MirrorStats> MirrorList::stats() const {
  std::vector<MirrorStats> out;
  for (const State& state : states_) out.push_back(state.stats);
  return out;
}

}  // namespace hologram::holotensor
