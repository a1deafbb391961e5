// encode_model and decode_model: whole models into `.ht` files and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "holotensor/encoder.h"
#include "holotensor/model/model_input.h"
#include "holotensor/policy/quality_controller.h"
#include "support/result.h"

namespace hologram::holotensor {

struct ModelProgress {
  std::string_view tensor;  // the one being worked on; empty at the end
  size_t index = 0, count = 0;
  uint64_t bytes_done = 0, bytes_total = 0;  // of the tensors as they are in the model
};
// An error stops the work and is passed on.
using OnModelProgress = std::function<Status(const ModelProgress&)>;

// Bits or an error for the tensors whose names match; the first that matches holds.
struct EncodeRule {
  std::string pattern;
  std::optional<double> target_bits;
  std::optional<QualityTarget> target;
};

struct EncodeModelOptions {
  EncoderOptions encoder;
  bool automatic = false;  // choose_scheme() for every tensor; encoder.scheme is not used
  std::vector<EncodeRule> rules;
  // Smaller tensors (biases, norms), booleans and integers wider than 8 bits are always stored
  // exactly, by refine: they weigh nothing and matter much.
  uint64_t exact_below = 4096;  // elements
};

struct EncodedReport {
  std::string name;
  SchemeId scheme = SchemeId::refine;
  uint64_t source_bytes = 0, stored_bytes = 0;
  Quality quality;  // with all fragments
};
struct EncodeModelResult {
  uint64_t source_bytes = 0;
  uint64_t file_bytes = 0;  // every byte of the file
  std::vector<EncodedReport> tensors;
};

// Writes `output` whole or not at all. Memory holds the encoded blocks of one tensor.
Result<EncodeModelResult> encode_model(const ModelInput& input, const std::filesystem::path& output,
                                       const EncodeModelOptions& options = {},
                                       const OnModelProgress& progress = nullptr);
// A `.safetensors` file.
Result<EncodeModelResult> encode_model(const std::filesystem::path& input,
                                       const std::filesystem::path& output,
                                       const EncodeModelOptions& options = {},
                                       const OnModelProgress& progress = nullptr);

struct DecodeModelOptions {
  // Empty: as good as the file is.
  std::optional<QualityTarget> target;
  // Targets by name, before `target`.
  std::vector<QualityRule> rules;
  // Exactly so many fragments of every tensor (all of those that have fewer), instead of a target.
  std::optional<size_t> fragments;
  // f32, f16 or bf16 for all floating-point tensors; empty: every tensor's own type.
  std::optional<DType> type;
  std::vector<std::string> tensors;  // patterns; empty: all
};

struct DecodeModelResult {
  uint64_t bytes_read = 0;  // of the `.ht` file
  uint64_t file_bytes = 0;  // its size
  size_t tensors = 0;
  Quality worst;  // of all tensors
  std::string worst_tensor;
};

// Writes a `.safetensors` file whole or not at all. Memory holds the fragments of one tensor.
Result<DecodeModelResult> decode_model(const std::filesystem::path& input,
                                       const std::filesystem::path& output,
                                       const DecodeModelOptions& options = {},
                                       const OnModelProgress& progress = nullptr);

}  // namespace hologram::holotensor
