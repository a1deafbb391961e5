// Measuring on a machine whose neighbours change its speed: a kernel is timed in turns with the
// machine's ceiling, and the best of many counts for both.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace hologram::bench {

// Best seconds of one call of `body`. Calls are timed in batches long enough for the clock.
struct Timing {
  double seconds = 0;
  double ceiling = 0;  // the best of the ceiling loop that ran in turns with it
};

// Fused multiply-adds a second from registers, on one thread, in GFLOP/s.
double fma_ceiling();
// Bytes a second read from a buffer far larger than the caches, on one thread, in GB/s.
double read_ceiling();

// Alternates `body` and `ceiling` for about `budget` seconds. `one_thread`: the body runs on the
// calling thread alone, and only the time that thread itself had counts.
Timing measure(const std::function<void()>& body, double (*ceiling)(), double budget,
               bool one_thread);

}  // namespace hologram::bench
