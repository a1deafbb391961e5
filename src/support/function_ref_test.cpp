#include "support/function_ref.h"

#include <gtest/gtest.h>

namespace hologram {
namespace {

int twice(int x) { return 2 * x; }

int apply(FunctionRef<int(int)> f, int x) { return f(x); }

TEST(FunctionRef, TakesLambdasFunctionsAndPointers) {
  int offset = 5;
  EXPECT_EQ(apply([&](int x) { return x + offset; }, 3), 8);
  EXPECT_EQ(apply(twice, 3), 6);
  EXPECT_EQ(apply(&twice, 3), 6);
  int (*pointer)(int) = twice;
  EXPECT_EQ(apply(pointer, 4), 8);
}

TEST(FunctionRef, KeepsAFunctionWhosePointerIsGone) {
  FunctionRef<int(int)> kept = [] { return FunctionRef<int(int)>(&twice); }();
  EXPECT_EQ(kept(21), 42);
}

}  // namespace
}  // namespace hologram
