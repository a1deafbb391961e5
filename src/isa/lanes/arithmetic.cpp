#include "atlas/resonance.h"
#include "isa/lanes/apply.h"

namespace hologram::isa {
namespace {

template <typename T, auto kFunction>
uint32_t division_kernel(const LaneRegisters& r, const Lanes& lanes) {
  T* const dst = as<T>(r.dst);
  const T* const a = as<T>(r.a);
  const T* const b = as<T>(r.b);
  for (uint32_t k = 0; k < lanes.count; ++k) {
    const uint32_t i = lanes.index[k];
    if (b[i] == T{0}) return i;
    dst[i] = kFunction(a[i], b[i]);
  }
  return kNoLane;
}

template <typename T, auto kFunction>
uint32_t shift_kernel(const LaneRegisters& r, const Lanes& lanes) {
  T* const dst = as<T>(r.dst);
  const T* const a = as<T>(r.a);
  const uint32_t* const amount = as<uint32_t>(r.b);
  for (uint32_t k = 0; k < lanes.count; ++k) {
    const uint32_t i = lanes.index[k];
    if (amount[i] >= 8 * sizeof(T)) return i;
    dst[i] = kFunction(a[i], amount[i]);
  }
  return kNoLane;
}

uint8_t class_of(uint8_t byte) { return atlas::kClassOfByte[byte]; }
uint8_t class_mirror(uint8_t id) { return atlas::kMirrorOfClass[id]; }

template <typename T>
uint32_t move_kernel(const LaneRegisters& r, const Lanes& lanes) {
  T* const dst = as<T>(r.dst);
  const T* const a = as<T>(r.a);
  for_each_lane(lanes, [=](uint32_t i) { dst[i] = a[i]; });
  return kNoLane;
}

template <typename T>
uint32_t select_kernel(const LaneRegisters& r, const Lanes& lanes) {
  T* const dst = as<T>(r.dst);
  const bool* const condition = as<bool>(r.a);
  const T* const b = as<T>(r.b);
  const T* const c = as<T>(r.c);
  for_each_lane(lanes, [=](uint32_t i) { dst[i] = condition[i] ? b[i] : c[i]; });
  return kNoLane;
}

// An unsigned integer with as many bits: enough to move and select.
template <typename Visit>
auto with_bits_of(DType type, Visit&& visit) {
  switch (size_of(type)) {
    case 1:
      return visit.template operator()<uint8_t>();
    case 2:
      return visit.template operator()<uint16_t>();
    case 4:
      return visit.template operator()<uint32_t>();
    default:
      return visit.template operator()<uint64_t>();
  }
}

template <typename T>
LaneKernel comparison(Opcode op) {
  switch (op) {
    case Opcode::eq:
      return binary_kernel<bool, T, scalar::eq<T>>;
    case Opcode::ne:
      return binary_kernel<bool, T, scalar::ne<T>>;
    case Opcode::lt:
      return binary_kernel<bool, T, scalar::lt<T>>;
    case Opcode::le:
      return binary_kernel<bool, T, scalar::le<T>>;
    case Opcode::gt:
      return binary_kernel<bool, T, scalar::gt<T>>;
    case Opcode::ge:
      return binary_kernel<bool, T, scalar::ge<T>>;
    default:
      return nullptr;
  }
}

template <typename T>
LaneKernel logic(Opcode op) {
  switch (op) {
    case Opcode::bit_and:
      return binary_kernel<T, T, scalar::bit_and<T>>;
    case Opcode::bit_or:
      return binary_kernel<T, T, scalar::bit_or<T>>;
    case Opcode::bit_xor:
      return binary_kernel<T, T, scalar::bit_xor<T>>;
    case Opcode::bit_not:
      return unary_kernel<T, T, scalar::bit_not<T>>;
    default:
      return nullptr;
  }
}

template <typename T>
LaneKernel number(Opcode op) {
  switch (op) {
    case Opcode::add:
      return binary_kernel<T, T, scalar::add<T>>;
    case Opcode::sub:
      return binary_kernel<T, T, scalar::sub<T>>;
    case Opcode::mul:
      return binary_kernel<T, T, scalar::mul<T>>;
    case Opcode::min:
      return binary_kernel<T, T, scalar::min<T>>;
    case Opcode::max:
      return binary_kernel<T, T, scalar::max<T>>;
    case Opcode::mad:
      return ternary_kernel<T, scalar::mad<T>>;
    default:
      break;
  }
  if constexpr (scalar::kIsFloat<T>) {
    switch (op) {
      case Opcode::div:
        return binary_kernel<T, T, scalar::div<T>>;
      case Opcode::rem:
        return binary_kernel<T, T, scalar::rem<T>>;
      case Opcode::abs:
        return unary_kernel<T, T, scalar::abs<T>>;
      case Opcode::neg:
        return unary_kernel<T, T, scalar::neg<T>>;
      case Opcode::fma:
        return ternary_kernel<T, scalar::fma<T>>;
      default:
        return nullptr;
    }
  } else {
    switch (op) {
      case Opcode::div:
        return division_kernel<T, scalar::div<T>>;
      case Opcode::rem:
        return division_kernel<T, scalar::rem<T>>;
      case Opcode::shl:
        return shift_kernel<T, scalar::shl<T>>;
      case Opcode::shr:
        return shift_kernel<T, scalar::shr<T>>;
      default:
        break;
    }
    if constexpr (std::is_signed_v<T>) {
      if (op == Opcode::abs) return unary_kernel<T, T, scalar::abs<T>>;
      if (op == Opcode::neg) return unary_kernel<T, T, scalar::neg<T>>;
    }
    return nullptr;
  }
}

}  // namespace

LaneKernel arithmetic_kernel(const Instruction& instruction) {
  const Opcode op = instruction.op;
  switch (op) {
    case Opcode::mov:
    case Opcode::bitcast:
      return with_bits_of(instruction.type,
                          []<typename T>() -> LaneKernel { return move_kernel<T>; });
    case Opcode::select:
      return with_bits_of(instruction.type,
                          []<typename T>() -> LaneKernel { return select_kernel<T>; });
    case Opcode::class_of:
      return unary_kernel<uint8_t, uint8_t, class_of>;
    case Opcode::class_mirror:
      return unary_kernel<uint8_t, uint8_t, class_mirror>;
    case Opcode::class_neighbour:
      return binary_kernel<uint8_t, uint8_t, atlas::neighbour>;
    default:
      break;
  }
  return with_type(instruction.type, [op]<typename T>() -> LaneKernel {
    if (LaneKernel kernel = comparison<T>(op)) return kernel;
    if constexpr (!scalar::kIsFloat<T>)
      if (LaneKernel kernel = logic<T>(op)) return kernel;
    if constexpr (!scalar::kIsBool<T>) return number<T>(op);
    return nullptr;
  });
}

}  // namespace hologram::isa
