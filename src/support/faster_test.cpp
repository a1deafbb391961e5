#include "support/faster.h"

#include <gtest/gtest.h>

#include <thread>

namespace hologram {
namespace {

TEST(Faster, TheBestOfCallsInTurns) {
  int calls = 0;
  const auto quick = [&]() -> Status {
    ++calls;
    return {};
  };
  const auto slow = []() -> Status {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return {};
  };
  EXPECT_TRUE(*faster(quick, slow));
  EXPECT_GE(calls, 4);
  EXPECT_FALSE(*faster(slow, quick));
}

TEST(Faster, FailsWithWhatIsTried) {
  const auto good = []() -> Status { return {}; };
  const auto bad = []() -> Status { return fail(ErrorCode::unsupported, "not today"); };
  EXPECT_FALSE(faster(good, bad).has_value());
  EXPECT_FALSE(faster(bad, good).has_value());
}

}  // namespace
}  // namespace hologram
