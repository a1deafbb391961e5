// From a DType to a C++ type, without writing the switch again and with few instantiations.
//
// Kernels that only move elements dispatch on the element's size (dispatch_size): five
// instantiations serve every type. Kernels that compute dispatch on the narrowest set they need,
// and leave f16 and bf16 to `widen_half`.
#pragma once

#include <cstdint>
#include <string>

#include "support/dtype.h"
#include "support/result.h"

namespace hologram::kernels {

struct Bytes16 {
  uint64_t words[2];
  bool operator==(const Bytes16&) const = default;
};

// body.template operator()<T>() with an unsigned T of the element's size. Types of less than a
// byte are refused here: see unpack_sub_byte in movement helpers. Strings are std::string.
template <typename Body>
Status dispatch_size(DType type, Body&& body) {
  if (type == DType::string) return body.template operator()<std::string>();
  switch (size_of(type)) {
    case 1:
      return body.template operator()<uint8_t>();
    case 2:
      return body.template operator()<uint16_t>();
    case 4:
      return body.template operator()<uint32_t>();
    case 8:
      return body.template operator()<uint64_t>();
    case 16:
      return body.template operator()<Bytes16>();
  }
  return fail(ErrorCode::unsupported, "elements of type {} are not addressable", name_of(type));
}

template <typename Body>
Status dispatch_float(DType type, Body&& body) {
  switch (type) {
    case DType::f32:
      return body.template operator()<float>();
    case DType::f64:
      return body.template operator()<double>();
    default:
      return fail(ErrorCode::unsupported, "type {}; supported: f16, bf16, f32, f64", name_of(type));
  }
}

template <typename Body>
Status dispatch_integer(DType type, Body&& body) {
  switch (type) {
    case DType::i8:
      return body.template operator()<int8_t>();
    case DType::i16:
      return body.template operator()<int16_t>();
    case DType::i32:
      return body.template operator()<int32_t>();
    case DType::i64:
      return body.template operator()<int64_t>();
    case DType::u8:
      return body.template operator()<uint8_t>();
    case DType::u16:
      return body.template operator()<uint16_t>();
    case DType::u32:
      return body.template operator()<uint32_t>();
    case DType::u64:
      return body.template operator()<uint64_t>();
    default:
      return fail(ErrorCode::unsupported, "type {}; supported: the integers", name_of(type));
  }
}

// Integers, f32 and f64 (f16 and bf16 through widen_half).
template <typename Body>
Status dispatch_number(DType type, Body&& body) {
  return is_integer(type) ? dispatch_integer(type, body) : dispatch_float(type, body);
}

// i32 and i64: indices.
template <typename Body>
Status dispatch_index(DType type, Body&& body) {
  switch (type) {
    case DType::i32:
      return body.template operator()<int32_t>();
    case DType::i64:
      return body.template operator()<int64_t>();
    default:
      return fail(ErrorCode::unsupported, "indices of type {}; supported: i32, i64", name_of(type));
  }
}

}  // namespace hologram::kernels
