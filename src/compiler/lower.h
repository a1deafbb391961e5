// Lowering: a resolved graph -> the plan of an archive, with its programs and constants.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "archive/archive.h"
#include "graph/graph.h"

namespace hologram::compiler {

struct Lowered {
  archive::ModelT model;
  std::vector<graph::Tensor> constants;  // one an entry of model.constants
  std::vector<std::span<const std::byte>> constant_bytes() const;
  // Of each program: the ways in which its native code will be called (graph/pointwise.h).
  std::vector<std::set<uint32_t>> variants;
};

Result<Lowered> lower(const graph::Graph& graph);

}  // namespace hologram::compiler
