// Selection and comparison of elements that no pointwise program can hold: strings, complex
// numbers, small types.
#include <cmath>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/pointwise.h"
#include "backends/cpu/kernels/unpacked.h"

namespace hologram::kernels {
namespace {

// `in` seen as a tensor of `dims`, to which it broadcasts. Axes are not merged, so that several
// of these can be walked together.
Dims broadcast_strides(const Dims& in, const Dims& dims) {
  const Dims own = in.strides();
  const size_t shift = dims.rank() - in.rank();
  Dims strides = Dims::filled(dims.rank(), 0);
  for (size_t i = 0; i < in.rank(); ++i)
    if (in[i] != 1) strides[i + shift] = own[i];
  return strides;
}

// visit(i, offsets): element i of the result and where it lies in each of `n` operands.
template <size_t n, typename Visit>
void walk_broadcast(const Dims& dims, const Dims (&strides)[n], Visit visit) {
  int64_t index[kMaxRank] = {}, offsets[n] = {};
  const int64_t total = dims.count();
  for (int64_t i = 0; i < total; ++i) {
    visit(i, offsets);
    for (size_t axis = dims.rank(); axis-- > 0;) {
      for (size_t k = 0; k < n; ++k) offsets[k] += strides[k][axis];
      if (++index[axis] < dims[axis]) break;
      for (size_t k = 0; k < n; ++k) offsets[k] -= dims[axis] * strides[k][axis];
      index[axis] = 0;
    }
  }
}

Status where(KernelContext& c) {
  const Tensor &condition = c.input(0), &x = c.input(1), &y = c.input(2);
  HOLOGRAM_TRY(Dims dims, broadcast_dims(x.dims, y.dims));
  HOLOGRAM_TRY(dims, broadcast_dims(condition.dims, dims));
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  const Dims strides[] = {broadcast_strides(condition.dims, dims), broadcast_strides(x.dims, dims),
                          broadcast_strides(y.dims, dims)};
  return dispatch_size(x.dtype, [&]<typename T>() -> Status {
    walk_broadcast(dims, strides, [&](int64_t i, const int64_t* at) {
      out.as<T>()[i] = condition.as<uint8_t>()[at[0]] ? x.as<T>()[at[1]] : y.as<T>()[at[2]];
    });
    return {};
  });
}

Status equal_strings(KernelContext& c) {
  const Tensor &a = c.input(0), &b = c.input(1);
  if (a.dtype != DType::string || b.dtype != DType::string)
    return fail(ErrorCode::type_mismatch, "{} and {}; strings expected", name_of(a.dtype),
                name_of(b.dtype));
  HOLOGRAM_TRY(const Dims dims, broadcast_dims(a.dims, b.dims));
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  const Dims strides[] = {broadcast_strides(a.dims, dims), broadcast_strides(b.dims, dims)};
  walk_broadcast(dims, strides, [&](int64_t i, const int64_t* at) {
    out.as<bool>()[i] = a.as<std::string>()[at[0]] == b.as<std::string>()[at[1]];
  });
  return {};
}

// Of 8-bit floats; the others are computed pointwise.
template <typename Test>
Status test_small_floats(KernelContext& c, Test test) {
  const Tensor& x = c.input(0);
  HOLOGRAM_TRY(Tensor y, c.output(0, x.dims));
  for (int64_t i = 0; i < x.count(); ++i)
    y.as<bool>()[i] = test(small_float_to_f32(x.dtype, x.as<uint8_t>()[i]));
  return {};
}

Status is_nan(KernelContext& c) {
  return test_small_floats(c, [](float x) { return std::isnan(x); });
}

Status is_inf(KernelContext& c) {
  const bool positive = c.integer("detect_positive", 1) != 0;
  const bool negative = c.integer("detect_negative", 1) != 0;
  return test_small_floats(c,
                           [=](float x) { return std::isinf(x) && (x > 0 ? positive : negative); });
}

constexpr Kernel kKernels[] = {{"EqualStrings", equal_strings},
                               {"IsInf", is_inf},
                               {"IsNaN", is_nan},
                               {"Where", unpacked<where>}};

}  // namespace

std::span<const Kernel> comparison_kernels() { return kKernels; }

}  // namespace hologram::kernels
