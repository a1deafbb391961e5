// quality_report: what a `.ht` file is worth at every size, as a table and as a plot.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "holotensor/tensor.h"
#include "support/result.h"

namespace hologram::holotensor {

// The whole model from k fragments of every tensor (all of those that have fewer), or from the
// fragments that lie in the first bytes of the file.
struct ModelPoint {
  size_t fragments = 0;      // the most of any tensor
  uint64_t bytes = 0;        // header and directory included
  double bits_a_weight = 0;  // of these bytes
  double nmse = 1;           // mean over the weights; each tensor's NMSE as measured
  double worst_nmse = 1;
  std::string worst_tensor;
  double exact_weights = 0;  // share of the weights that are exact
};

struct QualityReport {
  uint64_t file_bytes = 0, source_bytes = 0, weights = 0, overhead = 0;
  std::vector<ModelPoint> points;    // k = 0, 1, ...
  std::vector<ModelPoint> prefixes;  // 5%, 10%, ... 100% of the file, where all tensors are there
  std::vector<TensorInfo> tensors;
};

Result<QualityReport> quality_report(const std::filesystem::path& path);
QualityReport quality_report(std::vector<TensorInfo> tensors, uint64_t file_bytes,
                             uint64_t overhead);

// For a terminal: the model from prefixes of the file, at every number of fragments, then a line a
// tensor.
std::string report_table(const QualityReport& report);

// A rate-distortion plot that needs nothing but itself: the model, every tensor, and the bound
// D = 2^(-2R) of a Gaussian source.
std::string report_svg(const QualityReport& report, std::string_view title);

}  // namespace hologram::holotensor
