#include "holotensor/classical/low_rank.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "holotensor/classical/lapack.h"
#include "holotensor/classical/seeded_random.h"

namespace hologram::holotensor {
namespace {

using Matrix = std::vector<float>;

// OpenBLAS has threads of its own that wait by spinning, and a number of them that is the
// process's. We use one, and deal products over our own pool: nothing is oversubscribed, and the
// bits do not depend on the number of threads. Callers take turns.
class OneBlasThread {
 public:
  explicit OneBlasThread(const Lapack& lapack)
      : lock_(mutex()), lapack_(lapack), before_(lapack.get_num_threads()) {
    lapack_.set_num_threads(1);
  }
  ~OneBlasThread() { lapack_.set_num_threads(before_); }
  OneBlasThread(const OneBlasThread&) = delete;
  OneBlasThread& operator=(const OneBlasThread&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  std::lock_guard<std::mutex> lock_;
  const Lapack& lapack_;
  int before_;
};

// c = op(a) * b, row-major, `inner` terms a sum; slices of rows, always the same ones.
void multiply(const Lapack& lapack, bool transpose_a, size_t rows, size_t columns, size_t inner,
              const float* a, size_t a_stride, const float* b, size_t b_stride, float* c,
              ThreadPool& pool) {
  constexpr size_t kSlice = 256;
  pool.parallel_for((rows + kSlice - 1) / kSlice, 1,
                    [&](size_t begin, size_t end) {
                      for (size_t slice = begin; slice < end; ++slice) {
                        const size_t first = slice * kSlice, count = std::min(kSlice, rows - first);
                        lapack.sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
                                     CblasNoTrans, static_cast<int>(count),
                                     static_cast<int>(columns), static_cast<int>(inner), 1.0f,
                                     a + (transpose_a ? first : first * a_stride),
                                     static_cast<int>(a_stride), b, static_cast<int>(b_stride),
                                     0.0f, c + first * columns, static_cast<int>(columns));
                      }
                    },
                    Schedule::dynamic);
}

// Replaces the columns of a rows x columns matrix (rows >= columns) by an orthonormal basis.
Status orthonormalise(const Lapack& lapack, Matrix& matrix, size_t rows, size_t columns) {
  const auto m = static_cast<lapack_int>(rows), n = static_cast<lapack_int>(columns);
  std::vector<float> tau(columns);
  lapack_int info = lapack.sgeqrf(LAPACK_ROW_MAJOR, m, n, matrix.data(), n, tau.data());
  if (info == 0) info = lapack.sorgqr(LAPACK_ROW_MAJOR, m, n, n, matrix.data(), n, tau.data());
  if (info != 0) {
    return fail(ErrorCode::internal, "LAPACK's QR of {} x {} gave {}", rows, columns, info);
  }
  return {};
}

struct Svd {
  std::vector<float> values;
  Matrix left;              // rows x side
  Matrix right_transposed;  // side x columns
};

// The thin decomposition; `matrix` is overwritten.
Result<Svd> full_svd(const Lapack& lapack, Matrix& matrix, size_t rows, size_t columns) {
  const size_t side = std::min(rows, columns);
  Svd svd{std::vector<float>(side), Matrix(rows * side), Matrix(side * columns)};
  const lapack_int info = lapack.sgesdd(
      LAPACK_ROW_MAJOR, 'S', static_cast<lapack_int>(rows), static_cast<lapack_int>(columns),
      matrix.data(), static_cast<lapack_int>(columns), svd.values.data(), svd.left.data(),
      static_cast<lapack_int>(side), svd.right_transposed.data(), static_cast<lapack_int>(columns));
  if (info != 0) {
    return fail(ErrorCode::internal, "LAPACK's SVD of {} x {} gave {}", rows, columns, info);
  }
  return svd;
}

// component rows from the columns of a rows x side matrix
Matrix leading_columns(const Matrix& matrix, size_t rows, size_t side, size_t rank) {
  Matrix out(rank * rows);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t k = 0; k < rank; ++k) out[k * rows + i] = matrix[i * side + k];
  }
  return out;
}

// An orthonormal basis (rows x width) of nearly the range of the matrix's leading part.
Result<Matrix> range_basis(const Lapack& lapack, std::span<const float> matrix, size_t rows,
                           size_t columns, size_t width, const LowRankOptions& options,
                           ThreadPool& pool) {
  SeededRandom random(options.seed);
  Matrix probe(columns * width);
  for (float& value : probe) value = static_cast<float>(random.normal());
  Matrix basis(rows * width);
  multiply(lapack, false, rows, width, columns, matrix.data(), columns, probe.data(), width,
           basis.data(), pool);
  HOLOGRAM_CHECK(orthonormalise(lapack, basis, rows, width));
  for (unsigned i = 0; i < options.power_iterations; ++i) {
    multiply(lapack, true, columns, width, rows, matrix.data(), columns, basis.data(), width,
             probe.data(), pool);
    HOLOGRAM_CHECK(orthonormalise(lapack, probe, columns, width));
    multiply(lapack, false, rows, width, columns, matrix.data(), columns, probe.data(), width,
             basis.data(), pool);
    HOLOGRAM_CHECK(orthonormalise(lapack, basis, rows, width));
  }
  return basis;
}

}  // namespace

Result<LowRankFactors> low_rank_factors(std::span<const float> matrix, size_t rows, size_t columns,
                                        const LowRankOptions& options, ThreadPool& pool) {
  constexpr size_t kMaxSide = std::numeric_limits<lapack_int>::max();
  if (rows > kMaxSide || columns > kMaxSide || rows * columns != matrix.size()) {
    return fail(ErrorCode::invalid_argument, "a matrix of {} x {} was given {} values", rows,
                columns, matrix.size());
  }
  for (const float value : matrix) {
    if (!std::isfinite(value)) {
      return fail(ErrorCode::invalid_argument, "the matrix has a value that is not finite");
    }
  }
  const size_t side = std::min(rows, columns);
  LowRankFactors factors{rows, columns, std::min(options.rank, side), {}, {}, {}};
  if (factors.rank == 0) return factors;

  HOLOGRAM_TRY(const Lapack* loaded, load_lapack());
  const Lapack& lapack = *loaded;
  const OneBlasThread one_thread(lapack);
  const size_t width = std::min(side, factors.rank + options.oversampling);
  Svd svd;
  if (side <= kExactSvdSide || width == side) {
    Matrix copy(matrix.begin(), matrix.end());
    HOLOGRAM_TRY(svd, full_svd(lapack, copy, rows, columns));
    factors.left = leading_columns(svd.left, rows, side, factors.rank);
  } else {
    HOLOGRAM_TRY(const Matrix basis,
                 range_basis(lapack, matrix, rows, columns, width, options, pool));
    Matrix small(width * columns);
    multiply(lapack, true, width, columns, rows, basis.data(), width, matrix.data(), columns,
             small.data(), pool);
    HOLOGRAM_TRY(svd, full_svd(lapack, small, width, columns));
    Matrix left(rows * width);
    multiply(lapack, false, rows, width, width, basis.data(), width, svd.left.data(), width,
             left.data(), pool);
    factors.left = leading_columns(left, rows, width, factors.rank);
  }
  factors.values.assign(svd.values.begin(), svd.values.begin() + factors.rank);
  svd.right_transposed.resize(factors.rank * columns);
  factors.right = std::move(svd.right_transposed);
  return factors;
}

}  // namespace hologram::holotensor
