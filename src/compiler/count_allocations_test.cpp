#include "compiler/count_allocations.h"

#include <gtest/gtest.h>

#include <new>

#include "support/aligned.h"

namespace hologram::compiler {

TEST(CountAllocations, SeesBothKinds) {
  const int64_t before = allocations();
  ::operator delete(::operator new(4));
  EXPECT_GE(allocations(), before + 1);
  const int64_t between = allocations();
  EXPECT_TRUE(AlignedBytes::allocate(1000).has_value());
  EXPECT_GE(allocations(), between + 1);
}

}  // namespace hologram::compiler
