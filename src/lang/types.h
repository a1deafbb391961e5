// Types of expressions, and how they combine. The rules are in docs/kernel-language.md.
#pragma once

#include <optional>
#include <string>

#include "support/dtype.h"

namespace hologram::lang {

struct Type {
  enum class Kind {
    invalid,   // already reported: takes part in anything silently
    none,      // a call without result
    scalar,    // dtype
    weak_int,  // an integer literal: takes the type of what it meets
    weak_float,
    array,  // dtype, rank
  };
  Kind kind = Kind::invalid;
  DType dtype = DType::f32;
  uint32_t rank = 0;

  static Type scalar(DType t) { return {Kind::scalar, t, 0}; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_weak() const { return kind == Kind::weak_int || kind == Kind::weak_float; }
  bool is_bool() const { return is_scalar() && dtype == DType::boolean; }
  bool operator==(const Type&) const = default;
};

// "u32", "DeviceArray[f32, 2]", "int literal".
std::string to_string(const Type& type);

// The type two operands meet in: the smallest that holds both (u32 and i32: i64); nothing where
// there is none (u64 and i32, bool and i32).
std::optional<DType> promote(DType a, DType b);
// Whether a value of `from` becomes `to` without being asked for: promote(to, from) == to.
bool converts(DType from, DType to);
// What an integer becomes where a float is needed: f64 for 64 bits, else f32.
DType float_of(DType integer);

}  // namespace hologram::lang
