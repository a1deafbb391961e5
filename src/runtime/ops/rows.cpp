#include "runtime/ops/rows.h"

#include <algorithm>

#include "support/dtype.h"

namespace hologram::runtime::ops {
namespace {

constexpr size_t kMaxInputs = 2;
constexpr uint64_t kMostShares = 4096;
// A kernel counts columns, and a grid rows, by 32 bits: what is larger is launched in parts.
constexpr uint64_t kMostAtOnce = uint64_t{1} << 30;

constexpr uint64_t shares_of(uint64_t columns) {
  if (columns <= kShare) return 1;
  return std::min(kMostShares, (columns + kShare - 1) / kShare);
}

uint64_t count_bits(DType type, uint64_t count) {
  return type == DType::f32 ? backends::scalar_bits(static_cast<float>(count))
                            : backends::scalar_bits(static_cast<double>(count));
}

// A row of results a row, rather than one.
constexpr bool keeps_rows(RowOp op) { return op == RowOp::softmax || op == RowOp::softmax_narrow; }

struct RowLaunch {
  const Executor& executor;
  RowOp op;
  DType type, out_type;
  std::span<const RowArray> inputs;
  uint64_t rows, columns;
  RowArray out;
  uint64_t shares = 1;
  uint64_t count = 0;  // the scalar of mean

  static uint64_t address_of(const RowArray& array, DType type, uint64_t row) {
    return reinterpret_cast<uintptr_t>(array.address) + row * array.stride * size_of(type);
  }

  Status run_part(const Kernel& kernel, uint64_t row, uint64_t row_count) const {
    const RowInfo& about = info(op);
    // Inputs, out, n, scalars, a stride an array.
    uint64_t words[2 * (kMaxInputs + 1) + 2];
    uint64_t lengths[2 * (kMaxInputs + 1) + 2] = {};
    const size_t n = about.inputs + 1u, strides = n + 1 + about.scalars;
    for (size_t i = 0; i <= about.inputs; ++i) {
      const bool is_out = i == about.inputs;
      const RowArray& array = is_out ? out : inputs[i];
      // Classes are numbers of 64 bits whatever the logits are.
      const bool classes = op == RowOp::cross_entropy_class && i == 1;
      words[i] = address_of(array, is_out ? out_type : classes ? DType::i64 : type, row);
      lengths[i] = (row_count - 1) * array.stride + (is_out && !keeps_rows(op) ? shares
                                                     : classes                 ? 1
                                                                               : columns);
      words[strides + i] = array.stride;
    }
    words[n] = columns;
    if (about.scalars != 0) words[n + 1] = count_bits(type, count);
    LaunchShape shape;
    shape.grid = {static_cast<uint32_t>(shares), static_cast<uint32_t>(row_count), 1};
    shape.block = {kRowBlock, 1, 1};
    shape.turns = static_cast<uint32_t>(columns / shares / kRowBlock + 1);
    return executor.backend().launch_checked(kernel, shape, words, lengths);
  }

  Status run() const {
    HOLOGRAM_TRY(const Kernel* kernel, executor.op_kernels().rows(op, type, out_type));
    for (uint64_t row = 0; row < rows; row += kMostAtOnce)
      HOLOGRAM_CHECK(run_part(*kernel, row, std::min(rows - row, kMostAtOnce)));
    return {};
  }
};

DType accumulator_of(RowOp op, DType type) {
  if (op == RowOp::min || op == RowOp::max) return type;
  if (op == RowOp::mean && is_integer(type)) return DType::f64;
  return sum_accumulator(type);
}

}  // namespace

Status reduce_rows(const Executor& executor, RowOp op, DType type, std::span<const RowArray> inputs,
                   uint64_t rows, uint64_t columns, void* out, DType out_type) {
  uint64_t shares = 0;
  for (uint64_t at = 0; at == 0 || at < columns; at += kMostAtOnce)
    shares += shares_of(std::min(columns - at, kMostAtOnce));
  RowLaunch last{executor, op, type, out_type, inputs, rows, columns, {out, 1}, 1, columns};
  if (shares == 1 && has_row_program(op, type, out_type)) return last.run();

  const DType accumulator = accumulator_of(op, type);
  HOLOGRAM_TRY(
      const backends::Memory partial,
      executor.backend().allocate(rows * shares * size_of(accumulator), Lifetime::short_lived));
  uint64_t done = 0;
  for (uint64_t at = 0; at == 0 || at < columns; at += kMostAtOnce) {
    const uint64_t part = std::min(columns - at, kMostAtOnce);
    RowArray moved[kMaxInputs];
    for (size_t i = 0; i < inputs.size(); ++i)
      moved[i] = {static_cast<const std::byte*>(inputs[i].address) + at * size_of(type),
                  inputs[i].stride};
    RowLaunch first{
        executor,
        op == RowOp::mean ? RowOp::sum : op,
        type,
        accumulator,
        std::span(moved, inputs.size()),
        rows,
        part,
        {static_cast<std::byte*>(partial.address()) + done * size_of(accumulator), shares},
        shares_of(part)};
    HOLOGRAM_CHECK(first.run());
    done += first.shares;
  }
  const RowArray partials[] = {{partial.address(), shares}};
  last.op = op == RowOp::dot ? RowOp::sum : op;
  last.type = accumulator;
  last.inputs = partials;
  last.columns = shares;
  return last.run();
}

Status run_rows(const Executor& executor, RowOp op, DType type, std::span<const RowArray> inputs,
                uint64_t rows, uint64_t columns, RowArray out, DType out_type) {
  if (columns > kMostAtOnce)
    return fail(ErrorCode::unsupported, "{} of rows of {} elements; they may have up to {}",
                info(op).name, columns, kMostAtOnce);
  return RowLaunch{executor, op, type, out_type, inputs, rows, columns, out}.run();
}

}  // namespace hologram::runtime::ops
