#include "runtime/layout.h"
#include "runtime/tensor.h"

namespace hologram::runtime {
namespace {

// The first byte a tensor touches and the one after its last.
std::pair<uintptr_t, uintptr_t> touched(const Tensor& tensor) {
  const auto size = static_cast<int64_t>(size_of(tensor.type()));
  int64_t low = 0, high = 0;
  for (size_t i = 0; i < tensor.rank(); ++i) {
    const int64_t reach = (tensor.dim(i) - 1) * tensor.strides()[i];
    (reach < 0 ? low : high) += reach;
  }
  const auto base = reinterpret_cast<uintptr_t>(tensor.address());
  return {base + static_cast<uintptr_t>(low * size),
          base + static_cast<uintptr_t>((high + 1) * size)};
}

bool overlap(const Tensor& a, const Tensor& b) {
  const auto [a_begin, a_end] = touched(a);
  const auto [b_begin, b_end] = touched(b);
  return a_begin < b_end && b_begin < a_end;
}

}  // namespace

Status copy_elements(const Tensor& from, const Tensor& to) {
  if (!from.has_storage() || !to.has_storage())
    return fail(ErrorCode::invalid_argument, "a tensor without storage");
  if (from.type() != to.type())
    return fail(ErrorCode::type_mismatch, "cannot copy {} to {}", from.to_string(), to.to_string());
  if (from.dims() != to.dims())
    return fail(ErrorCode::shape_mismatch, "cannot copy {} to {}", from.to_string(),
                to.to_string());
  if (!to.writable()) return fail(ErrorCode::invalid_argument, "{} is read-only", to.to_string());
  const auto& backend = to.storage()->backend();
  if (from.storage()->backend() != backend)
    return fail(ErrorCode::invalid_argument,
                "the tensors lie on two backends ('{}' and '{}'); read one and write the other",
                from.storage()->backend()->capabilities().backend, backend->capabilities().backend);
  if (from.element_count() == 0) return {};

  const uint64_t size = size_of(from.type());
  const auto count = static_cast<uint64_t>(from.element_count());
  if (from.is_contiguous() && to.is_contiguous())
    return backend->copy(to.storage()->memory(), static_cast<uint64_t>(to.offset()) * size,
                         from.storage()->memory(), static_cast<uint64_t>(from.offset()) * size,
                         count * size);
  if (overlap(from, to)) {
    HOLOGRAM_TRY(const Tensor staged, from.clone());
    return copy_elements(staged, to);
  }

  const Dims* both[] = {&from.strides(), &to.strides()};
  Walk walk = collapse(from.dims(), both);
  for (Dims* dims : {&walk.dims, &walk.strides[0], &walk.strides[1]})
    while (dims->size() < 4) dims->insert(0, dims == &walk.dims ? 1 : 0);
  // The kernel walks four dimensions; what lies outside them is walked here.
  const size_t outer = walk.dims.size() - 4;
  Dims index(outer, 0);
  int64_t from_offset = from.offset(), to_offset = to.offset();
  using backends::Argument;
  const auto dim = [&](size_t i) { return Argument::scalar(walk.dims[outer + i]); };
  const auto stride = [&](size_t k, size_t i) {
    return Argument::scalar(walk.strides[k][outer + i]);
  };
  while (true) {
    const Argument arguments[] = {
        Argument::array_of(DType::u8, from.storage()->address(), from.storage()->size(), false),
        Argument::array_of(DType::u8, to.storage()->address(), to.storage()->size(), true),
        Argument::scalar(static_cast<uint32_t>(size)),
        dim(0),
        dim(1),
        dim(2),
        dim(3),
        Argument::scalar(from_offset),
        stride(0, 0),
        stride(0, 1),
        stride(0, 2),
        stride(0, 3),
        Argument::scalar(to_offset),
        stride(1, 0),
        stride(1, 1),
        stride(1, 2),
        stride(1, 3),
    };
    HOLOGRAM_CHECK(backend->call("copy_strided", arguments));
    size_t axis = outer;
    for (; axis-- > 0;) {
      from_offset += walk.strides[0][axis];
      to_offset += walk.strides[1][axis];
      if (++index[axis] < walk.dims[axis]) break;
      from_offset -= walk.strides[0][axis] * walk.dims[axis];
      to_offset -= walk.strides[1][axis] * walk.dims[axis];
      index[axis] = 0;
    }
    if (axis == static_cast<size_t>(-1)) return {};
  }
}

}  // namespace hologram::runtime
