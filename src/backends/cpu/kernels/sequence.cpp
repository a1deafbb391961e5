// Kernels of sequences and optionals. The elements of a sequence own their memory and are never
// written, so sequences share them.
#include <algorithm>

#include "backends/cpu/kernels/arena.h"
#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"

namespace hologram::kernels {
namespace {

const std::vector<Value>& elements(KernelContext& c) { return *c.input_value(0).sequence; }

// The position that input `index` names, of `limit` places; negative counts from `size`.
Result<size_t> position(KernelContext& c, size_t index, int64_t size, int64_t limit) {
  HOLOGRAM_TRY(const Dims at, c.input_integers(index));
  if (at.size() != 1)
    return fail(ErrorCode::shape_mismatch, "the position must be one integer, not {}", at.size());
  const int64_t place = at[0] < 0 ? at[0] + size : at[0];
  if (place < 0 || place >= limit)
    return fail(ErrorCode::out_of_range, "position {} in a sequence of {}", at[0], size);
  return static_cast<size_t>(place);
}

Status sequence_empty(KernelContext& c) {
  c.sequence_output(0);
  return {};
}

Status sequence_construct(KernelContext& c) {
  std::vector<Value>& result = c.sequence_output(0);
  result.reserve(c.input_count());
  for (size_t i = 0; i < c.input_count(); ++i) {
    HOLOGRAM_TRY(Value element, c.element_copy(c.input_value(i)));
    result.push_back(std::move(element));
  }
  return {};
}

Status sequence_at(KernelContext& c) {
  const int64_t size = static_cast<int64_t>(elements(c).size());
  HOLOGRAM_TRY(const size_t at, position(c, 1, size, size));
  const Tensor& element = elements(c)[at].tensor;
  return c.reshape_output(0, element, element.dims);
}

Status sequence_insert(KernelContext& c) {
  const std::vector<Value>& from = elements(c);
  size_t at = from.size();
  if (c.has_input(2)) {
    const int64_t size = static_cast<int64_t>(from.size());
    HOLOGRAM_TRY(at, position(c, 2, size, size + 1));
  }
  std::vector<Value>& result = c.sequence_output(0);
  HOLOGRAM_TRY(Value element, c.element_copy(c.input_value(1)));
  result.reserve(from.size() + 1);
  result.assign(from.begin(), from.begin() + at);
  result.push_back(std::move(element));
  result.insert(result.end(), from.begin() + at, from.end());
  return {};
}

Status sequence_erase(KernelContext& c) {
  const std::vector<Value>& from = elements(c);
  const int64_t size = static_cast<int64_t>(from.size());
  if (size == 0) return fail(ErrorCode::out_of_range, "the sequence is empty");
  size_t at = from.size() - 1;
  if (c.has_input(1)) {
    HOLOGRAM_TRY(at, position(c, 1, size, size));
  }
  std::vector<Value>& result = c.sequence_output(0);
  result.reserve(from.size() - 1);
  result.assign(from.begin(), from.begin() + at);
  result.insert(result.end(), from.begin() + at + 1, from.end());
  return {};
}

Status sequence_length(KernelContext& c) {
  HOLOGRAM_TRY(Tensor out, c.output(0, {}));
  *out.as<int64_t>() = static_cast<int64_t>(elements(c).size());
  return {};
}

// Each part is a tensor of its own.
Status check_parts(int64_t count) {
  constexpr int64_t kMost = 1 << 18;
  if (count <= kMost) return {};
  return fail(ErrorCode::resource_exhausted, "a sequence of {} parts; at most {}", count, kMost);
}

// The sizes of the parts: all of the one size a scalar names, or those of a vector, or 1.
Result<List<int64_t>> part_sizes(KernelContext& c, int64_t total) {
  List<int64_t> sizes;
  if (c.has_input(1) && c.input(1).dims.rank() > 0) {
    int64_t sum = 0;
    const Tensor& given = c.input(1);
    HOLOGRAM_CHECK(check_parts(given.count()));
    for (int64_t i = 0; i < given.count(); ++i) {
      sizes.push_back(given.dtype == DType::i64 ? given.as<int64_t>()[i] : given.as<int32_t>()[i]);
      if (sizes.back() < 0 || sizes.back() > total - sum)
        return fail(ErrorCode::out_of_range, "a part of {} of an axis of {}", sizes.back(), total);
      sum += sizes.back();
    }
    if (sum != total)
      return fail(ErrorCode::shape_mismatch, "parts of {} together of an axis of {}", sum, total);
    return sizes;
  }
  int64_t size = 1;
  if (c.has_input(1)) {
    HOLOGRAM_TRY(const Dims given, c.input_integers(1));
    size = given[0];
  }
  if (size <= 0) return fail(ErrorCode::out_of_range, "parts of {}", size);
  HOLOGRAM_CHECK(check_parts((total - 1) / size + 1));
  for (int64_t at = 0; at < total; at += std::min(size, total - at))
    sizes.push_back(std::min(size, total - at));
  return sizes;
}

Status split_to_sequence(KernelContext& c) {
  const Tensor& in = c.input(0);
  HOLOGRAM_TRY(const size_t axis, c.axis("axis", 0, in.dims.rank()));
  HOLOGRAM_TRY(const List<int64_t> sizes, part_sizes(c, in.dims[axis]));
  const bool drop_axis = !c.has_input(1) && c.integer("keepdims", 1) == 0;
  const int64_t outer = in.dims.product(0, axis), inner = in.dims.product(axis + 1, in.dims.rank());
  const int64_t row = in.dims[axis] * inner;
  std::vector<Value>& result = c.sequence_output(0);
  result.reserve(sizes.size());
  int64_t at = 0;
  for (int64_t size : sizes) {
    Dims dims = in.dims;
    dims[axis] = size;
    if (drop_axis) dims.erase(axis);
    HOLOGRAM_TRY(Tensor part, c.element(in.dtype, dims));
    const int64_t run = size * inner;
    HOLOGRAM_CHECK(dispatch_size(in.dtype, [&]<typename T>() -> Status {
      for (int64_t k = 0; k < outer; ++k)
        std::copy_n(in.as<T>() + k * row + at, run, part.as<T>() + k * run);
      return {};
    }));
    at += run;
    result.emplace_back(std::move(part));
  }
  return {};
}

Status concat_from_sequence(KernelContext& c) {
  const std::vector<Value>& parts = elements(c);
  if (parts.empty()) return fail(ErrorCode::invalid_argument, "the sequence is empty");
  const bool fresh = c.integer("new_axis") != 0;
  Dims dims = parts[0].tensor.dims;
  if (!c.attributes().has("axis"))
    return fail(ErrorCode::invalid_argument, "attribute 'axis' is missing");
  if (fresh && dims.rank() == kMaxRank)
    return fail(ErrorCode::unsupported, "a result of rank {}; at most {}", kMaxRank + 1, kMaxRank);
  HOLOGRAM_TRY(const size_t axis, c.axis("axis", 0, dims.rank() + fresh));
  if (fresh) dims.insert(axis, 1);
  const Dims first = dims;
  dims[axis] = 0;
  for (const Value& part : parts) {
    Dims in = part.tensor.dims;
    if (fresh && in.rank() + 1 == first.rank()) in.insert(axis, 1);
    bool fits = in.rank() == first.rank();
    for (size_t k = 0; fits && k < in.rank(); ++k)
      fits = in[k] == first[k] || (k == axis && !fresh);
    if (!fits)
      return fail(ErrorCode::shape_mismatch,
                  "elements {} and {} of the sequence do not concatenate",
                  parts[0].tensor.dims.to_string(), part.tensor.dims.to_string());
    dims[axis] += in[axis];
  }
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  const int64_t outer = dims.product(0, axis);
  const int64_t row = dims.product(axis, dims.rank());
  return dispatch_size(out.dtype, [&]<typename T>() -> Status {
    int64_t at = 0;
    for (const Value& part : parts) {
      const int64_t run = outer ? part.tensor.count() / outer : 0;
      for (int64_t k = 0; k < outer; ++k)
        std::copy_n(part.tensor.as<T>() + k * run, run, out.as<T>() + k * row + at);
      at += run;
    }
    return {};
  });
}

Status pass_on(KernelContext& c) {
  if (c.input_value(0).is_tensor()) return c.reshape_output(0, c.input(0), c.input(0).dims);
  c.set_output(0, c.input_value(0));
  return {};
}

Status optional(KernelContext& c) {
  if (c.has_input(0)) return pass_on(c);
  c.set_output(0, Value());
  return {};
}

Status optional_get_element(KernelContext& c) {
  if (!c.has_input(0)) return fail(ErrorCode::invalid_argument, "the optional is empty");
  return pass_on(c);
}

Status optional_has_element(KernelContext& c) {
  HOLOGRAM_TRY(Tensor out, c.output(0, {}));
  *out.as<bool>() = c.has_input(0);
  return {};
}

constexpr Kernel kKernels[] = {
    {"ConcatFromSequence", concat_from_sequence},
    {"Optional", optional},
    {"OptionalGetElement", optional_get_element},
    {"OptionalHasElement", optional_has_element},
    {"SequenceAt", sequence_at},
    {"SequenceConstruct", sequence_construct},
    {"SequenceEmpty", sequence_empty},
    {"SequenceErase", sequence_erase},
    {"SequenceInsert", sequence_insert},
    {"SequenceLength", sequence_length},
    {"SplitToSequence", split_to_sequence},
};

}  // namespace

std::span<const Kernel> sequence_kernels() { return kKernels; }

}  // namespace hologram::kernels
