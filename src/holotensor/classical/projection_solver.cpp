#include "holotensor/classical/projection_solver.h"

#include <algorithm>
#include <numeric>

#include "holotensor/classical/hadamard.h"
#include "holotensor/classical/seeded_random.h"

namespace hologram::holotensor {
namespace {

// In lanes, so that the compiler may vectorise it without changing the order of the sum.
double dot(std::span<const float> a, std::span<const float> b) {
  constexpr size_t kLanes = 8;
  double sums[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= a.size(); i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) sums[j] += double{a[i + j]} * b[i + j];
  }
  for (; i < a.size(); ++i) sums[0] += double{a[i]} * b[i];
  return std::accumulate(sums, sums + kLanes, 0.0);
}

}  // namespace

ProjectionBases::ProjectionBases(size_t length, size_t rows_a_fragment, size_t fragments,
                                 uint64_t seed)
    : length_(length), rows_(rows_a_fragment), fragments_(fragments) {
  const size_t bases = (rows_ * fragments + length - 1) / length;
  for (size_t b = 0; b < bases; ++b) {
    SeededRandom random(seed, b);
    auto& signs = signs_.emplace_back(length);
    for (float& sign : signs) sign = random.next() >> 63 ? 1.0f : -1.0f;
    auto& order = order_.emplace_back(length);
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = length; i > 1; --i) {
      std::swap(order[i - 1], order[random.below(static_cast<uint32_t>(i))]);
    }
  }
}

void ProjectionBases::measure(std::span<const float> weights, std::span<float> out) const {
  std::vector<float> block(length_);
  const size_t rows = rows_ * fragments_;
  for (size_t basis = 0; basis < bases(); ++basis) {
    for (size_t i = 0; i < length_; ++i) block[i] = weights[i] * signs_[basis][i];
    hadamard(block);
    const size_t begin = basis * length_, end = std::min(rows, begin + length_);
    for (size_t at = begin; at < end; ++at) out[at] = block[order_[basis][at - begin]];
  }
}

ProjectionSolver::ProjectionSolver(const ProjectionBases& bases, const std::vector<bool>& present)
    : bases_(bases),
      present_(present),
      masks_(bases.bases(), std::vector<float>(bases.length())),
      used_(bases.bases()),
      scratch_(bases.length()),
      x_(bases.length()),
      residual_(bases.length()),
      direction_(bases.length()),
      image_(bases.length()) {
  for (size_t f = 0; f < bases.fragments(); ++f) {
    if (!present[f]) continue;
    for (size_t i = 0; i < bases.rows_a_fragment(); ++i) {
      masks_[bases.basis_of(f, i)][bases.row_of(f, i)] = 1;
      used_[bases.basis_of(f, i)] = true;
      ++rows_present_;
    }
  }
}

void ProjectionSolver::apply(std::span<const float> x, std::span<float> out) {
  std::ranges::fill(out, 0.0f);
  for (size_t basis = 0; basis < bases_.bases(); ++basis) {
    if (!used_[basis]) continue;
    const auto signs = bases_.signs(basis);
    for (size_t i = 0; i < scratch_.size(); ++i) scratch_[i] = x[i] * signs[i];
    hadamard(scratch_);
    for (size_t i = 0; i < scratch_.size(); ++i) scratch_[i] *= masks_[basis][i];
    hadamard(scratch_);
    for (size_t i = 0; i < scratch_.size(); ++i) out[i] += scratch_[i] * signs[i];
  }
}

void ProjectionSolver::solve(std::span<const float> measured, double step, std::span<float> out) {
  const size_t weights = bases_.length(), rows = bases_.rows_a_fragment();
  // A^T y, and the energy of the measurements: each has the mean energy of a weight, so it tells
  // the signal that the ridge needs.
  std::ranges::fill(residual_, 0.0f);
  double energy = 0;
  for (size_t basis = 0; basis < bases_.bases(); ++basis) {
    if (!used_[basis]) continue;
    std::ranges::fill(scratch_, 0.0f);
    for (size_t f = 0; f < bases_.fragments(); ++f) {
      if (!present_[f]) continue;
      for (size_t i = 0; i < rows; ++i) {
        if (bases_.basis_of(f, i) != basis) continue;
        const float value = measured[f * rows + i];
        scratch_[bases_.row_of(f, i)] = value;
        energy += double{value} * value;
      }
    }
    hadamard(scratch_);
    const auto signs = bases_.signs(basis);
    for (size_t i = 0; i < weights; ++i) residual_[i] += scratch_[i] * signs[i];
  }
  std::ranges::fill(x_, 0.0f);
  if (energy > 0) {
    const double signal = energy / static_cast<double>(rows_present_);
    const auto ridge = static_cast<float>(step * step / 12 / signal);
    std::ranges::copy(residual_, direction_.begin());
    double norm = dot(residual_, residual_);
    const double enough = 1e-12 * norm;
    constexpr int kMaxIterations = 200;
    for (int iteration = 0; iteration < kMaxIterations && norm > enough; ++iteration) {
      apply(direction_, image_);
      for (size_t i = 0; i < weights; ++i) image_[i] += ridge * direction_[i];
      const double curvature = dot(direction_, image_);
      if (!(curvature > 0)) break;
      const auto along = static_cast<float>(norm / curvature);
      for (size_t i = 0; i < weights; ++i) x_[i] += along * direction_[i];
      for (size_t i = 0; i < weights; ++i) residual_[i] -= along * image_[i];
      const double next = dot(residual_, residual_);
      const auto turn = static_cast<float>(next / norm);
      norm = next;
      for (size_t i = 0; i < weights; ++i) direction_[i] = residual_[i] + turn * direction_[i];
    }
  }
  std::copy_n(x_.begin(), weights, out.begin());
}

}  // namespace hologram::holotensor
