#include "support/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "support/config.h"

namespace hologram {
namespace {

thread_local bool inside_work = false;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Polls until `ready` or for about `limit`; tells whether it became ready.
template <typename Ready>
bool poll(Ready ready, std::chrono::microseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (true) {
    for (int i = 0; i < 64; ++i) {
      if (ready()) return true;
      relax();
    }
    if (std::chrono::steady_clock::now() >= deadline) return ready();
  }
}

// Long enough to bridge the serial code between two parallel steps, short enough not to matter to
// the other programs of the machine.
constexpr std::chrono::microseconds kWorkerPoll{100};
constexpr std::chrono::microseconds kCallerPoll{200};
// Waking a worker and waiting for it may take longer than a short job: where jobs of late have been
// shorter than this, sleeping workers are left asleep.
constexpr std::chrono::nanoseconds kWorthWaking = std::chrono::microseconds(30);
// Of what is left of a piece, a thread takes one part of so many: few and long at first, where
// neighbours share what they read, short at the end, where threads wait for each other.
constexpr size_t kShare = 4;

}  // namespace

struct ThreadPool::Impl {
  // A ticket is (job number << 32 | pieces not yet claimed). Claiming is one compare-exchange, so
  // a worker that wakes late can never claim from a job that has ended.
  alignas(64) std::atomic<uint64_t> ticket = 0;
  alignas(64) std::atomic<uint32_t> unfinished = 0;
  alignas(64) std::atomic<uint32_t> epoch = 0;  // what sleeping workers wait on
  std::atomic<uint32_t> sleepers = 0;
  std::atomic<bool> stopping = false;
  std::atomic_flag busy;
  uint32_t job_number = 0;
  // How long the longest of the last jobs took, fading by an eighth a job; by who holds `busy`.
  std::chrono::nanoseconds typical = std::chrono::milliseconds(1);

  // The job; written before the ticket is published, read only after a piece is claimed.
  const FunctionRef<void(size_t, size_t)>* body = nullptr;
  size_t count = 0, grain = 0, grains = 0;
  uint32_t pieces = 0;
  bool shares = false;  // pieces help each other
  // Of each piece: the first grain that nobody has taken.
  struct alignas(64) Next {
    std::atomic<size_t> grain = 0;
  };
  std::unique_ptr<Next[]> next;

  std::vector<std::thread> workers;

  // A scheduler may put a worker that wakes behind the thread that woke it, on the same processor,
  // and leave it there for milliseconds. So before sleeping workers are woken the caller's
  // processor is taken from the ones they may use. Called by the thread that holds `busy`.
  void keep_off_caller() {
#if defined(__linux__)
    const int cpu = sched_getcpu();
    if (cpu < 0 || cpu == avoided) return;
    if (avoided == kNotAsked) {
      CPU_ZERO(&allowed);
      if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) CPU_ZERO(&allowed);
    }
    avoided = cpu;
    if (static_cast<size_t>(CPU_COUNT(&allowed)) <= workers.size() || !CPU_ISSET(cpu, &allowed))
      return;
    cpu_set_t others = allowed;
    CPU_CLR(cpu, &others);
    for (std::thread& worker : workers)
      pthread_setaffinity_np(worker.native_handle(), sizeof(others), &others);
#endif
  }
#if defined(__linux__)
  static constexpr int kNotAsked = -1;
  int avoided = kNotAsked;
  cpu_set_t allowed;
#endif

  bool run_one_piece() {
    uint64_t seen = ticket.load(std::memory_order_acquire);
    do {
      if (static_cast<uint32_t>(seen) == 0) return false;
    } while (!ticket.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel));
    const size_t piece = pieces - static_cast<uint32_t>(seen);
    if (shares) {
      for (size_t i = 0; i < pieces; ++i) take_grains((piece + i) % pieces);
    } else {
      run_grains(first_grain(piece), first_grain(piece + 1));
    }
    if (unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished.notify_one();
    return true;
  }

  size_t first_grain(size_t piece) const { return grains * piece / pieces; }
  void run_grains(size_t first, size_t past) const {
    (*body)(first * grain, std::min(count, past * grain));
  }
  // A part of what is left of a piece at a time, until nothing is.
  void take_grains(size_t piece) {
    std::atomic<size_t>& at = next[piece].grain;
    const size_t past = first_grain(piece + 1);
    size_t first = at.load(std::memory_order_relaxed);
    while (first < past) {
      const size_t taken = (past - first + kShare - 1) / kShare;
      if (!at.compare_exchange_weak(first, first + taken, std::memory_order_relaxed)) continue;
      run_grains(first, first + taken);
      first = at.load(std::memory_order_relaxed);
    }
  }

  void work() {
    inside_work = true;
    while (true) {
      const uint32_t seen = epoch.load(std::memory_order_acquire);
      while (run_one_piece()) {
      }
      if (stopping.load(std::memory_order_acquire)) return;
      const auto changed = [&] { return epoch.load(std::memory_order_acquire) != seen; };
      if (poll(changed, kWorkerPoll)) continue;
      sleepers.fetch_add(1, std::memory_order_seq_cst);
      epoch.wait(seen, std::memory_order_seq_cst);
      sleepers.fetch_sub(1, std::memory_order_relaxed);
    }
  }
};

ThreadPool::ThreadPool(unsigned threads) : impl_(std::make_unique<Impl>()) {
  size_ = threads ? threads : physical_core_count();
  impl_->next = std::make_unique<Impl::Next[]>(size_);
  for (unsigned i = 1; i < size_; ++i)
    impl_->workers.emplace_back([impl = impl_.get()] { impl->work(); });
}

ThreadPool::~ThreadPool() {
  impl_->stopping.store(true, std::memory_order_release);
  impl_->epoch.fetch_add(1, std::memory_order_seq_cst);
  impl_->epoch.notify_all();
  for (std::thread& worker : impl_->workers) worker.join();
}

ThreadPool& ThreadPool::shared() {
  static ThreadPool pool(process_config().num_threads);
  return pool;
}

void ThreadPool::parallel_for(size_t count, size_t grain, FunctionRef<void(size_t, size_t)> body,
                              Schedule schedule, unsigned max_threads) {
  if (count == 0) return;
  grain = std::max<size_t>(grain, 1);
  const size_t grains = (count + grain - 1) / grain;
  const size_t threads = std::min<size_t>({size_, max_threads ? max_threads : size_, grains});
  if (threads == 1 || inside_work || impl_->busy.test_and_set(std::memory_order_acquire)) {
    body(0, count);
    return;
  }
  Impl& job = *impl_;
  const auto start = std::chrono::steady_clock::now();
  const auto done = [&] {
    const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - start;
    job.typical = std::max(taken, job.typical - job.typical / 8);
    job.busy.clear(std::memory_order_release);
  };
  if (job.typical < kWorthWaking &&
      job.sleepers.load(std::memory_order_relaxed) == job.workers.size()) {
    body(0, count);
    done();
    return;
  }
  job.body = &body;
  job.count = count;
  job.grain = grain;
  job.grains = grains;
  job.pieces = static_cast<uint32_t>(threads);
  job.shares = schedule == Schedule::dynamic;
  for (size_t piece = 0; job.shares && piece < threads; ++piece)
    job.next[piece].grain.store(job.first_grain(piece), std::memory_order_relaxed);
  job.unfinished.store(job.pieces, std::memory_order_relaxed);
  job.ticket.store(uint64_t{++job.job_number} << 32 | threads, std::memory_order_release);
  job.epoch.fetch_add(1, std::memory_order_seq_cst);
  if (job.sleepers.load(std::memory_order_seq_cst) != 0) {
    job.keep_off_caller();
    job.epoch.notify_all();
  }

  inside_work = true;
  while (job.run_one_piece()) {
  }
  inside_work = false;
  const auto finished = [&] { return job.unfinished.load(std::memory_order_acquire) == 0; };
  if (!poll(finished, kCallerPoll)) {
    for (uint32_t left; (left = job.unfinished.load(std::memory_order_acquire)) != 0;)
      job.unfinished.wait(left, std::memory_order_acquire);
  }
  done();
}

unsigned physical_core_count() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
    return std::max(1u, std::thread::hardware_concurrency());
  // Two logical processors of one core share package and core number.
  std::set<std::pair<int, int>> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const auto read = [cpu](const char* what) {
      char path[96];
      std::snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, what);
      int value = -1;
      if (std::FILE* file = std::fopen(path, "re")) {
        if (std::fscanf(file, "%d", &value) != 1) value = -1;
        std::fclose(file);
      }
      return value;
    };
    const int core = read("core_id");
    cores.emplace(read("physical_package_id"), core < 0 ? cpu : core);
  }
  return std::max<unsigned>(1, static_cast<unsigned>(cores.size()));
}

}  // namespace hologram
