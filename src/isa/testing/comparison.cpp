#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "isa/literal.h"
#include "isa/testing/random_program.h"

namespace hologram::isa::testing {
namespace {

uint64_t element(const std::vector<std::byte>& bytes, size_t index, size_t size) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + index * size, size);
  return bits;
}

bool is_nan(DType type, uint64_t bits) {
  const unsigned size = bits_of(type);
  const uint64_t infinity = float_bits(type, std::numeric_limits<double>::infinity());
  return (bits & (~uint64_t{0} >> (65 - size))) > infinity;
}

// Floats in the order of their values, neighbours one apart; both zeros are 0.
int64_t place(DType type, uint64_t bits) {
  const uint64_t magnitude = bits & (~uint64_t{0} >> (65 - bits_of(type)));
  const bool negative = bits >> (bits_of(type) - 1) != 0;
  return negative ? -static_cast<int64_t>(magnitude) : static_cast<int64_t>(magnitude);
}

bool agree(DType type, uint64_t a, uint64_t b, uint64_t tolerance) {
  if (a == b) return true;
  if (!is_float(type)) return false;
  if (is_nan(type, a) || is_nan(type, b)) return is_nan(type, a) && is_nan(type, b);
  if (tolerance == 0) return false;
  const uint64_t distance =
      static_cast<uint64_t>(place(type, a)) - static_cast<uint64_t>(place(type, b));
  return std::min(distance, uint64_t{0} - distance) <= tolerance;
}

}  // namespace

std::vector<Argument> RandomCase::arguments(Arrays& storage) const {
  std::vector<Argument> result(program.parameters.size());
  for (size_t i = 0; i < result.size(); ++i) {
    const Parameter& parameter = program.parameters[i];
    if (parameter.is_array)
      result[i] = Argument::array(storage[i].data(), storage[i].size() / size_of(parameter.type));
    else
      result[i].bits = scalars[i];
  }
  return result;
}

std::string difference(const RandomCase& c, const Arrays& expected, const Arrays& got,
                       FunctionRef<uint64_t(Opcode, DType)> tolerance) {
  for (size_t p = 0; p < c.program.parameters.size(); ++p) {
    const Parameter& parameter = c.program.parameters[p];
    if (!parameter.is_array || parameter.access == Access::read) continue;
    const size_t size = size_of(parameter.type);
    const uint64_t allowed =
        c.functions[p] == Opcode::mov ? 0 : tolerance(c.functions[p], parameter.type);
    for (size_t i = 0; i < expected[p].size() / size; ++i) {
      const uint64_t want = element(expected[p], i, size), have = element(got[p], i, size);
      if (!agree(parameter.type, want, have, allowed))
        return fmt::format("{}[{}]: expected {} ({:#x}), got {} ({:#x}), {} ulp allowed",
                           parameter.name, i, print_literal(parameter.type, want), want,
                           print_literal(parameter.type, have), have, allowed);
    }
  }
  return {};
}

}  // namespace hologram::isa::testing
