// lowrank: the singular components of a matrix, the largest first.
//
// A component is stored as value * left vector and value * right vector, rounded with one step:
// then each number is as precise as any other is useful, and small components cost nothing. Own
// parameters: varint rank; varint number of essential components; the singular values, f32. The
// essential components are in every fragment, the others are dealt one by one.
#include <algorithm>
#include <cmath>

#include "holotensor/classical/classical.h"
#include "holotensor/classical/classical_decoder.h"
#include "holotensor/classical/classical_scheme.h"
#include "holotensor/classical/low_rank.h"
#include "holotensor/classical/rank_one_sum.h"

namespace hologram::holotensor {
namespace {

constexpr size_t kMaxRank = 512;

class LowrankSynthesis final : public Synthesis {
 public:
  LowrankSynthesis(MatrixShape shape, std::vector<float> values, size_t essential, size_t fragments)
      : shape_(shape), values_(std::move(values)), components_(fragments + 1) {
    for (size_t k = 0; k < values_.size(); ++k) {
      components_[k < essential ? fragments : (k - essential) % fragments].push_back(k);
    }
  }

  uint64_t part_size(size_t part) const override {
    return components_[part].size() * (shape_.rows + shape_.columns);
  }

  Status synthesise(std::span<const Part> parts, double step, std::span<float> out,
                    ThreadPool& pool) const override {
    struct Place {
      size_t component, part, index;
    };
    std::vector<Place> present;
    for (size_t part = 0; part < parts.size(); ++part) {
      for (size_t i = 0; i < components_[part].size() && !parts[part].empty(); ++i) {
        present.push_back({components_[part][i], part, i});
      }
    }
    std::ranges::sort(present, {}, &Place::component);
    // (value * left) (value * right)^T / value: the division goes to the left vector.
    const size_t length = shape_.rows + shape_.columns;
    std::vector<float> left(present.size() * shape_.rows), right(present.size() * shape_.columns);
    pool.parallel_for(present.size(), 1, [&](size_t begin, size_t end) {
      for (size_t k = begin; k < end; ++k) {
        const Part numbers = parts[present[k].part].subspan(present[k].index * length, length);
        const double value = values_[present[k].component];
        const double left_scale = value > 0 ? step / value : 0;
        for (size_t i = 0; i < shape_.rows; ++i) {
          left[i * present.size() + k] = static_cast<float>(numbers[i] * left_scale);
        }
        for (size_t j = 0; j < shape_.columns; ++j) {
          right[k * shape_.columns + j] = static_cast<float>(numbers[shape_.rows + j] * step);
        }
      }
    });
    rank_one_sum(left, right, shape_.rows, shape_.columns, out, pool);
    return {};
  }

  const std::vector<size_t>& components(size_t part) const { return components_[part]; }

 private:
  MatrixShape shape_;
  std::vector<float> values_;
  std::vector<std::vector<size_t>> components_;
};

// Of the numbers that a component is stored as.
double deviation_of(const LowRankFactors& factors, size_t k) {
  return factors.values[k] * std::sqrt(2 / static_cast<double>(factors.rows + factors.columns));
}

// How many components pay for themselves when a residual will store all that they leave: a
// component costs its numbers, and saves every weight half the logarithm of the energy it removes.
size_t paying_rank(const LowRankFactors& factors, double energy, double step) {
  const double weights = static_cast<double>(factors.rows) * static_cast<double>(factors.columns);
  const double numbers = static_cast<double>(factors.rows + factors.columns);
  const double least = step * step * weights / 12;  // nothing is saved below the step
  double left = energy, cost = 0, best_cost = 0.5 * weights * std::log2(std::max(left, least));
  size_t best = 0;
  for (size_t k = 0; k < factors.rank; ++k) {
    const double value = factors.values[k];
    left = std::max(left - value * value, 0.0);
    cost +=
        numbers * std::max(0.1, std::log2(std::max(deviation_of(factors, k) / step, 1e-30)) + 2.05);
    const double total = cost + 0.5 * weights * std::log2(std::max(left, least));
    if (total < best_cost) {
      best_cost = total;
      best = k + 1;
    }
  }
  return best;
}

// The step at which the components' numbers take about this many bits.
double step_for_bits(const LowRankFactors& factors, double bits) {
  double low = 1e-12, high = 4;  // values are scaled to 1
  for (int i = 0; i < 60; ++i) {
    const double step = std::sqrt(low * high);
    double sum = 0;
    for (size_t k = 0; k < factors.rank; ++k) {
      sum += std::max(0.0, std::log2(std::max(deviation_of(factors, k) / step, 1e-30)) + 2.05);
    }
    (sum * static_cast<double>(factors.rows + factors.columns) > bits ? low : high) = step;
  }
  return high;
}

// Components that a step does not round to nothing.
size_t visible_rank(const LowRankFactors& factors, double step) {
  size_t rank = 0;
  while (rank < factors.rank && deviation_of(factors, rank) >= step / 8) ++rank;
  return rank;
}

class LowrankAnalysis final : public Analysis {
 public:
  LowrankAnalysis(LowRankFactors factors, double energy, double bits, size_t fragments)
      : factors_(std::move(factors)) {
    // Repeated in every fragment: components with 16 times their even share of the energy, as long
    // as the repeating (at about 8 bits a number) takes less than an eighth of all bits.
    const double side = static_cast<double>(std::min(factors_.rows, factors_.columns));
    const double numbers = static_cast<double>(fragments * (factors_.rows + factors_.columns));
    const auto affordable = static_cast<size_t>(bits / 8 / 8 / numbers);
    while (essential_ < std::min(affordable, factors_.rank) &&
           double{factors_.values[essential_]} * factors_.values[essential_] >=
               16 * energy / side) {
      ++essential_;
    }
    synthesis_ = std::make_unique<LowrankSynthesis>(MatrixShape{factors_.rows, factors_.columns},
                                                    factors_.values, essential_, fragments);
  }

  const Synthesis& synthesis() const override { return *synthesis_; }

  void write_parameters(ByteWriter& out) const override {
    out.varint(factors_.rank);
    out.varint(essential_);
    out.bytes(std::as_bytes(std::span(factors_.values)));
  }

  void numbers(size_t part, std::span<float> out) const override {
    auto to = out.begin();
    for (const size_t k : synthesis_->components(part)) {
      const float value = factors_.values[k];
      const auto scale = [value](float number) { return number * value; };
      const std::span left(&factors_.left[k * factors_.rows], factors_.rows);
      const std::span right(&factors_.right[k * factors_.columns], factors_.columns);
      to = std::ranges::transform(left, to, scale).out;
      to = std::ranges::transform(right, to, scale).out;
    }
  }

 private:
  LowRankFactors factors_;
  size_t essential_ = 0;
  std::unique_ptr<LowrankSynthesis> synthesis_;
};

class LowrankTransform final : public Transform {
 public:
  SchemeId id() const override { return SchemeId::lowrank; }

  Result<std::unique_ptr<Analysis>> analyse(const Matrix& matrix, size_t fragments,
                                            const EncoderOptions& options, double step, bool exact,
                                            ThreadPool& pool) const override {
    LowRankOptions low_rank{.rank = kMaxRank, .seed = options.seed};
    if (options.target_bits) {
      // More components than bits: at half a bit a number, what the size can hold.
      const double numbers = 2 * *options.target_bits * static_cast<double>(matrix.shape.size());
      const double length = static_cast<double>(matrix.shape.rows + matrix.shape.columns);
      low_rank.rank =
          std::clamp<size_t>(static_cast<size_t>(numbers / std::max(1.0, length)), 1, kMaxRank);
    }
    HOLOGRAM_TRY(auto factors, low_rank_factors(matrix.scaled, matrix.shape.rows,
                                                matrix.shape.columns, low_rank, pool));
    const double energy = matrix.mean_square * static_cast<double>(matrix.shape.size());
    const double bits = options.target_bits.value_or(8) * static_cast<double>(matrix.shape.size());
    if (options.target_bits) step = step_for_bits(factors, bits);
    const size_t rank = exact ? paying_rank(factors, energy, step) : visible_rank(factors, step);
    factors.rank = rank;
    factors.values.resize(rank);
    factors.left.resize(rank * factors.rows);
    factors.right.resize(rank * factors.columns);
    return std::make_unique<LowrankAnalysis>(std::move(factors), energy, bits, fragments);
  }

  Result<std::unique_ptr<Synthesis>> restore(MatrixShape shape, size_t fragments, uint64_t,
                                             ByteReader& in) const override {
    const uint64_t rank = in.varint(), essential = in.varint();
    if (!in.ok() || rank > std::min({shape.rows, shape.columns, kMaxRank}) || essential > rank) {
      return fail(ErrorCode::corrupt, "a low-rank tensor of {} x {} cannot have rank {}",
                  shape.rows, shape.columns, rank);
    }
    std::vector<float> values(rank);
    for (float& value : values) value = in.get<float>();
    if (!in.ok() || !std::ranges::all_of(values, [](float v) { return std::isfinite(v); })) {
      return fail(ErrorCode::corrupt, "the singular values of a low-rank tensor make no sense");
    }
    return std::make_unique<LowrankSynthesis>(shape, std::move(values), essential, fragments);
  }
};

const Transform& transform() {
  static const LowrankTransform it;
  return it;
}

}  // namespace

const Scheme& lowrank_scheme() {
  static const ClassicalScheme scheme(transform());
  return scheme;
}

Result<std::unique_ptr<SchemeDecoder>> lowrank_decoder(const TensorInfo& info) {
  return make_classical_decoder(transform(), info);
}

}  // namespace hologram::holotensor
