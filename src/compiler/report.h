// CompileReport: what the compiler did, for `hologram compile --explain`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "archive/archive.h"
#include "graph/graph.h"
#include "graph/passes/fusion_report.h"

namespace hologram::compiler {

struct CompileReport {
  struct Pass {
    std::string name;
    double milliseconds;
    size_t nodes_before, nodes_after;  // subgraphs included
  };
  struct Kernel {
    std::string name;  // a kernel, a control operator, or "program" for pointwise programs
    size_t steps;
  };
  std::vector<Pass> passes;
  graph::FusionReport fusion;
  std::vector<Kernel> kernels;  // most steps first
  uint64_t arena_bytes = 0;     // activations of known size, as planned
  uint64_t value_bytes = 0;     // what they would take without sharing memory
  uint64_t constant_bytes = 0;
  size_t programs = 0;      // different pointwise programs
  uint64_t code_bytes = 0;  // of native code
  // Products, convolutions and attention whose operands became narrower, and those left in f32.
  size_t narrow_steps = 0, wide_steps = 0;
  size_t long_sums = 0;  // convolutions of f32 whose sums are one chain each
  // Of each step that could be narrower, of each of its grades: the widest that is no different.
  std::vector<std::vector<uint8_t>> same_grades;
  std::vector<std::string> kinds;  // of each: steps of one kind are likely to err alike
  // Of nodes by name: which of those that could be narrower, in their order, it is or follows.
  std::map<std::string, size_t> product_of;
  std::string precision_note;  // what was asked for and why the others stayed; empty for plain f32
  std::string code_note;  // the levels of native code and whose key signed it, or why none is there

  // Reads off a graph what dense operators (graph/ops/dense.cpp) have taken in.
  void describe_dense(const graph::Graph& graph);
  // Reads kernels and memory off a plan.
  void describe(const archive::ModelT& model);
  // Tables, for people.
  std::string to_text() const;
};

// "1.25 MB"
std::string megabytes(uint64_t bytes);

// Nodes of a graph and of its subgraphs.
size_t count_nodes(const graph::Graph& graph);

}  // namespace hologram::compiler
