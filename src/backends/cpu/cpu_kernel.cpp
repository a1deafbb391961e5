#include "backends/cpu/cpu_kernel.h"

#include <array>
#include <atomic>
#include <vector>

#include "backends/direct_block.h"
#include "support/aligned.h"

namespace hologram::backends {
namespace {

using isa::Form;

// Forking costs about as much as this many instructions of vectorised code; less work than this
// stays on the calling thread.
constexpr uint64_t kWorthForking = uint64_t{1} << 19;
constexpr uint64_t kLoopGuess = 16;  // how often a loop is taken to run
// Scratch up to this size lives on the stack of the calling thread.
constexpr uint64_t kStackScratch = 4096;
// Long blocks make the loop over a block's threads the long one. As far as the counters of a launch
// allow, with room for a grid of many.
constexpr uint64_t kWidestBlock = 8192;

uint64_t estimate_weight(const isa::Program& program) {
  uint64_t total = 0, factor = 1;
  std::vector<uint64_t> outer;
  for (const isa::Instruction& instruction : program.body) {
    const Form form = info(instruction.op).form;
    total += factor;
    if (form == Form::if_begin) outer.push_back(factor);
    if (form == Form::for_begin || form == Form::loop_begin) {
      outer.push_back(factor);
      factor = std::min<uint64_t>(factor * kLoopGuess, 1 << 20);
    }
    if (form == Form::end && !outer.empty()) {
      factor = outer.back();
      outer.pop_back();
    }
  }
  return std::max<uint64_t>(1, total);
}

bool uses_lengths(const isa::Program& program) {
  for (const isa::Instruction& instruction : program.body)
    if (instruction.op == isa::Opcode::length) return true;
  return false;
}

// Memory of the calling thread that grows to the largest launch it has made and is then reused.
Result<std::byte*> thread_scratch(uint64_t bytes) {
  thread_local AlignedBytes scratch;
  if (scratch.size() < bytes) {
    HOLOGRAM_TRY(scratch, AlignedBytes::allocate(bytes));
  }
  return scratch.data();
}

}  // namespace

Result<std::unique_ptr<CpuKernel>> CpuKernel::create(isa::Program program,
                                                     const isa::NativeCode* code) {
  std::unique_ptr<CpuKernel> kernel(new CpuKernel(std::move(program)));
  if (!code) {
    HOLOGRAM_TRY(kernel->interpreter_, isa::Interpreter::create(kernel->program()));
    return kernel;
  }
  HOLOGRAM_TRY(kernel->map_, CodeMap::map(code->code));
  kernel->entry_ = reinterpret_cast<isa::NativeEntry>(
      const_cast<std::byte*>(kernel->map_.data() + code->entry_offset));
  kernel->level_ = code->level;
  kernel->sizes_.scratch_fixed = code->scratch_fixed;
  kernel->sizes_.scratch_per_thread = code->scratch_per_thread;
  kernel->fork_threads_ = kWorthForking / estimate_weight(kernel->program());
  if (code->scratch_per_thread == 0 && kernel->program().shared.empty())
    kernel->widest_block_ = kWidestBlock;
  if (kernel->program().shared.empty() && !uses_lengths(kernel->program())) {
    if (kernel->sizes_.scratch_bytes(1, 0) <= 64)
      kernel->direct_ = {kernel->entry_,
                         std::min<uint64_t>(kernel->fork_threads_, uint64_t{1} << 31),
                         code->words_offset ? kernel->map_.data() + code->words_offset : nullptr};
    else if (kernel->sizes_.scratch_bytes(kDirectBlock, 0) <= kDirectBlockScratch)
      kernel->direct_ = {kernel->entry_, 0};  // for run_direct_block()
  }
  return kernel;
}

Status CpuKernel::run(const CpuContext& context, const LaunchShape& shape, const uint64_t* words,
                      const uint64_t* lengths) const {
  if (!entry_) return interpret(context, shape, words, lengths);
  const uint64_t blocks = uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
  if (blocks == 0) return {};
  uint32_t trap = isa::kTrapNone;
  const isa::NativeLaunch launch = {
      .grid = {shape.grid[0], shape.grid[1], shape.grid[2]},
      .block = {shape.block[0], shape.block[1], shape.block[2]},
      .parameters = words,
      .lengths = lengths,
      .shared_bytes = shape.shared_bytes,
      .trap = &trap,
  };
  const uint64_t threads = shape.block_threads();
  const uint64_t scratch = sizes_.scratch_bytes(threads, shape.shared_bytes);
  // Of the turns that the weight of the program was guessed with.
  const uint64_t work = blocks * threads * (shape.turns == 0 ? kLoopGuess : shape.turns);
  if (blocks > 1 && context.threads > 1 && work >= fork_threads_ * kLoopGuess) {
    HOLOGRAM_CHECK(run_parallel(context, launch, blocks, scratch));
  } else if (scratch <= kStackScratch) {
    alignas(64) std::byte stack[kStackScratch];
    entry_(&launch, 0, blocks, stack);
  } else {
    HOLOGRAM_TRY(std::byte* const memory, thread_scratch(scratch));
    entry_(&launch, 0, blocks, memory);
  }
  return trap == isa::kTrapNone ? Status() : trapped(trap);
}

Status CpuKernel::run_parallel(const CpuContext& context, const isa::NativeLaunch& launch,
                               uint64_t blocks, uint64_t scratch_bytes) const {
  // The caller provides every thread's scratch, so that nothing can fail once work has begun. A
  // fixed schedule makes at most one call a thread.
  const uint64_t stride = align_up(scratch_bytes, kAlignment);
  HOLOGRAM_TRY(std::byte* const memory, thread_scratch(stride * context.threads));
  std::atomic<uint32_t> taken = 0;
  context.parallel_for(blocks, 1, [&](size_t begin, size_t end) {
    entry_(&launch, begin, end, memory + stride * taken.fetch_add(1, std::memory_order_relaxed));
  });
  return {};
}

Status CpuKernel::interpret(const CpuContext& context, const LaunchShape& shape,
                            const uint64_t* words, const uint64_t* lengths) const {
  const auto& parameters = program().parameters;
  std::vector<isa::Argument> arguments(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].is_array)
      arguments[i] = isa::Argument::array(reinterpret_cast<void*>(words[i]), lengths[i]);
    else
      arguments[i].bits = words[i];
  }
  return interpreter_->run(shape, arguments, {.parallel = context.threads > 1});
}

}  // namespace hologram::backends
