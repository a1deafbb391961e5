#include "backends/cpu/slot_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "backends/cpu/cpu_backend.h"

namespace hologram::backends {
namespace {

TEST(SlotPool, GivesConsecutiveSlots) {
  SlotPool pool(SlotPool::kDefaultSlots * SlotPool::kSlotBytes);
  EXPECT_EQ(pool.slots(), 96u);
  const auto one = pool.take(1), exact = pool.take(12288), two = pool.take(12289);
  ASSERT_TRUE(one && exact && two);
  EXPECT_EQ(one->count, 1u);
  EXPECT_EQ(exact->count, 1u);
  EXPECT_EQ(two->count, 2u);
  EXPECT_EQ(static_cast<std::byte*>(two->address) - static_cast<std::byte*>(exact->address), 12288);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(one->address) % 64, 0u);
  EXPECT_EQ(pool.slots_used(), 4u);
  pool.give_back(one->first, one->count);
  EXPECT_EQ(pool.slots_used(), 3u);
}

TEST(SlotPool, LeavesLargeBuffersToTheSystem) {
  SlotPool pool(SlotPool::kDefaultSlots * SlotPool::kSlotBytes);
  EXPECT_TRUE(pool.take(48 * 12288));
  EXPECT_FALSE(pool.take(48 * 12288 + 1));
  EXPECT_TRUE(pool.take(48 * 12288));
  EXPECT_FALSE(pool.take(1)) << "all 96 slots are taken";
}

TEST(SlotPool, FindsRunsAcrossTheStart) {
  SlotPool pool(4 * SlotPool::kSlotBytes);
  const auto a = pool.take(2 * 12288), b = pool.take(12288);
  ASSERT_TRUE(a && b);
  pool.give_back(a->first, a->count);
  // One slot is free at the end and two at the start; only the start has a run of two.
  const auto c = pool.take(2 * 12288);
  ASSERT_TRUE(c);
  EXPECT_EQ(c->first, 0u);
}

TEST(SlotPool, WithoutSlotsServesNothing) {
  SlotPool pool(0);
  EXPECT_FALSE(pool.take(1));
}

// Buffers of 788,480 bytes among thousands of small ones, in random order, from several threads:
// every allocation succeeds and no two buffers share a byte.
TEST(CpuMemory, NeverFailsFromFragmentation) {
  auto backend = CpuBackend::create();
  ASSERT_TRUE(backend);
  constexpr int kThreads = 4, kSteps = 4000;
  std::atomic<int> failures = 0, damaged = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t) * 7919 + 1);
      struct Held {
        Memory memory;
        unsigned char mark;
      };
      std::vector<Held> held;
      const auto check_ends = [&](const Held& h) {
        const auto* bytes = static_cast<const unsigned char*>(h.memory.address());
        for (uint64_t i : {uint64_t{0}, h.memory.size() / 2, h.memory.size() - 1})
          if (bytes[i] != h.mark) damaged += 1;
      };
      for (int step = 0; step < kSteps; ++step) {
        if (held.size() > 60 || (!held.empty() && random() % 2 == 0)) {
          const size_t at = random() % held.size();
          check_ends(held[at]);
          std::swap(held[at], held.back());
          held.pop_back();
          continue;
        }
        const uint64_t size = random() % 16 == 0 ? 788480 : 1 + random() % (4 * 12288);
        auto memory = (*backend)->allocate(size, Lifetime::short_lived);
        if (!memory) {
          failures += 1;
          continue;
        }
        const auto mark = static_cast<unsigned char>(t * 50 + step % 50);
        std::memset(memory->address(), mark, size);
        held.push_back({*std::move(memory), mark});
      }
      for (const Held& h : held) check_ends(h);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(damaged, 0);
  const MemoryStatistics after = (*backend)->memory_statistics();
  EXPECT_EQ(after.live_bytes, 0u);
  EXPECT_EQ(after.pool_slots_used, 0u);
  EXPECT_GT(after.pool_hits, 1000u);
  EXPECT_GT(after.direct, 100u);
}

TEST(CpuMemory, HonoursTheLargestBuffer) {
  CpuOptions options;
  options.max_buffer_bytes = 1000;
  auto backend = CpuBackend::create(options);
  ASSERT_TRUE(backend);
  EXPECT_TRUE((*backend)->allocate(1000));
  const auto refused = (*backend)->allocate(1001);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::resource_exhausted);
  EXPECT_NE(refused.error().message().find("HOLOGRAM_MAX_BUFFER_SIZE"), std::string::npos);
}

TEST(CpuMemory, ZeroBytesAreFine) {
  auto backend = CpuBackend::create();
  ASSERT_TRUE(backend);
  for (const Lifetime lifetime : {Lifetime::lasting, Lifetime::short_lived}) {
    auto memory = (*backend)->allocate(0, lifetime);
    ASSERT_TRUE(memory);
    EXPECT_EQ(memory->size(), 0u);
    EXPECT_TRUE((*backend)->write(*memory, 0, {}));
  }
}

}  // namespace
}  // namespace hologram::backends
