// Loops over lanes for the kernels of this folder; included by their .cpp files only.
#pragma once

#include <type_traits>

#include "isa/lanes/lanes.h"
#include "isa/scalar.h"

namespace hologram::isa {

// Calls each(lane) for every lane. The dense loop is its own so that compilers vectorise it.
template <typename Each>
void for_each_lane(const Lanes& lanes, Each&& each) {
  if (lanes.dense) {
    for (uint32_t i = 0; i < lanes.count; ++i) each(i);
  } else {
    for (uint32_t k = 0; k < lanes.count; ++k) each(lanes.index[k]);
  }
}

template <typename T>
T* as(std::byte* bytes) {
  return reinterpret_cast<T*>(bytes);
}
template <typename T>
const T* as(const std::byte* bytes) {
  return reinterpret_cast<const T*>(bytes);
}

template <typename R, typename T, auto kFunction>
uint32_t unary_kernel(const LaneRegisters& r, const Lanes& lanes) {
  R* const dst = as<R>(r.dst);
  const T* const a = as<T>(r.a);
  for_each_lane(lanes, [=](uint32_t i) { dst[i] = kFunction(a[i]); });
  return kNoLane;
}
template <typename R, typename T, auto kFunction>
uint32_t binary_kernel(const LaneRegisters& r, const Lanes& lanes) {
  R* const dst = as<R>(r.dst);
  const T* const a = as<T>(r.a);
  const T* const b = as<T>(r.b);
  for_each_lane(lanes, [=](uint32_t i) { dst[i] = kFunction(a[i], b[i]); });
  return kNoLane;
}
template <typename T, auto kFunction>
uint32_t ternary_kernel(const LaneRegisters& r, const Lanes& lanes) {
  T* const dst = as<T>(r.dst);
  const T* const a = as<T>(r.a);
  const T* const b = as<T>(r.b);
  const T* const c = as<T>(r.c);
  for_each_lane(lanes, [=](uint32_t i) { dst[i] = kFunction(a[i], b[i], c[i]); });
  return kNoLane;
}

// Calls visit.operator()<T>() with the C++ type of a compute type.
template <typename Visit>
auto with_type(DType type, Visit&& visit) {
  switch (type) {
    case DType::boolean:
      return visit.template operator()<bool>();
    case DType::i8:
      return visit.template operator()<int8_t>();
    case DType::i16:
      return visit.template operator()<int16_t>();
    case DType::i32:
      return visit.template operator()<int32_t>();
    case DType::i64:
      return visit.template operator()<int64_t>();
    case DType::u8:
      return visit.template operator()<uint8_t>();
    case DType::u16:
      return visit.template operator()<uint16_t>();
    case DType::u32:
      return visit.template operator()<uint32_t>();
    case DType::u64:
      return visit.template operator()<uint64_t>();
    case DType::f16:
      return visit.template operator()<Half>();
    case DType::bf16:
      return visit.template operator()<BFloat16>();
    case DType::f32:
      return visit.template operator()<float>();
    default:
      return visit.template operator()<double>();
  }
}

}  // namespace hologram::isa
