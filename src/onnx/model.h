// Reads an ONNX model into a graph.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "graph/graph.h"
#include "support/result.h"

namespace hologram::onnx {

inline constexpr int kOldestOpset = 1, kNewestOpset = 28;

// The file is mapped; the graph's constants keep the map. Types are not inferred yet: see
// graph/passes/resolve.h. Errors name the node, the operator and the opset.
Result<graph::Graph> read_model(const std::filesystem::path& path);

// The same from memory that `owner` keeps alive; external data is refused.
Result<graph::Graph> read_model(std::span<const std::byte> bytes,
                                std::shared_ptr<const void> owner);

}  // namespace hologram::onnx
