// An input of a pointwise program as it is read: in place, or spread out by broadcasting.
// Internal to kernels/pointwise.
#pragma once

#include <array>
#include <cstring>

#include "backends/cpu/kernels/pointwise.h"

namespace hologram::kernels {

// How a block of one input is found: where it lies, or how it is spread out.
struct Pointwise::Operand {
  std::byte* data;
  size_t size;
  enum Kind { dense, scalar, spread } kind;
  // Spread: the output's dimensions, collapsed, and this operand's strides. Plain arrays, so that
  // operands that are not there cost nothing.
  size_t rank;
  int64_t dims[kMaxRank], strides[kMaxRank];

  void set(const Tensor& input, const Dims& output) {
    data = input.data;
    size = size_of(input.dtype);
    const int64_t count = input.count();
    kind = count == output.count() ? dense : count == 1 ? scalar : spread;
    if (kind != spread) return;
    // Adjacent axes that are both whole or both stretched are one axis.
    rank = 0;
    const Dims own = input.dims.strides();
    const size_t shift = output.rank() - input.dims.rank();
    for (size_t axis = 0; axis < output.rank(); ++axis) {
      if (output[axis] == 1) continue;
      const bool whole = axis >= shift && input.dims[axis - shift] != 1;
      const int64_t stride = whole ? own[axis - shift] : 0;
      if (rank > 0 && (strides[rank - 1] != 0) == whole) {
        dims[rank - 1] *= output[axis];
        strides[rank - 1] = stride;
      } else {
        dims[rank] = output[axis];
        strides[rank++] = stride;
      }
    }
  }

  // The elements of output positions [position, position + count), in place or in `buffer`.
  std::byte* block(int64_t position, int64_t count, std::byte* buffer) const {
    if (kind == dense) return data + position * size;
    if (kind == scalar) {
      repeat(data, count, buffer);
      return buffer;
    }
    gather(position, count, buffer);
    return buffer;
  }

  // Each size by itself: a copy of a size that is not known is a call an element.
  void repeat(const std::byte* element, int64_t count, std::byte* buffer) const {
    switch (size) {
      case 1:
        return fill<uint8_t>(element, count, buffer);
      case 2:
        return fill<uint16_t>(element, count, buffer);
      case 4:
        return fill<uint32_t>(element, count, buffer);
      default:
        return fill<uint64_t>(element, count, buffer);
    }
  }
  template <typename T>
  static void fill(const std::byte* element, int64_t count, std::byte* buffer) {
    T value;
    std::memcpy(&value, element, sizeof value);
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(buffer + i * sizeof value, &value, sizeof value);
  }

  void gather(int64_t position, int64_t count, std::byte* buffer) const {
    const size_t last = rank - 1;
    std::array<int64_t, kMaxRank> index;
    int64_t offset = 0;
    for (size_t axis = rank; axis-- > 0;) {
      index[axis] = position % dims[axis];
      position /= dims[axis];
      offset += index[axis] * strides[axis];
    }
    while (count > 0) {
      const int64_t run = std::min(count, dims[last] - index[last]);
      const std::byte* from = data + offset * size;
      if (strides[last] == 1)
        std::memcpy(buffer, from, run * size);
      else
        repeat(from, run, buffer);
      buffer += run * size;
      count -= run;
      offset -= index[last] * strides[last];
      index[last] = 0;
      for (size_t axis = last; axis-- > 0;) {
        offset += strides[axis];
        if (++index[axis] < dims[axis]) break;
        offset -= dims[axis] * strides[axis];
        index[axis] = 0;
      }
    }
  }
};

}  // namespace hologram::kernels
