#include "archive/pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace hologram::archive {
namespace {

constexpr size_t kMiB = 1 << 20;

TEST(PageRelease, IsLeftWhereItIsDearMoreOftenThanCheap) {
  PageRelease pages({});
  for (int i = 0; i < 100; ++i) pages.note(64 * kMiB, 40);  // pieces of 2 MiB
  EXPECT_TRUE(pages.is_cheap());
  // Something else had faults now and then.
  for (int i = 0; i < 100; ++i) pages.note(64 * kMiB, i % 2 == 0 ? 5000 : 40);
  EXPECT_TRUE(pages.is_cheap());
  // The file came into the cache anew, in small pieces.
  for (int i = 0; i < 9; ++i) pages.note(64 * kMiB, 1024);
  EXPECT_FALSE(pages.is_cheap());
}

TEST(PageRelease, CountsFaultsOfThisProcess) {
  constexpr size_t kPages = 64, kPage = 4096;
  const uint64_t before = page_faults();
  auto* memory = static_cast<volatile std::byte*>(
      mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  for (size_t i = 0; i < kPages; ++i) memory[i * kPage] = std::byte{1};
  EXPECT_GT(page_faults(), before);
  munmap(const_cast<std::byte*>(memory), kPages * kPage);
}

TEST(PageRelease, KnowsItsConstants) {
  std::byte memory[64] = {};
  const std::span<const std::byte> all(memory);
  const PageRelease pages(all.subspan(8, 32));
  EXPECT_TRUE(pages.holds(all.subspan(8, 32)));
  EXPECT_TRUE(pages.holds(all.subspan(16, 8)));
  EXPECT_FALSE(pages.holds(all.subspan(0, 16)));
  EXPECT_FALSE(pages.holds(all.subspan(32, 16)));
}

}  // namespace
}  // namespace hologram::archive
