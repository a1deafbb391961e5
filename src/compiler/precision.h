// Precision: what products and convolutions may lose, and the pass that takes them up on it.
#pragma once

#include <cstdint>
#include <string_view>

#include "graph/graph.h"
#include "support/result.h"

namespace hologram::compiler {

enum class Precision : uint8_t {
  f32,   // every product in f32
  fast,  // f32 in and out, each operand as two bf16 parts where the CPU has tiles for them: about
         // 16 bits, an error near 1e-5 of the output's range
  bf16,  // operands of products rounded to bf16, sums in f32
};

// "f32", "fast", "bf16"; unsupported for the others that the format has names for.
Result<Precision> parse_precision(std::string_view name);

// Gives products and convolutions by constant weights the attribute `parts`: how many bf16 values
// stand for an operand. Before packing, after layouts are chosen. What is faster in f32 on this
// machine (Winograd without tiles) or has no such kernel stays f32.
void choose_precision(graph::Graph& graph, Precision precision);

}  // namespace hologram::compiler
