// Convolutions of several samples on several threads: small ones run a sample a thread, where no
// thread waits for the others between their steps, the others one after the other by all threads.
#pragma once

#include <cstddef>

#include "backends/cpu/dense/conv.h"
#include "backends/cpu/kernels/kernel.h"
#include "support/aligned.h"

namespace hologram::kernels {

// Values of one sample.
inline size_t sample_values(size_t channels, size_t pixels, backends::dense::Layout layout) {
  using namespace backends::dense;
  return pixels * (layout == Layout::nchw ? channels : channel_blocks(channels) * kChannelBlock);
}

// Whether samples are small enough, and so many, that each is better run by one thread alone; not
// so little work that one thread has done it before another comes.
inline bool samples_run_apart(const backends::dense::ConvShape& s, size_t threads) {
  constexpr size_t kLittleWork = 1 << 25, kLittleOfUneven = 1 << 23, kNoWork = 1 << 19;
  if (threads == 1 || s.batch < threads) return false;
  const size_t work = s.out_channels * s.out_height * s.out_width * (s.in_channels / s.groups) *
                      s.kernel_height * s.kernel_width;
  return work < (s.batch % threads == 0 ? kLittleWork : kLittleOfUneven) &&
         work >= kNoWork / s.batch;
}

// `job` has a shape and an epilogue; nth(job, n) makes that of one sample of it.
template <typename Job, typename Nth>
Status run_samples(KernelContext& c, const Job& job, size_t (*bytes)(const Job&),
                   void (*run)(const Job&, std::byte*, ThreadPool&), const Nth& nth) {
  ThreadPool& threads = c.threads();
  const auto run_together = [&]() -> Status {
    HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(bytes(job)));
    run(job, scratch.data(), threads);
    return {};
  };
  if (job.epilogue.program || !samples_run_apart(job.shape, threads.size())) return run_together();
  constexpr size_t kMostScratch = 4 << 20;
  Job one = job;
  one.shape.batch = 1;
  const size_t each = align_up(bytes(one), kAlignment);
  if (each > kMostScratch / job.shape.batch) return run_together();
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(each * job.shape.batch));
  const auto body = [&](size_t begin, size_t end) {
    for (size_t n = begin; n < end; ++n) run(nth(one, n), scratch.data() + n * each, threads);
  };
  threads.parallel_for(job.shape.batch, 1, body, Schedule::dynamic);
  return {};
}

}  // namespace hologram::kernels
