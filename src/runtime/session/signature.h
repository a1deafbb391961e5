// Signatures: what operands and attributes each kernel takes. Made from the operator table while
// building (signatures_main.cpp), so that there is one table, and looked at once, when an archive
// is opened: kernels need not check again what is said here, however hostile the archive.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "archive/plan_generated.h"
#include "support/dtype.h"
#include "support/result.h"

namespace hologram::runtime {

// The type of a value without its shape. `form` has two bits a level, the outermost highest: 1 a
// tensor, 2 a sequence of, 3 an optional of; 0 is an operand left out. `dtype` is the innermost.
struct StaticType {
  static constexpr uint8_t kLeftOut = 0, kTensor = 1, kSequence = 2 * 4 + 1, kOptional = 3 * 4 + 1,
                           kOptionalSequence = 3 * 16 + kSequence;
  uint8_t form = kLeftOut;
  DType dtype = DType::f32;

  bool operator==(const StaticType&) const = default;
  bool is_tensor() const { return form == kTensor; }
  bool is_tensor_of(DType type) const { return form == kTensor && dtype == type; }
  // What is inside an optional; other types are themselves.
  StaticType without_optional() const;
};

// At most three levels deep; archive::check has seen to that.
StaticType static_type(const archive::Type& type);
std::string to_string(StaticType type);

// There is such a kernel (unsupported otherwise), and it takes these operands and attributes
// (corrupt otherwise).
Status check_signature(const archive::Step& step, std::span<const StaticType> inputs,
                       std::span<const StaticType> outputs);

}  // namespace hologram::runtime
