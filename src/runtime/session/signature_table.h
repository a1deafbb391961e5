// The form of the generated table of signatures.
#pragma once

#include <cstdint>
#include <string_view>

namespace hologram::runtime {

struct FormalOperand {
  uint8_t variable;  // operands of one number have one element type; 0: of a type of its own
  uint8_t form;      // as in StaticType; 0: any, the same for all but for an optional around it
  bool optional;     // may be left out
  bool variadic;     // the last one: any number
  uint64_t types;    // a bit a DType
};

struct FormalAttribute {
  std::string_view name;
  uint8_t kind;  // kernels::Attribute::Kind
};

struct Signature {
  std::string_view kernel;
  uint16_t operands, attributes;  // where they begin in their lists
  uint8_t inputs, outputs, attribute_count;
  bool not_computing;  // at least one operand is of a type that programs do not compute with
};

}  // namespace hologram::runtime
