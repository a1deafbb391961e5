#include "compiler/compile.h"

#include <cctype>
#include <chrono>
#include <cstdio>
#include <set>

#include "compiler/exact_sums.h"
#include "compiler/join_convolutions.h"
#include "compiler/join_gates.h"
#include "compiler/lower.h"
#include "compiler/narrow_images.h"
#include "compiler/native_code.h"
#include "compiler/pack_weights.h"
#include "compiler/signal_filters.h"
#include "compiler/weights.h"
#include "graph/dim.h"
#include "graph/passes/channels_last.h"
#include "graph/passes/common_subexpressions.h"
#include "graph/passes/dead_code.h"
#include "graph/passes/fold_activation.h"
#include "graph/passes/fold_batch_norm.h"
#include "graph/passes/fold_patterns.h"
#include "graph/passes/fold_rotary.h"
#include "graph/passes/fold_rotary_pairs.h"
#include "graph/passes/fuse_attention.h"
#include "graph/passes/fuse_epilogue.h"
#include "graph/passes/fuse_epilogue_integer.h"
#include "graph/passes/fuse_integer.h"
#include "graph/passes/fuse_pointwise.h"
#include "graph/passes/identities.h"
#include "graph/passes/join_projections.h"
#include "graph/passes/layout.h"
#include "graph/passes/quantised_weights.h"
#include "graph/passes/reference_order.h"
#include "graph/passes/resolve.h"
#include "graph/verify.h"
#include "onnx/model.h"
#include "support/function_ref.h"

namespace hologram::compiler {
namespace {

Status apply_shapes(graph::Graph& graph, const CompileOptions& options) {
  for (const auto& [name, shape] : options.shapes) {
    bool found = false;
    for (graph::ValueId id : graph.inputs) {
      graph::ValueInfo& info = graph.value(id);
      if (info.name != name) continue;
      found = true;
      if (info.type.shape && info.type.shape->rank() != shape.rank())
        return fail(ErrorCode::shape_mismatch, "input '{}' is {}; it cannot become {}", name,
                    info.type.to_string(), shape.to_string());
      info.type.shape = shape;
    }
    if (!found) return fail(ErrorCode::not_found, "the model has no input '{}'", name);
  }
  return {};
}

// Dimensions of inputs that the model leaves open get a name each: what is computed from them is
// then known by it, and memory can be planned.
void name_open_dimensions(graph::Graph& graph) {
  std::set<std::string, std::less<>> taken;
  for (graph::ValueId id : graph.inputs)
    if (const auto& shape = graph.value(id).type.shape)
      for (const Dim& dim : *shape)
        if (dim.is_symbol()) taken.insert(dim.symbol());
  for (graph::ValueId id : graph.inputs) {
    graph::ValueInfo& info = graph.value(id);
    if (!info.type.is_tensor() || !info.type.shape) continue;
    for (size_t axis = 0; axis < info.type.shape->rank(); ++axis) {
      Dim& dim = (*info.type.shape)[axis];
      if (!graph::is_unknown(dim)) continue;
      std::string name = info.name + "_" + std::to_string(axis);
      for (char& c : name)  // what could be taken for arithmetic
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
      while (!taken.insert(name).second) name += '_';
      dim = Dim(std::move(name));
    }
  }
}

}  // namespace

Result<std::vector<std::byte>> compile(graph::Graph graph, const CompileOptions& options) {
  CompileReport unread;
  CompileReport& report = options.report ? *options.report : unread;
  // Each step leaves a graph that passes the verifier, and is timed and shown on demand.
  auto step = [&](const char* name, FunctionRef<Status()> body) -> Status {
    const auto start = std::chrono::steady_clock::now();
    const size_t before = count_nodes(graph);
    if (options.on_step) options.on_step(name, report.passes.size());
    HOLOGRAM_CHECK(body());
    HOLOGRAM_CHECK(in_context(verify(graph), [&] { return std::string("after ") + name; }));
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    report.passes.push_back({name, ms, before, count_nodes(graph)});
    if (options.debug >= 1)
      fmt::print(stderr, "{:<28} {:8.2f} ms  {} nodes\n", name, ms, count_nodes(graph));
    if (options.debug >= 3) fmt::print(stderr, "{}\n", graph.to_text());
    return {};
  };
  // A step without which the model runs just as well, only slower.
  auto optimisation = [&](const char* name, FunctionRef<Status()> body) -> Status {
    return options.optimise ? step(name, body) : Status();
  };
  HOLOGRAM_CHECK(step("apply shapes", [&]() -> Status {
    HOLOGRAM_CHECK(apply_shapes(graph, options));
    name_open_dimensions(graph);
    return Status();
  }));
  HOLOGRAM_CHECK(step("resolve", [&] { return graph::resolve(graph); }));
  HOLOGRAM_CHECK(optimisation("identities", [&] { return graph::remove_identities(graph); }));
  HOLOGRAM_CHECK(optimisation("common subexpressions", [&] {
    graph::merge_common_subexpressions(graph);
    return Status();
  }));
  // What is to be stored as fragments stays what a fragment can be of.
  const int64_t codes_stay_from = options.weights ? options.weights->plain_below : graph::kNoneStay;
  const auto clean = [&] {
    graph::remove_dead_code(graph);
    return Status();
  };
  HOLOGRAM_CHECK(step("remove dead code", clean));
  HOLOGRAM_CHECK(optimisation("integers", [&]() -> Status {
    HOLOGRAM_CHECK(graph::fuse_integer(graph, report.fusion));
    graph::remove_dead_code(graph);
    HOLOGRAM_CHECK(graph::use_quantised_weights(graph, codes_stay_from));
    HOLOGRAM_TRY(const bool folded, graph::fold_dequantised(graph, codes_stay_from));
    if (folded) {
      HOLOGRAM_CHECK(graph::resolve(graph));
      HOLOGRAM_CHECK(graph::remove_identities(graph));
    }
    return clean();
  }));
  HOLOGRAM_CHECK(optimisation("fold patterns", [&] {
    graph::fold_patterns(graph);
    return clean();
  }));
  HOLOGRAM_CHECK(optimisation("fuse attention", [&]() -> Status {
    graph::fold_rotary_pairs(graph);
    HOLOGRAM_CHECK(graph::fold_rotary(graph));
    HOLOGRAM_CHECK(graph::fuse_attention(graph));
    return clean();
  }));
  HOLOGRAM_CHECK(optimisation("fold batch norm", [&] { return graph::fold_batch_norm(graph); }));
  HOLOGRAM_CHECK(optimisation("fuse epilogues", [&]() -> Status {
    HOLOGRAM_CHECK(graph::fuse_epilogue_integer(graph));
    HOLOGRAM_CHECK(graph::fuse_epilogue(graph));
    if (options.precision == Precision::f32) graph::use_reference_order(graph);
    return Status();
  }));
  HOLOGRAM_CHECK(optimisation("join projections",
                              [&] { return graph::join_projections(graph, report.fusion); }));
  HOLOGRAM_CHECK(optimisation("assign layout", [&]() -> Status {
    HOLOGRAM_CHECK(graph::assign_layout(graph));
    HOLOGRAM_CHECK(graph::keep_channels_last(graph));
    graph::fold_activation(graph);
    return clean();
  }));
  report.describe_dense(graph);
  HOLOGRAM_CHECK(
      optimisation("fuse pointwise", [&] { return graph::fuse_pointwise(graph, report.fusion); }));
  HOLOGRAM_CHECK(optimisation("Fourier transforms", [&]() -> Status {
    HOLOGRAM_CHECK(use_fourier_transforms(graph));
    return clean();
  }));
  HOLOGRAM_CHECK(optimisation("choose precision", [&]() -> Status {
    HOLOGRAM_TRY(PrecisionChoice choice,
                 choose_precision(graph, options.precision, options.widened, options.measured));
    if (options.long_sums) report.long_sums = use_long_sums(graph);
    report.narrow_steps = choice.narrow;
    report.wide_steps = choice.wide;
    report.product_of = std::move(choice.product_of);
    report.same_grades = std::move(choice.same_grades);
    report.kinds = std::move(choice.kinds);
    report.precision_note = describe(choice, options.precision);
    if (options.precision == Precision::f32 && report.long_sums != 0)
      report.precision_note =
          fmt::format("f32: sums of {} convolutions in one chain each", report.long_sums);
    if (options.precision == Precision::bf16)
      if (const size_t images = narrow_images(graph, choice.wide_nodes))
        report.precision_note += fmt::format("; {} images between them as bf16", images);
    return Status();
  }));
  HOLOGRAM_CHECK(optimisation("fold mirrored filters", [&] {
    fold_mirrored_filters(graph);
    return Status();
  }));
  HOLOGRAM_CHECK(
      optimisation("pack weights", [&] { return pack_weights(graph, codes_stay_from); }));
  HOLOGRAM_CHECK(optimisation("join gates", [&] {
    join_gates(graph, report.fusion);
    return Status();
  }));
  HOLOGRAM_CHECK(optimisation("join convolutions", [&] {
    join_convolutions(graph, report.fusion);
    return Status();
  }));
  if (options.on_step) options.on_step("lower", report.passes.size());
  HOLOGRAM_TRY(Lowered lowered, lower(graph));
  EncodedWeights weights;
  if (options.weights) {
    HOLOGRAM_CHECK(step("encode weights", [&]() -> Status {
      HOLOGRAM_TRY(weights, encode_weights(lowered, *options.weights));
      return {};
    }));
  }
  std::vector<std::vector<std::byte>> code;
  if (options.key && !options.targets.empty() && !lowered.model.programs.empty()) {
    HOLOGRAM_CHECK(step("native code", [&]() -> Status {
      HOLOGRAM_TRY(code, compile_native_code(lowered, options.targets, *options.key));
      return {};
    }));
  }
  auto bytes = archive::write(lowered.model, lowered.constant_bytes(),
                              {weights.file, weights.directory}, code);
  for (const auto& section : code) report.code_bytes += section.size();
  report.code_note =
      code.empty() || !options.key
          ? "none"
          : fmt::format("{} for {}, signed by {}", megabytes(report.code_bytes),
                        fmt::join(options.targets, ", "), options.key->public_key().to_text());
  report.describe(lowered.model);
  return bytes;
}

Result<std::vector<std::byte>> compile_onnx(const std::filesystem::path& model,
                                            const CompileOptions& options) {
  HOLOGRAM_TRY(graph::Graph graph, onnx::read_model(model));
  return in_context(compile(std::move(graph), options), [&] { return model.string(); });
}

}  // namespace hologram::compiler
