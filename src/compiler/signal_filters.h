// Convolutions that are filters of a signal, such as the windows of a Fourier transform.
#pragma once

#include "graph/graph.h"

namespace hologram::compiler {

// A long kernel over a signal of one channel without margins, plain on both sides.
bool is_signal_filter(const graph::Node& node);

// Those that are windowed cosines and sines of all frequencies, and nothing else, become what they
// are: hologram.Fourier, which has no products to choose a precision for. Cosines and sines of the
// same windows of one signal become one node. Returns how many filters there were.
Result<size_t> use_fourier_transforms(graph::Graph& graph);

// Gives those in f32 whose filters all mirror themselves the attributes `mirrored` and `even` (how
// many of them, the first, do it without a change of sign): half of the products are enough for
// them. After precision is chosen, before packing. Returns how many there are.
size_t fold_mirrored_filters(graph::Graph& graph);

}  // namespace hologram::compiler
