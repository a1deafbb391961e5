#include <cstring>

#include "isa/lanes/apply.h"

namespace hologram::isa {
namespace {

template <typename T>
uint32_t load(const LaneRegisters& r, const LaneMemory& memory, const Lanes& lanes) {
  T* const dst = as<T>(r.dst);
  const uint64_t* const index = as<uint64_t>(r.a);
  const T* const base = as<T>(memory.base);
  for (uint32_t k = 0; k < lanes.count; ++k) {
    const uint32_t i = lanes.index[k];
    if (index[i] >= memory.count) return i;
    dst[i] = base[index[i]];
  }
  return kNoLane;
}

// Any byte may stand in an array of bool; what is not zero is true.
uint32_t load_bool(const LaneRegisters& r, const LaneMemory& memory, const Lanes& lanes) {
  const uint32_t trapped = load<uint8_t>(r, memory, lanes);
  uint8_t* const dst = as<uint8_t>(r.dst);
  for_each_lane(lanes, [=](uint32_t i) { dst[i] = dst[i] != 0; });
  return trapped;
}

template <typename T>
uint32_t store(const LaneRegisters& r, const LaneMemory& memory, const Lanes& lanes) {
  const uint64_t* const index = as<uint64_t>(r.a);
  const T* const value = as<T>(r.b);
  T* const base = as<T>(memory.base);
  for (uint32_t k = 0; k < lanes.count; ++k) {
    const uint32_t i = lanes.index[k];
    if (index[i] >= memory.count) return i;
    base[index[i]] = value[i];
  }
  return kNoLane;
}

// Blocks that could meet in memory run one after another, so plain accesses are atomic.
template <typename T, auto kFunction>
uint32_t atomic(const LaneRegisters& r, const LaneMemory& memory, const Lanes& lanes) {
  T* const dst = as<T>(r.dst);
  const uint64_t* const index = as<uint64_t>(r.a);
  const T* const value = as<T>(r.b);
  T* const base = as<T>(memory.base);
  for (uint32_t k = 0; k < lanes.count; ++k) {
    const uint32_t i = lanes.index[k];
    if (index[i] >= memory.count) return i;
    const T old = base[index[i]];
    base[index[i]] = kFunction(old, value[i]);
    dst[i] = old;
  }
  return kNoLane;
}

template <typename T>
T second(T, T value) {
  return value;
}

template <typename T>
uint32_t atomic_cas(const LaneRegisters& r, const LaneMemory& memory, const Lanes& lanes) {
  T* const dst = as<T>(r.dst);
  const uint64_t* const index = as<uint64_t>(r.a);
  const T* const expected = as<T>(r.b);
  const T* const desired = as<T>(r.c);
  T* const base = as<T>(memory.base);
  for (uint32_t k = 0; k < lanes.count; ++k) {
    const uint32_t i = lanes.index[k];
    if (index[i] >= memory.count) return i;
    const T old = base[index[i]];
    if (old == expected[i]) base[index[i]] = desired[i];
    dst[i] = old;
  }
  return kNoLane;
}

template <typename T>
MemoryKernel atomic_of(Opcode op) {
  switch (op) {
    case Opcode::atomic_add:
    case Opcode::atomic_add_shared:
      return atomic<T, scalar::add<T>>;
    case Opcode::atomic_min:
    case Opcode::atomic_min_shared:
      return atomic<T, scalar::min<T>>;
    case Opcode::atomic_max:
    case Opcode::atomic_max_shared:
      return atomic<T, scalar::max<T>>;
    case Opcode::atomic_exchange:
    case Opcode::atomic_exchange_shared:
      return atomic<T, second<T>>;
    default:
      break;
  }
  if constexpr (scalar::kIsInteger<T>) return atomic_cas<T>;
  return nullptr;
}

MemoryKernel load_of(DType type) {
  if (type == DType::boolean) return load_bool;
  switch (size_of(type)) {
    case 1:
      return load<uint8_t>;
    case 2:
      return load<uint16_t>;
    case 4:
      return load<uint32_t>;
    default:
      return load<uint64_t>;
  }
}

MemoryKernel store_of(DType type) {
  switch (size_of(type)) {
    case 1:
      return store<uint8_t>;
    case 2:
      return store<uint16_t>;
    case 4:
      return store<uint32_t>;
    default:
      return store<uint64_t>;
  }
}

template <typename T>
void widen_lanes(const std::byte* from, uint64_t* to, const Lanes& lanes) {
  const T* const index = as<T>(from);
  for_each_lane(lanes, [=](uint32_t i) { to[i] = static_cast<uint64_t>(index[i]); });
}

// ---- counted loops

template <typename T>
bool before(T value, T end, T step) {
  return step > 0 ? value < end : value > end;
}

template <typename T>
uint32_t for_begin(const LaneRegisters& r, const Lanes& lanes, uint32_t* running, uint32_t* trap) {
  T* const counter = as<T>(r.dst);
  const T* const begin = as<T>(r.a);
  const T* const end = as<T>(r.b);
  const T* const step = as<T>(r.c);
  uint32_t count = 0;
  for (uint32_t k = 0; k < lanes.count; ++k) {
    const uint32_t i = lanes.index[k];
    if (step[i] == 0) {
      *trap = i;
      return 0;
    }
    if (!before(begin[i], end[i], step[i])) continue;
    counter[i] = begin[i];
    running[count++] = i;
  }
  return count;
}

// A counter that would leave its type has passed every end.
template <typename T>
uint32_t for_next(const LaneRegisters& r, uint32_t* running, uint32_t count) {
  T* const counter = as<T>(r.dst);
  const T* const end = as<T>(r.b);
  const T* const step = as<T>(r.c);
  uint32_t kept = 0;
  for (uint32_t k = 0; k < count; ++k) {
    const uint32_t i = running[k];
    T next;
    if (__builtin_add_overflow(counter[i], step[i], &next) || !before(next, end[i], step[i]))
      continue;
    counter[i] = next;
    running[kept++] = i;
  }
  return kept;
}

// ---- reductions

// The tree pads with the identity of the operation to a power of two; an identity never shows, so
// the padding is left out.
template <typename T, auto kFunction>
void reduce(std::byte* dst, const std::byte* a, std::byte* scratch, uint32_t count) {
  std::memcpy(scratch, a, count * sizeof(T));
  T* const v = as<T>(scratch);
  uint32_t half = 1;
  while (half < count) half *= 2;
  for (half /= 2; half > 0; half /= 2)
    for (uint32_t i = 0; i < half && i + half < count; ++i) v[i] = kFunction(v[i], v[i + half]);
  for (uint32_t i = 0; i < count; ++i) as<T>(dst)[i] = v[0];
}

}  // namespace

MemoryKernel memory_kernel(const Instruction& instruction) {
  const Form form = info(instruction.op).form;
  if (form == Form::load) return load_of(instruction.type);
  if (form == Form::store) return store_of(instruction.type);
  switch (instruction.type) {
    case DType::i32:
      return atomic_of<int32_t>(instruction.op);
    case DType::u32:
      return atomic_of<uint32_t>(instruction.op);
    case DType::i64:
      return atomic_of<int64_t>(instruction.op);
    case DType::u64:
      return atomic_of<uint64_t>(instruction.op);
    case DType::f32:
      return atomic_of<float>(instruction.op);
    default:
      return atomic_of<double>(instruction.op);
  }
}

WidenKernel widen_index(DType type) {
  switch (type) {
    case DType::i8:
      return widen_lanes<int8_t>;
    case DType::i16:
      return widen_lanes<int16_t>;
    case DType::i32:
      return widen_lanes<int32_t>;
    case DType::u8:
      return widen_lanes<uint8_t>;
    case DType::u16:
      return widen_lanes<uint16_t>;
    case DType::u32:
      return widen_lanes<uint32_t>;
    default:
      return widen_lanes<uint64_t>;
  }
}

ForKernels for_kernels(DType type) {
  return with_type(type, []<typename T>() -> ForKernels {
    if constexpr (scalar::kIsInteger<T>) return {for_begin<T>, for_next<T>};
    return {};
  });
}

GroupKernel group_kernel(Opcode op, DType type) {
  return with_type(type, [op]<typename T>() -> GroupKernel {
    if constexpr (!scalar::kIsBool<T>) {
      switch (op) {
        case Opcode::group_add:
          return reduce<T, scalar::add<T>>;
        case Opcode::group_mul:
          return reduce<T, scalar::mul<T>>;
        case Opcode::group_min:
          return reduce<T, scalar::min<T>>;
        default:
          return reduce<T, scalar::max<T>>;
      }
    }
    return nullptr;
  });
}

}  // namespace hologram::isa
