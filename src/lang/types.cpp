#include "lang/types.h"

#include <fmt/format.h>

#include <algorithm>

namespace hologram::lang {

std::string to_string(const Type& type) {
  switch (type.kind) {
    case Type::Kind::invalid:
      return "an error";
    case Type::Kind::none:
      return "no value";
    case Type::Kind::scalar:
      return std::string(name_of(type.dtype));
    case Type::Kind::weak_int:
      return "an integer literal";
    case Type::Kind::weak_float:
      return "a float literal";
    case Type::Kind::array:
      return type.rank == 1 ? fmt::format("DeviceArray[{}]", name_of(type.dtype))
                            : fmt::format("DeviceArray[{}, {}]", name_of(type.dtype), type.rank);
  }
  return "";
}

std::optional<DType> promote(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::boolean || b == DType::boolean) return std::nullopt;
  if (is_float(a) && is_float(b)) {
    if (bits_of(a) == 16 && bits_of(b) == 16) return DType::f32;  // f16 and bf16
    return bits_of(a) > bits_of(b) ? a : b;
  }
  if (is_float(a)) return a;
  if (is_float(b)) return b;
  if (is_signed_integer(a) == is_signed_integer(b)) return bits_of(a) > bits_of(b) ? a : b;
  const DType with_sign = is_signed_integer(a) ? a : b;
  const DType without = is_signed_integer(a) ? b : a;
  if (bits_of(with_sign) > bits_of(without)) return with_sign;
  // A sign and one bit more than the unsigned one: the next size that has both.
  switch (bits_of(without)) {
    case 8:
      return DType::i16;
    case 16:
      return DType::i32;
    case 32:
      return DType::i64;
    default:
      return std::nullopt;
  }
}

bool converts(DType from, DType to) { return promote(to, from) == to; }

DType float_of(DType integer) { return bits_of(integer) == 64 ? DType::f64 : DType::f32; }

}  // namespace hologram::lang
