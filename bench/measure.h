// Measuring on a machine whose neighbours change its speed: a kernel is timed in turns with the
// machine's ceiling, each for as long as the other, and what counts is the share of the ceiling in
// the median turn.
#pragma once

#include <cstddef>
#include <functional>

namespace hologram::bench {

// Medians of all turns. Calls are timed in batches long enough for the clock.
struct Timing {
  double seconds = 0;  // of one call of `body`
  double ceiling = 0;
  // 1 / (seconds * ceiling) of a turn: the median, and the ends of the middle 80%.
  double share = 0, low = 0, high = 0;
};

// Goes on for at least `seconds` on one thread; says how fast.
using Ceiling = double (*)(double seconds);
// Fused multiply-adds from registers, in GFLOP/s.
double fma_ceiling(double seconds);
// Bytes read from a buffer far larger than the caches, in GB/s, by the faster of two loops.
double read_ceiling(double seconds);

// Alternates `body` and `ceiling` for about `budget` seconds. `one_thread`: the body runs on the
// calling thread alone, and only the time that thread itself had counts.
Timing measure(const std::function<void()>& body, Ceiling ceiling, double budget, bool one_thread);

}  // namespace hologram::bench
