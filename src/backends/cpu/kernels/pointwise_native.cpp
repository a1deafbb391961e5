// Pointwise programs by their native code.
#include <algorithm>
#include <atomic>

#include "backends/cpu/kernels/pointwise_operand.h"

namespace hologram::kernels {
namespace {

constexpr size_t kMaxOperands = Pointwise::kMaxInputs + 32;
// Work of a thread, in elements times instructions, that pays for waking it.
constexpr int64_t kWorthAThread = int64_t{1} << 18;
constexpr int64_t kLongestCall = int64_t{1} << 30;  // a grid counts in 32 bits
constexpr int64_t kBlockElements = 512;             // of the inputs that are spread out
constexpr size_t kMostSpread = 16;                  // inputs

// The axes of a run: the output's without those of 1, adjacent ones joined where every input goes
// on from one to the other in even steps.
struct Axes {
  size_t rank = 0;
  std::array<int64_t, kMaxRank> dims;
  std::array<std::array<int64_t, Pointwise::kMaxInputs>, kMaxRank> strides;

  Axes(std::span<const Tensor> inputs, const Dims& output) {
    std::array<Dims, Pointwise::kMaxInputs> own;
    for (size_t k = 0; k < inputs.size(); ++k) own[k] = inputs[k].dims.strides();
    for (size_t axis = 0; axis < output.rank(); ++axis) {
      if (output[axis] == 1) continue;
      auto& here = strides[rank];
      bool joins = rank > 0;
      for (size_t k = 0; k < inputs.size(); ++k) {
        const Dims& in = inputs[k].dims;
        const size_t shift = output.rank() - in.rank();
        here[k] = axis >= shift && in[axis - shift] != 1 ? own[k][axis - shift] : 0;
        joins = joins && strides[rank - 1][k] == here[k] * output[axis];
      }
      if (joins) {
        strides[rank - 1] = here;
        dims[rank - 1] *= output[axis];
      } else {
        dims[rank++] = output[axis];
      }
    }
    if (rank > 0) return;
    rank = 1;
    dims[0] = 1;
    strides[0].fill(1);
  }
};

}  // namespace

// One variant over the elements of one run.
class Pointwise::NativeRun {
 public:
  NativeRun(isa::NativeEntry entry, std::span<const Tensor> inputs, std::span<const Tensor> outputs)
      : entry_(entry), inputs_(inputs), outputs_(outputs) {}

  // Each row of the last axis is one call, or several where threads share it.
  void rows(const Axes& axes, int64_t begin, int64_t end) const {
    const size_t last = axes.rank - 1;
    const int64_t row = axes.dims[last];
    std::array<int64_t, kMaxRank> index{};
    std::array<int64_t, kMaxInputs> offset{};
    int64_t position = begin / row;
    for (size_t axis = last; axis-- > 0;) {
      index[axis] = position % axes.dims[axis];
      position /= axes.dims[axis];
      for (size_t k = 0; k < inputs_.size(); ++k) offset[k] += index[axis] * axes.strides[axis][k];
    }
    std::array<uint64_t, kMaxOperands> words;
    int64_t column = begin % row;
    for (int64_t at = begin; at < end;) {
      const int64_t count = std::min({end - at, row - column, kLongestCall});
      for (size_t k = 0; k < inputs_.size(); ++k)
        words[k] = address(inputs_[k], offset[k] + column * axes.strides[last][k]);
      call(words, at, count);
      at += count;
      column += count;
      if (column < row) continue;
      column = 0;
      for (size_t axis = last; axis-- > 0;) {
        for (size_t k = 0; k < inputs_.size(); ++k) offset[k] += axes.strides[axis][k];
        if (++index[axis] < axes.dims[axis]) break;
        for (size_t k = 0; k < inputs_.size(); ++k)
          offset[k] -= axes.dims[axis] * axes.strides[axis][k];
        index[axis] = 0;
      }
    }
  }

  // Inputs that are broadcast are spread out, a block at a time.
  void blocks(std::span<const Operand> operands, int64_t begin, int64_t end) const {
    alignas(64) std::byte memory[kMostSpread][kBlockElements * 8];
    std::array<uint64_t, kMaxOperands> words;
    for (int64_t at = begin; at < end; at += kBlockElements) {
      const int64_t count = std::min(kBlockElements, end - at);
      size_t buffer = 0;
      for (size_t k = 0; k < operands.size(); ++k) {
        const bool spread = operands[k].kind != Operand::dense;
        words[k] = reinterpret_cast<uint64_t>(
            operands[k].block(at, count, spread ? memory[buffer++] : nullptr));
      }
      call(words, at, count);
    }
  }

  Status status() const {
    if (trap_.load(std::memory_order_relaxed) == isa::kTrapNone) return {};
    return fail(ErrorCode::trap, "division by zero, or a shift by the type's width or more");
  }

 private:
  static uint64_t address(const Tensor& tensor, int64_t element) {
    return reinterpret_cast<uint64_t>(tensor.data + element * size_of(tensor.dtype));
  }

  // Elements [first, first + count) of the outputs; the inputs' addresses are set.
  void call(std::array<uint64_t, kMaxOperands>& words, int64_t first, int64_t count) const {
    alignas(64) std::byte scratch[64];
    uint32_t trap = isa::kTrapNone;
    for (size_t o = 0; o < outputs_.size(); ++o)
      words[inputs_.size() + o] = address(outputs_[o], first);
    const auto blocks = static_cast<uint32_t>(count);
    const isa::NativeLaunch launch = {.grid = {blocks, 1, 1},
                                      .block = {1, 1, 1},
                                      .parameters = words.data(),
                                      .lengths = nullptr,
                                      .shared_bytes = 0,
                                      .trap = &trap};
    entry_(&launch, 0, blocks, scratch);
    if (trap != isa::kTrapNone) trap_.store(trap, std::memory_order_relaxed);
  }

  isa::NativeEntry entry_;
  std::span<const Tensor> inputs_, outputs_;
  mutable std::atomic<uint32_t> trap_ = isa::kTrapNone;
};

std::optional<Status> Pointwise::run_native(std::span<const Tensor> inputs,
                                            std::span<const Tensor> outputs, const Dims& dims,
                                            ThreadPool& threads) const {
  if (inputs.size() + outputs.size() > kMaxOperands) return std::nullopt;
  const Axes axes(inputs, dims);
  const int64_t total = dims.count(), run = axes.dims[axes.rank - 1];
  // Ranges of whole cache lines.
  const auto work = static_cast<int64_t>(std::max<size_t>(steps_.size(), 1));
  const int64_t grain = std::clamp<int64_t>(kWorthAThread / work, 4096, 65536) / 64 * 64;
  uint32_t uniform = 0;
  for (size_t k = 0; k < inputs.size(); ++k)
    if (axes.strides[axes.rank - 1][k] == 0) uniform |= uint32_t{1} << k;
  const auto variant = [&](uint32_t wanted) {
    const auto found = std::ranges::find(native_, wanted, &Native::uniform);
    return found == native_.end() ? nullptr : found->entry;
  };
  if (const isa::NativeEntry entry = variant(uniform);
      entry && (axes.rank == 1 || run >= kShortRun)) {
    const NativeRun native(entry, inputs, outputs);
    threads.parallel_for(total, grain,
                         [&](size_t begin, size_t end) { native.rows(axes, begin, end); });
    return native.status();
  }
  const isa::NativeEntry entry = variant(0);
  std::array<Operand, kMaxInputs> operands;
  size_t spread = 0;
  for (size_t k = 0; k < inputs.size(); ++k) {
    operands[k].set(inputs[k], dims);
    spread += operands[k].kind != Operand::dense;
  }
  if (!entry || spread > kMostSpread) return std::nullopt;
  const NativeRun native(entry, inputs, outputs);
  threads.parallel_for(total, grain, [&](size_t begin, size_t end) {
    native.blocks({operands.data(), inputs.size()}, begin, end);
  });
  return native.status();
}

}  // namespace hologram::kernels
