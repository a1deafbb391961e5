// Scatters write one after another, in the order of the updates: where two updates name one place
// the result is the same in every run.
#include <complex>
#include <functional>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/indexing.h"
#include "backends/cpu/kernels/movement.h"

namespace hologram::kernels {
namespace {

enum class Reduction { none, add, mul, min, max };

Result<Reduction> read_reduction(KernelContext& c) {
  const std::string_view name = c.text("reduction", "none");
  if (name == "none") return Reduction::none;
  if (name == "add") return Reduction::add;
  if (name == "mul") return Reduction::mul;
  if (name == "min") return Reduction::min;
  if (name == "max") return Reduction::max;
  return fail(ErrorCode::invalid_argument, "reduction '{}'; supported: none, add, mul, min, max",
              name);
}

// f16 and bf16 through float; integers wrap; NaN wins against every number, as in NumPy.
template <typename T>
T reduce(Reduction reduction, T a, T b) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return T(reduce(reduction, static_cast<float>(a), static_cast<float>(b)));
  } else if constexpr (std::is_integral_v<T>) {
    // Unsigned arithmetic of full width wraps without overflow, also for the narrow types.
    const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    switch (reduction) {
      case Reduction::add:
        return static_cast<T>(x + y);
      case Reduction::mul:
        return static_cast<T>(x * y);
      case Reduction::min:
        return std::min(a, b);
      default:
        return std::max(a, b);
    }
  } else {
    switch (reduction) {
      case Reduction::add:
        return a + b;
      case Reduction::mul:
        return a * b;
      default:
        if constexpr (std::is_floating_point_v<T>) {
          if (a != a || b != b) return a + b;
          return reduction == Reduction::min ? std::min(a, b) : std::max(a, b);
        }
        return a;
    }
  }
}

// Puts `count` updates over what is there.
using Combine = void (*)(Reduction, std::byte* to, const std::byte* from, int64_t count);

template <typename T>
void combine(Reduction reduction, std::byte* to, const std::byte* from, int64_t count) {
  T* out = reinterpret_cast<T*>(to);
  const T* update = reinterpret_cast<const T*>(from);
  for (int64_t i = 0; i < count; ++i) out[i] = reduce(reduction, out[i], update[i]);
}

// Bools, as bytes: a caller's may be something else than 0 and 1.
void combine_bools(Reduction reduction, std::byte* to, const std::byte* from, int64_t count) {
  const bool any = reduction == Reduction::add || reduction == Reduction::max;
  auto* out = reinterpret_cast<uint8_t*>(to);
  const auto* update = reinterpret_cast<const uint8_t*>(from);
  for (int64_t i = 0; i < count; ++i)
    out[i] = any ? (out[i] | update[i]) != 0 : out[i] != 0 && update[i] != 0;
}

Result<Combine> find_combine(DType type, Reduction reduction) {
  switch (type) {
    case DType::boolean:
      return combine_bools;
    case DType::f16:
      return combine<Half>;
    case DType::bf16:
      return combine<BFloat16>;
    case DType::complex64:
    case DType::complex128:
      if (reduction == Reduction::min || reduction == Reduction::max)
        return fail(ErrorCode::unsupported, "{} has no order: reduction min and max need one",
                    name_of(type));
      return type == DType::complex64 ? combine<std::complex<float>>
                                      : combine<std::complex<double>>;
    default:
      break;
  }
  Combine found = nullptr;
  HOLOGRAM_CHECK(dispatch_number(type, [&]<typename T>() -> Status {
    found = combine<T>;
    return {};
  }));
  return found;
}

// Output 0 starts as a copy of input 0; updates of `run` elements go to offsets[i] * run.
Status scatter_runs(KernelContext& c, std::span<const int64_t> offsets, int64_t run) {
  HOLOGRAM_TRY(const Reduction reduction, read_reduction(c));
  const Tensor &in = c.input(0), &updates = c.input(2);
  Combine combine = nullptr;
  if (reduction != Reduction::none) {
    HOLOGRAM_TRY(combine, find_combine(in.dtype, reduction));
  }
  HOLOGRAM_TRY(Tensor out, c.output(0, in.dims));
  copy_elements(in, out);
  if (combine) {
    const int64_t bytes = run * static_cast<int64_t>(size_of(in.dtype));
    for (size_t i = 0; i < offsets.size(); ++i)
      combine(reduction, out.data + offsets[i] * bytes,
              updates.data + static_cast<int64_t>(i) * bytes, run);
    return {};
  }
  return dispatch_size(in.dtype, [&]<typename T>() -> Status {
    const T* from = updates.as<T>();
    T* to = out.as<T>();
    if (run == 1)
      for (size_t i = 0; i < offsets.size(); ++i) to[offsets[i]] = from[i];
    else
      for (size_t i = 0; i < offsets.size(); ++i)
        std::copy_n(from + static_cast<int64_t>(i) * run, run, to + offsets[i] * run);
    return {};
  });
}

}  // namespace

Status scatter_elements(KernelContext& c) {
  const Tensor &in = c.input(0), &indices = c.input(1), &updates = c.input(2);
  HOLOGRAM_TRY(const size_t axis, c.axis("axis", 0, in.dims.rank()));
  if (!(updates.dims == indices.dims))
    return fail(ErrorCode::shape_mismatch, "updates {} and indices {} differ",
                updates.dims.to_string(), indices.dims.to_string());
  HOLOGRAM_TRY(const auto offsets, element_offsets(c, indices, in.dims, axis));
  return scatter_runs(c, offsets, 1);
}

Status scatter_nd(KernelContext& c) {
  const Tensor &in = c.input(0), &indices = c.input(1), &updates = c.input(2);
  HOLOGRAM_TRY(const auto offsets, tuple_offsets(c, indices, in.dims, 0));
  const size_t inner = static_cast<size_t>(indices.dims.back());
  bool fits = updates.dims.rank() == indices.dims.rank() - 1 + in.dims.rank() - inner;
  for (size_t i = 0; fits && i < updates.dims.rank(); ++i) {
    const size_t outer = indices.dims.rank() - 1;
    fits = updates.dims[i] == (i < outer ? indices.dims[i] : in.dims[i - outer + inner]);
  }
  if (!fits)
    return fail(ErrorCode::shape_mismatch, "updates {} do not fit indices {} into {}",
                updates.dims.to_string(), indices.dims.to_string(), in.dims.to_string());
  return scatter_runs(c, offsets, in.dims.product(inner, in.dims.rank()));
}

Status tensor_scatter(KernelContext& c) {
  const Tensor &past = c.input(0), &update = c.input(1);
  const size_t rank = past.dims.rank();
  HOLOGRAM_TRY(const size_t axis, c.axis("axis", -2, rank));
  const std::string_view mode = c.text("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return fail(ErrorCode::invalid_argument, "mode '{}'; supported: linear, circular", mode);
  if (axis == 0) return fail(ErrorCode::invalid_argument, "axis 0 is the batch");
  bool fits = update.dims.rank() == rank;
  for (size_t i = 0; fits && i < rank; ++i)
    fits = i == axis ? update.dims[i] <= past.dims[i] : update.dims[i] == past.dims[i];
  if (!fits)
    return fail(ErrorCode::shape_mismatch, "update {} does not fit past_cache {} along axis {}",
                update.dims.to_string(), past.dims.to_string(), axis);
  const int64_t batches = past.dims[0], size = past.dims[axis], length = update.dims[axis];
  const bool circular = mode == "circular";
  if (c.has_input(2)) {
    const Tensor& starts = c.input(2);
    if (starts.dims.rank() != 1 || starts.dims[0] != batches)
      return fail(ErrorCode::shape_mismatch, "write_indices {} for {} batches",
                  starts.dims.to_string(), batches);
    for (int64_t i = 0; i < batches; ++i)
      if (const int64_t start = integer_at(starts, i);
          start < 0 || (!circular && start > size - length))
        return fail(ErrorCode::out_of_range, "{} elements written at {} of a cache of {}", length,
                    start, size);
  }
  HOLOGRAM_TRY(Tensor out, c.output(0, past.dims));
  copy_elements(past, out);
  if (update.count() == 0) return {};
  const int64_t prefixes = past.dims.product(0, axis), run = past.dims.product(axis + 1, rank);
  const int64_t per_batch = prefixes / batches;
  return dispatch_size(past.dtype, [&]<typename T>() -> Status {
    for (int64_t prefix = 0; prefix < prefixes; ++prefix) {
      const int64_t start = c.has_input(2) ? integer_at(c.input(2), prefix / per_batch) % size : 0;
      for (int64_t i = 0; i < length; ++i)
        std::copy_n(update.as<T>() + (prefix * length + i) * run, run,
                    out.as<T>() + (prefix * size + (start + i) % size) * run);
    }
    return {};
  });
}

}  // namespace hologram::kernels
