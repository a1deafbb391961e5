#include "support/thread_pool.h"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

namespace hologram {
namespace {

TEST(ThreadPool, CoversEveryIndexOnce) {
  for (unsigned threads : {1u, 2u, 3u, 8u}) {
    ThreadPool pool(threads);
    for (Schedule schedule : {Schedule::fixed, Schedule::dynamic}) {
      for (size_t count : {0u, 1u, 2u, 7u, 64u, 1000u, 4097u}) {
        for (size_t grain : {0u, 1u, 3u, 64u, 5000u}) {
          std::vector<std::atomic<int>> seen(count);
          pool.parallel_for(
              count, grain,
              [&](size_t begin, size_t end) {
                EXPECT_LT(begin, end);
                EXPECT_TRUE(grain == 0 || begin % grain == 0);
                EXPECT_TRUE(grain == 0 || end % grain == 0 || end == count);
                for (size_t i = begin; i < end; ++i) ++seen[i];
              },
              schedule);
          for (const auto& times : seen) ASSERT_EQ(times, 1);
        }
      }
    }
  }
}

TEST(ThreadPool, NestedWorkRunsInPlace) {
  ThreadPool pool(2);
  std::atomic<int> total = 0;
  pool.parallel_for(8, 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      pool.parallel_for(10, 1, [&](size_t b, size_t e) { total += static_cast<int>(e - b); });
  });
  EXPECT_EQ(total, 80);
}

TEST(ThreadPool, ManyCallersAtOnceAllFinish) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<uint64_t> total = 0;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 2000; ++i)
        pool.parallel_for(
            100, 7, [&](size_t b, size_t e) { total += e - b; },
            i % 2 ? Schedule::fixed : Schedule::dynamic);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 4u * 2000 * 100);
}

TEST(ThreadPool, SleepersWakeUp) {
  ThreadPool pool(2);
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // past the time workers poll
    std::atomic<int> total = 0;
    pool.parallel_for(2, 1, [&](size_t b, size_t e) { total += static_cast<int>(e - b); });
    ASSERT_EQ(total, 2);
  }
}

TEST(ThreadPool, IdleWorkersUseNoProcessorTime) {
  ThreadPool pool(4);
  pool.parallel_for(100, 1, [](size_t, size_t) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto used = [] {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double before = used();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(used() - before, 0.02) << "three idle workers that poll would use 0.6 s";
}

TEST(ThreadPool, LimitsThreads) {
  ThreadPool pool(4);
  std::atomic<int> pieces = 0;
  pool.parallel_for(
      1000, 1, [&](size_t, size_t) { ++pieces; }, Schedule::fixed, 2);
  EXPECT_EQ(pieces, 2);
  EXPECT_GE(physical_core_count(), 1u);
  EXPECT_GE(ThreadPool::shared().size(), 1u);
}

}  // namespace
}  // namespace hologram
