// Ensembles of trees: TreeEnsemble, and the older TreeEnsembleClassifier and TreeEnsembleRegressor.
#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/convert.h"
#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/machine_learning.h"

namespace hologram::kernels {
namespace {

enum Mode : uint8_t { leq, less, geq, greater, equal, unequal, member, leaf };
enum Aggregate : uint8_t { average, sum, minimum, maximum };

// The trees, checked: every index lies inside. The two forms of the standard become one.
struct Ensemble {
  struct Node {
    uint8_t mode = leaf;
    bool missing_is_true = false;
    int64_t feature = 0;
    double split = 0;
    size_t next[2] = {};                    // where the test is false and where it is true
    List<double> set;                       // of `member`
    List<std::pair<size_t, double>> votes;  // of a leaf: target and weight
  };
  List<Node> nodes;
  List<size_t> roots;
  size_t targets = 1;
  uint8_t aggregate = sum;
  List<double> base;

  Status check_features(int64_t columns) const {
    for (const Node& node : nodes)
      if (node.mode != leaf && (node.feature < 0 || node.feature >= columns))
        return fail(ErrorCode::out_of_range, "feature {} of {}", node.feature, columns);
    return {};
  }

  Result<const Node*> walk(size_t root, std::span<const double> row) const {
    const Node* node = &nodes[root];
    for (size_t steps = 0; steps <= nodes.size(); ++steps) {
      if (node->mode == leaf) return node;
      const double x = row[static_cast<size_t>(node->feature)];
      const bool taken = (std::isnan(x) && node->missing_is_true) || test(*node, x);
      node = &nodes[node->next[taken ? 1 : 0]];
    }
    return fail(ErrorCode::invalid_argument, "a tree that goes in a circle");
  }

  Status score(std::span<const double> row, std::span<double> sums) const {
    List<bool> hit(targets, false);
    std::ranges::fill(sums, 0.0);
    for (const size_t root : roots) {
      HOLOGRAM_TRY(const Node* end, walk(root, row));
      for (const auto& [target, weight] : end->votes) {
        double& total = sums[target];
        if (!hit[target] || aggregate == sum || aggregate == average)
          total = hit[target] ? total + weight : weight;
        else
          total = aggregate == minimum ? std::min(total, weight) : std::max(total, weight);
        hit[target] = true;
      }
    }
    for (size_t i = 0; i < targets; ++i) {
      if (aggregate == average) sums[i] /= static_cast<double>(std::max<size_t>(roots.size(), 1));
      if (base.size() == targets) sums[i] += base[i];
    }
    return {};
  }

 private:
  static bool test(const Node& node, double x) {
    switch (node.mode) {
      case leq:
        return x <= node.split;
      case less:
        return x < node.split;
      case geq:
        return x >= node.split;
      case greater:
        return x > node.split;
      case equal:
        return x == node.split;
      case unequal:
        return x != node.split;
      default:
        return std::ranges::find(node.set, x) != node.set.end();
    }
  }
};

Text joined(std::string_view a, std::string_view b) { return Text(a).append(b); }

// A tensor attribute as doubles; nothing where it is absent.
Result<List<double>> reals(const KernelContext& c, std::string_view name) {
  const Tensor* given = c.attributes().tensor(name);
  if (!given) return List<double>();
  const Tensor& tensor = *given;
  if (tensor.dtype == DType::f16) {
    List<float> wide(static_cast<size_t>(tensor.count()));
    Tensor floats{DType::f32, tensor.dims, reinterpret_cast<std::byte*>(wide.data())};
    convert_half_to_float(tensor, floats);
    return List<double>(wide.begin(), wide.end());
  }
  if (tensor.dtype == DType::f32)
    return List<double>(tensor.as<float>(), tensor.as<float>() + tensor.count());
  if (tensor.dtype == DType::f64)
    return List<double>(tensor.as<double>(), tensor.as<double>() + tensor.count());
  return fail(ErrorCode::type_mismatch, "{} of type {}", name, name_of(tensor.dtype));
}

// A list of floats, or the same as a tensor of doubles.
Result<List<double>> list_or_tensor(const KernelContext& c, std::string_view name) {
  const Text tensor = joined(name, "_as_tensor");
  if (c.attributes().tensor(tensor)) return reals(c, tensor);
  const auto list = c.attributes().numbers(name);
  return List<double>(list.begin(), list.end());
}

Result<Ensemble> read_trees(const KernelContext& c) {
  Ensemble e;
  const int64_t targets = c.integer("n_targets"), aggregate = c.integer("aggregate_function", 1);
  HOLOGRAM_TRY(const auto splits, reals(c, "nodes_splits"));
  HOLOGRAM_TRY(const auto weights, reals(c, "leaf_weights"));
  HOLOGRAM_TRY(const auto members, reals(c, "membership_values"));
  const Tensor* modes = c.attributes().tensor("nodes_modes");
  const auto features = c.integers("nodes_featureids"), leaf_targets = c.integers("leaf_targetids");
  const auto missing = c.integers("nodes_missing_value_tracks_true");
  const std::span<const int64_t> ids[2] = {c.integers("nodes_falsenodeids"),
                                           c.integers("nodes_truenodeids")};
  const std::span<const int64_t> leafs[2] = {c.integers("nodes_falseleafs"),
                                             c.integers("nodes_trueleafs")};
  const size_t nodes = splits.size(), leaves = weights.size();
  if (!modes || modes->dtype != DType::u8 || static_cast<size_t>(modes->count()) != nodes ||
      features.size() != nodes || ids[0].size() != nodes || ids[1].size() != nodes ||
      leafs[0].size() != nodes || leafs[1].size() != nodes ||
      (!missing.empty() && missing.size() != nodes) || leaf_targets.size() != leaves)
    return fail(ErrorCode::invalid_argument,
                "the nodes_* attributes must all have {} entries, leaf_targetids {}", nodes,
                leaves);
  if (targets < 1 || targets > kMostTargets || aggregate < 0 || aggregate > 3)
    return fail(ErrorCode::invalid_argument, "n_targets {}, aggregate_function {}", targets,
                aggregate);
  e.targets = static_cast<size_t>(targets);
  e.aggregate = static_cast<uint8_t>(aggregate);
  e.nodes.resize(nodes + leaves);  // leaves after the others
  auto inside = [](int64_t value, size_t limit) {
    return value >= 0 && static_cast<size_t>(value) < limit;
  };
  for (const int64_t root : c.integers("tree_roots")) {
    if (!inside(root, nodes))
      return fail(ErrorCode::out_of_range, "tree root {} of {} nodes", root, nodes);
    e.roots.push_back(static_cast<size_t>(root));
  }
  for (size_t i = 0; i < leaves; ++i) {
    if (!inside(leaf_targets[i], e.targets))
      return fail(ErrorCode::out_of_range, "target {} of {}", leaf_targets[i], e.targets);
    e.nodes[nodes + i].votes = {{static_cast<size_t>(leaf_targets[i]), weights[i]}};
  }
  auto next = members.begin();
  for (size_t i = 0; i < nodes; ++i) {
    Ensemble::Node& node = e.nodes[i];
    node.feature = features[i];
    node.split = splits[i];
    node.mode = modes->as<uint8_t>()[i];
    node.missing_is_true = !missing.empty() && missing[i] != 0;
    if (node.mode > member)
      return fail(ErrorCode::invalid_argument, "nodes_modes {}; 0 to 6", node.mode);
    for (int side : {0, 1}) {
      const bool is_leaf = leafs[side][i] != 0;
      if (!inside(ids[side][i], is_leaf ? leaves : nodes))
        return fail(ErrorCode::out_of_range, "node {} goes on at {}", i, ids[side][i]);
      node.next[side] = static_cast<size_t>(ids[side][i]) + (is_leaf ? nodes : 0);
    }
    if (node.mode != member) continue;
    // Sets lie one after another, a NaN after each.
    for (; next != members.end() && !std::isnan(*next); ++next) node.set.push_back(*next);
    if (next != members.end()) ++next;
  }
  return e;
}

// The form before ai.onnx.ml 5. `votes` is "class" or "target": what the leaves' attributes begin
// with.
Result<Ensemble> read_older_trees(const KernelContext& c, std::string_view votes, size_t targets) {
  Ensemble e;
  e.targets = targets;
  HOLOGRAM_TRY(const auto splits, list_or_tensor(c, "nodes_values"));
  HOLOGRAM_TRY(const auto weights, list_or_tensor(c, joined(votes, "_weights")));
  HOLOGRAM_TRY(e.base, list_or_tensor(c, "base_values"));
  const auto trees = c.integers("nodes_treeids"), ids = c.integers("nodes_nodeids");
  const auto features = c.integers("nodes_featureids");
  const auto missing = c.integers("nodes_missing_value_tracks_true");
  const auto modes = c.attributes().texts("nodes_modes");
  const std::span<const int64_t> next[2] = {c.integers("nodes_falsenodeids"),
                                            c.integers("nodes_truenodeids")};
  const size_t nodes = ids.size();
  if (nodes == 0 || trees.size() != nodes || features.size() != nodes || modes.size() != nodes ||
      splits.size() != nodes || next[0].size() != nodes || next[1].size() != nodes ||
      (!missing.empty() && missing.size() != nodes))
    return fail(ErrorCode::invalid_argument, "the nodes_* attributes must all have {} entries",
                nodes);
  Map<std::pair<int64_t, int64_t>, size_t> places;
  for (size_t i = 0; i < nodes; ++i)
    if (!places.try_emplace({trees[i], ids[i]}, i).second)
      return fail(ErrorCode::invalid_argument, "node {} of tree {} is there twice", ids[i],
                  trees[i]);
  static constexpr std::string_view kModes[] = {"BRANCH_LEQ",    "BRANCH_LT", "BRANCH_GTE",
                                                "BRANCH_GT",     "BRANCH_EQ", "BRANCH_NEQ",
                                                "BRANCH_MEMBER", "LEAF"};
  e.nodes.resize(nodes);
  List<bool> is_child(nodes, false);
  for (size_t i = 0; i < nodes; ++i) {
    Ensemble::Node& node = e.nodes[i];
    const auto mode = std::ranges::find(kModes, std::string_view(modes[i])) - std::begin(kModes);
    if (mode == std::ssize(kModes) || mode == member)
      return fail(ErrorCode::invalid_argument,
                  "nodes_modes '{}'; supported: BRANCH_LEQ, _LT, _GTE, _GT, _EQ, _NEQ and LEAF",
                  modes[i]);
    node.mode = static_cast<uint8_t>(mode);
    node.feature = features[i];
    node.split = splits[i];
    node.missing_is_true = !missing.empty() && missing[i] != 0;
    for (int side : {0, 1}) {
      if (node.mode == leaf) continue;
      const auto found = places.find({trees[i], next[side][i]});
      if (found == places.end())
        return fail(ErrorCode::out_of_range, "node {} of tree {} goes on at {}, which is not there",
                    ids[i], trees[i], next[side][i]);
      node.next[side] = found->second;
      is_child[found->second] = true;
    }
  }
  // A tree begins at its first node.
  Set<int64_t> seen;
  for (size_t i = 0; i < nodes; ++i) {
    if (!seen.insert(trees[i]).second) continue;
    if (is_child[i])
      return fail(ErrorCode::invalid_argument, "tree {} goes in a circle to its first node",
                  trees[i]);
    e.roots.push_back(i);
  }
  const auto vote_trees = c.integers(joined(votes, "_treeids")),
             vote_nodes = c.integers(joined(votes, "_nodeids"));
  const auto vote_targets = c.integers(joined(votes, "_ids"));
  if (vote_trees.size() != weights.size() || vote_nodes.size() != weights.size() ||
      vote_targets.size() != weights.size())
    return fail(ErrorCode::invalid_argument, "the {}_* attributes must all have {} entries", votes,
                weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto found = places.find({vote_trees[i], vote_nodes[i]});
    const int64_t target = vote_targets[i];
    if (found == places.end() || target < 0 || static_cast<size_t>(target) >= targets)
      return fail(ErrorCode::out_of_range, "a vote for {} of {} at node {} of tree {}", target,
                  targets, vote_nodes[i], vote_trees[i]);
    e.nodes[found->second].votes.emplace_back(static_cast<size_t>(target), weights[i]);
  }
  return e;
}

}  // namespace

Status tree_ensemble(KernelContext& c) {
  HOLOGRAM_TRY(const Features x, read_features(c));
  HOLOGRAM_TRY(const Ensemble trees, read_trees(c));
  HOLOGRAM_CHECK(trees.check_features(x.columns));
  const int64_t transform = c.integer("post_transform", 0);
  if (transform < 0 || transform > 4)
    return fail(ErrorCode::invalid_argument, "post_transform {}; 0 to 4", transform);
  HOLOGRAM_TRY(Tensor y, c.output(0, {x.rows, static_cast<int64_t>(trees.targets)}));
  List<double> scores(trees.targets);
  for (int64_t i = 0; i < x.rows; ++i) {
    HOLOGRAM_CHECK(trees.score(x.row(i), scores));
    transform_scores(static_cast<PostTransform>(transform), scores);
    HOLOGRAM_CHECK(dispatch_float(y.dtype, [&]<typename T>() -> Status {
      std::ranges::transform(scores, y.as<T>() + i * y.dims[1],
                             [](double score) { return static_cast<T>(score); });
      return {};
    }));
  }
  return {};
}

Status tree_ensemble_regressor(KernelContext& c) {
  HOLOGRAM_TRY(const Features x, read_features(c));
  HOLOGRAM_TRY(const PostTransform transform, post_transform_of(c));
  const int64_t targets = c.integer("n_targets", 1);
  if (targets < 1 || targets > kMostTargets)
    return fail(ErrorCode::invalid_argument, "n_targets {}; 1 to {}", targets, kMostTargets);
  HOLOGRAM_TRY(Ensemble trees, read_older_trees(c, "target", static_cast<size_t>(targets)));
  HOLOGRAM_CHECK(trees.check_features(x.columns));
  const std::string_view how = c.text("aggregate_function", "SUM");
  static constexpr std::string_view kNames[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const auto found = std::ranges::find(kNames, how) - std::begin(kNames);
  if (found == std::ssize(kNames))
    return fail(ErrorCode::invalid_argument,
                "aggregate_function '{}'; supported: AVERAGE, SUM, MIN, MAX", how);
  trees.aggregate = static_cast<uint8_t>(found);
  HOLOGRAM_TRY(Tensor y, c.output(0, {x.rows, targets}));
  List<double> scores(trees.targets);
  for (int64_t i = 0; i < x.rows; ++i) {
    HOLOGRAM_CHECK(trees.score(x.row(i), scores));
    transform_scores(transform, scores);
    std::ranges::copy(scores, y.as<float>() + i * targets);
  }
  return {};
}

Status tree_ensemble_classifier(KernelContext& c) {
  HOLOGRAM_TRY(const Features x, read_features(c));
  HOLOGRAM_TRY(const PostTransform transform, post_transform_of(c));
  HOLOGRAM_TRY(const Labels labels, Labels::read(c, "classlabels_int64s"));
  HOLOGRAM_TRY(Ensemble trees, read_older_trees(c, "class", labels.count()));
  HOLOGRAM_CHECK(trees.check_features(x.columns));
  const auto voted = c.integers("class_ids");
  const bool one_score =
      labels.count() == 2 && Set<int64_t>(voted.begin(), voted.end()).size() == 1;
  bool positive = true;
  for (const Ensemble::Node& node : trees.nodes)
    for (const auto& [target, weight] : node.votes) positive &= weight >= 0;
  // Of two classes that share one score, the second's base is the one that counts.
  const List<double> base = trees.base;
  if (one_score) trees.base.clear();
  HOLOGRAM_TRY(Tensor y, c.output(0, {x.rows}));
  Tensor z;
  if (c.wants_output(1)) {
    HOLOGRAM_TRY(z, c.output(1, {x.rows, static_cast<int64_t>(labels.count())}));
  }
  List<double> scores(trees.targets);
  for (int64_t i = 0; i < x.rows; ++i) {
    HOLOGRAM_CHECK(trees.score(x.row(i), scores));
    List<double> shown = scores;
    if (one_score) {
      double score = scores[static_cast<size_t>(voted[0])];
      if (!base.empty()) score += base.back();
      labels.write(y, i, score > (positive ? 0.5 : 0) ? 1 : 0);
      if (base.size() == 2) {
        shown = {-score, score};
        transform_scores(transform, shown);
      } else {
        shown = both_scores(transform, score, positive);
      }
    } else {
      labels.write(y, i, static_cast<size_t>(std::ranges::max_element(shown) - shown.begin()));
      transform_scores(transform, shown);
    }
    if (z.data) std::ranges::copy(shown, z.as<float>() + i * z.dims[1]);
  }
  return {};
}

}  // namespace hologram::kernels
