#include "backends/cpu/builtin/reduce.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/builtin/families.h"

namespace hologram::backends {
namespace {

// A chunk is at least this many elements, and a row has at most this many chunks: partial results
// live on the stack whatever the size.
constexpr uint64_t kChunk = 16384;
constexpr uint64_t kMaxChunks = 4096;
constexpr uint64_t kWorthForking = 512 * 1024;  // bytes

constexpr uint64_t chunk_size(uint64_t count) {
  const uint64_t least = (count + kMaxChunks - 1) / kMaxChunks;
  return std::max(kChunk, (least + kChunk - 1) / kChunk * kChunk);
}

// Chunks are folded in pairs, then pairs of pairs; the tree depends on their number only.
void fold(const ReduceKernel& kernel, uint64_t* partials, size_t count) {
  for (size_t step = 1; step < count; step *= 2)
    for (size_t i = 0; i + step < count; i += 2 * step)
      kernel.combine(partials + i, partials + i + step);
}

void reduce_long_row(const CpuContext& context, const ReduceKernel& kernel, const std::byte* x,
                     const std::byte* y, uint64_t count, std::byte* out, bool may_fork) {
  const uint64_t size = chunk_size(count), chunks = (count + size - 1) / size;
  uint64_t partials[kMaxChunks];
  const auto body = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const uint64_t first = i * size;
      kernel.chunk(x + first * kernel.element_size, y ? y + first * kernel.element_size : nullptr,
                   std::min(size, count - first), partials + i);
    }
  };
  if (may_fork && count * kernel.element_size >= kWorthForking)
    context.parallel_for(chunks, 1, body);
  else
    body(0, chunks);
  fold(kernel, partials, chunks);
  kernel.finish(partials, count, out);
}

void reduce_row(const CpuContext& context, const ReduceKernel& kernel, const std::byte* x,
                const std::byte* y, uint64_t count, std::byte* out, bool may_fork) {
  if (count > kChunk) return reduce_long_row(context, kernel, x, y, count, out, may_fork);
  uint64_t accumulator = 0;
  if (count != 0) kernel.chunk(x, y, count, &accumulator);
  kernel.finish(&accumulator, count, out);
}

void reduce_rows(const CpuContext& context, const ReduceKernel& kernel, const std::byte* x,
                 std::byte* out, uint64_t rows, uint64_t columns) {
  if (rows == 1) return reduce_row(context, kernel, x, nullptr, columns, out, true);
  const uint64_t stride = columns * kernel.element_size;
  const auto row = [&](uint64_t r, bool may_fork) {
    reduce_row(context, kernel, x + r * stride, nullptr, columns, out + r * kernel.out_size,
               may_fork);
  };
  // Many rows are shared out whole; few rows are each cut into chunks. The bits are the same.
  if (rows < 4 * context.threads) {
    for (uint64_t r = 0; r < rows; ++r) row(r, true);
    return;
  }
  const auto body = [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) row(r, false);
  };
  if (rows * stride < kWorthForking)
    body(0, rows);
  else
    context.parallel_for(rows, 1, body);
}

// Words: x, out, rows, columns.
template <ReduceOp op, DType type>
Status run_rows(const CpuContext& context, const uint64_t* words, const uint64_t*) {
  static const ReduceKernel& kernel = reduce_kernel(op, type);
  reduce_rows(context, kernel, reinterpret_cast<const std::byte*>(words[0]),
              reinterpret_cast<std::byte*>(words[1]), words[2], words[3]);
  return {};
}

Status check_rows(const uint64_t* words, const uint64_t* lengths) {
  uint64_t elements;
  if (__builtin_mul_overflow(words[2], words[3], &elements) || elements > lengths[0])
    return fail(ErrorCode::out_of_range, "a reduction of {} rows of {}: the input has {} elements",
                words[2], words[3], lengths[0]);
  if (words[2] > lengths[1])
    return fail(ErrorCode::out_of_range, "a reduction of {} rows: the output has {} elements",
                words[2], lengths[1]);
  return {};
}

Status check_extremum(const uint64_t* words, const uint64_t* lengths) {
  if (words[3] == 0 && words[2] != 0)
    return fail(ErrorCode::invalid_argument, "the minimum or maximum of no elements");
  return check_rows(words, lengths);
}

// Words: x, y, out, n.
template <DType type>
Status run_dot(const CpuContext& context, const uint64_t* words, const uint64_t*) {
  static const ReduceKernel& kernel = reduce_kernel(ReduceOp::dot, type);
  reduce_row(context, kernel, reinterpret_cast<const std::byte*>(words[0]),
             reinterpret_cast<const std::byte*>(words[1]), words[3],
             reinterpret_cast<std::byte*>(words[2]), true);
  return {};
}

Status check_dot(const uint64_t* words, const uint64_t* lengths) {
  if (words[3] <= lengths[0] && words[3] <= lengths[1] && lengths[2] >= 1) return {};
  return fail(ErrorCode::out_of_range,
              "a dot product of {} elements: the arrays have {} and {}, the output {}", words[3],
              lengths[0], lengths[1], lengths[2]);
}

// Words: a, x, y, rows, columns, row stride.
template <DType type>
Status run_matvec(const CpuContext& context, const uint64_t* words, const uint64_t*) {
  const ReduceKernel& kernel = reduce_kernel(ReduceOp::dot, type);
  // The product is in the elements' type: sums of narrow integers wrap to it.
  constexpr uint64_t kOut = size_of(type);
  const auto* a = reinterpret_cast<const std::byte*>(words[0]);
  const auto* x = reinterpret_cast<const std::byte*>(words[1]);
  auto* y = reinterpret_cast<std::byte*>(words[2]);
  const uint64_t rows = words[3], columns = words[4], stride = words[5] * kernel.element_size;
  const auto row = [&](uint64_t r, bool may_fork) {
    std::byte result[8];
    reduce_row(context, kernel, a + r * stride, x, columns, result, may_fork);
    std::memcpy(y + r * kOut, result, kOut);  // little-endian: the low bytes wrap
  };
  const auto body = [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) row(r, false);
  };
  if (rows * columns * kernel.element_size < kWorthForking)
    body(0, rows);
  else
    context.parallel_for(rows, 1, body);
  return {};
}

Status check_matvec(const uint64_t* words, const uint64_t* lengths) {
  const uint64_t rows = words[3], columns = words[4], stride = words[5];
  uint64_t last = 0;
  const bool overflow = rows != 0 && columns != 0 &&
                        (__builtin_mul_overflow(rows - 1, stride, &last) ||
                         __builtin_add_overflow(last, columns, &last));
  if (!overflow && last <= lengths[0] && columns <= lengths[1] && rows <= lengths[2]) return {};
  return fail(ErrorCode::out_of_range,
              "a product of {} x {} (rows {} apart) by {}: the arrays have {}, {} and {} elements",
              rows, columns, stride, columns, lengths[0], lengths[1], lengths[2]);
}

template <DType type>
void add_type(BuiltinTable& table) {
  const auto rows = [&]<ReduceOp op>(std::string_view name, std::string_view meaning) {
    table.add(builtin_name(name, type),
              {input("x", type), output("out", reduced_type(op, type)), scalar("rows", DType::u64),
               scalar("columns", DType::u64)},
              meaning, run_rows<op, type>,
              op == ReduceOp::min || op == ReduceOp::max ? check_extremum : check_rows);
  };
  rows.template operator()<ReduceOp::sum>("sum", "out[r] = sum of row r");
  rows.template operator()<ReduceOp::mean>("mean", "out[r] = mean of row r");
  rows.template operator()<ReduceOp::min>("min", "out[r] = least of row r");
  rows.template operator()<ReduceOp::max>("max", "out[r] = greatest of row r");
  table.add(builtin_name("dot", type),
            {input("x", type), input("y", type), output("out", reduced_type(ReduceOp::dot, type)),
             scalar("n", DType::u64)},
            "out[0] = sum of x[i] y[i]", run_dot<type>, check_dot);
  table.add(builtin_name("matvec", type),
            {input("a", type), input("x", type), output("y", type), scalar("rows", DType::u64),
             scalar("columns", DType::u64), scalar("a_row", DType::u64)},
            "y[r] = sum of a[r, i] x[i]", run_matvec<type>, check_matvec);
}

}  // namespace

DType reduced_type(ReduceOp op, DType type) {
  if (!is_integer(type) || op == ReduceOp::min || op == ReduceOp::max) return type;
  if (op == ReduceOp::mean) return DType::f64;
  return is_signed_integer(type) ? DType::i64 : DType::u64;
}

void add_reduce_builtins(BuiltinTable& table) {
  add_type<DType::i8>(table);
  add_type<DType::i16>(table);
  add_type<DType::i32>(table);
  add_type<DType::i64>(table);
  add_type<DType::u8>(table);
  add_type<DType::u16>(table);
  add_type<DType::u32>(table);
  add_type<DType::u64>(table);
  add_type<DType::f16>(table);
  add_type<DType::bf16>(table);
  add_type<DType::f32>(table);
  add_type<DType::f64>(table);
}

}  // namespace hologram::backends
