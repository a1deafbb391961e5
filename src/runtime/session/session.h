// Session: runs the plan of an archive.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "archive/archive.h"
#include "backends/cpu/kernels/tensor.h"
#include "runtime/session/weights.h"
#include "support/shape.h"
#include "support/thread_pool.h"

namespace hologram::runtime {

// An input or output: its name and what is known of it before a run.
struct PortInfo {
  enum class Kind : uint8_t { tensor = 1, sequence = 2, optional = 3 };
  std::string name;
  Kind kind = Kind::tensor;
  DType dtype = DType::f32;    // of the tensors inside, for sequences and optionals
  std::optional<Shape> shape;  // symbols are bound by the inputs of a run
};

// Where the time of a run went: a step of the plan or of a subplan (a branch of If, a body of Loop
// or Scan), which follow the step they belong to.
struct StepTime {
  std::string name, kernel;
  double milliseconds = 0;  // of all its runs, without the steps of its subplans
  uint32_t depth = 0;       // how many subplans it lies in
  uint64_t runs = 0;        // a body runs once an iteration
};

// What the shapes of the inputs decide before a run.
struct BoundShapes {
  std::vector<std::optional<kernels::Dims>> outputs;  // empty: depends on data
  uint64_t activation_bytes = 0;                      // planned memory of one run
};

// An opened archive, ready to run. Immutable: run() may be called from any number of threads; each
// run has its own activations, the constants are shared. Activations are kept for the next run, so
// that a run of shapes seen before allocates nothing.
class Session {
 public:
  static Result<Session> open(const std::filesystem::path& path,
                              const archive::OpenOptions& options = {},
                              const WeightOptions& weights = {});
  static Result<Session> open(archive::Archive archive, const WeightOptions& weights = {});
  // Later runs use these threads in place of the process's; the pool outlives the session.
  void use(ThreadPool& threads);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  std::span<const PortInfo> inputs() const;
  std::span<const PortInfo> outputs() const;

  // Prepares for inputs of these shapes, one an input: works out sizes and places, allocates a
  // run's activations. Runs do it themselves where nobody has; it is cached either way.
  Result<BoundShapes> bind(std::span<const kernels::Dims> shapes) const;
  // How often sizes and places were worked out: once for each of the last 64 shapes.
  uint64_t bindings_made() const;

  // One value an input, in order; one an output. Results own their memory.
  Result<std::vector<kernels::Value>> run(std::span<const kernels::Value> inputs) const;
  // Results are written into the caller's tensors, whose type and shape must be the outputs'. The
  // step that makes a result writes it there, without a copy, where the memory is 64-byte aligned
  // and apart from the inputs. What is in there after an error is not defined.
  Status run_into(std::span<const kernels::Value> inputs,
                  std::span<const kernels::Tensor> outputs) const;
  // The same as run(), with the time of every step, in the order in which they first ran.
  Result<std::vector<kernels::Value>> profile(std::span<const kernels::Value> inputs,
                                              std::vector<StepTime>& times) const;

  // From now on a run fails (resource_exhausted) that takes more steps, those of every turn of a
  // loop counted: for archives that may loop without end. Not while runs are under way.
  void limit_steps(uint64_t steps);

  // Whether trusted native code runs the archive's programs, all or some of them; otherwise the
  // interpreter does.
  bool has_native_code() const;

  // What the weights of a run started now are worth, where they are stored as fragments (`hologram
  // compile --weights`). A run uses one version of all of them, however they improve meanwhile.
  WeightStatus weights() const;
  // Until nothing gets better any more; fails when that is less than the archive should give.
  Status wait_for_weights() const;

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hologram::runtime
