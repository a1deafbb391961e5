#include "backends/cpu/kernels/attribute.h"

namespace hologram::kernels {

const Attribute* Attributes::find(AttributeName name) const {
  for (size_t i = 0; i < numbers_.size(); ++i)
    if (numbers_[i] == name.number()) return &list_[i];
  return nullptr;
}

void Attributes::erase(AttributeName name) {
  const Attribute* found = find(name);
  if (!found) return;
  const auto at = found - list_.data();
  list_.erase(list_.begin() + at);
  numbers_.erase(numbers_.begin() + at);
}

}  // namespace hologram::kernels
