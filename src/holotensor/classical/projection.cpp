// projection: random projections of blocks of weights, solved by least squares.
//
// A block of weights x is measured as rows of H S_b x: random signs, then a Hadamard transform. The
// rows of basis b = 0, 1, ... in a random order make one long tape, and fragment f takes the
// stretch [f * m, f * m + m) of it. Without redundancy all rows come from one orthonormal basis;
// with it (`any`: each min_fragments fragments hold as many rows as a block has weights) the tape
// runs on into further bases, and what came is solved together, see projection_solver.h.
//
// A tensor is as many blocks of kMaxBlock weights as it holds, and then one block for each binary
// digit of what is left: every block is a power of two, so none is padded. Own parameters: f64
// redundancy. The signs and the order of rows come from the tensor's seed.
#include <algorithm>
#include <cmath>

#include "holotensor/classical/classical.h"
#include "holotensor/classical/classical_decoder.h"
#include "holotensor/classical/classical_scheme.h"
#include "holotensor/classical/projection_solver.h"

namespace hologram::holotensor {
namespace {

constexpr size_t kMaxBlock = 4096;

class ProjectionSynthesis final : public Synthesis {
 public:
  ProjectionSynthesis(size_t weights, double redundancy, size_t fragments, uint64_t seed)
      : fragments_(fragments) {
    size_t begin = 0;
    for (size_t length = kMaxBlock; length > 0; length /= 2) {
      const size_t blocks = (weights - begin) / length;  // 0 or 1 after the longest
      if (blocks == 0) continue;
      const double share =
          redundancy * static_cast<double>(length) / static_cast<double>(fragments);
      const size_t rows = std::clamp<size_t>(static_cast<size_t>(std::ceil(share)), 1, length);
      runs_.push_back({begin, blocks, rows_, ProjectionBases(length, rows, fragments, seed)});
      begin += blocks * length;
      rows_ += blocks * rows;
    }
  }

  uint64_t part_size(size_t part) const override { return part == fragments_ ? 0 : rows_; }

  Status synthesise(std::span<const Part> parts, double step, std::span<float> out,
                    ThreadPool& pool) const override {
    std::vector<bool> present(fragments_);
    for (size_t f = 0; f < fragments_; ++f) present[f] = !parts[f].empty();
    for_each_range(pool, [&](const Run& run, size_t begin, size_t end) {
      const size_t rows = run.bases.rows_a_fragment(), length = run.bases.length();
      ProjectionSolver solver(run.bases, present);
      std::vector<float> measured(rows * fragments_);
      for (size_t block = begin; block < end; ++block) {
        for (size_t f = 0; f < fragments_; ++f) {
          if (!present[f]) continue;
          const Part numbers = parts[f].subspan(run.first_row + block * rows, rows);
          for (size_t i = 0; i < rows; ++i) {
            measured[f * rows + i] = static_cast<float>(numbers[i] * step);
          }
        }
        solver.solve(measured, step, out.subspan(run.begin + block * length, length));
      }
    });
    return {};
  }

  // Every fragment's measurements of `values`, by fragment.
  std::vector<std::vector<float>> measure_all(std::span<const float> values,
                                              ThreadPool& pool) const {
    std::vector<std::vector<float>> numbers(fragments_, std::vector<float>(rows_));
    for_each_range(pool, [&](const Run& run, size_t begin, size_t end) {
      const size_t rows = run.bases.rows_a_fragment(), length = run.bases.length();
      std::vector<float> measured(rows * fragments_);
      for (size_t block = begin; block < end; ++block) {
        run.bases.measure(values.subspan(run.begin + block * length, length), measured);
        for (size_t f = 0; f < fragments_; ++f) {
          std::copy_n(&measured[f * rows], rows, &numbers[f][run.first_row + block * rows]);
        }
      }
    });
    return numbers;
  }

 private:
  // Blocks of one length.
  struct Run {
    size_t begin;  // the first weight
    size_t blocks;
    size_t first_row;  // in every part
    ProjectionBases bases;
  };

  void for_each_range(ThreadPool& pool,
                      FunctionRef<void(const Run& run, size_t begin, size_t end)> body) const {
    for (const Run& run : runs_) {
      pool.parallel_for(
          run.blocks, 8, [&](size_t begin, size_t end) { body(run, begin, end); },
          Schedule::dynamic);
    }
  }

  size_t fragments_;
  size_t rows_ = 0;  // of every part
  std::vector<Run> runs_;
};

class ProjectionAnalysis final : public Analysis {
 public:
  ProjectionAnalysis(const Matrix& matrix, size_t fragments, double redundancy, uint64_t seed,
                     ThreadPool& pool)
      : redundancy_(redundancy),
        synthesis_(matrix.scaled.size(), redundancy, fragments, seed),
        numbers_(synthesis_.measure_all(matrix.scaled, pool)) {}

  const Synthesis& synthesis() const override { return synthesis_; }
  void write_parameters(ByteWriter& out) const override { out.put(redundancy_); }
  void numbers(size_t part, std::span<float> out) const override {
    if (part < numbers_.size()) std::ranges::copy(numbers_[part], out.begin());
  }

 private:
  double redundancy_;
  ProjectionSynthesis synthesis_;
  std::vector<std::vector<float>> numbers_;
};

class ProjectionTransform final : public Transform {
 public:
  SchemeId id() const override { return SchemeId::projection; }

  Result<std::unique_ptr<Analysis>> analyse(const Matrix& matrix, size_t fragments,
                                            const EncoderOptions& options, double, bool,
                                            ThreadPool& pool) const override {
    double redundancy = 1;
    if (options.distribution == Distribution::any) {
      const auto enough = std::clamp<size_t>(options.min_fragments, 1, fragments);
      redundancy = static_cast<double>(fragments) / static_cast<double>(enough);
    }
    return std::make_unique<ProjectionAnalysis>(matrix, fragments, redundancy, options.seed, pool);
  }

  Result<std::unique_ptr<Synthesis>> restore(MatrixShape shape, size_t fragments, uint64_t seed,
                                             ByteReader& in) const override {
    const auto redundancy = in.get<double>();
    if (!in.ok() || !(redundancy >= 1) || redundancy > static_cast<double>(fragments)) {
      return fail(ErrorCode::corrupt, "a projected tensor of {} fragments with redundancy {}",
                  fragments, redundancy);
    }
    return std::make_unique<ProjectionSynthesis>(shape.size(), redundancy, fragments, seed);
  }
};

const Transform& transform() {
  static const ProjectionTransform it;
  return it;
}

}  // namespace

const Scheme& projection_scheme() {
  static const ClassicalScheme scheme(transform());
  return scheme;
}

Result<std::unique_ptr<SchemeDecoder>> projection_decoder(const TensorInfo& info) {
  return make_classical_decoder(transform(), info);
}

}  // namespace hologram::holotensor
