// Kernels that change where elements are.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/convert.h"
#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"

namespace hologram::kernels {
namespace {

Status identity(KernelContext& c) {
  if (!c.input_value(0).is_tensor()) {
    c.set_output(0, c.input_value(0));
    return {};
  }
  return c.reshape_output(0, c.input(0), c.input(0).dims);
}

Status shape(KernelContext& c) {
  const Dims& in = c.input(0).dims;
  const int64_t rank = static_cast<int64_t>(in.rank());
  auto bound = [&](int64_t v) { return std::clamp(v < 0 ? v + rank : v, int64_t{0}, rank); };
  const int64_t start = bound(c.integer("start", 0));
  const int64_t end = std::max(start, bound(c.integer("end", rank)));
  HOLOGRAM_TRY(Tensor out, c.output(0, {end - start}));
  std::copy(in.begin() + start, in.begin() + end, out.as<int64_t>());
  return {};
}

Status size(KernelContext& c) {
  HOLOGRAM_TRY(Tensor out, c.output(0, {}));
  *out.as<int64_t>() = c.input(0).count();
  return {};
}

Status reshape(KernelContext& c) {
  const Tensor& in = c.input(0);
  HOLOGRAM_TRY(Dims dims, c.input_integers(1));
  const bool allow_zero = c.integer("allowzero") != 0;
  int open = -1;
  int64_t known = 1;
  for (size_t i = 0; i < dims.rank(); ++i) {
    if (dims[i] == 0 && !allow_zero) {
      if (i >= in.dims.rank())
        return fail(ErrorCode::shape_mismatch,
                    "dimension {} of the new shape copies one that {} does not have", i,
                    in.dims.to_string());
      dims[i] = in.dims[i];
    }
    if (dims[i] == -1 && open < 0)
      open = static_cast<int>(i);
    else
      known *= dims[i];
  }
  if (open >= 0) {
    if (known <= 0 || in.count() % known != 0)
      return fail(ErrorCode::shape_mismatch, "{} elements of {} do not divide into {}", in.count(),
                  in.dims.to_string(), dims.to_string());
    dims[open] = in.count() / known;
  }
  return c.reshape_output(0, in, dims);
}

Status flatten(KernelContext& c) {
  const Dims& in = c.input(0).dims;
  const int64_t rank = static_cast<int64_t>(in.rank());
  int64_t axis = c.integer("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank)
    return fail(ErrorCode::out_of_range, "axis {} of rank {}", axis, rank);
  return c.reshape_output(0, c.input(0), {in.product(0, axis), in.product(axis, rank)});
}

Status squeeze(KernelContext& c) {
  const Dims& in = c.input(0).dims;
  bool drop[kMaxRank] = {};
  if (c.has_input(1)) {
    HOLOGRAM_TRY(const Dims axes, c.input_integers(1));
    for (int64_t value : axes) {
      HOLOGRAM_TRY(const size_t axis, normalise_axis(value, in.rank()));
      if (in[axis] != 1)
        return fail(ErrorCode::shape_mismatch, "axis {} of {} is not 1", axis, in.to_string());
      drop[axis] = true;
    }
  } else {
    for (size_t i = 0; i < in.rank(); ++i) drop[i] = in[i] == 1;
  }
  Dims dims;
  for (size_t i = 0; i < in.rank(); ++i)
    if (!drop[i]) dims.push_back(in[i]);
  return c.reshape_output(0, c.input(0), dims);
}

Status unsqueeze(KernelContext& c) {
  const Dims& in = c.input(0).dims;
  HOLOGRAM_TRY(const Dims axes, c.input_integers(1));
  const size_t rank = in.rank() + axes.rank();
  if (rank > kMaxRank)
    return fail(ErrorCode::unsupported, "a result of rank {}; at most {}", rank, kMaxRank);
  bool fresh[kMaxRank] = {};
  for (int64_t value : axes) {
    HOLOGRAM_TRY(const size_t axis, normalise_axis(value, rank));
    if (fresh[axis]) return fail(ErrorCode::invalid_argument, "axis {} is named twice", axis);
    fresh[axis] = true;
  }
  Dims dims;
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i) dims.push_back(fresh[i] ? 1 : in[next++]);
  return c.reshape_output(0, c.input(0), dims);
}

template <typename T>
void transpose_elements(const T* in, const Dims& strides, const Dims& dims, T* out) {
  // `strides` of the input in the order of the output's axes.
  const size_t last = dims.rank() - 1;
  Dims index = Dims::filled(dims.rank(), 0);
  const int64_t rows = dims.product(0, last);
  int64_t offset = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const T* from = in + offset;
    for (int64_t i = 0; i < dims[last]; ++i) *out++ = from[i * strides[last]];
    for (size_t axis = last; axis-- > 0;) {
      offset += strides[axis];
      if (++index[axis] < dims[axis]) break;
      offset -= dims[axis] * strides[axis];
      index[axis] = 0;
    }
  }
}

Status transpose(KernelContext& c) {
  const Tensor& in = c.input(0);
  const size_t rank = in.dims.rank();
  auto perm = c.integers("perm");
  if (!perm.empty() && perm.size() != rank)
    return fail(ErrorCode::shape_mismatch, "perm has {} axes for rank {}", perm.size(), rank);
  Dims dims, strides;
  const Dims own = in.dims.strides();
  for (size_t i = 0; i < rank; ++i) {
    HOLOGRAM_TRY(const size_t axis,
                 normalise_axis(perm.empty() ? static_cast<int64_t>(rank - 1 - i) : perm[i], rank));
    dims.push_back(in.dims[axis]);
    strides.push_back(own[axis]);
  }
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  if (rank == 0) {
    dims.push_back(1);
    strides.push_back(1);
  }
  if (in.dtype != DType::string && size_of(in.dtype) == 0) {
    HOLOGRAM_TRY(auto before, c.scratch<uint8_t>(in.count()));
    HOLOGRAM_TRY(auto after, c.scratch<uint8_t>(in.count()));
    unpack_sub_byte(in.dtype, in.data, in.count(), before.data());
    transpose_elements(before.data(), strides, dims, after.data());
    pack_sub_byte(in.dtype, after.data(), in.count(), out.data);
    return {};
  }
  return dispatch_size(in.dtype, [&]<typename T>() -> Status {
    transpose_elements(in.as<T>(), strides, dims, out.as<T>());
    return {};
  });
}

Status concat(KernelContext& c) {
  Dims dims = c.input(0).dims;
  HOLOGRAM_TRY(const size_t axis, c.axis("axis", 0, dims.rank()));
  for (size_t i = 1; i < c.input_count(); ++i) {
    const Dims& in = c.input(i).dims;
    if (in.rank() != dims.rank())
      return fail(ErrorCode::shape_mismatch, "inputs of rank {} and {}", dims.rank(), in.rank());
    for (size_t k = 0; k < dims.rank(); ++k)
      if (k != axis && in[k] != dims[k])
        return fail(ErrorCode::shape_mismatch, "inputs {} and {} differ in axis {}",
                    dims.to_string(), in.to_string(), k);
    dims[axis] += in[axis];
  }
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  const int64_t outer = dims.product(0, axis), inner = dims.product(axis + 1, dims.rank());
  return dispatch_size(out.dtype, [&]<typename T>() -> Status {
    int64_t at = 0;
    for (size_t i = 0; i < c.input_count(); ++i) {
      const Tensor& in = c.input(i);
      const int64_t run = in.dims[axis] * inner;
      for (int64_t k = 0; k < outer; ++k)
        std::copy_n(in.as<T>() + k * run, run, out.as<T>() + k * dims[axis] * inner + at);
      at += run;
    }
    return {};
  });
}

constexpr Kernel kKernels[] = {
    {"Concat", concat},   {"Flatten", flatten},     {"Identity", identity},
    {"Reshape", reshape}, {"Shape", shape},         {"Size", size},
    {"Squeeze", squeeze}, {"Transpose", transpose}, {"Unsqueeze", unsqueeze},
};

}  // namespace

std::span<const Kernel> movement_kernels() { return kKernels; }

}  // namespace hologram::kernels
