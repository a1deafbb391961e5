// ProjectionBases and ProjectionSolver: structured random measurements of a block, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hologram::holotensor {

// The measurements that a number of fragments make of a block: H S_b x, for bases b = 0, 1, ...
// Const after construction: any thread may use it.
class ProjectionBases {
 public:
  // Blocks of `length` weights, a power of two. Fragments take `rows_a_fragment` (at most `length`)
  // rows each, one after another, from the tape of all bases.
  ProjectionBases(size_t length, size_t rows_a_fragment, size_t fragments, uint64_t seed);

  size_t length() const { return length_; }
  size_t rows_a_fragment() const { return rows_; }
  size_t fragments() const { return fragments_; }
  size_t bases() const { return signs_.size(); }

  // Where the fragment's i-th row is: in which basis, and which row of it.
  size_t basis_of(size_t fragment, size_t i) const { return (fragment * rows_ + i) / length_; }
  size_t row_of(size_t fragment, size_t i) const {
    const size_t at = fragment * rows_ + i;
    return order_[at / length_][at % length_];
  }
  std::span<const float> signs(size_t basis) const { return signs_[basis]; }

  // All fragments' measurements, fragment after fragment.
  void measure(std::span<const float> weights, std::span<float> out) const;

 private:
  size_t length_, rows_, fragments_;
  std::vector<std::vector<float>> signs_;     // of each basis: +1 or -1
  std::vector<std::vector<uint32_t>> order_;  // of each basis: its rows as the tape has them
};

// The best linear estimate of blocks from the fragments that are there:
//   minimise |A x - y|^2 / noise + |x|^2 / signal
// by conjugate gradients on (A^T A + noise / signal) x = A^T y. A^T A is applied basis by basis:
// signs, transform, keep the rows that are there, transform, signs. Single-threaded scratch.
class ProjectionSolver {
 public:
  ProjectionSolver(const ProjectionBases& bases, const std::vector<bool>& present);

  // `measured` as ProjectionBases::measure() gives it (rows of absent fragments are not read),
  // rounded with `step`; `out` gets the block's weights.
  void solve(std::span<const float> measured, double step, std::span<float> out);

 private:
  void apply(std::span<const float> x, std::span<float> out);  // A^T A x

  const ProjectionBases& bases_;
  std::vector<bool> present_;
  std::vector<std::vector<float>> masks_;  // of each basis: 1 where a row is there
  std::vector<bool> used_;                 // bases with any row there
  size_t rows_present_ = 0;
  std::vector<float> scratch_, x_, residual_, direction_, image_;
};

}  // namespace hologram::holotensor
