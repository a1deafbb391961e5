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
  // Its first and last characters, and how many there are: where those are equal, so is the place.
  uint64_t first = 0, last = kernel.size();
  for (size_t i = 0; i < std::min<size_t>(kernel.size(), 8); ++i) {
    first = first << 8 | static_cast<uint8_t>(kernel[i]);
    last = last << 8 ^ static_cast<uint8_t>(kernel[kernel.size() - 1 - i]);
  }
  const uint64_t hash = (first ^ last * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
  return static_cast<uint32_t>(hash >> 40);
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

// Matches a step with a signature: its inputs, its outputs, then its attributes. False and why
// where it does not fit.
class Matcher {
 public:
  explicit Matcher(Mismatch& why) : why_(why) {}

  bool match(std::span<const FormalOperand> formals, std::span<const StaticType> operands,
             bool output) {
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool repeated = !formals.empty() && formals.back().variadic;
      if (i >= formals.size() && !repeated)
        return refuse({Mismatch::too_many, output, operands.size(), formals.size()});
      const FormalOperand& formal = formals[std::min(i, formals.size() - 1)];
      if (operands[i].form == StaticType::kLeftOut) {
        if (!formal.optional) return refuse({Mismatch::left_out, output, i});
      } else if (!fits(formal, operands[i])) {
        return refuse({Mismatch::type, output, i, 0, operands[i]});
      }
    }
    // Variadic ones: at least one, where it is not optional.
    for (size_t i = operands.size(); i < formals.size(); ++i)
      if (!formals[i].optional) return refuse({Mismatch::missing, output, i});
    return true;
  }

  bool match(std::span<const FormalAttribute> formals, const archive::Step& step) {
    if (!step.attributes()) return true;
    auto from = formals.begin();  // most steps have them in the table's order
    for (const archive::Attribute* attribute : *step.attributes()) {
      const std::string_view name = text(attribute->name());
      const auto is_it = [&](const FormalAttribute& formal) { return formal.name == name; };
      auto formal = std::find_if(from, formals.end(), is_it);
      if (formal == formals.end()) formal = std::find_if(formals.begin(), from, is_it);
      // An empty list has no element that tells its kind.
      const auto is_list = [](uint8_t kind) { return kind >= 3 && kind <= 5; };
      if (formal == formals.end() || formal->name != name ||
          (formal->kind != attribute->kind() &&
           !(is_list(attribute->kind()) && is_list(formal->kind))))
        return refuse({.kind = Mismatch::attribute, .name = name});
      from = formal;
    }
    return true;
  }

  [[gnu::cold, gnu::noinline]] bool refuse(const Mismatch& why) {
    why_ = why;
    return false;
  }

 private:
  bool fits(const FormalOperand& formal, StaticType type) {
    if (formal.form == 0) type = type.without_optional();
    if (formal.form != 0 && type.form != formal.form) return false;
    if (!(formal.types >> static_cast<unsigned>(type.dtype) & 1)) return false;
    if (formal.variable == 0) return true;
    if (formal.variable >= forms_.size()) return false;
    uint8_t& form = forms_[formal.variable];
    DType& dtype = dtypes_[formal.variable];
    if (!(bound_ >> formal.variable & 1)) {
      bound_ |= uint32_t{1} << formal.variable;
      form = type.form;
      dtype = type.dtype;
      return true;
    }
    return dtype == type.dtype && (formal.form != 0 || form == type.form);
  }

  Mismatch& why_;
  uint32_t bound_ = 0;  // a bit a variable that has a type already; the others' are not set
  std::array<uint8_t, 32> forms_;
  std::array<DType, 32> dtypes_;
};

bool matches(const Signature& signature, const archive::Step& step,
             std::span<const StaticType> inputs, std::span<const StaticType> outputs,
             Mismatch& why) {
  const std::span formals = std::span(kOperands).subspan(signature.operands);
  Matcher matcher(why);
  if (!matcher.match(formals.first(signature.inputs), inputs, false) ||
      !matcher.match(formals.subspan(signature.inputs, signature.outputs), outputs, true))
    return false;
  const auto computes = [](StaticType type) {
    return type.form == StaticType::kLeftOut || (type.is_tensor() && is_compute(type.dtype));
  };
  if (signature.not_computing && std::ranges::all_of(inputs, computes) &&
      std::ranges::all_of(outputs, computes))
    return matcher.refuse({Mismatch::computing});
  return matcher.match(
      std::span(kAttributes).subspan(signature.attributes, signature.attribute_count), step);
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
    if (matches(signature, step, inputs, outputs, mismatch)) return {};
  return fail(ErrorCode::corrupt, "the plan is wrong: {}", mismatch.to_string());
}

}  // namespace hologram::runtime
