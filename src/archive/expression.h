// The meaning of the plan's expressions: numbers computed from the shapes of the inputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "archive/plan_generated.h"

namespace hologram::archive {

// What an expression is that has no value: a symbol without one, a division by zero, an overflow,
// and everything computed from it.
inline constexpr int64_t kUndefined = std::numeric_limits<int64_t>::min();

inline int64_t apply(Operation operation, int64_t a, int64_t b) {
  if (a == kUndefined || b == kUndefined) return kUndefined;
  int64_t result = 0;
  switch (operation) {
    case Operation::add:
      return __builtin_add_overflow(a, b, &result) ? kUndefined : result;
    case Operation::subtract:
      return __builtin_sub_overflow(a, b, &result) ? kUndefined : result;
    case Operation::multiply:
      return __builtin_mul_overflow(a, b, &result) ? kUndefined : result;
    case Operation::divide:
      if (b == 0) return kUndefined;
      result = a / b;  // never overflows: kUndefined is the one dividend that could
      return result - (a % b != 0 && (a < 0) != (b < 0));
    case Operation::smaller:
      return std::min(a, b);
    case Operation::larger:
      return std::max(a, b);
    default:
      return kUndefined;
  }
}

}  // namespace hologram::archive
