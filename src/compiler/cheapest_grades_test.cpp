#include "compiler/cheapest_grades.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hologram::compiler {
namespace {

using Grades = std::vector<uint8_t>;

TEST(CheapestGrades, AsNarrowAsTheLimitAllows) {
  const std::vector<ProductGroup> groups = {{{0}, {1, 4}, {3, 0}}, {{1}, {1, 4}, {4, 0}}};
  EXPECT_EQ(cheapest_grades(groups, 5), (Grades{0, 0}));  // 9 + 16
  EXPECT_EQ(cheapest_grades(groups, 4.9), (Grades{0, 1}));
  EXPECT_EQ(cheapest_grades(groups, 2.9), (Grades{1, 1}));
}

TEST(CheapestGrades, WhatSavesMostForItsErrorComesFirst) {
  const std::vector<ProductGroup> groups = {{{0}, {9, 10}, {1, 0}}, {{1}, {1, 10}, {2, 0}}};
  EXPECT_EQ(cheapest_grades(groups, 2), (Grades{1, 0}));  // 9 for 4, not 1 for 1
}

TEST(CheapestGrades, GradesInBetweenAndThoseThatDoNotPay) {
  const std::vector<ProductGroup> groups = {
      {{0}, {1, 2, 6}, {9, 1, 0}}, {{1}, {7, 2, 6}, {0.1, 1, 0}}, {{2}, {7, 8, 6}, {0, 0, 0}}};
  EXPECT_EQ(cheapest_grades(groups, 2), (Grades{1, 1, 2}));
  EXPECT_EQ(cheapest_grades(groups, 10), (Grades{0, 1, 2}));
}

TEST(CheapestGrades, GroupsAreNeighboursOfAKind) {
  const std::vector<std::string> kinds = {"a", "b", "a", "b", "a", "b", "a", "b", "c"};
  std::vector<std::vector<size_t>> products;
  for (const ProductGroup& group : group_products(kinds, 4)) products.push_back(group.products);
  EXPECT_EQ(products, (std::vector<std::vector<size_t>>{{0, 2}, {4, 6}, {1, 3}, {5, 7}, {8}}));
  EXPECT_EQ(group_products(kinds, 1).size(), 3u);
  EXPECT_EQ(group_products(kinds, 100).size(), 9u);
  EXPECT_TRUE(group_products({}, 4).empty());
}

TEST(CheapestGrades, ErrorsWithoutEndAreNeverTaken) {
  const std::vector<ProductGroup> groups = {{{0}, {1, 4}, {HUGE_VAL, 0}}, {{1}, {1, 4}, {0, 0}}};
  EXPECT_EQ(cheapest_grades(groups, 1e30), (Grades{1, 0}));
}

}  // namespace
}  // namespace hologram::compiler
