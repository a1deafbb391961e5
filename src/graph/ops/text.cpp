// Operators on strings.
#include <algorithm>

#include "backends/cpu/kernels/regex.h"
#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

Status string_normalizer(InferContext& c) {
  const std::string_view action = c.text("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    return fail(ErrorCode::invalid_argument,
                "case_change_action '{}'; supported: NONE, LOWER, UPPER", action);
  const Shape* in = c.shape(0);
  if (in && in->rank() != 1 && in->rank() != 2)
    return fail(ErrorCode::shape_mismatch, "input {}; [C] or [1, C] expected", in->to_string());
  return {};
}

Status string_split(InferContext& c) {
  const Shape* in = c.shape(0);
  if (!in) return {};
  std::vector<Dim> dims = in->dims();
  dims.push_back(unknown_dim());
  c.set_shape(0, Shape(std::move(dims)));
  c.set_shape(1, *in);
  return {};
}

Status regex_full_match(InferContext& c) {
  if (!c.attributes().has("pattern"))
    return fail(ErrorCode::invalid_argument, "attribute 'pattern' is missing");
  HOLOGRAM_CHECK(kernels::Regex::compile(c.text("pattern")));  // refused before it runs
  return same_shape_as_first(c);
}

Status tf_idf(InferContext& c) {
  const auto indexes = c.integers("ngram_indexes");
  if (indexes.empty() || *std::min_element(indexes.begin(), indexes.end()) < 0)
    return fail(ErrorCode::invalid_argument, "ngram_indexes must be there and not negative");
  const bool strings = c.attributes().has("pool_strings");
  if (strings == c.attributes().has("pool_int64s"))
    return fail(ErrorCode::invalid_argument, "one of pool_strings and pool_int64s must be there");
  if (strings != (c.dtype(0) == DType::string))
    return fail(ErrorCode::type_mismatch, "input of type {} with {}", name_of(c.dtype(0)),
                strings ? "pool_strings" : "pool_int64s");
  const Shape* in = c.shape(0);
  if (!in) return {};
  if (in->rank() != 1 && in->rank() != 2)
    return fail(ErrorCode::shape_mismatch, "input {}; [C] or [N, C] expected", in->to_string());
  std::vector<Dim> dims(in->begin(), in->end() - 1);
  dims.push_back(Dim(*std::max_element(indexes.begin(), indexes.end())) + 1);
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

}  // namespace

void add_text(OperatorTable& table) {
  auto add = [&](const char* name, const char* signature, const char* attributes, InferFunction f) {
    return table.add(name).signature(signature).attributes(attributes).infer(f).kernel();
  };
  add("StringNormalizer", "X:string -> Y:string",
      "case_change_action:s, is_case_sensitive:i, locale:s, stopwords:ss", string_normalizer);
  add("StringConcat", "X:string, Y:string -> Z:string", "", broadcast_all_inputs);
  add("StringSplit", "X:string -> Y:string, Z:i64", "delimiter:s, maxsplit:i", string_split);
  add("RegexFullMatch", "X:string -> Y:bool", "pattern:s", regex_full_match);
  add("TfIdfVectorizer", "X:T -> Y:f32",
      "max_gram_length:i, max_skip_count:i, min_gram_length:i, mode:s, ngram_counts:is, "
      "ngram_indexes:is, pool_int64s:is, pool_strings:ss, weights:fs",
      tf_idf)
      .where("T", kIndices | kStrings);
}

}  // namespace hologram::graph::ops
