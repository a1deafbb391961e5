// nchw <-> channel-blocked.
#include <algorithm>

#include "backends/cpu/dense/conv.h"
#include "backends/cpu/dense/transpose.h"

namespace hologram::backends::dense {
namespace {

// Pixels a job converts: 16 channels of it fit in L1 twice.
constexpr size_t kStrip = 128;

template <typename F>
void for_each_strip(size_t batch, size_t channels, size_t pixels, ThreadPool& pool, const F& f) {
  const size_t blocks = channel_blocks(channels), strips = (pixels + kStrip - 1) / kStrip;
  const auto body = [&](size_t begin, size_t end) {
    for (size_t job = begin; job < end; ++job) {
      const size_t first = job % strips * kStrip, block = job / strips % blocks;
      const size_t n = job / strips / blocks;
      f(n, block, std::min(kChannelBlock, channels - block * kChannelBlock), first,
        std::min(kStrip, pixels - first));
    }
  };
  pool.parallel_for(batch * blocks * strips, 1, body, Schedule::fixed,
                    batch * channels * pixels < 32768 ? 1 : 0);
}

}  // namespace

void to_blocked(size_t batch, size_t channels, size_t pixels, const float* nchw, float* blocked,
                ThreadPool& pool) {
  for_each_strip(batch, channels, pixels, pool,
                 [&](size_t n, size_t block, size_t count, size_t first, size_t length) {
                   const float* from =
                       nchw + (n * channels + block * kChannelBlock) * pixels + first;
                   float* to = blocked + ((n * channel_blocks(channels) + block) * pixels + first) *
                                             kChannelBlock;
                   transpose_block(count, length, from, pixels, to, kChannelBlock);
                   for (size_t i = 0; count < kChannelBlock && i < length; ++i)
                     std::fill(to + i * kChannelBlock + count, to + (i + 1) * kChannelBlock, 0.0f);
                 });
}

void from_blocked(size_t batch, size_t channels, size_t pixels, const float* blocked, float* nchw,
                  ThreadPool& pool) {
  for_each_strip(batch, channels, pixels, pool,
                 [&](size_t n, size_t block, size_t count, size_t first, size_t length) {
                   const float* from =
                       blocked +
                       ((n * channel_blocks(channels) + block) * pixels + first) * kChannelBlock;
                   float* to = nchw + (n * channels + block * kChannelBlock) * pixels + first;
                   transpose_block(length, count, from, kChannelBlock, to, pixels);
                 });
}

}  // namespace hologram::backends::dense
