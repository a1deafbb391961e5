// Packing and the register-tiled inner product; compiled once a level.
// clang-format off: the order of these includes is Highway's
#include "backends/cpu/builtin/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/builtin/gemm_levels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <algorithm>

#include "backends/cpu/builtin/convert-inl.h"
#include "backends/cpu/builtin/families.h"
#include "backends/cpu/builtin/gemm.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::HWY_NAMESPACE {

// Two vectors wide. As many rows as the registers hold next to two of b and one of a: 12 of 32
// registers' worth on AVX-512, 6 of 16 below.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
constexpr size_t kRows = 12;
#else
constexpr size_t kRows = 6;
#endif
template <typename A>
inline constexpr size_t kColumns = 2 * hn::MaxLanes(hn::ScalableTag<A>());

template <typename T>
HWY_INLINE Widened<T> widen_one(const T& value) {
  if constexpr (std::is_same_v<T, Widened<T>>) {
    return value;
  } else {
    Widened<T> result;
    widen(&value, &result, 1);
    return result;
  }
}

template <typename T>
void pack_a(const void* a_bytes, int64_t row_stride, int64_t column_stride, size_t rows,
            size_t depth, void* packed_bytes) {
  const auto* a = static_cast<const T*>(a_bytes);
  auto* packed = static_cast<Widened<T>*>(packed_bytes);
  for (size_t r0 = 0; r0 < rows; r0 += kRows) {
    const size_t n = std::min(kRows, rows - r0);
    for (size_t k = 0; k < depth; ++k, packed += kRows) {
      const T* column =
          a + static_cast<int64_t>(r0) * row_stride + static_cast<int64_t>(k) * column_stride;
      for (size_t r = 0; r < n; ++r)
        packed[r] = widen_one(column[static_cast<int64_t>(r) * row_stride]);
      for (size_t r = n; r < kRows; ++r) packed[r] = 0;
    }
  }
}

template <typename T>
void pack_b(const void* b_bytes, int64_t row_stride, int64_t column_stride, size_t depth,
            size_t columns, void* packed_bytes) {
  using A = Widened<T>;
  const auto* b = static_cast<const T*>(b_bytes);
  auto* packed = static_cast<A*>(packed_bytes);
  for (size_t k = 0; k < depth; ++k, packed += kColumns<A>) {
    const T* row = b + static_cast<int64_t>(k) * row_stride;
    if (column_stride == 1)
      for (size_t c = 0; c < columns; ++c) packed[c] = widen_one(row[c]);
    else
      for (size_t c = 0; c < columns; ++c)
        packed[c] = widen_one(row[static_cast<int64_t>(c) * column_stride]);
    for (size_t c = columns; c < kColumns<A>; ++c) packed[c] = 0;
  }
}

template <typename A>
HWY_INLINE void write_tile(const A* tile, A* c, int64_t c_row, size_t rows, size_t columns, A alpha,
                           A beta) {
  for (size_t r = 0; r < rows; ++r) {
    A* out = c + static_cast<int64_t>(r) * c_row;
    const A* from = tile + r * kColumns<A>;
    if (beta == 0)
      for (size_t j = 0; j < columns; ++j) out[j] = alpha * from[j];
    else
      for (size_t j = 0; j < columns; ++j) out[j] = alpha * from[j] + beta * out[j];
  }
}

template <typename A>
void tile(const void* a_bytes, const void* b_bytes, size_t depth, void* c, int64_t c_row,
          size_t rows, size_t columns, double alpha, double beta) {
  const hn::ScalableTag<A> d;
  using V = hn::Vec<decltype(d)>;
  constexpr size_t kWidth = hn::MaxLanes(d);
  const auto* a = static_cast<const A*>(a_bytes);
  const auto* b = static_cast<const A*>(b_bytes);
  V left[kRows], right[kRows];
#pragma GCC unroll 12
  for (size_t r = 0; r < kRows; ++r) left[r] = right[r] = hn::Zero(d);
  for (size_t k = 0; k < depth; ++k, a += kRows, b += 2 * kWidth) {
    const V b0 = hn::Load(d, b), b1 = hn::Load(d, b + kWidth);
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r) {
      const V value = hn::Set(d, a[r]);
      left[r] = hn::MulAdd(value, b0, left[r]);
      right[r] = hn::MulAdd(value, b1, right[r]);
    }
  }
  HWY_ALIGN A result[kRows * 2 * kWidth];
#pragma GCC unroll 12
  for (size_t r = 0; r < kRows; ++r) {
    hn::Store(left[r], d, result + r * 2 * kWidth);
    hn::Store(right[r], d, result + r * 2 * kWidth + kWidth);
  }
  write_tile(result, static_cast<A*>(c), c_row, rows, columns, static_cast<A>(alpha),
             static_cast<A>(beta));
}

template <typename T>
inline constexpr GemmKernel kGemm = {kRows, kColumns<Widened<T>>, pack_a<T>, pack_b<T>,
                                     tile<Widened<T>>};

const GemmKernel& find_gemm(DType type) {
  switch (type) {
    case DType::f16:
      return kGemm<Half>;
    case DType::bf16:
      return kGemm<BFloat16>;
    case DType::f32:
      return kGemm<float>;
    default:
      return kGemm<double>;
  }
}

template <typename T>
void narrow_rows(const float* from, size_t rows, size_t columns, T* to, int64_t to_row,
                 float beta) {
  constexpr size_t kPiece = 256;
  HWY_ALIGN float buffer[kPiece];
  for (size_t r = 0; r < rows; ++r, from += columns, to += to_row)
    for (size_t c = 0; c < columns; c += kPiece) {
      const size_t n = std::min(kPiece, columns - c);
      if (beta != 0) {
        widen(to + c, buffer, n);
        for (size_t i = 0; i < n; ++i) buffer[i] = from[c + i] + beta * buffer[i];
        narrow(buffer, to + c, n);
      } else {
        narrow(from + c, to + c, n);
      }
    }
}

void narrow_any(DType type, const float* from, size_t rows, size_t columns, void* to,
                int64_t to_row, double beta) {
  if (type == DType::f16)
    narrow_rows(from, rows, columns, static_cast<Half*>(to), to_row, static_cast<float>(beta));
  else
    narrow_rows(from, rows, columns, static_cast<BFloat16*>(to), to_row, static_cast<float>(beta));
}

}  // namespace hologram::backends::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends {
HWY_EXPORT(find_gemm);
HWY_EXPORT(narrow_any);
const GemmKernel& gemm_kernel(DType type) { return HWY_DYNAMIC_DISPATCH(find_gemm)(type); }
void narrow_matrix(DType type, const float* from, size_t rows, size_t columns, void* to,
                   int64_t to_row, double beta) {
  HWY_DYNAMIC_DISPATCH(narrow_any)(type, from, rows, columns, to, to_row, beta);
}
}  // namespace hologram::backends
#endif
