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

constexpr char kConvolution[] =
    "/usr/share/libonnx-testdata/data/pytorch-converted/test_Conv2d/model.onnx";

// What compile_within makes of f32 where the largest errors of its attempts are these.
struct F32Trial {
  std::vector<double> largest;
  size_t asked = 0;
  CompileReport report;
  Within within;

  void run() {
    const auto error_of = [](const Trial::Archive&) -> Result<double> { return 1.0; };
    const auto times_of =
        [](std::span<const Trial::Archive> archives) -> Result<std::vector<Trial::Times>> {
      return std::vector<Trial::Times>(archives.size());
    };
    const auto largest_of = [this](const Trial::Archive&) -> Result<double> {
      return largest.at(asked++);
    };
    auto found =
        compile_within(kConvolution, {.report = &report}, 1e-5, {error_of, times_of, largest_of});
    ASSERT_TRUE(found.has_value()) << found.error().to_string();
    within = *std::move(found);
  }
};

TEST(CompileWithin, TakesLongSumsWhereTheyAreNearEnough) {
  F32Trial trial{.largest = {4.9e-6}};
  trial.run();
  EXPECT_EQ(trial.report.long_sums, 1u);
  EXPECT_EQ(trial.report.precision_note, "f32: sums of 1 convolutions in one chain each");
  EXPECT_EQ(trial.asked, 1u);
}

TEST(CompileWithin, LeavesSumsInPartsWhereLongOnesAreNotNearEnoughOrNotKnown) {
  for (const double error : {5.1e-6, 1.0, std::nan("")}) {
    F32Trial trial{.largest = {error, error <= 1 ? 9e-6 : error}};
    trial.run();
    EXPECT_EQ(trial.asked, 2u);
    EXPECT_EQ(trial.report.long_sums, 0u);
    EXPECT_EQ(trial.report.precision_note, "");
    EXPECT_EQ(trial.within.widened, 0u);
  }
}

TEST(CompileWithin, SumsInDoubleWhereNeitherIs) {
  F32Trial trial{.largest = {1.0, 1.0}};
  trial.run();
  // Not these either, as error_of says.
  EXPECT_EQ(trial.report.long_sums, 0u);
  EXPECT_EQ(trial.within.widened, 0u);
}

TEST(CompileWithin, TakesLongSumsBesideNarrowProductsWhereTheyTakeLittleOfTheLimit) {
  for (const double error : {1e-6, 3e-5}) {
    const auto error_of = [&](const Trial::Archive&) -> Result<double> { return error; };
    // Archives that are asked for first are faster: f32 is, and taken.
    const auto times_of =
        [](std::span<const Trial::Archive> archives) -> Result<std::vector<Trial::Times>> {
      std::vector<Trial::Times> times(archives.size());
      for (size_t i = 0; i < times.size(); ++i) times[i]["all"] = 1.0 + double(i);
      return times;
    };
    CompileReport report;
    const auto found =
        compile_within(kConvolution, {.precision = Precision::fast, .report = &report},
                       aimed_error(Precision::fast), {error_of, times_of});
    ASSERT_TRUE(found.has_value()) << found.error().to_string();
    EXPECT_EQ(report.long_sums, error < 1e-5 ? 1u : 0u);
  }
}

}  // namespace
}  // namespace hologram::compiler
