#include "runtime/session/signature.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>

#include "runtime/session/flat.h"
#include "runtime/session/signature_table.h"

namespace hologram::runtime {
namespace {

#include "signatures.inc"

// The first signature of a kernel, by its name: a search among all of them takes as long as the
// rest of checking a step. Places next to each other are tried until one is empty.
constexpr uint32_t place_of(std::string_view kernel) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (char c : kernel) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash >> 16 ^ hash;
}
constexpr size_t kPlaces = std::bit_ceil(2 * std::size(kSignatures));
constexpr auto kFirst = [] {
  std::array<uint16_t, kPlaces> first{};  // one more than its number; 0: empty
  for (size_t i = 0; i < std::size(kSignatures); ++i) {
    if (i > 0 && kSignatures[i].kernel == kSignatures[i - 1].kernel) continue;
    size_t place = place_of(kSignatures[i].kernel) % kPlaces;
    while (first[place] != 0) place = (place + 1) % kPlaces;
    first[place] = static_cast<uint16_t>(i + 1);
  }
  return first;
}();

std::span<const Signature> signatures_of(std::string_view kernel) {
  for (size_t place = place_of(kernel) % kPlaces; kFirst[place] != 0;
       place = (place + 1) % kPlaces) {
    const Signature* first = &kSignatures[kFirst[place] - 1];
    if (first->kernel != kernel) continue;
    const Signature* last = first + 1;
    while (last != std::end(kSignatures) && last->kernel == kernel) ++last;
    return {first, last};
  }
  return {};
}

// Why a signature does not fit. Kept as it is until no other signature does: most steps fit one,
// and text costs more than all the rest of the check.
struct Mismatch {
  enum Kind : uint8_t { none, too_many, left_out, type, missing, computing, attribute };
  Kind kind = none;
  bool output = false;
  size_t index = 0, limit = 0;
  StaticType found = {};
  std::string_view name = {};

  explicit operator bool() const { return kind != none; }
  std::string to_string() const {
    const std::string_view what = output ? "output" : "input";
    switch (kind) {
      case none:
        return "";
      case too_many:
        return fmt::format("{} {}s where there are at most {}", index, what, limit);
      case left_out:
        return fmt::format("{} {} is left out", what, index);
      case type:
        return fmt::format("{} {} is {}", what, index, runtime::to_string(found));
      case missing:
        return fmt::format("{} {} is missing", what, index);
      case computing:
        return "a program's operands for a kernel";
      case attribute:
        return fmt::format("attribute '{}'", name);
    }
    return "";
  }
};

// Matches operands with formal ones, inputs first.
class Matcher {
 public:
  Mismatch match(std::span<const FormalOperand> formals, std::span<const StaticType> operands,
                 bool output) {
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool repeated = !formals.empty() && formals.back().variadic;
      if (i >= formals.size() && !repeated)
        return {Mismatch::too_many, output, operands.size(), formals.size()};
      const FormalOperand& formal = formals[std::min(i, formals.size() - 1)];
      if (operands[i].form == StaticType::kLeftOut) {
        if (!formal.optional) return {Mismatch::left_out, output, i};
      } else if (!fits(formal, operands[i])) {
        return {Mismatch::type, output, i, 0, operands[i]};
      }
    }
    // Variadic ones: at least one, where it is not optional.
    for (size_t i = operands.size(); i < formals.size(); ++i)
      if (!formals[i].optional) return {Mismatch::missing, output, i};
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

Mismatch match(const Signature& signature, const archive::Step& step,
               std::span<const StaticType> inputs, std::span<const StaticType> outputs) {
  const std::span formals = std::span(kOperands).subspan(signature.operands);
  Matcher matcher;
  if (const Mismatch m = matcher.match(formals.first(signature.inputs), inputs, false)) return m;
  if (const Mismatch m =
          matcher.match(formals.subspan(signature.inputs, signature.outputs), outputs, true))
    return m;
  const auto computes = [](StaticType type) {
    return type.form == StaticType::kLeftOut || (type.is_tensor() && is_compute(type.dtype));
  };
  if (signature.not_computing && std::ranges::all_of(inputs, computes) &&
      std::ranges::all_of(outputs, computes))
    return {Mismatch::computing};
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
      return {.kind = Mismatch::attribute, .name = text(attribute->name())};
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
  const std::span<const Signature> signatures = signatures_of(text(step.kernel()));
  if (signatures.empty())
    return fail(ErrorCode::unsupported,
                "this runtime has no kernel '{}'; compile the model with the same version",
                text(step.kernel()));
  Mismatch mismatch;
  for (const Signature& signature : signatures)
    if (!(mismatch = match(signature, step, inputs, outputs))) return {};
  return fail(ErrorCode::corrupt, "the plan is wrong: {}", mismatch.to_string());
}

}  // namespace hologram::runtime
