#include "backends/cpu/builtin/softmax.h"

#include "backends/cpu/builtin/families.h"

namespace hologram::backends {
namespace {

constexpr uint64_t kWorthForking = 16384;  // elements: an exponential each

constexpr DType loss_type(DType type) { return type == DType::f64 ? DType::f64 : DType::f32; }

template <typename Row>
void for_rows(const CpuContext& context, uint64_t rows, uint64_t columns, Row row) {
  const auto body = [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) row(r);
  };
  if (rows * columns < kWorthForking)
    body(0, rows);
  else
    context.parallel_for(rows, 1, body);
}

// Words: x, out, rows, columns.
template <DType type>
Status run_softmax(const CpuContext& context, const uint64_t* words, const uint64_t*) {
  const auto* x = reinterpret_cast<const std::byte*>(words[0]);
  auto* out = reinterpret_cast<std::byte*>(words[1]);
  const uint64_t rows = words[2], columns = words[3], stride = columns * size_of(type);
  if (columns == 0) return {};
  const SoftmaxKernel& kernel = softmax_kernel(type);
  for_rows(context, rows, columns,
           [&](size_t r) { kernel.softmax(x + r * stride, out + r * stride, columns); });
  return {};
}

Status check_softmax(const uint64_t* words, const uint64_t* lengths) {
  uint64_t elements;
  if (!__builtin_mul_overflow(words[2], words[3], &elements) && elements <= lengths[0] &&
      elements <= lengths[1])
    return {};
  return fail(ErrorCode::out_of_range,
              "softmax of {} rows of {}: the arrays have {} and {} elements", words[2], words[3],
              lengths[0], lengths[1]);
}

// Words: logits, targets, loss, rows, columns.
template <DType type>
Status run_class_loss(const CpuContext& context, const uint64_t* words, const uint64_t*) {
  const auto* logits = reinterpret_cast<const std::byte*>(words[0]);
  const auto* targets = reinterpret_cast<const int64_t*>(words[1]);
  auto* loss = reinterpret_cast<std::byte*>(words[2]);
  const uint64_t rows = words[3], columns = words[4];
  // All are looked at before anything is written.
  for (uint64_t r = 0; r < rows; ++r)
    if (targets[r] < 0 || static_cast<uint64_t>(targets[r]) >= columns)
      return fail(ErrorCode::out_of_range,
                  "cross_entropy: target {} of row {} is no class of 0 to {}", targets[r], r,
                  static_cast<int64_t>(columns) - 1);
  const SoftmaxKernel& kernel = softmax_kernel(type);
  for_rows(context, rows, columns, [&](size_t r) {
    kernel.class_loss(logits + r * columns * size_of(type), columns,
                      static_cast<size_t>(targets[r]), loss + r * size_of(loss_type(type)));
  });
  return {};
}

template <DType type>
Status run_distribution_loss(const CpuContext& context, const uint64_t* words, const uint64_t*) {
  const auto* logits = reinterpret_cast<const std::byte*>(words[0]);
  const auto* targets = reinterpret_cast<const std::byte*>(words[1]);
  auto* loss = reinterpret_cast<std::byte*>(words[2]);
  const uint64_t rows = words[3], columns = words[4], stride = columns * size_of(type);
  const SoftmaxKernel& kernel = softmax_kernel(type);
  for_rows(context, rows, columns, [&](size_t r) {
    kernel.distribution_loss(logits + r * stride, targets + r * stride, columns,
                             loss + r * size_of(loss_type(type)));
  });
  return {};
}

Status check_loss(const uint64_t* words, const uint64_t* lengths, bool classes) {
  const uint64_t rows = words[3], columns = words[4];
  uint64_t elements;
  if (columns == 0 && rows != 0)
    return fail(ErrorCode::invalid_argument, "cross_entropy over no classes");
  if (!__builtin_mul_overflow(rows, columns, &elements) && elements <= lengths[0] &&
      (classes ? rows : elements) <= lengths[1] && rows <= lengths[2])
    return {};
  return fail(ErrorCode::out_of_range,
              "cross_entropy of {} rows of {}: the arrays have {}, {} and {} elements", rows,
              columns, lengths[0], lengths[1], lengths[2]);
}
Status check_class_loss(const uint64_t* words, const uint64_t* lengths) {
  return check_loss(words, lengths, true);
}
Status check_distribution_loss(const uint64_t* words, const uint64_t* lengths) {
  return check_loss(words, lengths, false);
}

template <DType type>
void add_type(BuiltinTable& table) {
  const isa::Parameter rows = scalar("rows", DType::u64), columns = scalar("columns", DType::u64);
  table.add(builtin_name("softmax", type), {input("x", type), output("out", type), rows, columns},
            "each row divided by its sum after exp", run_softmax<type>, check_softmax);
  table.add(builtin_name("cross_entropy_class", type),
            {input("logits", type), input("targets", DType::i64), output("loss", loss_type(type)),
             rows, columns},
            "loss[r] = -log softmax(logits[r])[targets[r]]", run_class_loss<type>,
            check_class_loss);
  table.add(builtin_name("cross_entropy", type),
            {input("logits", type), input("targets", type), output("loss", loss_type(type)), rows,
             columns},
            "loss[r] = -sum of targets[r, i] log softmax(logits[r])[i]",
            run_distribution_loss<type>, check_distribution_loss);
}

}  // namespace

void add_softmax_builtins(BuiltinTable& table) {
  add_type<DType::f16>(table);
  add_type<DType::bf16>(table);
  add_type<DType::f32>(table);
  add_type<DType::f64>(table);
}

}  // namespace hologram::backends
