// MirrorList: which of several copies of a file to ask next. Pure bookkeeping: no clock, no
// network.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hologram::holotensor {

struct Mirror {
  std::string url;
  int priority = 0;  // lower is asked first
};

// What is known of one mirror.
struct MirrorStats {
  std::string url;
  uint64_t bytes = 0;      // useful bytes received
  uint64_t successes = 0;  // ranges
  uint64_t failures = 0;
  double bytes_per_second = 0;  // a moving average; 0: not measured yet
  std::string last_error;
};

// Not for two threads at once.
class MirrorList {
 public:
  using Clock = std::chrono::steady_clock;

  // A mirror rests for `cool_off` after a failure, twice as long after each further one in a row.
  MirrorList(std::vector<Mirror> mirrors, std::chrono::milliseconds cool_off);

  // The mirror to ask: of those that are not resting and not in `avoid`, the lowest priority, then
  // one whose speed is not known, then the highest speed per request in flight. Every eighth time
  // it is instead the one asked least, so that speeds stay known. When all are resting or avoided,
  // the one that rests least of those not avoided, then any.
  size_t choose(Clock::time_point now, std::span<const size_t> avoid = {}) const;

  void started(size_t mirror) {
    ++states_[mirror].in_flight;
    ++states_[mirror].requests;
    ++requests_;
  }
  void succeeded(size_t mirror, uint64_t bytes, std::chrono::nanoseconds took);
  void failed(size_t mirror, Clock::time_point now, std::string error);
  // Given up without blame (cancelled).
  void abandoned(size_t mirror) { --states_[mirror].in_flight; }

  size_t size() const { return mirrors_.size(); }
  const std::string& url(size_t mirror) const { return mirrors_[mirror].url; }
  std::vector<MirrorStats> stats() const;

 private:
  struct State {
    MirrorStats stats;
    unsigned in_flight = 0;
    uint64_t requests = 0;
    unsigned failures_in_a_row = 0;
    Clock::time_point resting_until = {};
  };
  std::vector<Mirror> mirrors_;
  std::vector<State> states_;
  std::chrono::milliseconds cool_off_;
  uint64_t requests_ = 0;
};

}  // namespace hologram::holotensor
