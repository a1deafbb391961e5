// Precision: what products and convolutions may lose, and the pass that takes them up on it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "support/result.h"

namespace hologram::compiler {

enum class Precision : uint8_t {
  f32,   // every product in f32
  fast,  // f32 in and out, each operand as two bf16 parts where the CPU has tiles for them, weights
         // of products of few rows as 16-bit integers: an error near 1e-5 of the output's range
  bf16,  // operands of products rounded to bf16, sums in f32
  f16,   // weights stored as f16 and widened as they are used, arithmetic in f32
  int8,  // products by constant weights in 8-bit integers: a scale a column of the weights, a scale
         // and zero point a row of the other operand, found when it is there
  int4,  // constant weights of products in 4 bits, a scale for each 32 of a column; sums in f32
};

// "f32", "fast", "bf16", "f16", "int8", "int4";
// unsupported for the others that the format has names for.
Result<Precision> parse_precision(std::string_view name);

// Gives attention, products and convolutions by constant weights the attribute `parts`: how many
// bf16 values stand for an operand. Before packing, after layouts are chosen. What is faster in f32
// on this machine (Winograd without tiles) or has no such kernel stays f32. Attention takes part
// where the CPU has instructions for bf16.
//
// Where errors are `measured`, products and convolutions by constants of `fast` get `digits`
// instead: 16-bit integers of two digits by a scale a row or column (GemmDigits), a pixel or an
// image (ConvDigits), which tiles multiply twice as fast. They are as good as two parts where the
// values that share a scale are alike. CPUs without tiles that multiply 16-bit integers in pairs,
// twice as fast as f32, take the integers whole (`digits` 1, `digit_bits` 16: GemmShorts,
// ConvShorts).
//
// Products of one row (in `fast` up to three) by constants, which wait for the matrix, get `bits`
// 16 on CPUs that multiply such integers: 16-bit weights by a scale for each 128 of a column
// (GemmBits), the row in f32 or integers of 20 bits. That is half of the bytes of f32, at an error
// near 1e-5 of the result's range. LSTM and GRU of a small or unknown batch get it too.
//
// Step i of those that could be narrow is widened[i] grades wider, at most widest_grade(). In
// `fast`: digits (two parts where it has none or nothing is measured), two parts, f32; in `bf16`
// 8-bit integers (one part likewise), one part, digits, two parts, f32. Without tiles shorts are in
// the place of digits, and f32 in that of two parts. Of few rows weights of 16 bits are in the
// place of one part and digits, then f32.
//
// Where errors of `f32` are measured a grade wider is sums of f64 (exact_sums.h).
uint8_t widest_grade(Precision precision);  // 0 where there is one grade
struct PrecisionChoice {
  size_t narrow = 0,
         wide = 0;  // steps that got `parts`, `digits` or `bits`, and others that multiply in f32
  size_t widened = 0;  // steps that are wider than others of their kind
  size_t digits = 0;   // steps that got `digits` for 16-bit integers
  size_t words = 0;    // steps by weights of 16 bits
  size_t bytes = 0;    // steps by 8-bit integers
  // Of each step that could be narrow, of each of its grades: the widest that is no different.
  std::vector<std::vector<uint8_t>> same_grades;
  std::vector<std::string> kinds;  // of each: steps of one kind are likely to err alike
  // Of nodes by name: which of the steps that could be narrow it is, or follows.
  std::map<std::string, size_t> product_of;
  std::vector<bool> wide_nodes;  // of the graph: those, and what follows up to the next product
};
Result<PrecisionChoice> choose_precision(graph::Graph& graph, Precision precision,
                                         const std::vector<uint8_t>& widened = {},
                                         bool measured = false);

// "fast: 73 steps as two bf16 parts, 4 in f32"; empty for f32.
std::string describe(const PrecisionChoice& choice, Precision precision);

}  // namespace hologram::compiler
