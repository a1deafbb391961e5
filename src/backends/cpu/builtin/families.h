// The families of built-in kernels: each adds its entries to the table.
#pragma once

#include "backends/cpu/builtin/table.h"

namespace hologram::backends {

void add_copy_builtins(BuiltinTable& table);
void add_reduce_builtins(BuiltinTable& table);
void add_softmax_builtins(BuiltinTable& table);
void add_gemm_builtins(BuiltinTable& table);

inline constexpr DType kFloatTypes[] = {DType::f16, DType::bf16, DType::f32, DType::f64};
inline constexpr DType kNumberTypes[] = {DType::i8,  DType::i16,  DType::i32, DType::i64,
                                         DType::u8,  DType::u16,  DType::u32, DType::u64,
                                         DType::f16, DType::bf16, DType::f32, DType::f64};

inline std::string builtin_name(std::string_view op, DType type) {
  return std::string(op) + "_" + std::string(name_of(type));
}

// Calls f.template operator()<T>() with the C++ type of a number type; anything else is a defect
// of the caller and calls nothing.
template <typename F>
void with_type(DType type, F&& f) {
  switch (type) {
    case DType::i8:
      f.template operator()<int8_t>();
      break;
    case DType::i16:
      f.template operator()<int16_t>();
      break;
    case DType::i32:
      f.template operator()<int32_t>();
      break;
    case DType::i64:
      f.template operator()<int64_t>();
      break;
    case DType::u8:
      f.template operator()<uint8_t>();
      break;
    case DType::u16:
      f.template operator()<uint16_t>();
      break;
    case DType::u32:
      f.template operator()<uint32_t>();
      break;
    case DType::u64:
      f.template operator()<uint64_t>();
      break;
    case DType::f16:
      f.template operator()<Half>();
      break;
    case DType::bf16:
      f.template operator()<BFloat16>();
      break;
    case DType::f32:
      f.template operator()<float>();
      break;
    case DType::f64:
      f.template operator()<double>();
      break;
    default:
      break;
  }
}

}  // namespace hologram::backends
