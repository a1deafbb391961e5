#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/kernel.h"
#include "support/hash.h"

namespace hologram::kernels {
namespace {

// Those that most models use first: opening an archive reads the list only as far as it must, and
// each family is a page of the program that nothing else may have touched.
using Family = std::span<const Kernel> (*)();
constexpr Family kFamilies[] = {
    fused_kernels,
    movement_kernels,
    normalisation_kernels,
    linear_algebra_kernels,
    softmax_kernels,
    indexing_kernels,
    cast_kernels,
    quantisation_kernels,
    reduction_kernels,
    attention_kernels,
    comparison_kernels,
    convolution_kernels,
    generator_kernels,
    image_kernels,
    loss_kernels,
    pooling_kernels,
    recurrent_kernels,
    resize_kernels,
    machine_learning_kernels,
    microsoft_kernels,
    random_kernels,
    sequence_kernels,
    signal_kernels,
    sorting_kernels,
    text_kernels,
    training_kernels,
};

// By name, of the families looked through so far. It hashes rather than sorts: the first archive of
// a process waits for it. Safe from any thread.
class Index {
 public:
  const Kernel* find(std::string_view name) {
    const std::lock_guard lock(mutex_);
    while (true) {
      if (const Kernel* found = *slot(name)) return found;
      if (next_ == std::size(kFamilies)) return nullptr;
      add(kFamilies[next_++]());
    }
  }

 private:
  void add(std::span<const Kernel> family) {
    count_ += family.size();
    if (2 * count_ > slots_.size()) {
      const std::vector<const Kernel*> old =
          std::exchange(slots_, std::vector<const Kernel*>(std::bit_ceil(4 * count_)));
      for (const Kernel* kernel : old)
        if (kernel) *slot(kernel->name) = kernel;
    }
    for (const Kernel& kernel : family) *slot(kernel.name) = &kernel;
  }
  // Where the name is or would be.
  const Kernel** slot(std::string_view name) {
    size_t at = hash64(name);
    while (true) {
      const Kernel*& entry = slots_[at & (slots_.size() - 1)];
      if (!entry || entry->name == name) return &entry;
      ++at;
    }
  }
  std::mutex mutex_;
  size_t next_ = 0, count_ = 0;  // families and kernels in `slots_`
  std::vector<const Kernel*> slots_ = std::vector<const Kernel*>(256);
};

std::vector<const Kernel*> sorted() {
  std::vector<const Kernel*> table;
  for (const Family family : kFamilies)
    for (const Kernel& kernel : family()) table.push_back(&kernel);
  std::ranges::sort(table, {}, &Kernel::name);
  return table;
}

}  // namespace

std::span<const Kernel* const> all_kernels() {
  static const std::vector<const Kernel*> kTable = sorted();
  return kTable;
}

const Kernel* find_kernel(std::string_view name) {
  static Index index;
  return index.find(name);
}

}  // namespace hologram::kernels
