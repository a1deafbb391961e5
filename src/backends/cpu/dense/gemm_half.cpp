#include "backends/cpu/dense/gemm_half.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/gemm_half.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/tile.h"
#include "support/aligned.h"
#include "support/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void widen_run(const uint16_t* from, float* to, size_t count) {
  size_t i = 0;
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> half;
  for (; i + hn::MaxLanes(d) <= count; i += hn::MaxLanes(d))
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(from + i))),
               d, to + i);
#endif
  for (; i < count; ++i) to[i] = f16_to_f32(from[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(widen_run);

namespace {
constexpr size_t kGroupBytes = 1024 * 1024;  // of widened panels, to be read again from L2
constexpr size_t kFewestPanels = 8;          // for several threads to share
// Columns that are widened at a time.
size_t group_columns(const Gemm& g) {
  const size_t panel = std::max<size_t>(g.k, 1) * kPanelColumns * sizeof(float);
  return std::min<size_t>(std::max(kGroupBytes / panel, kFewestPanels) * kPanelColumns,
                          align_up(g.n, kPanelColumns));
}
// The product of the columns from `column` on, by what was widened.
Gemm part_of(const Gemm& g, size_t column, const float* widened) {
  Gemm part = g;
  part.n = std::min(group_columns(g), g.n - column);
  part.packed_b = widened;
  part.c = g.c + column;
  if (part.epilogue.bias && part.epilogue.bias_axis == BiasAxis::column)
    part.epilogue.bias += column;
  if (part.epilogue.residual) part.epilogue.residual += column;
  return part;
}
size_t widened_bytes(const Gemm& g) {
  return align_up(packed_b_bytes(g.k, group_columns(g)), kAlignment);
}
}  // namespace

void widen_half(const uint16_t* from, float* to, size_t count, ThreadPool& pool) {
  const auto run = HWY_DYNAMIC_DISPATCH(widen_run);
  const auto body = [&](size_t begin, size_t end) { run(from + begin, to + begin, end - begin); };
  pool.parallel_for(count, 16384, body, Schedule::fixed);
}

size_t gemm_half_scratch_bytes(const Gemm& g) {
  static constexpr float kAny = 0;  // gemm() asks only whether B is packed
  return widened_bytes(g) + gemm_scratch_bytes(part_of(g, 0, &kAny));
}

void gemm_half(const Gemm& g, const uint16_t* packed_b, std::byte* scratch, ThreadPool& pool) {
  auto* widened = reinterpret_cast<float*>(scratch);
  for (size_t column = 0; column < g.n; column += group_columns(g)) {
    const Gemm part = part_of(g, column, widened);
    widen_half(packed_b + column * g.k, widened, packed_b_bytes(g.k, part.n) / sizeof(float), pool);
    gemm(part, scratch + widened_bytes(g), pool);
  }
}
}  // namespace hologram::backends::dense
#endif
