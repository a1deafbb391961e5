#include <algorithm>
#include <bit>
#include <vector>

#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/kernel.h"
#include "support/hash.h"

namespace hologram::kernels {
namespace {

// Calls visit(kernel) for each.
template <typename Visit>
void for_each_kernel(Visit visit) {
  const std::span<const Kernel> families[] = {
      attention_kernels(),
      cast_kernels(),
      comparison_kernels(),
      convolution_kernels(),
      fused_kernels(),
      generator_kernels(),
      image_kernels(),
      indexing_kernels(),
      linear_algebra_kernels(),
      loss_kernels(),
      machine_learning_kernels(),
      microsoft_kernels(),
      movement_kernels(),
      normalisation_kernels(),
      pooling_kernels(),
      quantisation_kernels(),
      random_kernels(),
      recurrent_kernels(),
      reduction_kernels(),
      resize_kernels(),
      sequence_kernels(),
      signal_kernels(),
      softmax_kernels(),
      sorting_kernels(),
      text_kernels(),
      training_kernels(),
  };
  for (auto family : families)
    for (const Kernel& kernel : family) visit(kernel);
}

// By name. Made when an archive is opened for the first time, so it hashes rather than sorts.
class Index {
 public:
  Index() {
    size_t count = 0;
    for_each_kernel([&](const Kernel&) { ++count; });
    slots_.resize(std::bit_ceil(2 * count));
    for_each_kernel([&](const Kernel& kernel) { *slot(kernel.name) = &kernel; });
  }
  const Kernel* find(std::string_view name) { return *slot(name); }

 private:
  // Where the name is or would be.
  const Kernel** slot(std::string_view name) {
    size_t at = hash64(name);
    while (true) {
      const Kernel*& entry = slots_[at & (slots_.size() - 1)];
      if (!entry || entry->name == name) return &entry;
      ++at;
    }
  }
  std::vector<const Kernel*> slots_;
};

std::vector<const Kernel*> sorted() {
  std::vector<const Kernel*> table;
  for_each_kernel([&](const Kernel& kernel) { table.push_back(&kernel); });
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
