#include "backends/cpu/builtin/gemm.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "backends/cpu/builtin/families.h"
#include "support/aligned.h"

namespace hologram::backends {
namespace {

// Blocks: a panel of b of kDepth rows stays in the first cache, a block of a in the second.
constexpr uint64_t kDepth = 256;
constexpr uint64_t kBlockRows = 96;  // a multiple of every level's tile rows
constexpr uint64_t kBlockColumns = 2048;
constexpr uint64_t kWorthForking = 64 * 64 * 64;  // multiply-adds

struct Problem {
  const std::byte* a;
  const std::byte* b;
  std::byte* c;
  uint64_t m, n, k;
  int64_t a_row, a_column, b_row, b_column, c_row;
  double alpha, beta;
};

// Words: a, b, c, m, n, k, a_row, a_column, b_row, b_column, c_row, alpha, beta.
template <typename T>
double scalar_value(uint64_t word) {
  T value;
  std::memcpy(static_cast<void*>(&value), &word, sizeof(T));
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(value);
  else
    return static_cast<double>(static_cast<float>(value));
}

Problem problem_of(const uint64_t* words, double alpha, double beta) {
  return {reinterpret_cast<const std::byte*>(words[0]),
          reinterpret_cast<const std::byte*>(words[1]),
          reinterpret_cast<std::byte*>(words[2]),
          words[3],
          words[4],
          words[5],
          static_cast<int64_t>(words[6]),
          static_cast<int64_t>(words[7]),
          static_cast<int64_t>(words[8]),
          static_cast<int64_t>(words[9]),
          static_cast<int64_t>(words[10]),
          alpha,
          beta};
}

Status check(const uint64_t* words, const uint64_t* lengths) {
  const uint64_t m = words[3], n = words[4], k = words[5];
  const auto reaches = [](uint64_t rows, uint64_t columns, uint64_t row, uint64_t column,
                          uint64_t length) {
    if (rows == 0 || columns == 0) return true;
    uint64_t down, across, last;
    return !__builtin_mul_overflow(rows - 1, row, &down) &&
           !__builtin_mul_overflow(columns - 1, column, &across) &&
           !__builtin_add_overflow(down, across, &last) && last < length;
  };
  if (reaches(m, k, words[6], words[7], lengths[0]) &&
      reaches(k, n, words[8], words[9], lengths[1]) && reaches(m, n, words[10], 1, lengths[2]))
    return {};
  return fail(ErrorCode::out_of_range,
              "gemm of {} x {} by {} x {}: strides reach outside arrays of {}, {} and {} elements",
              m, k, k, n, lengths[0], lengths[1], lengths[2]);
}

// c = alpha a b + beta c in the kernel's accumulation type; c_row counts its elements.
Status multiply(const CpuContext& context, const GemmKernel& kernel, const Problem& p,
                uint64_t size, uint64_t wide) {
  const uint64_t rows_tile = kernel.tile_rows, columns_tile = kernel.tile_columns;
  const uint64_t depth_most = std::min(kDepth, p.k);
  const uint64_t columns_most = align_up(std::min(kBlockColumns, p.n), columns_tile);
  const uint64_t block_rows = std::min(kBlockRows, align_up(p.m, rows_tile));
  const uint64_t threads = context.threads;
  const uint64_t b_bytes = align_up(columns_most * depth_most * wide, kAlignment);
  const uint64_t a_bytes = align_up(block_rows * depth_most * wide, kAlignment);
  // Memory of the calling thread, for all threads; it grows to the largest product and is reused.
  thread_local AlignedBytes scratch;
  if (scratch.size() < b_bytes + threads * a_bytes) {
    HOLOGRAM_TRY(scratch, AlignedBytes::allocate(b_bytes + threads * a_bytes));
  }
  std::byte* const packed_b = scratch.data();
  std::byte* const packed_a = packed_b + b_bytes;
  const bool fork = p.m * p.n * p.k >= kWorthForking && threads > 1;

  for (uint64_t j0 = 0; j0 < p.n; j0 += kBlockColumns) {
    const uint64_t columns = std::min(kBlockColumns, p.n - j0);
    const uint64_t panels = (columns + columns_tile - 1) / columns_tile;
    for (uint64_t k0 = 0; k0 < p.k; k0 += kDepth) {
      const uint64_t depth = std::min(kDepth, p.k - k0);
      const auto panel_bytes = columns_tile * depth * wide;
      const auto pack = [&](size_t begin, size_t end) {
        for (size_t panel = begin; panel < end; ++panel) {
          const uint64_t j = j0 + panel * columns_tile;
          const int64_t at =
              static_cast<int64_t>(k0) * p.b_row + static_cast<int64_t>(j) * p.b_column;
          kernel.pack_b(p.b + at * static_cast<int64_t>(size), p.b_row, p.b_column, depth,
                        std::min(columns_tile, p.n - j), packed_b + panel * panel_bytes);
        }
      };
      std::atomic<uint32_t> taken = 0;
      // A fixed schedule: at most one call a thread, so each has its own block of a.
      const auto compute = [&](size_t begin, size_t end) {
        std::byte* const mine = packed_a + taken.fetch_add(1) * a_bytes;
        for (size_t block = begin; block < end; ++block) {
          const uint64_t i0 = block * block_rows, rows = std::min(block_rows, p.m - i0);
          const int64_t at =
              static_cast<int64_t>(i0) * p.a_row + static_cast<int64_t>(k0) * p.a_column;
          kernel.pack_a(p.a + at * static_cast<int64_t>(size), p.a_row, p.a_column, rows, depth,
                        mine);
          for (uint64_t panel = 0; panel < panels; ++panel)
            for (uint64_t r = 0; r < rows; r += rows_tile) {
              const uint64_t i = i0 + r, j = j0 + panel * columns_tile;
              const int64_t c_at = static_cast<int64_t>(i) * p.c_row + static_cast<int64_t>(j);
              kernel.tile(mine + r * depth * wide, packed_b + panel * panel_bytes, depth,
                          p.c + c_at * static_cast<int64_t>(wide), p.c_row,
                          std::min(rows_tile, rows - r), std::min(columns_tile, p.n - j), p.alpha,
                          k0 == 0 ? p.beta : 1.0);
            }
        }
      };
      const uint64_t blocks = (p.m + block_rows - 1) / block_rows;
      if (fork) {
        context.parallel_for(panels, 1, pack);
        context.parallel_for(blocks, 1, compute);
      } else {
        pack(0, panels);
        compute(0, blocks);
      }
    }
  }
  return {};
}

template <typename A>
void scale(const Problem& p) {
  for (uint64_t i = 0; i < p.m; ++i) {
    A* row = reinterpret_cast<A*>(p.c) + static_cast<int64_t>(i) * p.c_row;
    for (uint64_t j = 0; j < p.n; ++j)
      row[j] = p.beta == 0 ? A(0) : static_cast<A>(p.beta) * row[j];
  }
}

template <DType type, typename T>
Status run_float(const CpuContext& context, const uint64_t* words, const uint64_t*) {
  Problem p = problem_of(words, scalar_value<T>(words[11]), scalar_value<T>(words[12]));
  if (p.m == 0 || p.n == 0) return {};
  constexpr bool kNarrow = sizeof(T) == 2;
  const GemmKernel& kernel = gemm_kernel(type);
  if constexpr (!kNarrow) {
    if (p.k == 0) {
      scale<T>(p);
      return {};
    }
    return multiply(context, kernel, p, sizeof(T), sizeof(T));
  } else {
    // The product is summed in f32 and rounded once.
    HOLOGRAM_TRY(const AlignedBytes whole, AlignedBytes::allocate(p.m * p.n * sizeof(float)));
    Problem wide = p;
    wide.c = whole.data();
    wide.c_row = static_cast<int64_t>(p.n);
    wide.beta = 0;
    if (p.k == 0)
      scale<float>(wide);
    else
      HOLOGRAM_CHECK(multiply(context, kernel, wide, sizeof(T), sizeof(float)));
    narrow_matrix(type, reinterpret_cast<const float*>(whole.data()), p.m, p.n, p.c, p.c_row,
                  p.beta);
    return {};
  }
}

// Integers wrap like the ISA's; there is no packing, the inner loop runs along rows.
template <typename T>
Status run_integer(const CpuContext& context, const uint64_t* words, const uint64_t*) {
  const Problem p = problem_of(words, 0, 0);
  const auto* a = reinterpret_cast<const T*>(p.a);
  const auto* b = reinterpret_cast<const T*>(p.b);
  auto* c = reinterpret_cast<T*>(p.c);
  using U = uint64_t;  // products of narrow types promote to int, which must not overflow
  const U alpha = words[11], beta = words[12];
  const auto body = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      T* row = c + static_cast<int64_t>(i) * p.c_row;
      for (uint64_t j = 0; j < p.n; ++j)
        row[j] = beta == 0 ? T(0) : static_cast<T>(beta * static_cast<U>(row[j]));
      for (uint64_t k = 0; k < p.k; ++k) {
        const auto factor = static_cast<T>(
            alpha *
            static_cast<U>(
                a[static_cast<int64_t>(i) * p.a_row + static_cast<int64_t>(k) * p.a_column]));
        const T* line = b + static_cast<int64_t>(k) * p.b_row;
        for (uint64_t j = 0; j < p.n; ++j)
          row[j] = static_cast<T>(static_cast<U>(row[j]) +
                                  static_cast<U>(factor) *
                                      static_cast<U>(line[static_cast<int64_t>(j) * p.b_column]));
      }
    }
  };
  if (p.m * p.n * p.k < kWorthForking)
    body(0, p.m);
  else
    context.parallel_for(p.m, 1, body);
  return {};
}

void add(BuiltinTable& table, DType type, CpuBuiltinEntry entry) {
  std::vector<isa::Parameter> parameters = {input("a", type), input("b", type), output("c", type)};
  parameters.back().access = isa::Access::read_write;
  for (const char* name : {"m", "n", "k", "a_row", "a_column", "b_row", "b_column", "c_row"})
    parameters.push_back(scalar(name, DType::u64));
  parameters.push_back(scalar("alpha", type));
  parameters.push_back(scalar("beta", type));
  table.add(builtin_name("gemm", type), std::move(parameters), "c = alpha a b + beta c", entry,
            check);
}

}  // namespace

void add_gemm_builtins(BuiltinTable& table) {
  add(table, DType::i8, run_integer<int8_t>);
  add(table, DType::i16, run_integer<int16_t>);
  add(table, DType::i32, run_integer<int32_t>);
  add(table, DType::i64, run_integer<int64_t>);
  add(table, DType::u8, run_integer<uint8_t>);
  add(table, DType::u16, run_integer<uint16_t>);
  add(table, DType::u32, run_integer<uint32_t>);
  add(table, DType::u64, run_integer<uint64_t>);
  add(table, DType::f16, run_float<DType::f16, Half>);
  add(table, DType::bf16, run_float<DType::bf16, BFloat16>);
  add(table, DType::f32, run_float<DType::f32, float>);
  add(table, DType::f64, run_float<DType::f64, double>);
}

}  // namespace hologram::backends
