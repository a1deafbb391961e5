// LoadedPlan: the plan of an archive with its kernels found, its programs prepared and its
// constants in place. Loading checks everything and is done while opening; what only a run needs is
// put together by prepare(), before the first. Immutable from then on.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "archive/archive.h"
#include "backends/cpu/code_map.h"
#include "backends/cpu/kernels/kernel.h"
#include "backends/cpu/kernels/pointwise.h"
#include "runtime/session/binding.h"
#include "runtime/session/session.h"
#include "runtime/session/signature.h"

namespace hologram::runtime {

inline constexpr uint32_t kNoValue = 0xffffffff;

struct LoadedPlan;

// Names and lists lie in the archive, which the model keeps.
using Ids = std::span<const uint32_t>;

struct LoadedSubplan {
  std::string_view name;
  std::unique_ptr<LoadedPlan> plan;
  Ids outer, inner;
};

// The control operators that the session itself runs.
enum class Control : uint8_t { none, if_, loop, scan, sequence_map };

struct LoadedStep {
  std::string_view name, label;             // the node's name; the kernel or operator
  const kernels::Kernel* kernel = nullptr;  // prepared
  const kernels::Pointwise* program = nullptr;
  Control control = Control::none;
  bool random = false;                                 // prepared: draws from a seed
  archive::Reading reading = archive::Reading::whole;  // prepared: of its constants
  Ids inputs, outputs, release;
  std::span<const DType> output_types;
  const archive::Step* from = nullptr;
  kernels::Attributes attributes;  // prepared
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
  StaticType type;
  int32_t source = -1;  // of a view
  int32_t output = -1;  // the output of the plan whose memory this value is
};

// A dimension of an input or output of the model: a number; computed by an expression (of inputs: a
// symbol); or, without either, anything.
struct PortDim {
  int64_t value = -1;
  int32_t expression = -1;
};
using PortDims = std::vector<PortDim>;

struct LoadedPlan {
  const archive::Plan* from = nullptr;
  std::vector<LoadedValue> values;
  std::vector<kernels::Value> initial;  // prepared: constants in their places, the rest empty
  Ids inputs, outputs;
  std::vector<PortInfo> input_ports, output_ports;  // prepared, or by LoadedModel::load_ports()
  std::vector<LoadedStep> steps;
  std::vector<DType> output_types;  // of all steps
  uint32_t child_frames = 0;
  // Constants that lie in the archive's weights: a frame gets their memory with each version.
  struct Weight {
    uint32_t value, tensor;  // in `values`; in the weights' directory
  };
  std::vector<Weight> weights;

  // Planned memory. Either all of it is fixed, or it is laid out for each binding.
  struct Planned {
    uint32_t value, block;
    int32_t elements;  // expression; -1: `size` bytes
    DType dtype;
    uint64_t size;
  };
  Layout fixed;
  int32_t layout = -1;           // its number among a binding's layouts; -1: `fixed`
  std::vector<Planned> planned;  // where laid out for each binding
  std::vector<Ids> blocks;       // the blocks beside each; see plan.fbs

  void load_ports(const archive::Model& model);
};

// What the plans of one archive share.
struct LoadedModel {
  archive::Archive archive;
  std::vector<kernels::Tensor> constants;  // prepared
  std::vector<kernels::Pointwise> programs;
  std::unique_ptr<LoadedPlan> plan;
  size_t symbols = 0;
  std::span<const archive::Expression> expressions;
  std::vector<const LoadedPlan*> symbolic_plans;  // laid out for each binding
  // By load_ports(); one a port, empty where the rank is not known.
  std::vector<PortDims> input_dims, output_dims;

  static Result<std::unique_ptr<LoadedModel>> load(archive::Archive archive);
  // Every step fits its kernel, program or body; called by load() (check_step.cpp).
  Status check_step(const LoadedPlan& plan, const LoadedStep& step) const;
  // What the model takes and makes, in `plan` and the lists of dimensions: by prepare(), or when
  // first asked for. Safe from any thread.
  void load_ports();
  // Once; later calls give the same answer. Safe from any thread.
  Status prepare(ThreadPool& threads);
  // Native code of the programs, attached to them where it is trusted: by prepare(), or when first
  // asked for. A signature takes as long to check as a small model to open. Safe from any thread.
  const backends::CodeMap& code();

 private:
  std::once_flag ports_once_;
  std::once_flag code_once_;
  backends::CodeMap code_;
  std::once_flag once_;
  Status prepared_;
};

}  // namespace hologram::runtime
