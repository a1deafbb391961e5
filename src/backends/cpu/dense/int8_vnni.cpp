#include "backends/cpu/dense/int8_vnni.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace hologram::backends::dense {
namespace {

#define HOLOGRAM_VNNI __attribute__((target("fma,avx512f,avx512vl,avx512bw,avx512vnni")))
#define HOLOGRAM_VNNI_INLINE HOLOGRAM_VNNI __attribute__((always_inline)) inline

// The same operations on 32 and on 64 bytes.
struct Half {
  using Ints = __m256i;
  using Floats = __m256;
  static constexpr size_t kBytes = 32;
  HOLOGRAM_VNNI_INLINE static Ints load(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
  }
  HOLOGRAM_VNNI_INLINE static Ints load(uint64_t mask, const void* p) {
    return _mm256_maskz_loadu_epi8(static_cast<__mmask32>(mask), p);
  }
  HOLOGRAM_VNNI_INLINE static void store(uint64_t mask, uint8_t* p, Ints v) {
    _mm256_mask_storeu_epi8(p, static_cast<__mmask32>(mask), v);
  }
  // Bytes of 16-bit values.
  HOLOGRAM_VNNI_INLINE static Ints narrow(uint64_t mask, const int16_t* p, bool& fits) {
    const __m512i wide = _mm512_maskz_loadu_epi16(static_cast<__mmask32>(mask), p);
    const __m256i bytes = _mm512_cvtsepi16_epi8(wide);
    fits &= _mm512_cmpneq_epi16_mask(_mm512_cvtepi8_epi16(bytes), wide) == 0;
    return bytes;
  }
  HOLOGRAM_VNNI_INLINE static Floats floats(const float* p) { return _mm256_loadu_ps(p); }
  HOLOGRAM_VNNI_INLINE static Floats all(float v) { return _mm256_set1_ps(v); }
  HOLOGRAM_VNNI_INLINE static Ints all(int32_t v) { return _mm256_set1_epi32(v); }
  HOLOGRAM_VNNI_INLINE static Ints bytes(uint8_t v) {
    return _mm256_set1_epi8(static_cast<char>(v));
  }
  HOLOGRAM_VNNI_INLINE static Ints exclusive(Ints a, Ints b) { return _mm256_xor_si256(a, b); }
  HOLOGRAM_VNNI_INLINE static Ints low8(Ints a, Ints b) { return _mm256_unpacklo_epi8(a, b); }
  HOLOGRAM_VNNI_INLINE static Ints high8(Ints a, Ints b) { return _mm256_unpackhi_epi8(a, b); }
  HOLOGRAM_VNNI_INLINE static Ints low16(Ints a, Ints b) { return _mm256_unpacklo_epi16(a, b); }
  HOLOGRAM_VNNI_INLINE static Ints high16(Ints a, Ints b) { return _mm256_unpackhi_epi16(a, b); }
  HOLOGRAM_VNNI_INLINE static Ints dot(Ints sum, Ints a, Ints b) {
    return _mm256_dpbusd_epi32(sum, a, b);
  }
  HOLOGRAM_VNNI_INLINE static Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
  HOLOGRAM_VNNI_INLINE static Ints subtract(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
  HOLOGRAM_VNNI_INLINE static Floats convert(Ints a) { return _mm256_cvtepi32_ps(a); }
  HOLOGRAM_VNNI_INLINE static Ints bits(Floats a) { return _mm256_castps_si256(a); }
  HOLOGRAM_VNNI_INLINE static Floats fma(Floats a, Floats b, Floats c) {
    return _mm256_fmadd_ps(a, b, c);
  }
  HOLOGRAM_VNNI_INLINE static Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  HOLOGRAM_VNNI_INLINE static Floats clip(Floats a, Floats low, Floats high) {
    return _mm256_min_ps(_mm256_max_ps(a, low), high);
  }
  HOLOGRAM_VNNI_INLINE static Ints pack16(Ints a, Ints b) { return _mm256_packs_epi32(a, b); }
  HOLOGRAM_VNNI_INLINE static Ints pack8(bool is_signed, Ints a, Ints b) {
    return is_signed ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
  }
};

struct Wide {
  using Ints = __m512i;
  using Floats = __m512;
  static constexpr size_t kBytes = 64;
  HOLOGRAM_VNNI_INLINE static Ints load(const void* p) { return _mm512_loadu_si512(p); }
  HOLOGRAM_VNNI_INLINE static Ints load(uint64_t mask, const void* p) {
    return _mm512_maskz_loadu_epi8(mask, p);
  }
  HOLOGRAM_VNNI_INLINE static void store(uint64_t mask, uint8_t* p, Ints v) {
    _mm512_mask_storeu_epi8(p, mask, v);
  }
  // Bytes of 16-bit values.
  HOLOGRAM_VNNI_INLINE static Ints narrow(uint64_t mask, const int16_t* p, bool& fits) {
    const __m256i low = Half::narrow(mask, p, fits);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), Half::narrow(mask >> 32, p + 32, fits),
                              1);
  }
  HOLOGRAM_VNNI_INLINE static Floats floats(const float* p) { return _mm512_loadu_ps(p); }
  HOLOGRAM_VNNI_INLINE static Floats all(float v) { return _mm512_set1_ps(v); }
  HOLOGRAM_VNNI_INLINE static Ints all(int32_t v) { return _mm512_set1_epi32(v); }
  HOLOGRAM_VNNI_INLINE static Ints bytes(uint8_t v) {
    return _mm512_set1_epi8(static_cast<char>(v));
  }
  HOLOGRAM_VNNI_INLINE static Ints exclusive(Ints a, Ints b) { return _mm512_xor_si512(a, b); }
  HOLOGRAM_VNNI_INLINE static Ints low8(Ints a, Ints b) { return _mm512_unpacklo_epi8(a, b); }
  HOLOGRAM_VNNI_INLINE static Ints high8(Ints a, Ints b) { return _mm512_unpackhi_epi8(a, b); }
  HOLOGRAM_VNNI_INLINE static Ints low16(Ints a, Ints b) { return _mm512_unpacklo_epi16(a, b); }
  HOLOGRAM_VNNI_INLINE static Ints high16(Ints a, Ints b) { return _mm512_unpackhi_epi16(a, b); }
  HOLOGRAM_VNNI_INLINE static Ints dot(Ints sum, Ints a, Ints b) {
    return _mm512_dpbusd_epi32(sum, a, b);
  }
  HOLOGRAM_VNNI_INLINE static Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  HOLOGRAM_VNNI_INLINE static Ints subtract(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
  HOLOGRAM_VNNI_INLINE static Floats convert(Ints a) { return _mm512_cvtepi32_ps(a); }
  HOLOGRAM_VNNI_INLINE static Ints bits(Floats a) { return _mm512_castps_si512(a); }
  HOLOGRAM_VNNI_INLINE static Floats fma(Floats a, Floats b, Floats c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  HOLOGRAM_VNNI_INLINE static Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  HOLOGRAM_VNNI_INLINE static Floats clip(Floats a, Floats low, Floats high) {
    return _mm512_min_ps(_mm512_max_ps(a, low), high);
  }
  HOLOGRAM_VNNI_INLINE static Ints pack16(Ints a, Ints b) { return _mm512_packs_epi32(a, b); }
  HOLOGRAM_VNNI_INLINE static Ints pack8(bool is_signed, Ints a, Ints b) {
    return is_signed ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
  }
};

// What all columns share on their way from sums to bytes; see finish_int8.cpp.
template <class V>
struct Coder {
  typename V::Floats low, high, magic;
  typename V::Ints offset;
  bool is_signed;

  HOLOGRAM_VNNI_INLINE explicit Coder(const Int8Codes& codes)
      : low(V::all(codes.least)),
        high(V::all(codes.most)),
        magic(V::all(Int8Codes::kMagic)),
        offset(V::all(codes.offset)),
        is_signed(codes.is_signed) {}
  HOLOGRAM_VNNI_INLINE typename V::Ints code(typename V::Ints sum, typename V::Ints base,
                                             typename V::Floats scale,
                                             typename V::Floats bias) const {
    const auto x = V::fma(V::convert(V::add(sum, base)), scale, bias);
    return V::subtract(V::bits(V::add(V::clip(x, low, high), magic)), offset);
  }
};

// Bytes of four taps -> [channel][tap], in four vectors.
template <class V>
struct Quad {
  typename V::Ints parts[4];
  HOLOGRAM_VNNI_INLINE Quad(typename V::Ints a, typename V::Ints b, typename V::Ints c,
                            typename V::Ints d) {
    const auto low = V::low8(a, b), high = V::high8(a, b);
    const auto low2 = V::low8(c, d), high2 = V::high8(c, d);
    parts[0] = V::low16(low, low2), parts[1] = V::high16(low, low2);
    parts[2] = V::low16(high, high2), parts[3] = V::high16(high, high2);
  }
};

template <class V>
HOLOGRAM_VNNI bool pack_block(const int16_t* from, size_t taps, size_t channels, size_t block,
                              int8_t* w, int32_t* sums) {
  const size_t count = channels - block;
  const uint64_t mask = count >= V::kBytes ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
  typename V::Ints totals[4] = {V::all(0), V::all(0), V::all(0), V::all(0)};
  bool fits = true;
  for (size_t t = 0; t < taps; t += 4) {
    typename V::Ints rows[4] = {V::all(0), V::all(0), V::all(0), V::all(0)};
    for (size_t i = 0; i < 4 && t + i < taps; ++i)
      rows[i] = V::narrow(mask, from + (t + i) * channels + block, fits);
    const Quad<V> quad(rows[0], rows[1], rows[2], rows[3]);
#pragma GCC unroll 4
    for (size_t v = 0; v < 4; ++v, w += V::kBytes) {
      V::store(~uint64_t{0}, reinterpret_cast<uint8_t*>(w), quad.parts[v]);
      totals[v] = V::dot(totals[v], V::bytes(1), quad.parts[v]);
    }
  }
#pragma GCC unroll 4
  for (size_t v = 0; v < 4; ++v)
    V::store(~uint64_t{0}, reinterpret_cast<uint8_t*>(sums + block + v * (V::kBytes / 4)),
             totals[v]);
  return fits;
}

HOLOGRAM_VNNI bool pack_depthwise(const int16_t* from, size_t taps, size_t channels, int8_t* w,
                                  int32_t* sums) {
  bool fits = true;
  for (size_t block = 0; block < channels; block += 64) {
    int8_t* to = w + block * ((taps + 3) / 4 * 4);
    fits &= DepthwiseBlocks::width(channels, block) == 64
                ? pack_block<Wide>(from, taps, channels, block, to, sums)
                : pack_block<Half>(from, taps, channels, block, to, sums);
  }
  return fits;
}

template <class V>
HOLOGRAM_VNNI void depthwise_block(const DepthwiseQuads& d, size_t block) {
  const Coder<V> coder(d.finish.codes);
  const size_t count = d.channels - block;
  const uint64_t mask = count >= V::kBytes ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
  const auto flip = V::bytes(d.flip);
  const int8_t* const weights = d.w + block * d.quads * 4;
  for (size_t p = 0; p < d.pixels; ++p) {
    const uint8_t* const* x = d.x + p * d.x_row;
    const int8_t* w = weights;
    typename V::Ints sums[4] = {V::all(0), V::all(0), V::all(0), V::all(0)};
    for (size_t q = 0; q < d.quads; ++q, x += 4, w += 4 * V::kBytes) {
      typename V::Ints taps[4];
#pragma GCC unroll 4
      for (size_t t = 0; t < 4; ++t) taps[t] = V::exclusive(V::load(mask, x[t] + block), flip);
      const Quad<V> quad(taps[0], taps[1], taps[2], taps[3]);
#pragma GCC unroll 4
      for (size_t v = 0; v < 4; ++v)
        sums[v] = V::dot(sums[v], quad.parts[v], V::load(w + v * V::kBytes));
    }
#pragma GCC unroll 4
    for (size_t v = 0; v < 4; ++v) {
      const size_t at = block + v * (V::kBytes / 4);
      sums[v] = coder.code(sums[v], V::load(d.finish.base + at), V::floats(d.finish.scales + at),
                           d.finish.biases ? V::floats(d.finish.biases + at) : V::all(0.0f));
    }
    V::store(mask, d.finish.to + p * d.finish.to_row + block,
             V::pack8(coder.is_signed, V::pack16(sums[0], sums[1]), V::pack16(sums[2], sums[3])));
  }
}

HOLOGRAM_VNNI void depthwise(const DepthwiseQuads& d) {
  for (size_t block = 0; block < d.channels; block += 64)
    if (DepthwiseBlocks::width(d.channels, block) == 64)
      depthwise_block<Wide>(d, block);
    else
      depthwise_block<Half>(d, block);
}

// Four vectors of sums a time: two rows of 32 columns or four of 16.
template <size_t kVectors>
HOLOGRAM_VNNI void finish_width(const Int8Bytes& f, const int32_t* sums) {
  constexpr size_t kRows = 4 / kVectors, kColumns = 16 * kVectors;
  const Coder<Wide> coder(f.codes);
  // Packing leaves four bytes of each vector in a lane.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  __m512i base[kVectors];
  __m512 scale[kVectors], bias[kVectors];
#pragma GCC unroll 2
  for (size_t v = 0; v < kVectors; ++v) {
    base[v] = _mm512_loadu_si512(f.base + v * 16);
    scale[v] = _mm512_loadu_ps(f.scales + v * 16);
    bias[v] = f.biases ? _mm512_loadu_ps(f.biases + v * 16) : _mm512_setzero_ps();
  }
  const auto mask = static_cast<__mmask32>((uint64_t{1} << f.columns) - 1);
  uint8_t* to = f.to;
  for (size_t r = 0; r < f.rows; r += kRows, sums += 64) {
    const size_t rows = f.rows - r < kRows ? f.rows - r : kRows;
    __m512i codes[4];
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      const size_t v = i % kVectors;
      const int32_t* from = i / kVectors < rows ? sums + i * 16 : sums;
      codes[i] = coder.code(_mm512_loadu_si512(from), base[v], scale[v], bias[v]);
    }
    __m512i bytes = _mm512_permutexvar_epi32(
        order, Wide::pack8(coder.is_signed, Wide::pack16(codes[0], codes[1]),
                           Wide::pack16(codes[2], codes[3])));
    for (size_t i = 0; i < rows; ++i, to += f.to_row) {
      if (f.columns < kColumns)
        _mm256_mask_storeu_epi8(to, mask, _mm512_castsi512_si256(bytes));
      else if (kVectors == 2)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(bytes));
      else
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_castsi512_si128(bytes));
      bytes = kVectors == 2 ? _mm512_shuffle_i64x2(bytes, bytes, 0x0e)
                            : _mm512_shuffle_i64x2(bytes, bytes, 0x39);
    }
  }
}

void finish_bytes(const Int8Bytes& f, const int32_t* sums) {
  f.width == 32 ? finish_width<2>(f, sums) : finish_width<1>(f, sums);
}

}  // namespace

namespace detail {
DepthwiseKernel vnni_depthwise() {
  if (!__builtin_cpu_supports("avx512vnni")) return {};
  return {&pack_depthwise, &depthwise};
}
FinishBytesFunction avx512_finish_bytes() {
  return __builtin_cpu_supports("avx512vnni") ? &finish_bytes : nullptr;
}
}  // namespace detail

}  // namespace hologram::backends::dense

#else

namespace hologram::backends::dense::detail {
DepthwiseKernel vnni_depthwise() { return {}; }
FinishBytesFunction avx512_finish_bytes() { return nullptr; }
}  // namespace hologram::backends::dense::detail

#endif
