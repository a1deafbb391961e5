#include <cmath>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/indexing.h"
#include "backends/cpu/kernels/movement.h"

namespace hologram::kernels {
namespace {

// An element of a number type as an integer, towards zero; anything beyond i64 is its end.
Result<int64_t> whole_number(const Tensor& tensor, int64_t at) {
  auto truncate = [](double value) -> int64_t {
    if (std::isnan(value)) return std::numeric_limits<int64_t>::min();
    return static_cast<int64_t>(std::clamp(value, -0x1p62, 0x1p62));
  };
  if (tensor.dtype == DType::f16) return truncate(f16_to_f32(tensor.as<uint16_t>()[at]));
  if (tensor.dtype == DType::bf16) return truncate(bf16_to_f32(tensor.as<uint16_t>()[at]));
  int64_t value = 0;
  HOLOGRAM_CHECK(dispatch_number(tensor.dtype, [&]<typename T>() -> Status {
    const T element = tensor.as<T>()[at];
    if constexpr (std::is_floating_point_v<T>)
      value = truncate(element);
    else if constexpr (std::is_same_v<T, uint64_t>)
      value =
          static_cast<int64_t>(std::min<uint64_t>(element, std::numeric_limits<int64_t>::max()));
    else
      value = element;
    return {};
  }));
  return value;
}

// The bits of an element that make it more than zero: not a float's sign.
uint64_t value_bits(DType type) {
  switch (type) {
    case DType::f16:
    case DType::bf16:
      return 0x7fff;
    case DType::f32:
      return 0x7fffffff;
    case DType::f64:
      return ~(uint64_t{1} << 63);
    case DType::complex64:
      return 0x7fffffff7fffffff;
    default:
      return ~uint64_t{0};
  }
}

}  // namespace

Status compress(KernelContext& c) {
  const Tensor &in = c.input(0), &condition = c.input(1);
  if (condition.dims.rank() != 1)
    return fail(ErrorCode::shape_mismatch, "condition {}; a vector expected",
                condition.dims.to_string());
  const bool flat = !c.attributes().has("axis");
  size_t axis = 0;
  Dims dims{in.count()};
  if (!flat) {
    HOLOGRAM_TRY(axis, c.axis("axis", 0, in.dims.rank()));
    dims = in.dims;
  }
  if (condition.count() > dims[axis])
    return fail(ErrorCode::shape_mismatch, "{} conditions for an axis of {}", condition.count(),
                dims[axis]);
  const int64_t size = dims[axis], outer = dims.product(0, axis);
  const int64_t run = dims.product(axis + 1, dims.rank());
  const uint8_t* chosen = condition.as<uint8_t>();
  dims[axis] = condition.count() - std::count(chosen, chosen + condition.count(), 0);
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  return dispatch_size(in.dtype, [&]<typename T>() -> Status {
    T* to = out.as<T>();
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < condition.count(); ++i)
        if (chosen[i]) to = std::copy_n(in.as<T>() + (o * size + i) * run, run, to);
    return {};
  });
}

Status non_zero(KernelContext& c) {
  const Tensor& in = c.input(0);
  const int64_t total = in.count();
  const uint64_t mask = value_bits(in.dtype);
  return dispatch_size(in.dtype, [&]<typename T>() -> Status {
    auto counts = [&](const T& element) {
      if constexpr (std::is_same_v<T, std::string>)
        return !element.empty();
      else if constexpr (std::is_same_v<T, Bytes16>)  // complex128: two signs
        return ((element.words[0] | element.words[1]) & ~(uint64_t{1} << 63)) != 0;
      else
        return (element & mask) != 0;
    };
    const T* from = in.as<T>();
    const int64_t found = std::count_if(from, from + total, counts);
    // A scalar counts as a vector of one.
    Dims dims = in.dims.rank() == 0 ? Dims{1} : in.dims;
    HOLOGRAM_TRY(Tensor out, c.output(0, {static_cast<int64_t>(dims.rank()), found}));
    if (found == 0) return {};
    int64_t* to = out.as<int64_t>();
    Odometer at(dims, 0);
    for (int64_t i = 0, k = 0; i < total; ++i, at.next()) {
      if (!counts(from[i])) continue;
      for (size_t axis = 0; axis < dims.rank(); ++axis)
        to[static_cast<int64_t>(axis) * found + k] = at.index[axis];
      ++k;
    }
    return {};
  });
}

Status one_hot(KernelContext& c) {
  const Tensor &indices = c.input(0), &values = c.input(2);
  if (c.input(1).count() != 1 || values.count() != 2)
    return fail(ErrorCode::shape_mismatch,
                "depth {} and values {}; one depth and two values (off, on) expected",
                c.input(1).dims.to_string(), values.dims.to_string());
  HOLOGRAM_TRY(const int64_t depth, whole_number(c.input(1), 0));
  if (depth < 0) return fail(ErrorCode::invalid_argument, "depth {}", depth);
  const size_t rank = indices.dims.rank();
  if (rank == kMaxRank)
    return fail(ErrorCode::unsupported, "a result of rank {}; at most {}", rank + 1, kMaxRank);
  HOLOGRAM_TRY(const size_t axis, c.axis("axis", -1, rank + 1));
  Dims dims = indices.dims;
  dims.insert(axis, depth);
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  const int64_t outer = dims.product(0, axis), inner = dims.product(axis + 1, rank + 1);
  return dispatch_size(values.dtype, [&]<typename T>() -> Status {
    T* to = out.as<T>();
    std::fill_n(to, out.count(), values.as<T>()[0]);
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        HOLOGRAM_TRY(int64_t index, whole_number(indices, o * inner + i));
        if (index < 0) index += depth;
        if (index >= 0 && index < depth) to[(o * depth + index) * inner + i] = values.as<T>()[1];
      }
    return {};
  });
}

Status trilu(KernelContext& c) {
  const Tensor& in = c.input(0);
  const size_t rank = in.dims.rank();
  if (rank < 2)
    return fail(ErrorCode::shape_mismatch, "input {}; a matrix or more expected",
                in.dims.to_string());
  int64_t k = 0;
  if (c.has_input(1)) {
    if (c.input(1).count() != 1)
      return fail(ErrorCode::shape_mismatch, "k of shape {}; one element expected",
                  c.input(1).dims.to_string());
    k = integer_at(c.input(1), 0);
  }
  const bool upper = c.integer("upper", 1) != 0;
  HOLOGRAM_TRY(Tensor out, c.output(0, in.dims));
  const int64_t height = in.dims[rank - 2], width = in.dims[rank - 1];
  const int64_t rows = in.dims.product(0, rank - 1);
  // Beyond the matrix all the same; row + k must not overflow.
  k = std::clamp(k, -height - 1, width + 1);
  return dispatch_size(in.dtype, [&]<typename T>() -> Status {
    for (int64_t row = 0; row < rows; ++row) {
      const T* from = in.as<T>() + row * width;
      T* to = out.as<T>() + row * width;
      // Up to `edge` one side of the diagonal, from it the other.
      const int64_t edge = std::clamp<int64_t>(row % height + k + (upper ? 0 : 1), 0, width);
      if (upper) {
        std::fill_n(to, edge, T{});
        std::copy(from + edge, from + width, to + edge);
      } else {
        std::copy_n(from, edge, to);
        std::fill(to + edge, to + width, T{});
      }
    }
    return {};
  });
}

}  // namespace hologram::kernels
