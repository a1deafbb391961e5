#include "compiler/compile_within.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace hologram::compiler {
namespace {

TEST(SteadyError, StartsAsTheMeanOfTheLargest) {
  SteadyError steady;
  const std::vector<InputError> errors = {{1e-5, 1e-7}, {3e-5, 4e-7}};
  EXPECT_NEAR(steady.largest(errors), 2e-5, 1e-12);
}

TEST(SteadyError, FollowsAllInputsAndNotTheWorstAlone) {
  SteadyError steady;
  std::vector<InputError> errors(16, {8e-6, 1e-7});
  ASSERT_NEAR(steady.largest(errors), 8e-6, 1e-12);
  errors[3] = {5e-5, 6e-7};  // a close decision: a root mean square would be 1.8 times as large
  EXPECT_NEAR(steady.largest(errors), 8e-6 * std::pow(6, 1.0 / 16), 1e-10);
  for (InputError& error : errors) error.rms /= 2;
  EXPECT_NEAR(steady.largest(errors), 4e-6 * std::pow(6, 1.0 / 16), 1e-10);
}

TEST(SteadyError, ExactResultsAndNoNumbers) {
  SteadyError steady;
  EXPECT_EQ(steady.largest({}), 0);
  const std::vector<InputError> exact(4);
  EXPECT_EQ(steady.largest(exact), 0);
  std::vector<InputError> errors = {{1e-5, 1e-7}, {0, 0}};  // one of them exact
  EXPECT_NEAR(steady.largest(errors), 5e-6, 1e-12);
  errors[0].rms *= 4;
  EXPECT_NEAR(steady.largest(errors), 1e-5, 1e-11);
  errors[1] = {NAN, NAN};
  EXPECT_TRUE(std::isnan(steady.largest(errors)));
}

}  // namespace
}  // namespace hologram::compiler
