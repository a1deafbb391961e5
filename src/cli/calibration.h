// Calibration: inputs of a model from a folder, and what ranges they give its activations.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "backends/cpu/kernels/tensor.h"
#include "onnx/quantise.h"
#include "runtime/session/session.h"

namespace hologram::cli {

using Sample = std::vector<kernels::Value>;  // one value an input of the model

// Every sample of a folder, in the order of names:
//   NAME.npz          a sample, arrays named as the inputs
//   NAME/             a sample: INPUT.npy, or input_0.pb, input_1.pb, ... (as ONNX's tests have
//   them) NAME.npy, NAME.pb a sample, where the model has one input; else all together are one
Result<std::vector<Sample>> read_samples(const std::filesystem::path& folder,
                                         std::span<const runtime::PortInfo> ports);

// How a range follows from the values that were seen.
enum class RangeMethod : uint8_t {
  least_squares,  // the one whose rounding and clipping have the least squared error together
  extremes,       // from the smallest to the largest
};
Result<RangeMethod> parse_range_method(std::string_view name);

// Ranges of the activations `names` of a model in f32, over all samples; and the model's own
// outputs for each sample, to compare with. Samples run twice: for extremes, then for histograms.
struct Measured {
  std::map<std::string, onnx::ActivationRange> ranges;
  std::vector<std::string> output_names;
  std::vector<std::vector<kernels::Value>> outputs;  // [sample][output]
};
Result<Measured> measure_ranges(const std::filesystem::path& model,
                                const std::vector<std::string>& names,
                                const std::filesystem::path& folder, RangeMethod method,
                                std::vector<Sample>& samples);

// How far the values of one output are off, over all samples; the exact ones are f32 or f64.
struct Accuracy {
  double largest = 0, rms = 0, range = 0;  // differences, and the range of the exact values
  double decibels = 0;                     // of the exact values' power over the differences'
};
Accuracy accuracy_of(const std::vector<std::vector<kernels::Value>>& exact,
                     const std::vector<std::vector<kernels::Value>>& given, size_t output);

}  // namespace hologram::cli
