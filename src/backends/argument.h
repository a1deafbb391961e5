// Argument: one value given to a launch or a built-in kernel, with all that is needed to check it.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "isa/program.h"
#include "support/dtype.h"
#include "support/result.h"

namespace hologram::backends {

// The bits of a scalar, zero-extended, as isa::NativeLaunch takes them.
template <typename T>
uint64_t scalar_bits(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

struct Argument {
  std::string_view name;  // empty: by position; must live until the launch returns
  bool is_array = false;
  bool writable = false;  // arrays: whether the program may write
  DType type = DType::f32;
  uint64_t word = 0;    // an array's address, or a scalar's bits zero-extended
  uint64_t length = 0;  // an array's number of elements

  template <typename T>
  static Argument scalar(T value, std::string_view name = {}) {
    return {name, false, false, dtype_of<T>(), scalar_bits(value), 0};
  }
  // A scalar of a type known only at run time, as bits.
  static Argument scalar_of(DType type, uint64_t bits, std::string_view name = {}) {
    return {name, false, false, type, bits, 0};
  }
  template <typename T>
  static Argument array(std::span<T> elements, std::string_view name = {}) {
    return array_of(dtype_of<std::remove_const_t<T>>(), elements.data(), elements.size(),
                    !std::is_const_v<T>, name);
  }
  static Argument array_of(DType type, const void* address, uint64_t length, bool writable,
                           std::string_view name = {}) {
    return {name, true, writable, type, reinterpret_cast<uintptr_t>(address), length};
  }
};

// Puts arguments into the parameters' order as words and lengths (both `parameters.size()` long).
// Refuses: a wrong count, an unknown or repeated name, an array for a scalar or the reverse, a
// wrong element type, a read-only array for a parameter that is written, a misaligned or missing
// address.  `owner` names the program or kernel in messages. Allocates only to describe an error.
Status place_arguments(std::string_view owner, std::span<const isa::Parameter> parameters,
                       std::span<const Argument> arguments, uint64_t* words, uint64_t* lengths);

}  // namespace hologram::backends
