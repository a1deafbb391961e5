// Kernels that change where elements are.
#include "backends/cpu/kernels/movement.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cpu/dense/transpose.h"
#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/strided.h"
#include "backends/cpu/kernels/unpacked.h"
#include "backends/cpu/kernels/wrapping.h"

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
      known = wrapping_multiply(known, dims[i]);  // a nonsense is refused below
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

Status transpose(KernelContext& c) {
  const Tensor& in = c.input(0);
  const size_t rank = in.dims.rank();
  auto perm = c.integers("perm");
  if (!perm.empty() && perm.size() != rank)
    return fail(ErrorCode::shape_mismatch, "perm has {} axes for rank {}", perm.size(), rank);
  Dims dims, strides;
  const Dims own = in.dims.strides();
  bool seen[kMaxRank] = {};
  for (size_t i = 0; i < rank; ++i) {
    HOLOGRAM_TRY(const size_t axis,
                 normalise_axis(perm.empty() ? static_cast<int64_t>(rank - 1 - i) : perm[i], rank));
    if (std::exchange(seen[axis], true))
      return fail(ErrorCode::invalid_argument, "perm names axis {} twice", axis);
    dims.push_back(in.dims[axis]);
    strides.push_back(own[axis]);
  }
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  Strided view;
  for (size_t i = 0; i < rank; ++i) view.push(dims[i], strides[i]);
  // Matrices, one or some after the other, whose rows become columns.
  const size_t outer = view.rank == 3 ? 1 : 0;
  const bool turns = view.rank == 2 + outer && view.strides[outer] == 1 &&
                     view.strides[outer + 1] == view.dims[outer] &&
                     (outer == 0 || view.strides[0] == view.dims[1] * view.dims[2]);
  return dispatch_size(in.dtype, [&]<typename T>() -> Status {
    if (turns && sizeof(T) == sizeof(float))
      backends::dense::transpose(outer == 0 ? 1 : static_cast<size_t>(view.dims[0]),
                                 static_cast<size_t>(view.dims[outer + 1]),
                                 static_cast<size_t>(view.dims[outer]), in.as<float>(),
                                 out.as<float>(), c.threads());
    else
      copy_strided(in.as<T>(), view, out.as<T>(), c.threads());
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
      const int64_t run = in.dims[axis] * inner, step = dims[axis] * inner;
      // The plan may have let the operand be made here.
      const bool is_there =
          outer == 1 && in.data == out.data + at * static_cast<int64_t>(sizeof(T));
      if (run == 0 || is_there) {
        at += run;
        continue;
      }
      c.threads().parallel_for(outer, std::max<int64_t>(1, 16 * 1024 / run),
                               [&](size_t begin, size_t end) {
                                 const T* from = in.as<T>();
                                 T* to = out.as<T>() + at;
                                 // A call for every element or two would cost more than the copies.
                                 if (run < 8) {
                                   for (int64_t k = begin; k < static_cast<int64_t>(end); ++k)
                                     for (int64_t j = 0; j < run; ++j)
                                       to[k * step + j] = from[k * run + j];
                                   return;
                                 }
                                 for (int64_t k = begin; k < static_cast<int64_t>(end); ++k)
                                   std::copy_n(from + k * run, run, to + k * step);
                               });
      at += run;
    }
    return {};
  });
}

constexpr Kernel kKernels[] = {
    {"CenterCropPad", unpacked<center_crop_pad>},
    {"Concat", unpacked<concat>},
    {"DepthToSpace", unpacked<depth_to_space>},
    {"Expand", unpacked<expand>},
    {"Flatten", flatten},
    {"Identity", identity},
    {"Pad", unpacked<pad>},
    {"Reshape", reshape},
    {"ReverseSequence", unpacked<reverse_sequence>},
    {"Shape", shape},
    {"Size", size},
    {"Slice", unpacked<slice>},
    {"SpaceToDepth", unpacked<space_to_depth>},
    {"Split", unpacked<split>},
    {"Squeeze", squeeze},
    {"Tile", unpacked<tile>},
    {"Transpose", unpacked<transpose>},
    {"Unsqueeze", unsqueeze},
};

}  // namespace

std::span<const Kernel> movement_kernels() { return kKernels; }

}  // namespace hologram::kernels
