// Quality: how far a reconstruction is from the tensor it stands for, as measured by the encoder.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

namespace hologram::holotensor {

// Measured over the whole tensor with f64 sums against the source converted to f32; weights that
// are NaN or infinite count only through `exact`.
struct Quality {
  double nmse = 1.0;       // sum (w - v)^2 / sum w^2; 0 for 0/0
  double max_error = 0.0;  // max |w - v|
  bool exact = false;      // every bit of the source comes back

  // 10 log10(1 / nmse); infinite when nmse is 0.
  double snr_db() const {
    return nmse > 0 ? -10.0 * std::log10(nmse) : std::numeric_limits<double>::infinity();
  }
  bool operator==(const Quality&) const = default;
};

// Errors are stored as f32, rounded up: never smaller than what was measured.
inline double stored_error(double error) {
  const auto rounded = static_cast<float>(error);
  return rounded < error ? std::nextafter(rounded, HUGE_VALF) : rounded;
}

// What a caller asks for. Exactness is the strictest target.
struct QualityTarget {
  double max_nmse = 0.0;
  bool exact = true;

  static QualityTarget lossless() { return {}; }
  static QualityTarget nmse(double limit) { return {limit, false}; }
  static QualityTarget snr_db(double decibels) { return {std::pow(10.0, -decibels / 10.0), false}; }

  bool met_by(const Quality& quality) const {
    return quality.exact || (!exact && quality.nmse <= max_nmse);
  }
};

// curve[k] is what k usable fragments give; curve[0] is the answer of all zeros. Its size is the
// fragment count + 1. For schemes whose result depends on which k fragments came, it is the worst
// of the measured subsets.
using QualityCurve = std::vector<Quality>;

// The smallest number of fragments that meets the target, or curve.size() when none does.
inline size_t fragments_for(const QualityCurve& curve, const QualityTarget& target) {
  for (size_t k = 0; k < curve.size(); ++k)
    if (target.met_by(curve[k])) return k;
  return curve.size();
}

}  // namespace hologram::holotensor
