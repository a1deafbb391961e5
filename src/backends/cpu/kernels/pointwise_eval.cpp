#include "backends/cpu/kernels/pointwise_eval.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backends/cpu/kernels/pointwise.h"

namespace hologram::kernels {
namespace {

using isa::Opcode;

constexpr int64_t kBlock = Pointwise::kBlock;

// kNone: the instruction is not one of this family.
enum class Outcome { done, none, division_by_zero, shift_too_far };

template <typename T, typename F>
Outcome map1(T* d, const T* a, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) d[i] = f(a[i]);
  return Outcome::done;
}
template <typename R, typename T, typename F>
Outcome map2(R* d, const T* a, const T* b, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) d[i] = f(a[i], b[i]);
  return Outcome::done;
}

// Integers wrap: computed as unsigned.
template <typename T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::type_identity<T>>::type;
// Products of small unsigned types would be computed as int and could overflow.
template <typename T>
using WrappingWide = std::conditional_t<std::is_integral_v<T> && sizeof(T) < 4, uint32_t, Wrapping<T>>;

template <typename T>
Outcome integer_op(Opcode op, T* d, const T* a, const T* b, int64_t n) {
  switch (op) {
    case Opcode::div:
    case Opcode::rem:
      for (int64_t i = 0; i < n; ++i) {
        if (b[i] == 0) return Outcome::division_by_zero;
        if (std::is_signed_v<T> && b[i] == static_cast<T>(-1))  // the smallest number over -1 wraps
          d[i] = op == Opcode::div ? static_cast<T>(Wrapping<T>(0) - Wrapping<T>(a[i])) : T(0);
        else
          d[i] = static_cast<T>(op == Opcode::div ? a[i] / b[i] : a[i] % b[i]);
      }
      return Outcome::done;
    case Opcode::bit_and: return map2(d, a, b, n, [](T x, T y) { return static_cast<T>(x & y); });
    case Opcode::bit_or: return map2(d, a, b, n, [](T x, T y) { return static_cast<T>(x | y); });
    case Opcode::bit_xor: return map2(d, a, b, n, [](T x, T y) { return static_cast<T>(x ^ y); });
    case Opcode::bit_not: return map1(d, a, n, [](T x) { return static_cast<T>(~x); });
    default: return Outcome::none;
  }
}

template <typename T>
Outcome float_op(Opcode op, T* d, const T* a, const T* b, const T* c, int64_t n) {
  switch (op) {
    case Opcode::div: return map2(d, a, b, n, [](T x, T y) { return x / y; });
    case Opcode::rem: return map2(d, a, b, n, [](T x, T y) { return std::fmod(x, y); });
    case Opcode::fma:
      for (int64_t i = 0; i < n; ++i) d[i] = std::fma(a[i], b[i], c[i]);
      return Outcome::done;
    case Opcode::exp: return map1(d, a, n, [](T x) { return std::exp(x); });
    case Opcode::exp2: return map1(d, a, n, [](T x) { return std::exp2(x); });
    case Opcode::expm1: return map1(d, a, n, [](T x) { return std::expm1(x); });
    case Opcode::log: return map1(d, a, n, [](T x) { return std::log(x); });
    case Opcode::log1p: return map1(d, a, n, [](T x) { return std::log1p(x); });
    case Opcode::log2: return map1(d, a, n, [](T x) { return std::log2(x); });
    case Opcode::log10: return map1(d, a, n, [](T x) { return std::log10(x); });
    case Opcode::sqrt: return map1(d, a, n, [](T x) { return std::sqrt(x); });
    case Opcode::rsqrt: return map1(d, a, n, [](T x) { return T(1) / std::sqrt(x); });
    case Opcode::sin: return map1(d, a, n, [](T x) { return std::sin(x); });
    case Opcode::cos: return map1(d, a, n, [](T x) { return std::cos(x); });
    case Opcode::tan: return map1(d, a, n, [](T x) { return std::tan(x); });
    case Opcode::asin: return map1(d, a, n, [](T x) { return std::asin(x); });
    case Opcode::acos: return map1(d, a, n, [](T x) { return std::acos(x); });
    case Opcode::atan: return map1(d, a, n, [](T x) { return std::atan(x); });
    case Opcode::sinh: return map1(d, a, n, [](T x) { return std::sinh(x); });
    case Opcode::cosh: return map1(d, a, n, [](T x) { return std::cosh(x); });
    case Opcode::tanh: return map1(d, a, n, [](T x) { return std::tanh(x); });
    case Opcode::asinh: return map1(d, a, n, [](T x) { return std::asinh(x); });
    case Opcode::acosh: return map1(d, a, n, [](T x) { return std::acosh(x); });
    case Opcode::atanh: return map1(d, a, n, [](T x) { return std::atanh(x); });
    case Opcode::sigmoid: return map1(d, a, n, [](T x) { return T(1) / (T(1) + std::exp(-x)); });
    case Opcode::erf: return map1(d, a, n, [](T x) { return std::erf(x); });
    case Opcode::pow: return map2(d, a, b, n, [](T x, T y) { return std::pow(x, y); });
    case Opcode::floor: return map1(d, a, n, [](T x) { return std::floor(x); });
    case Opcode::ceil: return map1(d, a, n, [](T x) { return std::ceil(x); });
    case Opcode::round: return map1(d, a, n, [](T x) { return std::nearbyint(x); });
    case Opcode::trunc: return map1(d, a, n, [](T x) { return std::trunc(x); });
    default: return Outcome::none;
  }
}

template <typename T>
Outcome arithmetic(Opcode op, T* d, const T* a, const T* b, const T* c, int64_t n) {
  using W = WrappingWide<T>;
  switch (op) {
    case Opcode::add: return map2(d, a, b, n, [](T x, T y) { return static_cast<T>(W(x) + W(y)); });
    case Opcode::sub: return map2(d, a, b, n, [](T x, T y) { return static_cast<T>(W(x) - W(y)); });
    case Opcode::mul: return map2(d, a, b, n, [](T x, T y) { return static_cast<T>(W(x) * W(y)); });
    case Opcode::mad:
      for (int64_t i = 0; i < n; ++i) d[i] = static_cast<T>(W(a[i]) * W(b[i]) + W(c[i]));
      return Outcome::done;
    // A NaN on either side stays a NaN.
    case Opcode::min: return map2(d, a, b, n, [](T x, T y) { return x < y || x != x ? x : y; });
    case Opcode::max: return map2(d, a, b, n, [](T x, T y) { return x > y || x != x ? x : y; });
    case Opcode::abs:
      return map1(d, a, n, [](T x) {
        if constexpr (std::is_floating_point_v<T>) return std::fabs(x);
        else return static_cast<T>(x < 0 ? W(0) - W(x) : W(x));
      });
    case Opcode::neg:
      return map1(d, a, n, [](T x) {
        if constexpr (std::is_floating_point_v<T>) return -x;
        else return static_cast<T>(W(0) - W(x));
      });
    default: break;
  }
  if constexpr (std::is_floating_point_v<T>) return float_op(op, d, a, b, c, n);
  else return integer_op(op, d, a, b, n);
}

template <typename T>
Outcome compare(Opcode op, uint8_t* d, const T* a, const T* b, int64_t n) {
  switch (op) {
    case Opcode::eq: return map2(d, a, b, n, [](T x, T y) { return x == y; });
    case Opcode::ne: return map2(d, a, b, n, [](T x, T y) { return x != y; });
    case Opcode::lt: return map2(d, a, b, n, [](T x, T y) { return x < y; });
    case Opcode::le: return map2(d, a, b, n, [](T x, T y) { return x <= y; });
    case Opcode::gt: return map2(d, a, b, n, [](T x, T y) { return x > y; });
    case Opcode::ge: return map2(d, a, b, n, [](T x, T y) { return x >= y; });
    default: return Outcome::none;
  }
}

template <typename T>
Outcome shift(Opcode op, T* d, const T* a, const uint32_t* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (b[i] >= sizeof(T) * 8) return Outcome::shift_too_far;
    d[i] = op == Opcode::shl ? static_cast<T>(static_cast<Wrapping<T>>(a[i]) << b[i])
                             : static_cast<T>(a[i] >> b[i]);
  }
  return Outcome::done;
}

template <typename T>
Outcome select(T* d, const uint8_t* condition, const T* b, const T* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) d[i] = condition[i] ? b[i] : c[i];
  return Outcome::done;
}

// Floats to integers round towards zero and saturate; a NaN becomes 0.
template <typename To, typename From>
To convert_one(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (x != x) return 0;
    if (x <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (x >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <typename To, typename From>
void convert_all(To* d, const From* a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) d[i] = convert_one<To>(a[i]);
}

template <typename From>
bool convert_from(DType to, void* d, const From* a, int64_t n) {
  switch (to) {
    case DType::boolean:
      for (int64_t i = 0; i < n; ++i) static_cast<uint8_t*>(d)[i] = a[i] != From(0);
      return true;
    case DType::i8: convert_all(static_cast<int8_t*>(d), a, n); return true;
    case DType::i16: convert_all(static_cast<int16_t*>(d), a, n); return true;
    case DType::i32: convert_all(static_cast<int32_t*>(d), a, n); return true;
    case DType::i64: convert_all(static_cast<int64_t*>(d), a, n); return true;
    case DType::u8: convert_all(static_cast<uint8_t*>(d), a, n); return true;
    case DType::u16: convert_all(static_cast<uint16_t*>(d), a, n); return true;
    case DType::u32: convert_all(static_cast<uint32_t*>(d), a, n); return true;
    case DType::u64: convert_all(static_cast<uint64_t*>(d), a, n); return true;
    case DType::f32: convert_all(static_cast<float*>(d), a, n); return true;
    case DType::f64: convert_all(static_cast<double*>(d), a, n); return true;
    case DType::f16:
    case DType::bf16: {
      // Through double: every integer and float fits closely enough to be rounded once.
      for (int64_t i = 0; i < n; ++i)
        static_cast<uint16_t*>(d)[i] = to == DType::f16 ? f64_to_f16(static_cast<double>(a[i]))
                                                        : f64_to_bf16(static_cast<double>(a[i]));
      return true;
    }
    default: return false;
  }
}

void widen(DType type, float* d, const uint16_t* a, int64_t n) {
  if (type == DType::f16)
    for (int64_t i = 0; i < n; ++i) d[i] = f16_to_f32(a[i]);
  else
    for (int64_t i = 0; i < n; ++i) d[i] = bf16_to_f32(a[i]);
}
void narrow(DType type, uint16_t* d, const float* a, int64_t n) {
  if (type == DType::f16)
    for (int64_t i = 0; i < n; ++i) d[i] = f32_to_f16(a[i]);
  else
    for (int64_t i = 0; i < n; ++i) d[i] = f32_to_bf16(a[i]);
}
bool is_half(DType type) { return type == DType::f16 || type == DType::bf16; }

// body<T>() for the type that holds `type` in a block; f16 and bf16 only move as 16 bits.
template <typename Body>
Outcome with_type(DType type, Body&& body) {
  switch (type) {
    case DType::boolean: case DType::u8: return body.template operator()<uint8_t>();
    case DType::i8: return body.template operator()<int8_t>();
    case DType::i16: return body.template operator()<int16_t>();
    case DType::i32: return body.template operator()<int32_t>();
    case DType::i64: return body.template operator()<int64_t>();
    case DType::u16: return body.template operator()<uint16_t>();
    case DType::u32: return body.template operator()<uint32_t>();
    case DType::u64: return body.template operator()<uint64_t>();
    case DType::f32: return body.template operator()<float>();
    case DType::f64: return body.template operator()<double>();
    default: return Outcome::none;
  }
}

Outcome convert(DType to, DType from, void* d, const void* a, int64_t n) {
  float wide[kBlock];
  if (is_half(from)) {
    widen(from, wide, static_cast<const uint16_t*>(a), n);
    return convert_from(to, d, wide, n) ? Outcome::done : Outcome::none;
  }
  return with_type(from, [&]<typename T>() {
    return convert_from(to, d, static_cast<const T*>(a), n) ? Outcome::done : Outcome::none;
  });
}

Outcome evaluate(const isa::Instruction& in, void* d, const void* a, const void* b, const void* c,
                 int64_t n) {
  const isa::Form form = isa::info(in.op).form;
  const unsigned size = size_of(in.type);
  switch (form) {
    case isa::Form::immediate:
      for (int64_t i = 0; i < n; ++i) std::memcpy(static_cast<char*>(d) + i * size, &in.immediate, size);
      return Outcome::done;
    case isa::Form::move:
    case isa::Form::bitcast: std::memcpy(d, a, n * size); return Outcome::done;
    case isa::Form::convert: return convert(in.type, in.from, d, a, n);
    case isa::Form::select: {
      const DType bits = size == 1 ? DType::u8 : size == 2 ? DType::u16 : size == 4 ? DType::u32 : DType::u64;
      return with_type(bits, [&]<typename T>() {
        return select(static_cast<T*>(d), static_cast<const uint8_t*>(a), static_cast<const T*>(b),
                      static_cast<const T*>(c), n);
      });
    }
    default: break;
  }
  if (is_half(in.type)) {  // through f32, rounded after every instruction
    float x[kBlock], y[kBlock], z[kBlock], r[kBlock];
    if (a) widen(in.type, x, static_cast<const uint16_t*>(a), n);
    if (b) widen(in.type, y, static_cast<const uint16_t*>(b), n);
    if (c) widen(in.type, z, static_cast<const uint16_t*>(c), n);
    if (form == isa::Form::compare) return compare(in.op, static_cast<uint8_t*>(d), x, y, n);
    const Outcome outcome = arithmetic(in.op, r, x, y, z, n);
    narrow(in.type, static_cast<uint16_t*>(d), r, n);
    return outcome;
  }
  if (in.type == DType::boolean && in.op == Opcode::bit_not)
    return map1(static_cast<uint8_t*>(d), static_cast<const uint8_t*>(a), n,
                [](uint8_t x) { return static_cast<uint8_t>(x == 0); });
  return with_type(in.type, [&]<typename T>() {
    const T* x = static_cast<const T*>(a);
    const T* y = static_cast<const T*>(b);
    if (form == isa::Form::compare) return compare(in.op, static_cast<uint8_t*>(d), x, y, n);
    if constexpr (std::is_integral_v<T>)
      if (form == isa::Form::shift)
        return shift(in.op, static_cast<T*>(d), x, static_cast<const uint32_t*>(b), n);
    return arithmetic(in.op, static_cast<T*>(d), x, y, static_cast<const T*>(c), n);
  });
}

}  // namespace

Status evaluate_block(const isa::Instruction& instruction, void* d, const void* a, const void* b,
                      const void* c, int64_t count) {
  switch (evaluate(instruction, d, a, b, c, count)) {
    case Outcome::done: return {};
    case Outcome::division_by_zero: return fail(ErrorCode::trap, "integer division by zero");
    case Outcome::shift_too_far: return fail(ErrorCode::trap, "shift by the type's width or more");
    case Outcome::none: break;
  }
  return fail(ErrorCode::unsupported, "instruction {}.{} in a pointwise program",
              isa::info(instruction.op).name, name_of(instruction.type));
}

}  // namespace hologram::kernels
