// Operators of networks on images and signals.
#include "onnx/canonical.h"

namespace hologram::onnx {
namespace {

// Before 20 the axis was an attribute, and 1 unless said.
Status dft_axis(CanonicalContext& c) {
  c.set_input(2, c.graph.constant(c.attributes().integer("axis", 1)));
  c.node.attributes.erase("axis");
  return {};
}

// Before 20 modes were named after two axes.
Status grid_sample_mode(CanonicalContext& c) {
  const auto mode = c.attributes().text("mode", "bilinear");
  if (mode == "bilinear") c.node.attributes.set("mode", std::string("linear"));
  if (mode == "bicubic") c.node.attributes.set("mode", std::string("cubic"));
  return {};
}

// Before 16 coordinates were not shifted by half a pixel.
Status roi_align_coordinates(CanonicalContext& c) {
  c.node.attributes.set("coordinate_transformation_mode", std::string("output_half_pixel"));
  return {};
}

// Before 7 the whole sequence of states was optional by an attribute, as well as by its name.
Status output_sequence(CanonicalContext& c) {
  c.node.attributes.erase("output_sequence");
  return {};
}

constexpr Rewrite kRewrites[] = {
    {"GRU", "", 7, output_sequence},          {"LSTM", "", 7, output_sequence},
    {"RNN", "", 7, output_sequence},          {"DFT", "", 20, dft_axis},
    {"GridSample", "", 20, grid_sample_mode}, {"RoiAlign", "", 16, roi_align_coordinates},
};

}  // namespace

std::span<const Rewrite> network_rewrites() { return kRewrites; }

}  // namespace hologram::onnx
