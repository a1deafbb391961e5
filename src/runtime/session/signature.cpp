#include "runtime/session/signature.h"

#include <algorithm>
#include <array>

#include "runtime/session/flat.h"
#include "runtime/session/signature_table.h"

namespace hologram::runtime {
namespace {

#include "signatures.inc"

Status bad(std::string_view what) {
  return fail(ErrorCode::corrupt, "the plan is wrong: {}", what);
}

// Matches operands with formal ones, inputs first.
class Matcher {
 public:
  Status match(std::span<const FormalOperand> formals, std::span<const StaticType> operands,
               std::string_view what) {
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool repeated = !formals.empty() && formals.back().variadic;
      if (i >= formals.size() && !repeated)
        return fail(ErrorCode::corrupt, "the plan is wrong: {} {}s where there are at most {}",
                    operands.size(), what, formals.size());
      const FormalOperand& formal = formals[std::min(i, formals.size() - 1)];
      if (operands[i].form == StaticType::kLeftOut) {
        if (!formal.optional)
          return fail(ErrorCode::corrupt, "the plan is wrong: {} {} is left out", what, i);
      } else if (!fits(formal, operands[i])) {
        return fail(ErrorCode::corrupt, "the plan is wrong: {} {} is {}", what, i,
                    to_string(operands[i]));
      }
    }
    for (size_t i = operands.size(); i < formals.size(); ++i)
      if (!formals[i].optional && !formals[i].variadic)
        return fail(ErrorCode::corrupt, "the plan is wrong: {} {} is missing", what, i);
    // Variadic ones: at least one, where it is not optional.
    if (!formals.empty() && formals.back().variadic && !formals.back().optional &&
        operands.size() < formals.size())
      return fail(ErrorCode::corrupt, "the plan is wrong: no variadic {}", what);
    return {};
  }

 private:
  bool fits(const FormalOperand& formal, StaticType type) {
    if (formal.form == 0) type = type.without_optional();
    if (formal.form != 0 && type.form != formal.form) return false;
    if (!(formal.types >> static_cast<unsigned>(type.dtype) & 1)) return false;
    if (formal.variable == 0) return true;
    if (formal.variable >= bound_.size()) return false;
    StaticType& bound = bound_[formal.variable];
    if (bound.form == StaticType::kLeftOut) {
      bound = type;
      return true;
    }
    return bound.dtype == type.dtype && (formal.form != 0 || bound.form == type.form);
  }

  std::array<StaticType, 32> bound_;
};

Status match(const Signature& signature, const archive::Step& step,
             std::span<const StaticType> inputs, std::span<const StaticType> outputs) {
  const std::span formals = std::span(kOperands).subspan(signature.operands);
  Matcher matcher;
  HOLOGRAM_CHECK(matcher.match(formals.first(signature.inputs), inputs, "input"));
  HOLOGRAM_CHECK(
      matcher.match(formals.subspan(signature.inputs, signature.outputs), outputs, "output"));
  const auto computes = [](StaticType type) {
    return type.form == StaticType::kLeftOut || (type.is_tensor() && is_compute(type.dtype));
  };
  if (signature.not_computing && std::ranges::all_of(inputs, computes) &&
      std::ranges::all_of(outputs, computes))
    return bad("a program's operands for a kernel");
  if (!step.attributes()) return {};
  const std::span attributes =
      std::span(kAttributes).subspan(signature.attributes, signature.attribute_count);
  for (const archive::Attribute* attribute : *step.attributes()) {
    const auto formal =
        std::ranges::find(attributes, text(attribute->name()), &FormalAttribute::name);
    // An empty list has no element that tells its kind.
    const bool lists = attribute->kind() >= 3 && attribute->kind() <= 5;
    if (formal == attributes.end() ||
        (formal->kind != attribute->kind() && !(lists && formal->kind >= 3 && formal->kind <= 5)))
      return fail(ErrorCode::corrupt, "the plan is wrong: attribute '{}'", text(attribute->name()));
  }
  return {};
}

}  // namespace

StaticType StaticType::without_optional() const {
  if (form == kOptional) return {kTensor, dtype};
  if (form == kOptionalSequence) return {kSequence, dtype};
  return *this;
}

StaticType static_type(const archive::Type& type) {
  StaticType result;
  const archive::Type* at = &type;
  for (; at->kind() != 1; at = at->element())
    result.form = static_cast<uint8_t>(result.form * 4 + at->kind());
  result.form = static_cast<uint8_t>(result.form * 4 + 1);
  result.dtype = static_cast<DType>(at->dtype());
  return result;
}

std::string to_string(StaticType type) {
  std::string name(name_of(type.dtype));
  for (unsigned form = type.form >> 2; form != 0; form >>= 2)
    name = (form % 4 == 2 ? "a sequence of " : "an optional of ") + name;
  return name;
}

Status check_signature(const archive::Step& step, std::span<const StaticType> inputs,
                       std::span<const StaticType> outputs) {
  const auto [first, last] =
      std::ranges::equal_range(kSignatures, text(step.kernel()), {}, &Signature::kernel);
  Status status = bad("a kernel that no operator has");
  for (auto signature = first; signature != last; ++signature)
    if ((status = match(*signature, step, inputs, outputs))) break;
  return status;
}

}  // namespace hologram::runtime
