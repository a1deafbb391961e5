// Operators of the domain ai.onnx.ml.
#include <cmath>

#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

constexpr const char* kDomain = "ai.onnx.ml";
constexpr TypeSet kTableTypes = {DType::f32, DType::f64, DType::i32, DType::i64};

Status label_encoder(InferContext& c) {
  const Attributes& a = c.attributes();
  // The attribute that is there of `names`, and its type; keys and values are named alike.
  auto type_of = [&](const std::string& kind) -> Result<DType> {
    std::optional<DType> found;
    int count = 0;
    for (auto [suffix, type] :
         {std::pair{"_strings", DType::string}, {"_int64s", DType::i64}, {"_floats", DType::f32}})
      if (a.has(kind + suffix)) found = type, ++count;
    if (const Tensor* tensor = a.tensor(kind + "_tensor")) found = tensor->dtype, ++count;
    if (count == 1) return *found;
    return fail(ErrorCode::invalid_argument,
                "{} attributes for {}; one of {}_strings, {}_int64s, {}_floats and {}_tensor is "
                "expected (classes_strings of opset 1 is not supported)",
                count, kind, kind, kind, kind, kind);
  };
  HOLOGRAM_TRY(const DType keys, type_of("keys"));
  HOLOGRAM_TRY(const DType values, type_of("values"));
  if (keys != c.dtype(0))
    return fail(ErrorCode::type_mismatch, "input of type {} with keys of type {}",
                name_of(c.dtype(0)), name_of(keys));
  c.set_dtype(0, values);
  return same_shape_as_first(c);
}

Result<std::vector<ValueId>> array_feature_extractor(ComposeContext& c) {
  if (!c.type(0).shape)
    return fail(ErrorCode::unsupported, "an input of unknown rank; supported: known ranks");
  ValueId flat = c.op("Reshape").input(c.in(1)).input(c.graph.constant(std::vector<int64_t>{-1}));
  ValueId chosen = c.op("Gather").input(c.in(0)).input(flat).attribute("axis", -1);
  if (c.type(0).shape->rank() == 1)
    chosen = c.op("Unsqueeze").input(chosen).input(c.graph.constant(std::vector<int64_t>{0}));
  return std::vector<ValueId>{chosen};
}

// For integers "greater than 0.5" is "greater than 0".
isa::Register binarizer(PointwiseContext& p) {
  const double given = p.attributes.number("threshold");
  const isa::Register limit = p.number(is_float(p.result) ? given : std::floor(given));
  return p.b.select(p.b.lt(limit, p.in(0)), p.number(1), p.number(0));
}

Status tree_ensemble(InferContext& c) {
  const int64_t targets = c.integer("n_targets");
  if (targets < 1) return fail(ErrorCode::invalid_argument, "n_targets {}", targets);
  for (const char* name : {"nodes_splits", "leaf_weights", "membership_values"})
    if (const Tensor* t = c.attributes().tensor(name); t && t->dtype != c.dtype(0))
      return fail(ErrorCode::type_mismatch, "{} of type {} with an input of type {}", name,
                  name_of(t->dtype), name_of(c.dtype(0)));
  const Shape* in = c.shape(0);
  if (!in) return {};
  if (in->rank() != 2)
    return fail(ErrorCode::shape_mismatch, "input {}; [N, F] expected", in->to_string());
  c.set_shape(0, Shape(std::vector<Dim>{(*in)[0], targets}));
  return {};
}

}  // namespace

void add_machine_learning(OperatorTable& table) {
  table.add("LabelEncoder", kDomain)
      .signature("X:T -> Y:U")
      .where("T", {DType::string, DType::i64, DType::f32, DType::f64, DType::i32, DType::i16})
      .attributes(
          "keys_strings:ss, keys_int64s:is, keys_floats:fs, keys_tensor:t, values_strings:ss, "
          "values_int64s:is, values_floats:fs, values_tensor:t, default_string:s, default_int64:i, "
          "default_float:f, default_tensor:t")
      .infer(label_encoder)
      .kernel();
  table.add("ArrayFeatureExtractor", kDomain)
      .signature("X:T, Y:i64 -> Z:T")
      .where("T", kTableTypes | kStrings)
      .infer(no_shape)
      .compose(array_feature_extractor);
  table.add("Binarizer", kDomain)
      .signature("X:T -> Y:T")
      .where("T", kTableTypes)
      .attributes("threshold:f")
      .infer(same_shape_as_first)
      .pointwise(binarizer);
  table.add("TreeEnsemble", kDomain)
      .signature("X:T -> Y:T")
      .where("T", {DType::f16, DType::f32, DType::f64})
      .attributes(
          "aggregate_function:i, leaf_targetids:is, leaf_weights:t, membership_values:t, "
          "n_targets:i, nodes_falseleafs:is, nodes_falsenodeids:is, nodes_featureids:is, "
          "nodes_hitrates:t, nodes_missing_value_tracks_true:is, nodes_modes:t, nodes_splits:t, "
          "nodes_trueleafs:is, nodes_truenodeids:is, post_transform:i, tree_roots:is")
      .infer(tree_ensemble)
      .kernel();
}

}  // namespace hologram::graph::ops
