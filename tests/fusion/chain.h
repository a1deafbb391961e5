// Chain: a random graph of operators of the table, each reading what earlier ones made, with inputs
// on which every one of them runs.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/operator.h"

namespace hologram::fusion {

using graph::Graph;
using graph::ValueId;
using kernels::Value;

// What is known of a value while a chain is drawn.
struct Known {
  Value value;             // what it is on the chain's inputs
  bool inexact = false;    // behind a function that native code and interpreter round differently
  bool reordered = false;  // behind a sum or activation that a pass may compute otherwise
  bool jumps = false;      // behind an operator that makes small differences large
};

struct Chain {
  Graph graph;
  std::vector<Value> inputs;       // one an input of the graph
  std::vector<Known> known;        // by value; empty where it is of no use
  std::vector<std::string> drawn;  // the operators, in order
};

// The same for the same seed. About `length` operators; sometimes with symbols for dimensions.
Chain draw_chain(uint64_t seed, size_t length);

// Compiles and runs; `native` with native code, otherwise interpreted.
Result<std::vector<Value>> run(Graph graph, std::span<const Value> inputs, bool optimise,
                               bool native, size_t* fused = nullptr);

}  // namespace hologram::fusion
