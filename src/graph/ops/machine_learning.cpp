// Operators of the domain ai.onnx.ml.
#include <cmath>
#include <numeric>

#include "graph/infer.h"
#include "graph/ops/compose.h"
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
                "expected",
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

// Strings to integers or back: a LabelEncoder whose table is `texts` and `integers`.
ValueId encoded(ComposeContext& c, std::vector<std::string> texts, std::vector<int64_t> integers) {
  const bool from_text = c.type(0).dtype == DType::string;
  Attributes table;
  table.set(from_text ? "keys_strings" : "values_strings", std::move(texts));
  table.set(from_text ? "values_int64s" : "keys_int64s", std::move(integers));
  for (const char* name : {"default_string", "default_int64"})
    if (const Attribute* a = c.attributes().find(name)) table.put(*a);
  return c.op("LabelEncoder", kDomain).input(c.in(0)).attributes(table);
}

Result<Values> category_mapper(ComposeContext& c) {
  const auto texts = c.attributes().texts("cats_strings");
  const auto integers = c.attributes().integers("cats_int64s");
  if (texts.size() != integers.size())
    return fail(ErrorCode::invalid_argument, "{} cats_strings and {} cats_int64s", texts.size(),
                integers.size());
  return Values{encoded(c, {texts.begin(), texts.end()}, {integers.begin(), integers.end()})};
}

// LabelEncoder before ai.onnx.ml 2: the place of a string in one list.
Result<Values> label_by_place(ComposeContext& c) {
  const auto texts = c.attributes().texts("classes_strings");
  std::vector<int64_t> places(texts.size());
  std::iota(places.begin(), places.end(), 0);
  return Values{encoded(c, {texts.begin(), texts.end()}, std::move(places))};
}

Status other_of_text_and_integer(InferContext& c) {
  c.set_dtype(0, c.dtype(0) == DType::string ? DType::i64 : DType::string);
  return same_shape_as_first(c);
}

// All inputs as f32, side by side. One with more columns than its entry of inputdimensions says
// loses the rest, one with fewer gets zeros.
Result<Values> feature_vectorizer(ComposeContext& c) {
  const Writer w(c);
  const auto sizes = c.attributes().integers("inputdimensions");
  if (!sizes.empty() && sizes.size() != c.node.inputs.size())
    return fail(ErrorCode::invalid_argument, "{} inputdimensions for {} inputs", sizes.size(),
                c.node.inputs.size());
  std::vector<ValueId> parts;
  for (size_t i = 0; i < c.node.inputs.size(); ++i) {
    const auto shape = c.type(i).shape;
    if (!shape || shape->rank() == 0)
      return fail(ErrorCode::unsupported, "input {} of unknown rank; [N, C] or [C] expected", i);
    ValueId part = w.cast(c.in(i), DType::f32);
    part = w.reshape(part, {shape->rank() == 1 ? 1 : 0, -1});
    if (!sizes.empty()) {
      const ValueId zeros = w.list({0, 0, 0, sizes[i]});
      part = w.slice(w.call("Pad", {part, zeros}), 1, 0, sizes[i]);
    }
    parts.push_back(part);
  }
  return Values{c.op("Concat").inputs(parts).attribute("axis", 1).output()};
}

// A list of floats as a constant of the type, or of f32.
Result<ValueId> numbers(ComposeContext& c, const char* name) {
  const auto list = c.attributes().numbers(name);
  HOLOGRAM_TRY(Tensor tensor, Tensor::from<float>({static_cast<int64_t>(list.size())}, list));
  return c.graph.add_constant(std::move(tensor));
}

Result<Values> imputer(ComposeContext& c) {
  const Writer w(c);
  const DType type = c.type(0).dtype;
  const bool real = is_float(type);
  ValueId value;
  if (real) {
    HOLOGRAM_TRY(value, numbers(c, "imputed_value_floats"));
  } else {
    const auto list = c.attributes().integers("imputed_value_int64s");
    value = w.list({list.begin(), list.end()});
  }
  if (c.graph.value(value).constant->count() == 0)
    return fail(ErrorCode::invalid_argument, "no {} for an input of type {}",
                real ? "imputed_value_floats" : "imputed_value_int64s", name_of(type));
  value = w.cast(value, type);
  const double missing = c.attributes().number("replaced_value_float");
  const int64_t integer = c.attributes().integer("replaced_value_int64");
  ValueId found;
  if (real && std::isnan(missing))
    found = w.call("IsNaN", {c.in(0)});
  else
    found = w.call("Equal", {c.in(0), real ? w.number(type, missing)
                                           : w.cast(c.graph.constant(integer), type)});
  return Values{w.call("Where", {found, value, c.in(0)})};
}

Result<Values> scaler(ComposeContext& c) {
  const Writer w(c);
  ValueId x = w.cast(c.in(0), DType::f32);
  if (c.attributes().has("offset")) {
    HOLOGRAM_TRY(const ValueId offset, numbers(c, "offset"));
    x = w.sub(x, offset);
  }
  if (c.attributes().has("scale")) {
    HOLOGRAM_TRY(const ValueId scale, numbers(c, "scale"));
    x = w.mul(x, scale);
  }
  return Values{x};
}

// Rows divided by their largest element, the sum of magnitudes, or their length; a row of zeros
// stays.
Result<Values> normalizer(ComposeContext& c) {
  const Writer w(c);
  const std::string_view norm = c.attributes().text("norm", "MAX");
  const ValueId x = w.cast(c.in(0), DType::f32), last = w.list({-1});
  ValueId size;
  if (norm == "MAX")
    size = w.call("ReduceMax", {x, last});
  else if (norm == "L1")
    size = w.call("ReduceL1", {x, last});
  else if (norm == "L2")
    size = w.call("ReduceL2", {x, last});
  else
    return fail(ErrorCode::invalid_argument, "norm '{}'; supported: MAX, L1, L2", norm);
  const ValueId none = w.call("Equal", {size, w.number(DType::f32, 0)});
  const ValueId divisor = w.call("Where", {none, w.number(DType::f32, 1), size});
  return Values{w.call("Div", {x, divisor})};
}

// Labels [N] of the labels' own type, scores [N, classes].
Status classifier(InferContext& c) {
  c.set_dtype(0, c.attributes().has("classlabels_strings") ? DType::string : DType::i64);
  const Shape* x = c.shape(0);
  if (x && x->rank() != 1 && x->rank() != 2)
    return fail(ErrorCode::shape_mismatch, "input {}; [N, F] or [F] expected", x->to_string());
  if (x) c.set_shape(0, Shape(std::vector<Dim>{x->rank() == 2 ? (*x)[0] : Dim(1)}));
  return {};
}

Status regressor(InferContext& c) {
  const Shape* x = c.shape(0);
  if (x && x->rank() != 1 && x->rank() != 2)
    return fail(ErrorCode::shape_mismatch, "input {}; [N, F] or [F] expected", x->to_string());
  const char* name = c.node().op == "LinearRegressor" ? "targets" : "n_targets";
  if (x)
    c.set_shape(
        0, Shape(std::vector<Dim>{x->rank() == 2 ? (*x)[0] : Dim(1), Dim(c.integer(name, 1))}));
  return {};
}

// Values of this domain that are maps are not among those a plan knows.
Status no_maps(InferContext& c) {
  return fail(ErrorCode::unsupported,
              "{} works on maps; supported: tensors, sequences and optionals (export the model "
              "with its labels and scores as tensors, e.g. zipmap=False)",
              c.node().op);
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
  auto compose = [&](const char* name, const char* signature, TypeSet types, const char* attributes,
                     InferFunction infer, ComposeFunction f, const char* domain = kDomain) {
    table.add(name, domain)
        .signature(signature)
        .where("T", types)
        .attributes(attributes)
        .infer(infer)
        .compose(f);
  };
  constexpr TypeSet kLabels = {DType::string, DType::i64};
  compose("CategoryMapper", "X:T -> Y:U", kLabels,
          "cats_int64s:I, cats_strings:S, default_int64:i, default_string:s",
          other_of_text_and_integer, category_mapper);
  compose("LabelByPlace", "X:T -> Y:U", kLabels,
          "classes_strings:S, default_int64:i, default_string:s", other_of_text_and_integer,
          label_by_place, "hologram");
  compose("FeatureVectorizer", "X:T... -> Y:f32", kTableTypes, "inputdimensions:I", no_shape,
          feature_vectorizer);
  compose("Imputer", "X:T -> Y:T", kTableTypes,
          "imputed_value_floats:F, imputed_value_int64s:I, replaced_value_float:f, "
          "replaced_value_int64:i",
          same_shape_as_first, imputer);
  compose("Scaler", "X:T -> Y:f32", kTableTypes, "offset:F, scale:F", same_shape_as_first, scaler);
  compose("Normalizer", "X:T -> Y:f32", kTableTypes, "norm:s", same_shape_as_first, normalizer);

  auto kernel = [&](const char* name, const char* signature, TypeSet types,
                    const std::string& attributes, InferFunction infer) {
    table.add(name, kDomain)
        .signature(signature)
        .where("T", types)
        .attributes(attributes)
        .infer(infer)
        .kernel();
  };
  kernel("OneHotEncoder", "X:T -> Y:f32", kTableTypes | kStrings,
         "cats_int64s:I, cats_strings:S, zeros:i", no_shape);
  const char* classify = "X:T -> Y:U, Z:f32?";
  kernel("LinearClassifier", classify, kTableTypes,
         "classlabels_ints:I, classlabels_strings:S, coefficients:F, intercepts:F, multi_class:i, "
         "post_transform:s",
         classifier);
  kernel("LinearRegressor", "X:T -> Y:f32", kTableTypes,
         "coefficients:F, intercepts:F, post_transform:s, targets:i", regressor);
  const std::string machine =
      "coefficients:F, kernel_params:F, kernel_type:s, post_transform:s, rho:F, "
      "support_vectors:F, ";
  kernel("SVMClassifier", classify, kTableTypes,
         machine +
             "classlabels_ints:I, classlabels_strings:S, prob_a:F, prob_b:F, vectors_per_class:I",
         classifier);
  kernel("SVMRegressor", "X:T -> Y:f32", kTableTypes, machine + "n_supports:i, one_class:i",
         no_shape);
  const std::string trees =
      "base_values:F, base_values_as_tensor:t, nodes_falsenodeids:I, nodes_featureids:I, "
      "nodes_hitrates:F, nodes_hitrates_as_tensor:t, nodes_missing_value_tracks_true:I, "
      "nodes_modes:S, nodes_nodeids:I, nodes_treeids:I, nodes_truenodeids:I, nodes_values:F, "
      "nodes_values_as_tensor:t, post_transform:s, ";
  kernel("TreeEnsembleClassifier", classify, kTableTypes,
         trees +
             "class_ids:I, class_nodeids:I, class_treeids:I, class_weights:F, "
             "class_weights_as_tensor:t, classlabels_int64s:I, classlabels_strings:S",
         classifier);
  kernel("TreeEnsembleRegressor", "X:T -> Y:f32", kTableTypes,
         trees +
             "aggregate_function:s, n_targets:i, target_ids:I, target_nodeids:I, "
             "target_treeids:I, target_weights:F, target_weights_as_tensor:t",
         regressor);
  for (const char* name : {"CastMap", "DictVectorizer", "ZipMap"})
    table.add(name, kDomain)
        .signature("X:V -> Y:V")
        .attributes(
            "cast_to:s, map_form:s, max_map:i, int64_vocabulary:I, string_vocabulary:S, "
            "classlabels_int64s:I, classlabels_strings:S")
        .infer(no_maps);
}

}  // namespace hologram::graph::ops
