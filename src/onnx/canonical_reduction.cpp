// Reductions: axes were an attribute before opset 18 (ReduceSum: 13). TopK: so was k before 10.
#include "onnx/canonical.h"

namespace hologram::onnx {
namespace {

Status axes_to_input(CanonicalContext& c) {
  c.integers_to_input("axes", 1);
  return {};
}

Status k_to_input(CanonicalContext& c) {
  c.integers_to_input("k", 1);
  return {};
}

constexpr Rewrite kRewrites[] = {
    {"ReduceL1", "", 18, axes_to_input},
    {"ReduceL2", "", 18, axes_to_input},
    {"ReduceLogSum", "", 18, axes_to_input},
    {"ReduceLogSumExp", "", 18, axes_to_input},
    {"ReduceMax", "", 18, axes_to_input},
    {"ReduceMean", "", 18, axes_to_input},
    {"ReduceMin", "", 18, axes_to_input},
    {"ReduceProd", "", 18, axes_to_input},
    {"ReduceSum", "", 13, axes_to_input},
    {"ReduceSumSquare", "", 18, axes_to_input},
    {"TopK", "", 10, k_to_input},
};

}  // namespace

std::span<const Rewrite> reduction_rewrites() { return kRewrites; }

}  // namespace hologram::onnx
