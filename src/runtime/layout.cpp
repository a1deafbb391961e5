#include "runtime/layout.h"

namespace hologram::runtime {

std::optional<Dims> reshaped_strides(const Dims& from, const Dims& from_strides, const Dims& to) {
  if (element_count(to) == 0) return contiguous_strides(to);
  Dims old, strides;  // without the dimensions of 1, whose strides mean nothing
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == 1) continue;
    old.push_back(from[i]);
    strides.push_back(from_strides[i]);
  }
  Dims result(to.size(), 1);
  // Groups of old and new dimensions with equal products. Within a group the old ones must be
  // walkable as one; the new ones then divide that walk.
  size_t old_begin = 0, new_begin = 0;
  while (old_begin < old.size() && new_begin < to.size()) {
    size_t old_end = old_begin + 1, new_end = new_begin + 1;
    int64_t old_product = old[old_begin], new_product = to[new_begin];
    while (old_product != new_product) {
      if (new_product < old_product)
        new_product *= to[new_end++];
      else
        old_product *= old[old_end++];
    }
    for (size_t i = old_begin; i + 1 < old_end; ++i)
      if (strides[i] != old[i + 1] * strides[i + 1]) return std::nullopt;
    result[new_end - 1] = strides[old_end - 1];
    for (size_t i = new_end - 1; i > new_begin; --i) result[i - 1] = result[i] * to[i];
    old_begin = old_end;
    new_begin = new_end;
  }
  return result;
}

Walk collapse(const Dims& dims, std::span<const Dims* const> strides) {
  Walk walk;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    const size_t last = walk.dims.size();
    bool joins = last > 0;
    for (size_t k = 0; joins && k < strides.size(); ++k)
      joins = walk.strides[k][last - 1] == (*strides[k])[i] * dims[i];
    if (joins) {
      walk.dims[last - 1] *= dims[i];
      for (size_t k = 0; k < strides.size(); ++k) walk.strides[k][last - 1] = (*strides[k])[i];
    } else {
      walk.dims.push_back(dims[i]);
      for (size_t k = 0; k < strides.size(); ++k) walk.strides[k].push_back((*strides[k])[i]);
    }
  }
  if (walk.dims.empty()) {
    walk.dims.push_back(1);
    for (size_t k = 0; k < strides.size(); ++k) walk.strides[k].push_back(1);
  }
  return walk;
}

}  // namespace hologram::runtime
