// Kernels that make tensors from a few numbers.
#include <bit>
#include <cmath>
#include <cstring>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/unpacked.h"

namespace hologram::kernels {
namespace {

Status constant_of_shape(KernelContext& c) {
  HOLOGRAM_TRY(const Dims dims, c.input_integers(0));
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  const Tensor* value = c.attributes().tensor("value");
  if (value && value->count() != 1)
    return fail(ErrorCode::shape_mismatch, "value of shape {}; one element expected",
                value->dims.to_string());
  if (value && value->dtype != out.dtype)
    return fail(ErrorCode::type_mismatch, "value of type {} for a result of {}",
                name_of(value->dtype), name_of(out.dtype));
  const int64_t total = out.count();
  if (total == 0) return {};
  if (is_packed(out.dtype)) {
    // Every byte holds the same element several times.
    unsigned byte =
        value ? std::to_integer<unsigned>(*value->data) & ((1u << bits_of(out.dtype)) - 1) : 0;
    for (unsigned bits = bits_of(out.dtype); bits < 8; bits *= 2) byte |= byte << bits;
    std::memset(out.data, static_cast<int>(byte), out.bytes());
    // What no element owns is zero, as packing leaves it.
    if (const unsigned used = total * bits_of(out.dtype) % 8; used != 0)
      out.data[out.bytes() - 1] &= static_cast<std::byte>((1u << used) - 1);
    return {};
  }
  return dispatch_size(out.dtype, [&]<typename T>() -> Status {
    T element{};
    // A constant's memory may be a view of a file, aligned to nothing.
    if constexpr (std::is_same_v<T, std::string>) {
      if (value) element = *value->as<T>();
    } else if (value) {
      std::memcpy(&element, value->data, sizeof(T));
    }
    std::fill_n(out.as<T>(), total, element);
    return {};
  });
}

Status range(KernelContext& c) {
  for (size_t i = 0; i < 3; ++i)
    if (c.input(i).count() != 1)
      return fail(ErrorCode::shape_mismatch, "input {} of shape {}; one element expected", i,
                  c.input(i).dims.to_string());
  return dispatch_number(c.input(0).dtype, [&]<typename T>() -> Status {
    const T start = *c.input(0).as<T>(), limit = *c.input(1).as<T>(), delta = *c.input(2).as<T>();
    if (delta == 0) return fail(ErrorCode::invalid_argument, "a range with delta 0");
    int64_t count = 0;
    if constexpr (std::is_floating_point_v<T>) {
      const double steps =
          std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / delta);
      if (!(steps < 0x1p48))
        return fail(ErrorCode::resource_exhausted, "a range from {} to {} by {}", start, limit,
                    delta);
      count = steps > 0 ? static_cast<int64_t>(steps) : 0;
    } else if (delta > 0 ? limit > start : limit < start) {
      // The distance fits the unsigned type, whatever the ends.
      const uint64_t distance = delta > 0
                                    ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                    : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
      const uint64_t step =
          delta > 0 ? static_cast<uint64_t>(delta) : -static_cast<uint64_t>(delta);
      const uint64_t steps = (distance - 1) / step + 1;
      if (steps > (uint64_t{1} << 48))
        return fail(ErrorCode::resource_exhausted, "a range of {} elements", steps);
      count = static_cast<int64_t>(steps);
    }
    HOLOGRAM_TRY(Tensor out, c.output(0, {count}));
    T* to = out.as<T>();
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_floating_point_v<T>)
        to[i] = start + static_cast<T>(i) * delta;
      else  // the product may pass the ends of T, the sum never does
        to[i] = static_cast<T>(static_cast<uint64_t>(start) +
                               static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
    }
    return {};
  });
}

Status eye_like(KernelContext& c) {
  const Dims& dims = c.input(0).dims;
  if (dims.rank() != 2)
    return fail(ErrorCode::shape_mismatch, "input of rank {}; a matrix expected", dims.rank());
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  if (out.bytes() > 0) std::memset(out.data, 0, out.bytes());
  const int64_t k = c.integer("k");
  // One, bit by bit, in every type.
  uint64_t one = 1;
  switch (out.dtype) {
    case DType::f16:
      one = f32_to_f16(1);
      break;
    case DType::bf16:
      one = f32_to_bf16(1);
      break;
    case DType::f32:
      one = std::bit_cast<uint32_t>(1.0f);
      break;
    case DType::f64:
      one = std::bit_cast<uint64_t>(1.0);
      break;
    default:
      break;
  }
  const size_t size = size_of(out.dtype);
  if (size == 0 || size > sizeof one || out.dtype == DType::string)
    return fail(ErrorCode::unsupported, "a matrix of type {}", name_of(out.dtype));
  if (k >= dims[1] || k <= -dims[0]) return {};
  for (int64_t row = std::max<int64_t>(0, -k); row < dims[0] && row + k < dims[1]; ++row)
    std::memcpy(out.data + (row * dims[1] + row + k) * size, &one, size);
  return {};
}

constexpr Kernel kKernels[] = {
    {"ConstantOfShape", constant_of_shape},
    {"EyeLike", eye_like},
    {"Range", range, true},
};

}  // namespace

std::span<const Kernel> generator_kernels() { return kKernels; }

}  // namespace hologram::kernels
