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

// Asks for each line 8 KB before it reads it, or leaves that to the CPU.
template <size_t kAhead>
float read_lines(const float* from, size_t count) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d), step = 4 * lanes;
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (size_t i = 0; i + step <= count; i += step) {
    if constexpr (kAhead > 0)
      for (size_t line = 0; line < step; line += 16)
        __builtin_prefetch(from + i + line + kAhead, 0, 2);
    s0 = hn::Add(s0, hn::Load(d, from + i));
    s1 = hn::Add(s1, hn::Load(d, from + i + lanes));
    s2 = hn::Add(s2, hn::Load(d, from + i + 2 * lanes));
    s3 = hn::Add(s3, hn::Load(d, from + i + 3 * lanes));
  }
  return hn::GetLane(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
}
float read_all(const float* from, size_t count, bool asks) {
  return asks ? read_lines<2048>(from, count) : read_lines<0>(from, count);
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

double fma_ceiling(double seconds) {
  static float sink = 1.0f;
  const double begin = own_time();
  double operations = 0, taken = 0;
  do {
    operations += HWY_DYNAMIC_DISPATCH(multiply_adds)(&sink);
    taken = own_time() - begin;
  } while (taken < seconds);
  return operations / taken * 1e-9;
}

namespace {
// The caches of all cores together must not hold what was read the last time round, nor what a
// virtual machine says of them be believed: servers have up to 500 MB.
constexpr size_t kReadBytes = size_t{2} << 30, kPiece = size_t{1} << 20;

double read_for(double seconds, bool asks) {
  static AlignedBytes buffer = [] {
    AlignedBytes bytes = AlignedBytes::allocate(kReadBytes).value();
    for (float& v : bytes.as<float>()) v = 1.0f;
    return bytes;
  }();
  static size_t at = 0;
  const double begin = own_time();
  double bytes = 0, taken = 0;
  do {
    const float* from = buffer.as<float>().data() + at / sizeof(float);
    const float sum = HWY_DYNAMIC_DISPATCH(read_all)(from, kPiece / sizeof(float), asks);
    asm volatile("" : : "r"(&sum) : "memory");
    at = (at + kPiece) % kReadBytes;
    bytes += kPiece;
    taken = own_time() - begin;
  } while (taken < seconds);
  return bytes / taken * 1e-9;
}

// Intel's cores read a seventh more where lines are asked for, Zen's less.
bool asking_is_faster() {
  int faster = 0;
  for (int turn = 0; turn < 9; ++turn) faster += read_for(0.01, true) > read_for(0.01, false);
  return faster > 4;
}
}  // namespace

double read_ceiling(double seconds) {
  static const bool asks = asking_is_faster();
  return read_for(seconds, asks);
}

Timing measure(const std::function<void()>& body, Ceiling ceiling, double budget, bool one_thread) {
  const auto clock = one_thread ? own_time : now;
  body();
  double begin = clock();
  body();
  const double once = std::max(clock() - begin, 1e-9);
  const int calls = std::max(1, static_cast<int>(5e-4 / once));
  std::vector<double> times, ceilings, shares;
  const double end = now() + budget;
  double window = calls * once;
  do {
    ceilings.push_back(ceiling(window));
    begin = clock();
    for (int i = 0; i < calls; ++i) body();
    window = clock() - begin;
    times.push_back(window / calls);
    shares.push_back(1.0 / (times.back() * ceilings.back()));
  } while (now() < end || times.size() < 5);
  const auto at = [](std::vector<double>& values, size_t percent) {
    const auto place = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) * percent / 100);
    std::nth_element(values.begin(), place, values.end());
    return *place;
  };
  return {at(times, 50), at(ceilings, 50), at(shares, 50), at(shares, 10), at(shares, 90)};
}

}  // namespace hologram::bench
#endif
