#include "backends/cpu/dense/transpose.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/transpose.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
// 4 x 4, in 128-bit vectors: two loads a cycle feed it, and wider registers would only trade loads
// for shuffles that cross lanes.
HWY_INLINE void transpose_4x4(const float* from, size_t from_stride, float* to, size_t to_stride) {
  const hn::FixedTag<float, 4> d;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + from_stride);
  const auto r2 = hn::LoadU(d, from + 2 * from_stride), r3 = hn::LoadU(d, from + 3 * from_stride);
  const auto l02 = hn::InterleaveLower(d, r0, r2), l13 = hn::InterleaveLower(d, r1, r3);
  const auto u02 = hn::InterleaveUpper(d, r0, r2), u13 = hn::InterleaveUpper(d, r1, r3);
  hn::StoreU(hn::InterleaveLower(d, l02, l13), d, to);
  hn::StoreU(hn::InterleaveUpper(d, l02, l13), d, to + to_stride);
  hn::StoreU(hn::InterleaveLower(d, u02, u13), d, to + 2 * to_stride);
  hn::StoreU(hn::InterleaveUpper(d, u02, u13), d, to + 3 * to_stride);
}
#endif

// Blocks of 16 x 16: whole cache lines on both sides.
void transpose_any(size_t rows, size_t columns, const float* from, size_t from_stride, float* to,
                   size_t to_stride) {
  constexpr size_t kBlock = 16;
#if HWY_TARGET != HWY_SCALAR
  // The channels of a picture, to pixels that follow each other.
  if (rows == 3 && to_stride == 3) {
    const hn::ScalableTag<float> d;
    for (; columns >= hn::Lanes(d); columns -= hn::Lanes(d)) {
      hn::StoreInterleaved3(hn::LoadU(d, from), hn::LoadU(d, from + from_stride),
                            hn::LoadU(d, from + 2 * from_stride), d, to);
      from += hn::Lanes(d);
      to += 3 * hn::Lanes(d);
    }
  }
#endif
  for (size_t i0 = 0; i0 < rows; i0 += kBlock) {
    for (size_t j0 = 0; j0 < columns; j0 += kBlock) {
      const size_t i1 = std::min(rows, i0 + kBlock), j1 = std::min(columns, j0 + kBlock);
      size_t i = i0;
#if HWY_TARGET != HWY_SCALAR
      for (; i + 4 <= i1; i += 4) {
        size_t j = j0;
        for (; j + 4 <= j1; j += 4)
          transpose_4x4(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
        for (; j < j1; ++j)
          for (size_t k = i; k < i + 4; ++k) to[j * to_stride + k] = from[k * from_stride + j];
      }
#endif
      for (; i < i1; ++i)
        for (size_t j = j0; j < j1; ++j) to[j * to_stride + i] = from[i * from_stride + j];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(transpose_any);

void transpose_block(size_t rows, size_t columns, const float* from, size_t from_stride, float* to,
                     size_t to_stride) {
  HWY_DYNAMIC_DISPATCH(transpose_any)(rows, columns, from, from_stride, to, to_stride);
}

void transpose(size_t count, size_t rows, size_t columns, const float* from, float* to,
               ThreadPool& pool) {
  if (count == 0 || rows == 0 || columns == 0) return;
  const auto block = HWY_DYNAMIC_DISPATCH(transpose_any);
  // 64 x 64 floats and their image fit in L1.
  constexpr size_t kBlock = 64;
  const size_t down = (rows + kBlock - 1) / kBlock, across = (columns + kBlock - 1) / kBlock;
  const unsigned threads = count * rows * columns < 65536 ? 1 : 0;  // some 10 us
  const auto run = [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      const size_t matrix = t / (down * across) * rows * columns;
      const size_t i = t / across % down * kBlock, j = t % across * kBlock;
      block(std::min(kBlock, rows - i), std::min(kBlock, columns - j),
            from + matrix + i * columns + j, columns, to + matrix + j * rows + i, rows);
    }
  };
  pool.parallel_for(count * down * across, 1, run, Schedule::dynamic, threads);
}
}  // namespace hologram::backends::dense
#endif
