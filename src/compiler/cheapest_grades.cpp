#include "compiler/cheapest_grades.h"

#include <cmath>

namespace hologram::compiler {

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
      const auto& [first, past, time, error] = groups[g];
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
