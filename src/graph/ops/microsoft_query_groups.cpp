#include "graph/ops/microsoft_query_groups.h"

#include <cmath>
#include <limits>

#include "graph/ops/compose.h"

namespace hologram::graph::ops {
namespace {

enum Input : size_t {
  query,
  key,
  value,
  past_key,
  past_value,
  seqlens_k,
  total_length,
  cos_cache,
  sin_cache,
  position_ids,
  attention_bias,
  head_sink,
  k_scale,
  v_scale,
  q_norm,
  k_norm
};

class GroupQueries {
 public:
  explicit GroupQueries(ComposeContext& c)
      : c_(c),
        w_(c),
        type_(c.type(query).dtype),
        heads_(c.attributes().integer("num_heads")),
        groups_(c.attributes().integer("kv_num_heads")) {}

  Result<Values> run() {
    HOLOGRAM_CHECK(refuse_what_is_not_supported());
    HOLOGRAM_CHECK(split_heads());
    place_tokens();
    HOLOGRAM_CHECK(normalise_and_rotate());
    const ValueId keys = cached(past_key, k_), values = cached(past_value, v_);
    const ValueId y = attend(keys, values);
    return Values{w_.reshape(w_.transpose(y, {0, 2, 1, 3}), {0, 0, heads_ * size_}), keys, values,
                  keys};
  }

 private:
  const Attributes& attributes() const { return c_.attributes(); }

  Status refuse_what_is_not_supported() const {
    for (const char* name : {"k_quant_type", "v_quant_type"})
      if (attributes().text(name, "NONE") != "NONE")
        return fail(ErrorCode::unsupported, "{} {}; supported: NONE", name,
                    attributes().text(name));
    for (const char* name : {"sliding_window_cache", "qk_output"})
      if (attributes().integer(name) != 0)
        return fail(ErrorCode::unsupported, "{}={}; supported: 0", name,
                    attributes().integer(name));
    if (c_.has(k_scale) || c_.has(v_scale))
      return fail(ErrorCode::unsupported, "k_scale and v_scale (quantised caches)");
    if (heads_ < 1 || heads_ > (1 << 20) || groups_ < 1 || heads_ % groups_ != 0)
      return fail(ErrorCode::invalid_argument,
                  "num_heads {} and kv_num_heads {}; the first is a multiple of the second", heads_,
                  groups_);
    if (c_.has(key) != c_.has(value) || c_.has(past_key) != c_.has(past_value) ||
        c_.has(cos_cache) != c_.has(sin_cache) || c_.has(q_norm) != c_.has(k_norm))
      return fail(ErrorCode::invalid_argument,
                  "key and value, past_key and past_value, cos_cache and sin_cache, and the two "
                  "norm weights come together");
    if (attributes().integer("do_rotary") != 0 && !c_.has(cos_cache))
      return fail(ErrorCode::invalid_argument, "do_rotary without cos_cache and sin_cache");
    return {};
  }

  // q_, k_ and v_ as [batch, heads, rows, size].
  Status split_heads() {
    const auto shape = c_.type(query).shape;
    const int64_t parts = c_.has(key) ? heads_ : heads_ + 2 * groups_;
    if (!shape || shape->rank() != 3 || (*shape)[2].is_symbol() || (*shape)[2].value() % parts != 0)
      return fail(ErrorCode::unsupported, "query {} for {} heads; [batch, rows, known size]",
                  shape ? shape->to_string() : "unknown", parts);
    size_ = (*shape)[2].value() / parts;
    ValueId q = c_.in(query), k = kNoValue, v = kNoValue;
    if (c_.has(key)) {
      k = c_.in(key), v = c_.in(value);
    } else {
      NodeBuilder split = c_.op("Split");
      split.input(q)
          .input(w_.list({heads_ * size_, groups_ * size_, groups_ * size_}))
          .attribute("axis", 2)
          .outputs(3);
      q = split.output(0), k = split.output(1), v = split.output(2);
    }
    auto apart = [&](ValueId x, int64_t heads) {
      return w_.transpose(w_.reshape(x, {0, 0, heads, size_}), {0, 2, 1, 3});
    };
    q_ = apart(q, heads_), k_ = apart(k, groups_), v_ = apart(v, groups_);
    return {};
  }

  // total_: the longest sequence, a vector of one; lengths_ and first_ [batch]: how long each
  // sequence is, and where its new tokens begin. A prompt begins at 0, whatever its padding.
  void place_tokens() {
    const ValueId rows = w_.dim(c_.in(query), 1), one = w_.list({1});
    total_ = w_.reshape(w_.cast(c_.in(total_length), DType::i64), {1});
    lengths_ = w_.add(w_.reshape(w_.cast(c_.in(seqlens_k), DType::i64), {-1}), one);
    first_ =
        w_.call("Where", {w_.call("Equal", {total_, rows}), w_.list({0}), w_.sub(lengths_, rows)});
    // Where every new token stands: [batch, rows].
    positions_ = w_.add(w_.unsqueeze(first_, {1}), w_.range(w_.scalar_dim(c_.in(query), 1)));
  }

  Status normalise_and_rotate() {
    if (c_.has(q_norm)) {
      const double epsilon = attributes().number("qk_norm_epsilon", 1e-6);
      for (auto [x, weight] : {std::pair{&q_, q_norm}, {&k_, k_norm}})
        *x = c_.op("RMSNormalization")
                 .input(*x)
                 .input(c_.in(weight))
                 .attribute("axis", -1)
                 .attribute("epsilon", epsilon);
    }
    if (attributes().integer("do_rotary") == 0) return {};
    const auto cache = c_.type(cos_cache).shape;
    if (!cache || cache->rank() != 2 || (*cache)[1].is_symbol())
      return fail(ErrorCode::unsupported, "cos_cache {}; [positions, known size] expected",
                  cache ? cache->to_string() : "unknown");
    const int64_t turned = 2 * (*cache)[1].value();
    const ValueId positions = c_.has(position_ids) ? c_.in(position_ids) : positions_;
    for (ValueId* x : {&q_, &k_})
      *x = c_.op("RotaryEmbedding")
               .input(*x)
               .input(c_.in(cos_cache))
               .input(c_.in(sin_cache))
               .input(positions)
               .attribute("interleaved", attributes().integer("rotary_interleaved"))
               .attribute("rotary_embedding_dim", turned == size_ ? int64_t{0} : turned);
    return {};
  }

  // The past, made longer where it is shorter than the longest sequence, with the new rows in it.
  ValueId cached(size_t past, ValueId rows) const {
    const ValueId batch = w_.dim(rows, 0), zero = w_.list({0});
    ValueId missing = total_;
    if (c_.has(past)) missing = w_.call("Max", {w_.sub(total_, w_.dim(c_.in(past), 2)), zero});
    const ValueId shape = w_.concat({batch, w_.list({groups_}), missing, w_.list({size_})}, 0);
    ValueId cache = w_.call("Expand", {w_.number(type_, 0), shape});
    if (c_.has(past)) cache = w_.concat({c_.in(past), cache}, 2);
    return c_.op("TensorScatter").input(cache).input(rows).input(first_).attribute("axis", -2);
  }

  // Which keys each query sees, [batch, 1, rows, total], as a bias of the scores.
  ValueId bias() const {
    const ValueId keys = w_.range(w_.call("Squeeze", {total_, w_.list({0})}));
    ValueId seen;
    if (attributes().integer("causal", 1) != 0) {
      const ValueId at = w_.unsqueeze(positions_, {1, 3});
      seen = w_.call("LessOrEqual", {keys, at});
      if (const int64_t window = attributes().integer("local_window_size", -1); window > 0)
        seen = w_.call("And", {seen, w_.call("Greater", {keys, w_.sub(at, w_.list({window}))})});
    } else {
      seen = w_.call("Less", {keys, w_.reshape(lengths_, {-1, 1, 1, 1})});
    }
    const ValueId lowest = w_.number(type_, -std::numeric_limits<double>::infinity());
    const ValueId score = c_.has(attention_bias) ? c_.in(attention_bias) : w_.number(type_, 0);
    return w_.call("Where", {seen, score, lowest});
  }

  ValueId attend(ValueId keys, ValueId values) const {
    const double cap = attributes().number("softcap", 0);
    const double given = attributes().number("scale", 0);
    const double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(size_));
    if (!c_.has(head_sink) && attributes().integer("smooth_softmax") == 0)
      return c_.op("Attention")
          .input(q_)
          .input(keys)
          .input(values)
          .input(bias())
          .attribute("scale", scale)
          .attribute("softcap", cap);
    // With a sink, one more column takes part in the softmax and carries no value.
    const ValueId end = total_, start = w_.list({0});
    const ValueId k = repeated(w_.slice(keys, 2, start, end)),
                  v = repeated(w_.slice(values, 2, start, end));
    ValueId scores = w_.call("MatMul", {q_, w_.transpose(k, {0, 1, 3, 2})});
    scores = w_.mul(scores, w_.number(type_, scale));
    if (cap > 0) {
      const ValueId limit = w_.number(type_, cap);
      scores = w_.mul(w_.call("Tanh", {w_.call("Div", {scores, limit})}), limit);
    }
    scores = w_.add(scores, bias());
    const ValueId sink =
        c_.has(head_sink) ? w_.reshape(c_.in(head_sink), {1, heads_, 1, 1}) : w_.number(type_, 0);
    const ValueId column = w_.call(
        "Expand",
        {sink, w_.concat({w_.dim(q_, 0), w_.list({heads_}), w_.dim(q_, 2), w_.list({1})}, 0)});
    const ValueId all = w_.concat({scores, column}, 3);
    const ValueId weights = c_.op("Softmax").input(all).attribute("axis", -1);
    return w_.call("MatMul", {w_.slice(weights, 3, start, end), v});
  }

  // Every head of keys or values as often as queries share it.
  ValueId repeated(ValueId x) const {
    const int64_t times = heads_ / groups_;
    if (times == 1) return x;
    const ValueId copies = w_.call("Expand", {w_.unsqueeze(x, {2}), w_.list({1, 1, times, 1, 1})});
    return w_.reshape(copies, {0, heads_, -1, size_});
  }

  ComposeContext& c_;
  const Writer w_;
  const DType type_;
  const int64_t heads_, groups_;
  int64_t size_ = 0;
  ValueId q_ = kNoValue, k_ = kNoValue, v_ = kNoValue;
  ValueId total_ = kNoValue, lengths_ = kNoValue, first_ = kNoValue, positions_ = kNoValue;
};

}  // namespace

Result<std::vector<ValueId>> group_query_attention(ComposeContext& c) {
  return GroupQueries(c).run();
}

}  // namespace hologram::graph::ops
