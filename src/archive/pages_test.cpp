#include "archive/pages.h"

#include <gtest/gtest.h>

namespace hologram::archive {
namespace {

constexpr size_t kMiB = 1 << 20;

TEST(PageRelease, IsLeftWhereItIsDearMoreOftenThanCheap) {
  PageRelease pages({});
  for (int i = 0; i < 100; ++i) pages.note(16 * kMiB, 50);
  EXPECT_TRUE(pages.is_cheap());
  for (int i = 0; i < 100; ++i) pages.note(2 * kMiB, 30);  // each call has its price
  EXPECT_TRUE(pages.is_cheap());
  // Something else had the CPU now and then.
  for (int i = 0; i < 100; ++i) pages.note(16 * kMiB, i % 2 == 0 ? 5000 : 50);
  EXPECT_TRUE(pages.is_cheap());
  // The file came into the cache anew, in small pieces.
  for (int i = 0; i < 9; ++i) pages.note(16 * kMiB, 400);
  EXPECT_FALSE(pages.is_cheap());
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
