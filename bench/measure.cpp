#include "bench/measure.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/measure.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hologram::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns the number of floating-point operations of one call. Twelve chains hide the latency of
// every machine with at most three multiply-adds a cycle.
double multiply_adds(float* sink) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int kChains = 12, kTurns = 40000;
  V sums[kChains];
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) sums[i] = hn::Set(d, static_cast<float>(i));
  const V x = hn::Set(d, *sink), y = hn::Set(d, 1e-9f);
  for (int turn = 0; turn < kTurns; ++turn) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sums[i] = hn::MulAdd(sums[i], x, y);
  }
  V total = sums[0];
#pragma GCC unroll 16
  for (int i = 1; i < kChains; ++i) total = hn::Add(total, sums[i]);
  *sink = 1.0f + 1e-30f * hn::GetLane(total);
  return 2.0 * kChains * kTurns * hn::Lanes(d);
}

float read_all(const float* from, size_t count) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (size_t i = 0; i + 4 * lanes <= count; i += 4 * lanes) {
    s0 = hn::Add(s0, hn::Load(d, from + i));
    s1 = hn::Add(s1, hn::Load(d, from + i + lanes));
    s2 = hn::Add(s2, hn::Load(d, from + i + 2 * lanes));
    s3 = hn::Add(s3, hn::Load(d, from + i + 3 * lanes));
  }
  return hn::GetLane(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "support/aligned.h"

namespace hologram::bench {
HWY_EXPORT(multiply_adds);
HWY_EXPORT(read_all);

namespace {
double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
// The calling thread's own time: what other programs take from it does not count.
double own_time() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
}  // namespace

double fma_ceiling() {
  static float sink = 1.0f;
  const double begin = own_time();
  const double operations = HWY_DYNAMIC_DISPATCH(multiply_adds)(&sink);
  return operations / (own_time() - begin) * 1e-9;
}

double read_ceiling() {
  // Well beyond the last-level cache this process could own.
  constexpr size_t kBytes = size_t{256} << 20;
  static AlignedBytes buffer = [] {
    AlignedBytes bytes = AlignedBytes::allocate(kBytes).value();
    for (float& v : bytes.as<float>()) v = 1.0f;
    return bytes;
  }();
  const double begin = own_time();
  const float sum =
      HWY_DYNAMIC_DISPATCH(read_all)(buffer.as<float>().data(), kBytes / sizeof(float));
  asm volatile("" : : "r"(&sum) : "memory");
  return static_cast<double>(kBytes) / (own_time() - begin) * 1e-9;
}

Timing measure(const std::function<void()>& body, double (*ceiling)(), double budget,
               bool one_thread) {
  const auto clock = one_thread ? own_time : now;
  body();
  double begin = clock();
  body();
  const double once = std::max(clock() - begin, 1e-9);
  const int calls = std::max(1, static_cast<int>(5e-4 / once));
  Timing best{1e30, 0};
  const double end = now() + budget;
  do {
    best.ceiling = std::max(best.ceiling, ceiling());
    begin = clock();
    for (int i = 0; i < calls; ++i) body();
    best.seconds = std::min(best.seconds, (clock() - begin) / calls);
  } while (now() < end);
  return best;
}

}  // namespace hologram::bench
#endif
