#include "compiler/cheapest_grades.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace hologram::compiler {

std::vector<ProductGroup> group_products(std::span<const std::string> kinds, size_t count) {
  std::vector<std::vector<size_t>> of_kind;
  std::map<std::string, size_t, std::less<>> places;
  for (size_t p = 0; p < kinds.size(); ++p) {
    const auto [at, is_new] = places.try_emplace(kinds[p], of_kind.size());
    if (is_new) of_kind.emplace_back();
    of_kind[at->second].push_back(p);
  }
  std::vector<ProductGroup> groups;
  for (const std::vector<size_t>& products : of_kind) {
    const size_t wanted = (products.size() * count + kinds.size() / 2) / kinds.size();
    const size_t parts = std::clamp<size_t>(wanted, 1, products.size());
    for (size_t i = 0; i < parts; ++i)
      groups.push_back({{products.begin() + ptrdiff_t(products.size() * i / parts),
                         products.begin() + ptrdiff_t(products.size() * (i + 1) / parts)}});
  }
  return groups;
}

std::vector<uint8_t> cheapest_grades(std::span<const ProductGroup> groups, double limit) {
  std::vector<uint8_t> grades;
  double left = limit * limit;
  for (const ProductGroup& group : groups) {
    grades.push_back(static_cast<uint8_t>(group.time.size() - 1));
    left -= group.error.back() * group.error.back();
  }
  // From the widest on: what gains most time for the error that it adds, as long as one fits.
  for (;;) {
    size_t chosen = groups.size();
    uint8_t narrower = 0;
    double best = 0, cost = 0;
    for (size_t g = 0; g < groups.size(); ++g) {
      const auto& [products, time, error] = groups[g];
      const double now = error[grades[g]] * error[grades[g]];
      for (uint8_t grade = 0; grade < grades[g]; ++grade) {
        const double gained = time[grades[g]] - time[grade];
        const double added = error[grade] * error[grade] - now;
        if (!(gained > 0) || !(added <= left)) continue;
        const double worth = added > 0 ? gained / added : HUGE_VAL;
        if (worth <= best) continue;
        best = worth;
        cost = added;
        chosen = g;
        narrower = grade;
      }
    }
    if (chosen == groups.size()) return grades;
    grades[chosen] = narrower;
    left -= cost;
  }
}

}  // namespace hologram::compiler
