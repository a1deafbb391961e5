// MatMulNBits: A times weights of 2, 4 or 8 bits, whose blocks along K share a scale.
//
// Weights stay packed; some columns at a time become f32 and are multiplied.
#include <algorithm>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/gemm.h"

namespace hologram::kernels {
namespace {

constexpr int64_t kColumns = 128;  // unpacked at a time

struct PackedWeights {
  int64_t n, k, block, blocks, bits;
  const uint8_t* data;
  const float* scales;
  const uint8_t* packed_zeros = nullptr;  // at most one of these two
  const float* zeros = nullptr;
  const int32_t* groups = nullptr;  // the block whose scale element k uses, where not its own

  static float field(const uint8_t* bytes, int64_t index, int64_t bits) {
    const int64_t at = index * bits;
    return static_cast<float>((bytes[at / 8] >> (at % 8)) & ((1 << bits) - 1));
  }
  float zero(int64_t column, int64_t group) const {
    if (zeros) return zeros[column * blocks + group];
    if (packed_zeros) return field(packed_zeros + column * ((blocks * bits + 7) / 8), group, bits);
    return static_cast<float>(1 << (bits - 1));
  }
  // The k weights of one column.
  void unpack(int64_t column, float* out) const {
    const uint8_t* bytes = data + column * blocks * block * bits / 8;
    for (int64_t first = 0; first < k; first += block) {
      const int64_t group = first / block, last = std::min(k, first + block);
      if (groups) {
        for (int64_t i = first; i < last; ++i)
          out[i] = (field(bytes, i, bits) - zero(column, groups[i])) *
                   scales[column * blocks + groups[i]];
        continue;
      }
      const float scale = scales[column * blocks + group], middle = zero(column, group);
      for (int64_t i = first; i < last; ++i) out[i] = (field(bytes, i, bits) - middle) * scale;
    }
  }
};

Status check_count(const KernelContext& c, size_t input, const char* name, int64_t count) {
  if (c.input(input).count() == count) return {};
  return fail(ErrorCode::shape_mismatch, "{} {}; {} elements expected", name,
              c.input(input).dims.to_string(), count);
}

Result<PackedWeights> weights_of(const KernelContext& c) {
  PackedWeights w{};
  w.n = c.integer("N"), w.k = c.integer("K");
  w.bits = c.integer("bits", 4), w.block = c.integer("block_size");
  constexpr int64_t kMost = int64_t{1} << 31;  // products of two of them are no problem
  if (w.n < 0 || w.n > kMost || w.k < 1 || w.k > kMost || w.block < 8 || w.block > kMost ||
      (w.bits != 2 && w.bits != 4 && w.bits != 8))
    return fail(ErrorCode::invalid_argument, "N = {}, K = {}, bits = {}, block_size = {}", w.n, w.k,
                w.bits, w.block);
  w.blocks = (w.k + w.block - 1) / w.block;
  if (w.n > 0 && w.blocks * w.block > (int64_t{1} << 56) / w.n)
    return fail(ErrorCode::shape_mismatch, "weights of {} x {}", w.n, w.k);
  HOLOGRAM_CHECK(check_count(c, 1, "B", w.n * w.blocks * w.block * w.bits / 8));
  HOLOGRAM_CHECK(check_count(c, 2, "scales", w.n * w.blocks));
  w.data = c.input(1).as<uint8_t>();
  w.scales = c.input(2).as<float>();
  if (c.has_input(3)) {
    const bool packed = c.input(3).dtype == DType::u8;
    HOLOGRAM_CHECK(
        check_count(c, 3, "zero_points", w.n * (packed ? (w.blocks * w.bits + 7) / 8 : w.blocks)));
    if (packed)
      w.packed_zeros = c.input(3).as<uint8_t>();
    else
      w.zeros = c.input(3).as<float>();
  }
  if (c.has_input(4)) {
    const std::span<const int32_t> groups = c.input(4).span<int32_t>();
    if (static_cast<int64_t>(groups.size()) < w.k)
      return fail(ErrorCode::shape_mismatch, "g_idx of {} for K = {}", groups.size(), w.k);
    for (const int32_t group : groups)
      if (group < 0 || group >= w.blocks)
        return fail(ErrorCode::out_of_range, "group {} of {}", group, w.blocks);
    w.groups = groups.data();
  }
  if (c.has_input(5)) HOLOGRAM_CHECK(check_count(c, 5, "bias", w.n));
  return w;
}

Status matmul_bits(KernelContext& c) {
  const Tensor& a = c.input(0);
  HOLOGRAM_TRY(const PackedWeights w, weights_of(c));
  if (a.dims.rank() == 0 || a.dims.back() != w.k)
    return fail(ErrorCode::shape_mismatch, "A {}; the last axis has K = {} elements",
                a.dims.to_string(), w.k);
  Dims dims = a.dims;
  dims[dims.rank() - 1] = w.n;
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  const int64_t rows = a.count() / w.k;
  HOLOGRAM_TRY(auto panel, c.scratch<float>(std::min(kColumns, w.n) * w.k));
  GemmScratch scratch;
  for (int64_t first = 0; rows > 0 && first < w.n; first += kColumns) {
    const int64_t columns = std::min(kColumns, w.n - first);
    c.threads().parallel_for(columns, 8, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i)
        w.unpack(first + static_cast<int64_t>(i), panel.data() + static_cast<int64_t>(i) * w.k);
    });
    HOLOGRAM_CHECK(gemm<float>({.m = rows,
                                .n = columns,
                                .k = w.k,
                                .a = a.as<float>(),
                                .a_row = w.k,
                                .a_column = 1,
                                .b = panel.data(),
                                .b_row = 1,
                                .b_column = w.k,
                                .c = y.as<float>() + first,
                                .c_row = w.n},
                               c, scratch));
  }
  if (c.has_input(5))
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < w.n; ++i) y.as<float>()[row * w.n + i] += c.input(5).as<float>()[i];
  return {};
}

constexpr Kernel kKernels[] = {{"MatMulNBits", matmul_bits, true}};

}  // namespace

std::span<const Kernel> microsoft_kernels() { return kKernels; }

}  // namespace hologram::kernels
