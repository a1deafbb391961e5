#include "runtime/ops/elementwise.h"

#include <array>
#include <cstring>

#include "runtime/layout.h"
#include "runtime/ops/elementwise_op.h"
#include "runtime/ops/op_kernels.h"

namespace hologram::runtime::ops {
namespace {

constexpr size_t kMaxInputs = 2;
// Rows shorter than this cost more to start than to compute: their inputs are laid out in full
// first.
constexpr int64_t kShortRow = 32;

// Inputs and `out` as rows over one plane: element j of row i at address + (i * row + j) elements.
struct Plane {
  uint64_t rows = 1, columns = 0;
  std::array<const void*, kMaxInputs + 1> address = {};  // inputs, then out
  std::array<uint64_t, kMaxInputs + 1> row = {};
  std::array<bool, kMaxInputs + 1> same = {};  // one element for the whole row
};

// A kernel counts columns, and a grid rows, by 32 bits: a larger plane is launched in parts.
constexpr uint64_t kMostAtOnce = uint64_t{1} << 30;

struct Launcher {
  backends::Backend& backend;
  const backends::Kernel& kernel;
  ElementwiseOp op;
  Variant variant;
  DType type;
  std::span<const uint64_t> scalars;

  uint64_t element_size(size_t array) const {
    return size_of(array < info(op).inputs ? type : result_type(op, type));
  }

  // The part of `plane` from (row, column) on.
  Plane part(const Plane& plane, uint64_t row, uint64_t column) const {
    Plane rest = plane;
    rest.rows = std::min(plane.rows - row, kMostAtOnce);
    rest.columns = std::min(plane.columns - column, kMostAtOnce);
    for (size_t i = 0; i <= info(op).inputs; ++i) {
      const uint64_t skip = row * plane.row[i] + (plane.same[i] ? 0 : column);
      rest.address[i] = static_cast<const std::byte*>(plane.address[i]) + skip * element_size(i);
    }
    return rest;
  }

  Status run_part(const Plane& plane) const {
    const size_t arrays = info(op).inputs + 1, n = arrays + scalars.size();
    uint64_t words[2 * (kMaxInputs + 1) + 3];
    uint64_t lengths[2 * (kMaxInputs + 1) + 3] = {};
    for (size_t i = 0; i < arrays; ++i) {
      words[i] = reinterpret_cast<uintptr_t>(plane.address[i]);
      lengths[i] = (plane.rows - 1) * plane.row[i] + (plane.same[i] ? 1 : plane.columns);
      if (variant != Variant::flat) words[n + 1 + i] = plane.row[i];
    }
    for (size_t i = 0; i < scalars.size(); ++i) words[arrays + i] = scalars[i];
    words[n] = plane.columns;
    const uint64_t block = std::min(plane.columns, kernel.widest_block());
    LaunchShape shape;
    shape.grid = {static_cast<uint32_t>((plane.columns + block - 1) / block),
                  static_cast<uint32_t>(plane.rows), 1};
    shape.block = {static_cast<uint32_t>(block), 1, 1};
    return backend.launch_checked(kernel, shape, words, lengths);
  }

  Status run(const Plane& plane) const {
    for (uint64_t row = 0; row < plane.rows; row += kMostAtOnce)
      for (uint64_t column = 0; column < plane.columns; column += kMostAtOnce)
        HOLOGRAM_CHECK(run_part(part(plane, row, column)));
    return {};
  }
};

bool is_flat(const Executor& executor, ElementwiseOp op, std::span<const Tensor* const> inputs,
             const Tensor& out) {
  if (!is_flat_output(executor, out)) return false;
  for (const Tensor* input : inputs)
    if (!is_flat_input(executor, *input, inputs[0]->type(), out)) return false;
  return inputs.empty() || out.type() == result_type(op, inputs[0]->type());
}

Status run_flat(const Executor& executor, ElementwiseOp op, DType type,
                std::span<const Tensor* const> inputs, std::span<const uint64_t> scalars,
                const Tensor& out) {
  HOLOGRAM_TRY(const backends::Kernel* kernel,
               executor.op_kernels().elementwise(op, Variant::flat, type));
  Plane plane;
  plane.columns = static_cast<uint64_t>(out.element_count());
  for (size_t i = 0; i < inputs.size(); ++i) plane.address[i] = inputs[i]->address();
  plane.address[inputs.size()] = out.address();
  return Launcher{executor.backend(), *kernel, op, Variant::flat, type, scalars}.run(plane);
}

// Any layout. Types, shapes and backends have been checked; there is at least one element.
Status run_strided(const Executor& executor, ElementwiseOp op, DType type,
                   std::span<const Tensor* const> inputs, std::span<const uint64_t> scalars,
                   const Tensor& out) {
  if (!out.is_contiguous()) {
    // Computed in order, then laid out: also right when `out` has overlapping or reversed rows.
    HOLOGRAM_TRY(const Tensor whole, executor.empty(out.type(), out.dims(), Lifetime::short_lived));
    HOLOGRAM_CHECK(run_elementwise(executor, op, inputs, scalars, whole));
    return copy_elements(whole, out);
  }
  std::array<Tensor, kMaxInputs> seen;
  const Dims* strides[kMaxInputs + 1];
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool in_place = inputs[i]->is_contiguous() && inputs[i]->dims() == out.dims() &&
                          disjoint_or_same(*inputs[i], out);
    Tensor input = *inputs[i];
    if (!in_place && may_overlap(input, out)) {
      HOLOGRAM_TRY(input, input.clone());
    }
    HOLOGRAM_TRY(seen[i], input.broadcast_to(out.dims()));
    strides[i] = &seen[i].strides();
  }
  strides[inputs.size()] = &out.strides();

  Walk walk = collapse(out.dims(), std::span(strides, inputs.size() + 1));
  // A program walks one element at a time or stays on one, and one input at least must move.
  const size_t inner = walk.dims.size() - 1;
  bool laid_out = false;
  size_t staying = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t step = walk.strides[i][inner];
    staying += step == 0 && walk.dims[inner] != 1;
    bool walkable =
        (step == 0 || step == 1) && walk.dims[inner] >= std::min(kShortRow, out.element_count());
    walkable &= step == 1 || (is_binary(op) && staying < 2);
    for (int64_t stride : walk.strides[i]) walkable &= stride >= 0;
    if (walkable) continue;
    HOLOGRAM_TRY(seen[i], seen[i].clone());
    laid_out = true;
  }
  if (laid_out) {
    const Tensor* again[kMaxInputs];
    for (size_t i = 0; i < inputs.size(); ++i) again[i] = &seen[i];
    return run_elementwise(executor, op, std::span(again, inputs.size()), scalars, out);
  }

  Plane plane;
  plane.columns = static_cast<uint64_t>(walk.dims[inner]);
  const bool has_rows = inner > 0;
  plane.rows = has_rows ? static_cast<uint64_t>(walk.dims[inner - 1]) : 1;
  for (size_t i = 0; i <= inputs.size(); ++i) {
    plane.row[i] = has_rows ? static_cast<uint64_t>(walk.strides[i][inner - 1]) : 0;
    plane.same[i] = i < inputs.size() && walk.strides[i][inner] == 0;
    plane.address[i] = i < inputs.size() ? seen[i].address() : out.address();
  }
  Variant variant = Variant::rows;
  if (inputs.size() == 2 && plane.same[1]) variant = Variant::rows_vs;
  if (inputs.size() == 2 && plane.same[0]) {
    variant = Variant::rows_sv;
    if (is_commutative(op)) {
      std::swap(plane.address[0], plane.address[1]);
      std::swap(plane.row[0], plane.row[1]);
      std::swap(plane.same[0], plane.same[1]);
      std::swap(walk.strides[0], walk.strides[1]);
      variant = Variant::rows_vs;
    }
  }
  HOLOGRAM_TRY(const backends::Kernel* kernel,
               executor.op_kernels().elementwise(op, variant, type));
  const Launcher launcher{executor.backend(), *kernel, op, variant, type, scalars};
  // The dimensions outside the plane are walked here.
  const size_t outer = has_rows ? inner - 1 : 0;
  Dims index(outer, 0);
  while (true) {
    HOLOGRAM_CHECK(launcher.run(plane));
    size_t axis = outer;
    for (; axis-- > 0;) {
      const bool carry = ++index[axis] == walk.dims[axis];
      if (carry) index[axis] = 0;
      for (size_t i = 0; i <= inputs.size(); ++i) {
        const auto size = static_cast<int64_t>(size_of(i < inputs.size() ? type : out.type()));
        const int64_t steps = carry ? 1 - walk.dims[axis] : 1;
        plane.address[i] =
            static_cast<const std::byte*>(plane.address[i]) + steps * walk.strides[i][axis] * size;
      }
      if (!carry) break;
    }
    if (axis == static_cast<size_t>(-1)) return {};
  }
}

}  // namespace

Status check_input(const Executor& executor, std::string_view op, const Tensor& input) {
  if (!input.has_storage())
    return fail(ErrorCode::invalid_argument, "{}: an input without storage", op);
  if (input.storage()->backend().get() != &executor.backend())
    return fail(ErrorCode::invalid_argument, "{}: {} lies on another backend than the executor's",
                op, input.to_string());
  return {};
}

Status check_output(const Executor& executor, std::string_view op, const Tensor& out, DType type,
                    const Dims& dims) {
  HOLOGRAM_CHECK(check_input(executor, op, out));
  if (!out.writable())
    return fail(ErrorCode::invalid_argument, "{}: the output {} is read-only", op, out.to_string());
  if (out.type() != type)
    return fail(ErrorCode::type_mismatch, "{}: the output is {}, not {}", op, out.to_string(),
                name_of(type));
  if (out.dims() != dims)
    return fail(ErrorCode::shape_mismatch, "{}: the output is {}, not of shape {}", op,
                out.to_string(), dims.to_string());
  return {};
}

bool may_overlap(const Tensor& input, const Tensor& out) {
  return input.storage()->address() < out.storage()->address() + out.storage()->size() &&
         out.storage()->address() < input.storage()->address() + input.storage()->size();
}

Status run_elementwise(const Executor& executor, ElementwiseOp op,
                       std::span<const Tensor* const> inputs, std::span<const uint64_t> scalars,
                       const Tensor& out) {
  const std::string_view name = info(op).name;
  const DType type = inputs.empty() ? out.type() : inputs[0]->type();
  if (is_flat(executor, op, inputs, out)) return run_flat(executor, op, type, inputs, scalars, out);

  Dims dims = inputs.empty() ? out.dims() : inputs[0]->dims();
  for (const Tensor* input : inputs) {
    HOLOGRAM_CHECK(check_input(executor, name, *input));
    if (input->type() != type)
      return fail(ErrorCode::type_mismatch, "{} of {} and {}: the types differ; convert one", name,
                  inputs[0]->to_string(), input->to_string());
    HOLOGRAM_TRY(
        dims, in_context(broadcast_dims(dims, input->dims()), [&] { return std::string(name); }));
  }
  HOLOGRAM_CHECK(check_output(executor, name, out, result_type(op, type), dims));
  // An op that has no kernel for the type is refused even where there is nothing to do.
  HOLOGRAM_CHECK(executor.op_kernels().elementwise(op, Variant::flat, type));
  if (out.element_count() == 0) return {};
  return run_strided(executor, op, type, inputs, scalars, out);
}

Result<Tensor> make_elementwise(const Executor& executor, ElementwiseOp op,
                                std::span<const Tensor* const> inputs,
                                std::span<const uint64_t> scalars) {
  Dims dims = inputs[0]->dims();
  for (const Tensor* input : inputs) {
    HOLOGRAM_CHECK(check_input(executor, info(op).name, *input));
    HOLOGRAM_TRY(dims, in_context(broadcast_dims(dims, input->dims()),
                                  [&] { return std::string(info(op).name); }));
  }
  HOLOGRAM_TRY(const Tensor out, executor.empty(result_type(op, inputs[0]->type()), dims));
  HOLOGRAM_CHECK(run_elementwise(executor, op, inputs, scalars, out));
  return out;
}

}  // namespace hologram::runtime::ops
