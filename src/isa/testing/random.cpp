#include "isa/testing/random.h"

#include <cmath>
#include <limits>

#include "isa/literal.h"

namespace hologram::isa::testing {

uint64_t Random::bits(DType type) {
  const unsigned size = bits_of(type);
  const uint64_t mask = ~uint64_t{0} >> (64 - size);
  if (type == DType::boolean) return below(2);
  const uint32_t kind = below(8);
  if (is_float(type)) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (kind == 0)
      return float_bits(type, pick({0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, kInfinity,
                                    -kInfinity, std::numeric_limits<double>::quiet_NaN()}));
    if (kind == 1) return next() & mask;  // any exponent, denormals and NaNs among them
    const double value = static_cast<double>(static_cast<int64_t>(next() >> 20)) / (1ll << 43) - 1;
    return float_bits(type, value * pick({1.0, 4.0, 30.0, 200.0}));
  }
  if (kind == 0) return next() & mask;
  if (kind == 1)  // the edges: 0, -1, smallest, largest
    return pick({uint64_t{0}, mask, mask >> 1, (mask >> 1) + 1, uint64_t{1}}) & mask;
  if (is_signed_integer(type)) return (uint64_t{below(100)} - 50) & mask;
  return below(100);
}

}  // namespace hologram::isa::testing
