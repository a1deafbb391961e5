// StridedView: a value as a strided window into another, as far back as Transpose, Reshape, Split,
// Slice, Gather of one index, Expand and their like go, and through multiplication by a number.
#pragma once

#include <optional>
#include <vector>

#include "graph/passes/value_uses.h"

namespace hologram::graph {

struct StridedView {
  static constexpr int64_t kUnknown = -1;
  // `size` steps of `stride` elements. The stride before an axis of unknown size is kUnknown.
  struct Factor {
    Dim size;
    int64_t stride;
  };
  ValueId root = kNoValue;
  int64_t offset = 0;
  double scale = 1;  // the value is `scale` times what the window shows
  // The factors of each axis, outermost first; none for an axis of one element.
  std::vector<std::vector<Factor>> axes;
};

// nullopt only where the value's shape is not known.
std::optional<StridedView> trace_view(const Graph& graph, const ValueUses& uses, ValueId id);

}  // namespace hologram::graph
