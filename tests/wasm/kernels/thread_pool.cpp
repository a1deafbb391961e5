// The thread pool where there are no threads: what each would take is done one after the other, so
// that tests which compare numbers of threads still compare different cuts of the work.
#include "support/thread_pool.h"

#include <algorithm>

namespace hologram {

struct ThreadPool::Impl {
  bool busy = false;
};

ThreadPool::ThreadPool(unsigned threads)
    : impl_(std::make_unique<Impl>()), size_(threads ? threads : physical_core_count()) {}
ThreadPool::~ThreadPool() = default;

ThreadPool& ThreadPool::shared() {
  static ThreadPool pool;
  return pool;
}

void ThreadPool::parallel_for(size_t count, size_t grain, FunctionRef<void(size_t, size_t)> body,
                              Schedule /*schedule*/, unsigned max_threads) {
  if (count == 0) return;
  grain = std::max<size_t>(grain, 1);
  const size_t grains = (count + grain - 1) / grain;
  const size_t threads = std::min<size_t>({size_, max_threads ? max_threads : size_, grains});
  if (threads == 1 || impl_->busy) {
    body(0, count);
    return;
  }
  impl_->busy = true;
  // The last first: no work may wait for what comes before it.
  for (size_t i = threads; i-- > 0;)
    body(grains * i / threads * grain, std::min(count, grains * (i + 1) / threads * grain));
  impl_->busy = false;
}

unsigned physical_core_count() { return 1; }

}  // namespace hologram
