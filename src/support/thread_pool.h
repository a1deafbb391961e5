// ThreadPool: fork and join over the physical cores.
//
// One pool a process (`shared()`); tests make their own. The calling thread always takes part, so
// a pool of size 1 has no worker. Work never allocates. A call from inside work, or while another
// thread uses the pool, runs on the calling thread alone: no deadlock, no oversubscription.
// Ranges are cut at multiples of the grain, so work whose result depends only on whole grains gives
// the same bits for every number of threads. A piece whose worker has not woken yet is done by the
// caller. Idle workers poll for some microseconds after work, then sleep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "support/function_ref.h"

namespace hologram {

enum class Schedule {
  fixed,    // ranges dealt evenly beforehand: least overhead, for even work
  dynamic,  // the same to begin with, but who has done with a range takes from the others': for
            // uneven work and uneven processors
};

class ThreadPool {
 public:
  // `threads` counts the caller; 0 means one a physical core.
  explicit ThreadPool(unsigned threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The process's pool; its size is the configuration's num_threads.
  static ThreadPool& shared();

  unsigned size() const { return size_; }

  // Calls body(begin, end) for ranges that cover [0, count) once. A range is a multiple of `grain`
  // long except the last; at most `max_threads` threads take part (0: all).
  void parallel_for(size_t count, size_t grain, FunctionRef<void(size_t, size_t)> body,
                    Schedule schedule = Schedule::fixed, unsigned max_threads = 0);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  unsigned size_ = 1;
};

unsigned physical_core_count();

}  // namespace hologram
