#include "support/result.h"

#include <gtest/gtest.h>

namespace hologram {
namespace {

Result<int> half(int value) {
  if (value % 2) return fail(ErrorCode::invalid_argument, "{} is odd", value);
  return value / 2;
}
Result<int> quarter(int value) {
  HOLOGRAM_TRY(const int once, half(value));
  HOLOGRAM_TRY(const int twice, half(once));
  return twice;
}
Status check_even(int value) {
  HOLOGRAM_CHECK(half(value));
  return {};
}

TEST(Result, TryPassesValuesAndErrors) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().message(), "3 is odd");
  EXPECT_TRUE(check_even(2));
  EXPECT_EQ(check_even(3).error().code(), ErrorCode::invalid_argument);
}

TEST(Error, ContextReadsFromTheOutside) {
  Error error(ErrorCode::not_found, "no such operator");
  error.add_context("node 'conv1'").add_context("model.onnx");
  EXPECT_EQ(error.to_string(), "model.onnx: node 'conv1': no such operator [not found]");
  EXPECT_EQ(error.context().size(), 2u);
}

TEST(Error, InContextTouchesOnlyFailures) {
  int built = 0;
  const auto place = [&] { return ++built, std::string("here"); };
  EXPECT_EQ(in_context(half(4), place).value(), 2);
  EXPECT_EQ(built, 0);
  EXPECT_EQ(in_context(half(5), place).error().to_string(), "here: 5 is odd [invalid argument]");
}

TEST(Error, OnlyInternalIsOurFault) {
  EXPECT_FALSE(is_user_error(ErrorCode::internal));
  EXPECT_TRUE(is_user_error(ErrorCode::corrupt));
}

}  // namespace
}  // namespace hologram
