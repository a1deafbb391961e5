#include <algorithm>

#include "backends/cpu/dense/gemm.h"

namespace hologram::backends::dense {
namespace {

// Small items run whole on one thread, with a scratch slot a part of the batch; large ones run one
// after the other on all threads. Decided by the shape alone.
constexpr size_t kMostSlots = 16;
constexpr size_t kLargeItem = size_t{32} << 20;  // multiply-adds

size_t item_count(const GemmBatch& batch) {
  size_t count = 1;
  for (size_t dim : batch.dims) count *= dim;
  return count;
}

size_t slot_count(const GemmBatch& batch) {
  const Gemm& g = batch.item;
  return g.m * g.n * g.k >= kLargeItem ? 1 : std::min(item_count(batch), kMostSlots);
}

Gemm item_at(const GemmBatch& batch, size_t index) {
  Gemm g = batch.item;
  size_t a = 0, b = 0, c = 0;
  for (size_t d = batch.dims.size(); d-- > 0;) {
    const size_t i = index % batch.dims[d];
    index /= batch.dims[d];
    a += i * batch.a_strides[d];
    b += i * batch.b_strides[d];
    c += i * batch.c_strides[d];
  }
  g.a += a;
  if (g.b) g.b += b;
  g.c += c;
  if (g.epilogue.residual) g.epilogue.residual += c;
  return g;
}

// The program is told offsets from the start of the whole output.
struct ShiftedProgram {
  PointwiseProgram program;
  void* context;
  size_t shift;
  static void call(void* self, float* values, size_t count, size_t offset) {
    const auto* p = static_cast<const ShiftedProgram*>(self);
    p->program(p->context, values, count, p->shift + offset);
  }
};

}  // namespace

size_t gemm_batch_scratch_bytes(const GemmBatch& batch) {
  return slot_count(batch) * gemm_scratch_bytes(batch.item);
}

void gemm_batch(const GemmBatch& batch, std::byte* scratch, ThreadPool& pool) {
  const size_t items = item_count(batch), slots = slot_count(batch);
  if (items == 0) return;
  const size_t slot_bytes = gemm_scratch_bytes(batch.item);
  const auto run_item = [&](size_t index, size_t slot) {
    Gemm g = item_at(batch, index);
    ShiftedProgram shifted{g.epilogue.program, g.epilogue.program_context,
                           static_cast<size_t>(g.c - batch.item.c)};
    if (shifted.program) {
      g.epilogue.program = &ShiftedProgram::call;
      g.epilogue.program_context = &shifted;
    }
    gemm(g, scratch + slot * slot_bytes, pool);
  };
  if (slots == 1) {
    for (size_t i = 0; i < items; ++i) run_item(i, 0);
    return;
  }
  const auto run = [&](size_t begin, size_t end) {
    for (size_t slot = begin; slot < end; ++slot)
      for (size_t i = items * slot / slots; i < items * (slot + 1) / slots; ++i) run_item(i, slot);
  };
  const size_t work = items * batch.item.m * batch.item.n * batch.item.k;
  pool.parallel_for(slots, 1, run, Schedule::dynamic, work < (128 << 10) ? 1 : 0);
}

}  // namespace hologram::backends::dense
