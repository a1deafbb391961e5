// Runs one operation on many values: what tests of an operation's meaning are made of.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "isa/program.h"
#include "support/result.h"

namespace hologram::isa::testing {

// The program `out[i] = op(a[i], b[i], c[i])`, verified. op: convert, or of the form unary, binary,
// ternary, compare or shift (whose b is converted to u32). Arrays: a, b, c of type `in`, out.
Result<Program> elementwise(Opcode op, DType in, DType out);

// Runs it by the interpreter. Values are bits, zero-extended; missing operands repeat the first.
using Bits = std::vector<uint64_t>;
Result<Bits> run_operation(Opcode op, DType in, DType out, const Bits& a, const Bits& b = {},
                           const Bits& c = {});

// Values as bits and back.
template <typename T>
Bits to_bits(const std::vector<T>& values) {
  Bits bits(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = values[i];
    std::memcpy(&bits[i], &value, sizeof value);
  }
  return bits;
}
template <typename T>
std::vector<T> from_bits(const Bits& bits) {
  std::vector<T> values(bits.size());
  for (size_t i = 0; i < bits.size(); ++i) {
    T value;
    std::memcpy(static_cast<void*>(&value), &bits[i], sizeof value);
    values[i] = value;
  }
  return values;
}

}  // namespace hologram::isa::testing
