#include "holotensor/policy/glob.h"

#include <cstddef>

namespace hologram::holotensor {

bool glob_matches(std::string_view pattern, std::string_view name) {
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t p = 0, n = 0, star = kNone, star_name = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_name = n;
      continue;
    }
    const bool escaped = p + 1 < pattern.size() && pattern[p] == '\\';
    const size_t literal = p + (escaped ? 1 : 0);
    const bool any = !escaped && p < pattern.size() && pattern[p] == '?';
    if (any || (literal < pattern.size() && pattern[literal] == name[n])) {
      p = literal + 1;
      ++n;
    } else if (star != kNone) {  // let the last star take one more
      p = star + 1;
      n = ++star_name;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace hologram::holotensor
