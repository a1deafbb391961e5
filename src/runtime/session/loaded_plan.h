// LoadedPlan: the plan of an archive with its kernels found, its programs prepared and its
// constants in place. Immutable once loaded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "archive/archive.h"
#include "backends/cpu/kernels/kernel.h"
#include "backends/cpu/kernels/pointwise.h"
#include "runtime/session/session.h"

namespace hologram::runtime {

inline constexpr uint32_t kNoValue = 0xffffffff;

struct LoadedPlan;

struct LoadedSubplan {
  std::string name;
  std::unique_ptr<LoadedPlan> plan;
  std::vector<uint32_t> outer, inner;
};

// The control operators that the session itself runs.
enum class Control : uint8_t { none, if_, loop, scan, sequence_map };

struct LoadedStep {
  std::string name, label;  // the node's name; the kernel or operator
  const kernels::Kernel* kernel = nullptr;
  const kernels::Pointwise* program = nullptr;
  Control control = Control::none;
  std::vector<uint32_t> inputs, outputs, release;
  std::vector<DType> output_types;
  kernels::Attributes attributes;
  std::vector<LoadedSubplan> subplans;
  uint32_t first_frame = 0;  // of its subplans, among the frame's children

  const LoadedSubplan* subplan(std::string_view wanted) const {
    for (const LoadedSubplan& s : subplans)
      if (s.name == wanted) return &s;
    return nullptr;
  }
};

struct LoadedValue {
  archive::Storage storage = archive::Storage::pool;
  uint64_t offset = 0, size = 0;
  DType dtype = DType::f32;
};

struct LoadedPlan {
  std::vector<LoadedValue> values;
  std::vector<kernels::Value> initial;  // constants in their places, everything else empty
  std::vector<uint32_t> inputs, outputs;
  std::vector<PortInfo> input_ports, output_ports;
  std::vector<LoadedStep> steps;
  uint64_t arena = 0;
  uint32_t child_frames = 0;
  // Constants that lie in the archive's weights: a frame gets their memory with each version.
  struct Weight {
    uint32_t value, tensor;  // in `values`; in the weights' directory
  };
  std::vector<Weight> weights;
};

// What the plans of one archive share.
struct LoadedModel {
  archive::Archive archive;
  std::vector<kernels::Tensor> constants;
  std::vector<kernels::Pointwise> programs;
  std::unique_ptr<LoadedPlan> plan;

  static Result<std::unique_ptr<LoadedModel>> load(archive::Archive archive);
};

}  // namespace hologram::runtime
