// Transform: what is particular to a classical scheme; ClassicalScheme does the rest.
//
// A transform sees a matrix as `fragments` parts of numbers, and one essential part that every
// fragment repeats. It makes them (Analysis, in the encoder) and makes a matrix of those that are
// there (Synthesis, in both).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "holotensor/byte_io.h"
#include "holotensor/classical/matrix.h"
#include "holotensor/scheme.h"
#include "support/result.h"

namespace hologram::holotensor {

// The rounded numbers of a part, which stand for number * step; empty: the part is not there.
using Part = std::span<const int32_t>;

class Synthesis {
 public:
  virtual ~Synthesis() = default;
  // How many numbers a part has; part `fragments` is the essential one.
  virtual uint64_t part_size(size_t part) const = 0;
  // The matrix, rows x columns, from the parts that are there: parts.size() is fragments + 1. The
  // result depends on the parts only, to the bit.
  virtual Status synthesise(std::span<const Part> parts, double step, std::span<float> out,
                            ThreadPool& pool) const = 0;
};

class Analysis {
 public:
  virtual ~Analysis() = default;
  virtual const Synthesis& synthesis() const = 0;
  // What the decoder needs to make the same Synthesis.
  virtual void write_parameters(ByteWriter& out) const = 0;
  // The part's numbers, not yet rounded; `out` has room for part_size(part) of them.
  virtual void numbers(size_t part, std::span<float> out) const = 0;
};

class Transform {
 public:
  virtual ~Transform() = default;
  virtual SchemeId id() const = 0;
  virtual Result<std::unique_ptr<Analysis>> analyse(const Matrix& matrix, size_t fragments,
                                                    const EncoderOptions& options, double step,
                                                    bool exact, ThreadPool& pool) const = 0;
  // From what write_parameters() wrote; nothing in it is believed.
  virtual Result<std::unique_ptr<Synthesis>> restore(MatrixShape shape, size_t fragments,
                                                     uint64_t seed,
                                                     ByteReader& parameters) const = 0;
};

}  // namespace hologram::holotensor
