// c = alpha a b + beta c in f32, by the dense kernels.
#include "backends/cpu/dense/gemm.h"

#include <cstring>

#include "backends/cpu/builtin/families.h"
#include "support/aligned.h"

namespace hologram::backends {
namespace {

// Words: a, b, c, m, n, k, a_row, a_column, b_row, b_column, c_row, alpha, beta.
struct Problem {
  uint64_t m, n, k;
  uint64_t a_row, a_column, b_row, b_column, c_row;
};

// What a stride is where there is only one row or column does not matter.
Problem problem_of(const uint64_t* words) {
  Problem p = {words[3], words[4], words[5], words[6], words[7], words[8], words[9], words[10]};
  if (p.k == 1) p.a_column = p.b_row = 1;
  if (p.m == 1) p.a_row = p.a_column == 1 ? p.k : 1;
  if (p.n == 1) p.b_column = p.b_row == 1 ? p.k : 1;
  return p;
}

Status check(const uint64_t* words, const uint64_t* lengths) {
  const Problem p = problem_of(words);
  const auto reaches = [](uint64_t rows, uint64_t columns, uint64_t row, uint64_t column,
                          uint64_t length) {
    if (rows == 0 || columns == 0) return true;
    uint64_t down, across, last;
    return !__builtin_mul_overflow(rows - 1, row, &down) &&
           !__builtin_mul_overflow(columns - 1, column, &across) &&
           !__builtin_add_overflow(down, across, &last) && last < length;
  };
  if (!reaches(p.m, p.k, words[6], words[7], lengths[0]) ||
      !reaches(p.k, p.n, words[8], words[9], lengths[1]) ||
      !reaches(p.m, p.n, words[10], 1, lengths[2]))
    return fail(
        ErrorCode::out_of_range,
        "gemm of {} x {} by {} x {}: strides reach outside arrays of {}, {} and {} elements", p.m,
        p.k, p.k, p.n, lengths[0], lengths[1], lengths[2]);
  if ((p.a_row == 1 || p.a_column == 1) && (p.b_row == 1 || p.b_column == 1)) return {};
  return fail(
      ErrorCode::unsupported,
      "gemm: rows or columns of a matrix must be contiguous; they are {} and {} apart in a, "
      "{} and {} in b",
      p.a_row, p.a_column, p.b_row, p.b_column);
}

float scalar_value(uint64_t word) {
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

// The pool as far as this context may use it.
ThreadPool& pool_of(const CpuContext& context) {
  static ThreadPool& alone = *new ThreadPool(1);
  return context.threads == 1 ? alone : *context.pool;
}

Status run(const CpuContext& context, const uint64_t* words, const uint64_t*) {
  const Problem p = problem_of(words);
  const float alpha = scalar_value(words[11]), beta = scalar_value(words[12]);
  auto* const c = reinterpret_cast<float*>(words[2]);
  if (p.m == 0 || p.n == 0) return {};
  if (p.k == 0) {
    for (uint64_t i = 0; i < p.m; ++i)
      for (uint64_t j = 0; j < p.n; ++j) {
        float& value = c[i * p.c_row + j];
        value = beta == 0 ? 0 : beta * value;
      }
    return {};
  }
  const bool a_transposed = p.a_column != 1, b_transposed = p.b_column != 1;
  dense::Gemm product{.m = p.m,
                      .n = p.n,
                      .k = p.k,
                      .a = reinterpret_cast<const float*>(words[0]),
                      .lda = a_transposed ? p.a_column : p.a_row,
                      .a_transposed = a_transposed,
                      .b = reinterpret_cast<const float*>(words[1]),
                      .ldb = b_transposed ? p.b_column : p.b_row,
                      .b_transposed = b_transposed,
                      .c = c,
                      .ldc = p.c_row};
  product.epilogue.alpha = alpha;
  if (beta != 0) {
    product.epilogue.residual = c;
    product.epilogue.residual_scale = beta;
  }
  // Memory of the calling thread; it grows to the largest product and is reused.
  thread_local AlignedBytes scratch;
  if (const size_t need = dense::gemm_scratch_bytes(product); scratch.size() < need) {
    HOLOGRAM_TRY(scratch, AlignedBytes::allocate(need));
  }
  dense::gemm(product, scratch.data(), pool_of(context));
  return {};
}

}  // namespace

void add_gemm_builtins(BuiltinTable& table) {
  constexpr DType kType = DType::f32;
  std::vector<isa::Parameter> parameters = {input("a", kType), input("b", kType),
                                            output("c", kType)};
  parameters.back().access = isa::Access::read_write;
  for (const char* name : {"m", "n", "k", "a_row", "a_column", "b_row", "b_column", "c_row"})
    parameters.push_back(scalar(name, DType::u64));
  parameters.push_back(scalar("alpha", kType));
  parameters.push_back(scalar("beta", kType));
  table.add(builtin_name("gemm", kType), std::move(parameters), "c = alpha a b + beta c", run,
            check);
}

}  // namespace hologram::backends
