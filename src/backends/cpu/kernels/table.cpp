#include <algorithm>
#include <vector>

#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {
namespace {

std::vector<const Kernel*> make_table() {
  const std::span<const Kernel> families[] = {
      attention_kernels(),        cast_kernels(),           comparison_kernels(),
      convolution_kernels(),      fused_kernels(),          generator_kernels(),
      image_kernels(),
      indexing_kernels(),         linear_algebra_kernels(), loss_kernels(),
      machine_learning_kernels(), microsoft_kernels(),      movement_kernels(),
      normalisation_kernels(),    pooling_kernels(),        quantisation_kernels(),
      random_kernels(),           recurrent_kernels(),      reduction_kernels(),
      resize_kernels(),           sequence_kernels(),       signal_kernels(),
      softmax_kernels(),          sorting_kernels(),        text_kernels(),
      training_kernels(),
  };
  std::vector<const Kernel*> table;
  for (auto family : families)
    for (const Kernel& kernel : family) table.push_back(&kernel);
  std::ranges::sort(table, {}, &Kernel::name);
  return table;
}

const std::vector<const Kernel*>& table() {
  static const std::vector<const Kernel*> kTable = make_table();
  return kTable;
}

}  // namespace

std::span<const Kernel* const> all_kernels() { return table(); }

const Kernel* find_kernel(std::string_view name) {
  auto found = std::ranges::lower_bound(table(), name, {}, &Kernel::name);
  return found != table().end() && (*found)->name == name ? *found : nullptr;
}

}  // namespace hologram::kernels
