// How wide groups of products have to be for their errors together to stay within a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hologram::compiler {

// Products that are widened together, so that a deep network is compiled a bounded number of times.
// By grade, from the narrowest:
struct ProductGroup {
  std::vector<size_t> products;
  std::vector<double> time;   // of its steps
  std::vector<double> error;  // of the results, where only these products are that narrow
};

// About `count` groups: of each kind, neighbours.
std::vector<ProductGroup> group_products(std::span<const std::string> kinds, size_t count);

// The grade of each group that takes least time, as far as a greedy choice finds it, while the
// squares of the errors add up to at most the limit's: errors of independent origin do, if nothing
// enlarges them together. None is wider than the last that it has.
std::vector<uint8_t> cheapest_grades(std::span<const ProductGroup> groups, double limit);

}  // namespace hologram::compiler
