// compiler: a graph -> a `.holo` archive, as an ordered list of steps.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/precision.h"
#include "compiler/report.h"
#include "compiler/weight_encoding.h"
#include "graph/graph.h"
#include "support/shape.h"

namespace hologram::compiler {

inline constexpr size_t kUsualSteps = 16;

struct CompileOptions {
  // Shapes for inputs by name, in place of the model's own: --shape x=1,3,224,224.
  std::map<std::string, Shape, std::less<>> shapes;
  Precision precision = Precision::f32;
  // By how many grades the products that can be narrow, in their order, are wider (see
  // choose_precision); not those beyond its end. compile_within finds them.
  std::vector<uint8_t> widened = {};
  // Errors are measured, as compile_within does: products may be as narrow as often is enough.
  bool measured = false;
  // Where errors are measured: sums of f32 of convolutions are one chain each (exact_sums.h).
  bool long_sums = false;
  // 0..4: what each step prints to standard error. 1: names and times, 3: the graph after each.
  int debug = 0;
  // false: only the steps that make a graph runnable; what the others must not change.
  bool optimise = true;
  // Called when a step begins, with how many are done; kUsualSteps is about how many there are.
  std::function<void(std::string_view step, size_t done)> on_step = nullptr;
  // Native code of the pointwise programs is made for these targets ("host", "x86-64-v2" ..) and
  // signed with this key; without either there is none, and the interpreter runs the programs.
  std::vector<std::string> targets = {"host"};
  std::optional<archive::KeyPair> key = std::nullopt;
  // Where not null: filled with what was done.
  CompileReport* report = nullptr;
  // Store constants as HoloTensor fragments, so that a session opens with some of them; empty:
  // plain, used from the map. With all fragments results are the same to the bit.
  std::optional<WeightEncoding> weights = std::nullopt;
};

// The bytes of the archive.
Result<std::vector<std::byte>> compile(graph::Graph graph, const CompileOptions& options = {});
Result<std::vector<std::byte>> compile_onnx(const std::filesystem::path& model,
                                            const CompileOptions& options = {});

}  // namespace hologram::compiler
