// Frame: the values of one run of one plan, and the memory they live in. Kept and used again by
// later runs, so that a run of a shape seen before allocates nothing.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "archive/pages.h"
#include "runtime/session/control_state.h"
#include "runtime/session/loaded_plan.h"
#include "runtime/session/weights.h"
#include "support/aligned.h"

namespace hologram::runtime {

// Scratch memory of kernels: grows to what the largest needed, then stays. What is too small for a
// kernel is let go of, so that there is never more than the largest needs.
class Scratch {
 public:
  Result<std::byte*> take(size_t bytes);
  // Forgets what was taken; called after each kernel.
  void reset();

 private:
  std::vector<AlignedBytes> blocks_;  // filled in this order
  size_t current_ = 0, used_ = 0;     // the block to take from, and how much of it is taken
  size_t taken_ = 0;                  // of all blocks
};

// The times of a run's steps while they are taken.
struct Profile {
  std::vector<StepTime>& times;
  std::map<const LoadedStep*, size_t> places;  // in `times`
  double inside = 0;                           // of all steps that have ended
  uint32_t depth = 0;
};

struct RunContext {
  ThreadPool* threads = nullptr;
  // Until all of its constants have been checked: each is just before or after a step first reads
  // it, while the caches hold it for both. Null from then on.
  const archive::Archive* unverified = nullptr;
  archive::PageWindow window;
  Scratch scratch;
  Profile* profile = nullptr;  // null: times are not taken
  // Which turn of which loops: random steps draw other numbers in each. 0 outside of loops and in
  // their first turns.
  uint64_t turn = 0;
  // How many more steps and turns of loops the run may take.
  uint64_t steps_left = ~uint64_t{0};

  Status count_step() {
    if (steps_left == 0)
      return fail(ErrorCode::resource_exhausted, "the run takes more steps than it was allowed");
    --steps_left;
    return {};
  }
};

// A turn of a loop, for as long as this lives.
class Turn {
 public:
  Turn(RunContext& context, int64_t index) : context_(context), around_(context.turn) {
    context.turn = around_ * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(index);
  }
  ~Turn() { context_.turn = around_; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  RunContext& context_;
  const uint64_t around_;
};

class Frame {
 public:
  static Result<std::unique_ptr<Frame>> create(const LoadedPlan& plan);

  const LoadedPlan& plan() const { return *plan_; }
  kernels::Value& value(uint32_t id) { return values_[id]; }
  // Constants that are weights are from now on those of this set, in frames of subplans too. Runs
  // between two calls see one version; the frame shares in its memory.
  void use(std::shared_ptr<const WeightSet> weights);
  // From now on values have these sizes and places. The binding outlives its use here.
  Status bind(const Binding& binding);
  // Planned memory, once bound.
  uint64_t arena_bytes() const { return layout_ ? layout_->arena : 0; }
  // The memory that the plan's outputs are to be made in; where empty, the frame's own. In force
  // until clear().
  void set_outputs(std::span<const kernels::Tensor> outputs) { given_ = outputs; }
  // Runs all steps; it has been bound, inputs and captures have been set.
  Status run(RunContext& context);
  // Lets go of everything that a run was given or made; memory stays for the next one.
  void clear();
  // Memory for a value that a step makes.
  Result<kernels::Tensor> allocate(uint32_t id, DType dtype, const kernels::Dims& dims);
  // Memory of the sequences that steps make.
  BlockPool& sequences() { return sequences_; }
  // What a control step keeps between its turns and runs.
  ControlState& control(const LoadedStep& step);
  // The frame of the `index`-th subplan of a step, with its captures set.
  Result<Frame*> child(const LoadedStep& step, size_t index);

 private:
  // The first touch of a page clears it. All threads do it for the arena at once; within a step one
  // would do it and the others wait.
  void bring_in(ThreadPool& threads);
  // The constants among these values are as they were written.
  Status verify(Ids ids, const RunContext& context, archive::Reading reading) const;
  // The step has read its constants: the large ones leave memory.
  void let_go(const LoadedStep& step, RunContext& context) const;
  Status run_step(const LoadedStep& step, RunContext& context);
  Status run_checking(const LoadedStep& step, RunContext& context);
  Status run_timed(const LoadedStep& step, RunContext& context);
  Status run_program(const LoadedStep& step, RunContext& context);
  Status run_kernel(const LoadedStep& step, RunContext& context);
  // Memory for a pooled value: its own block or, at first, a free one.
  Result<std::shared_ptr<AlignedBytes>> pooled(uint32_t id, uint64_t bytes);
  const kernels::Attributes& reseeded(const LoadedStep& step, uint64_t turn);

  const LoadedPlan* plan_ = nullptr;
  std::shared_ptr<const WeightSet> weights_;
  bool has_run_ = false;  // since the last clear()
  bool in_use_ = false;   // of a subplan: has been given values since then
  const Binding* binding_ = nullptr;
  const Layout* layout_ = nullptr;
  std::span<const kernels::Tensor> given_;
  AlignedBytes arena_;
  bool arena_is_fresh_ = false;  // nothing has been written to it
  std::vector<kernels::Value> values_;
  // Memory of pooled values, kept between runs; a block that only this list holds is free. Values
  // that are never there together share one.
  std::vector<std::shared_ptr<AlignedBytes>> blocks_;
  std::vector<uint32_t> block_of_;  // a value's among them; kNoBlock before its first
  std::vector<std::shared_ptr<std::vector<std::string>>> strings_;
  BlockPool sequences_;
  std::vector<std::unique_ptr<Frame>> children_;
  std::vector<std::unique_ptr<ControlState>> controls_;  // at a step's first frame
  std::vector<const kernels::Value*> inputs_;            // of the step that runs
  std::vector<kernels::Value> outputs_;                  // likewise
  std::vector<kernels::Tensor> operands_;
  std::map<const LoadedStep*, kernels::Attributes> reseeded_;  // of random steps in later turns
};

// If, Loop, Scan: see control.cpp.
Status run_control(Frame& frame, const LoadedStep& step, RunContext& context);

}  // namespace hologram::runtime
