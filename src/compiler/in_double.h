// A model in f64: what the errors of every precision are measured against.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "compiler/compile.h"
#include "graph/graph.h"

namespace hologram::compiler {

// Every f32 of the graph becomes f64: inputs, constants and what is computed of them. Not the
// scales of a Resize, which the standard wants in f32.
Status widen_to_f64(graph::Graph& graph);

// f32 as f64; other types as they are.
Result<kernels::Tensor> widened(const kernels::Tensor& tensor);

// The archive of a model so widened, by the plain kernels: nothing is fused or packed. Running it
// takes some hundred times as long. An error where an operator of it has no kernel for f64.
Result<std::vector<std::byte>> compile_in_double(
    const std::filesystem::path& model,
    const std::map<std::string, Shape, std::less<>>& shapes = {});

}  // namespace hologram::compiler
