// Kernels of the domain ai.onnx.ml: LabelEncoder, TreeEnsemble.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

#include "backends/cpu/kernels/convert.h"
#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"

namespace hologram::kernels {
namespace {

// keys_* or values_*: whichever is there, as one tensor.
Result<Tensor> listed(const Attributes& a, const std::string& kind) {
  if (const Tensor* tensor = a.tensor(kind + "_tensor")) return *tensor;
  if (a.has(kind + "_strings")) {
    const auto list = a.texts(kind + "_strings");
    return Tensor::from_strings({static_cast<int64_t>(list.size())}, {list.begin(), list.end()});
  }
  if (a.has(kind + "_int64s")) {
    const auto list = a.integers(kind + "_int64s");
    return Tensor::from<int64_t>({static_cast<int64_t>(list.size())}, list);
  }
  const auto list = a.numbers(kind + "_floats");
  return Tensor::from<float>({static_cast<int64_t>(list.size())}, list);
}

// What an unknown key becomes.
Result<Tensor> default_label(const Attributes& a, DType type) {
  if (const Tensor* tensor = a.tensor("default_tensor")) {
    if (tensor->dtype != type || tensor->count() != 1)
      return fail(ErrorCode::type_mismatch, "default_tensor must be one {}", name_of(type));
    return *tensor;
  }
  HOLOGRAM_TRY(Tensor label, Tensor::allocate(type, {}));
  const int64_t integer = a.integer("default_int64", -1);
  const double number = a.number("default_float", -0.0);
  switch (type) {
    case DType::string:
      *label.as<std::string>() = a.text("default_string", "_Unused");
      return label;
    case DType::i64:
      *label.as<int64_t>() = integer;
      return label;
    case DType::i32:
      *label.as<int32_t>() = static_cast<int32_t>(integer);
      return label;
    case DType::i16:
      *label.as<int16_t>() = static_cast<int16_t>(integer);
      return label;
    case DType::f32:
      *label.as<float>() = static_cast<float>(number);
      return label;
    case DType::f64:
      *label.as<double>() = number;
      return label;
    default:
      return fail(ErrorCode::unsupported,
                  "values of type {}; supported: string, i64, i32, i16, f32, f64", name_of(type));
  }
}

// A number as a key: all NaN are one, and so are the two zeros.
uint64_t key_of(const Tensor& of, int64_t i) {
  auto real = [](double x) {
    return std::isnan(x) ? ~uint64_t{0} : x == 0 ? 0 : std::bit_cast<uint64_t>(x);
  };
  switch (of.dtype) {
    case DType::f32:
      return real(of.as<float>()[i]);
    case DType::f64:
      return real(of.as<double>()[i]);
    case DType::i32:
      return static_cast<uint64_t>(of.as<int32_t>()[i]);
    case DType::i16:
      return static_cast<uint64_t>(of.as<int16_t>()[i]);
    default:
      return of.as<uint64_t>()[i];
  }
}

Status label_encoder(KernelContext& c) {
  const Tensor& in = c.input(0);
  HOLOGRAM_TRY(const Tensor keys, listed(c.attributes(), "keys"));
  HOLOGRAM_TRY(const Tensor values, listed(c.attributes(), "values"));
  HOLOGRAM_TRY(const Tensor fallback, default_label(c.attributes(), values.dtype));
  if (keys.count() != values.count())
    return fail(ErrorCode::invalid_argument, "{} keys and {} values", keys.count(), values.count());
  std::unordered_map<std::string, int64_t> texts;
  std::unordered_map<uint64_t, int64_t> numbers;
  for (int64_t i = 0; i < keys.count(); ++i) {
    if (in.dtype == DType::string)
      texts.try_emplace(keys.as<std::string>()[i], i);
    else
      numbers.try_emplace(key_of(keys, i), i);
  }
  auto place = [&](int64_t i) -> int64_t {
    if (in.dtype == DType::string) {
      auto found = texts.find(in.as<std::string>()[i]);
      return found == texts.end() ? -1 : found->second;
    }
    auto found = numbers.find(key_of(in, i));
    return found == numbers.end() ? -1 : found->second;
  };
  HOLOGRAM_TRY(Tensor out, c.output(0, in.dims));
  return dispatch_size(out.dtype, [&]<typename T>() -> Status {
    for (int64_t i = 0; i < in.count(); ++i) {
      const int64_t at = place(i);
      out.as<T>()[i] = at < 0 ? *fallback.as<T>() : values.as<T>()[at];
    }
    return {};
  });
}

Result<std::vector<double>> reals(KernelContext& c, const char* name) {
  const Tensor* given = c.attributes().tensor(name);
  if (!given) return std::vector<double>();
  Tensor tensor = *given;
  if (tensor.dtype == DType::f16) {
    HOLOGRAM_TRY(Tensor wide, Tensor::allocate(DType::f32, tensor.dims));
    convert_half_to_float(tensor, wide);
    tensor = wide;
  }
  if (tensor.dtype == DType::f32)
    return std::vector<double>(tensor.as<float>(), tensor.as<float>() + tensor.count());
  if (tensor.dtype == DType::f64)
    return std::vector<double>(tensor.as<double>(), tensor.as<double>() + tensor.count());
  return fail(ErrorCode::type_mismatch, "{} of type {}", name, name_of(tensor.dtype));
}

// The trees of one ensemble, checked: every index lies inside.
class Trees {
 public:
  enum Mode : uint8_t { leq, less, geq, greater, equal, unequal, member };

  static Result<Trees> read(KernelContext& c, int64_t features) {
    Trees t;
    t.targets_ = c.integer("n_targets");
    t.aggregate_ = c.integer("aggregate_function", 1);
    t.transform_ = c.integer("post_transform", 0);
    HOLOGRAM_TRY(t.splits_, reals(c, "nodes_splits"));
    HOLOGRAM_TRY(t.weights_, reals(c, "leaf_weights"));
    HOLOGRAM_TRY(const std::vector<double> members, reals(c, "membership_values"));
    const Tensor* modes = c.attributes().tensor("nodes_modes");
    t.roots_ = c.integers("tree_roots");
    t.features_ = c.integers("nodes_featureids");
    t.ids_[0] = c.integers("nodes_falsenodeids");
    t.ids_[1] = c.integers("nodes_truenodeids");
    t.leafs_[0] = c.integers("nodes_falseleafs");
    t.leafs_[1] = c.integers("nodes_trueleafs");
    t.missing_ = c.integers("nodes_missing_value_tracks_true");
    t.leaf_targets_ = c.integers("leaf_targetids");
    const size_t nodes = t.splits_.size(), leaves = t.weights_.size();
    if (!modes || modes->dtype != DType::u8 || static_cast<size_t>(modes->count()) != nodes ||
        t.features_.size() != nodes || t.ids_[0].size() != nodes || t.ids_[1].size() != nodes ||
        t.leafs_[0].size() != nodes || t.leafs_[1].size() != nodes ||
        (!t.missing_.empty() && t.missing_.size() != nodes) || t.leaf_targets_.size() != leaves)
      return fail(ErrorCode::invalid_argument,
                  "the nodes_* attributes must all have {} entries, leaf_targetids {}", nodes,
                  leaves);
    if (t.targets_ < 1 || t.aggregate_ < 0 || t.aggregate_ > 3 || t.transform_ < 0 ||
        t.transform_ > 4)
      return fail(ErrorCode::invalid_argument,
                  "n_targets {}, aggregate_function {}, post_transform {}", t.targets_,
                  t.aggregate_, t.transform_);
    auto inside = [](int64_t value, int64_t limit) { return value >= 0 && value < limit; };
    for (int64_t root : t.roots_)
      if (!inside(root, static_cast<int64_t>(nodes)))
        return fail(ErrorCode::out_of_range, "tree root {} of {} nodes", root, nodes);
    for (int64_t target : t.leaf_targets_)
      if (!inside(target, t.targets_))
        return fail(ErrorCode::out_of_range, "target {} of {}", target, t.targets_);
    auto next = members.begin();
    for (size_t i = 0; i < nodes; ++i) {
      if (!inside(t.features_[i], features))
        return fail(ErrorCode::out_of_range, "feature {} of {}", t.features_[i], features);
      for (int side : {0, 1})
        if (!inside(t.ids_[side][i], static_cast<int64_t>(t.leafs_[side][i] ? leaves : nodes)))
          return fail(ErrorCode::out_of_range, "node {} goes on at {}", i, t.ids_[side][i]);
      t.modes_.push_back(modes->as<uint8_t>()[i]);
      if (t.modes_[i] > member)
        return fail(ErrorCode::invalid_argument, "nodes_modes {}; 0 to 6", t.modes_[i]);
      t.sets_.emplace_back();
      if (t.modes_[i] != member) continue;
      // Sets lie one after another, a NaN after each.
      for (; next != members.end() && !std::isnan(*next); ++next) t.sets_[i].push_back(*next);
      if (next != members.end()) ++next;
    }
    return t;
  }

  // One row of features -> one row of targets.
  template <typename T>
  Status run(const T* row, T* out) const {
    std::vector<double> sums(targets_, 0.0);
    std::vector<bool> hit(targets_, false);
    for (int64_t root : roots_) {
      HOLOGRAM_TRY(const size_t leaf, walk(row, root));
      const int64_t target = leaf_targets_[leaf];
      const double weight = weights_[leaf];
      double& sum = sums[target];
      if (aggregate_ == 2)
        sum = hit[target] ? std::min(sum, weight) : weight;
      else if (aggregate_ == 3)
        sum = hit[target] ? std::max(sum, weight) : weight;
      else
        sum += weight;
      hit[target] = true;
    }
    if (aggregate_ == 0)
      for (double& sum : sums) sum /= static_cast<double>(std::max<size_t>(roots_.size(), 1));
    transform(sums);
    for (int64_t i = 0; i < targets_; ++i) out[i] = static_cast<T>(sums[i]);
    return {};
  }
  int64_t targets() const { return targets_; }

 private:
  template <typename T>
  Result<size_t> walk(const T* row, int64_t node) const {
    for (size_t steps = 0; steps < splits_.size(); ++steps) {
      const double x = row[features_[node]];
      const bool taken = (std::isnan(x) && !missing_.empty() && missing_[node]) || test(node, x);
      const int64_t id = ids_[taken][node];
      if (leafs_[taken][node]) return static_cast<size_t>(id);
      node = id;
    }
    return fail(ErrorCode::invalid_argument, "a tree that goes in a circle");
  }

  bool test(int64_t node, double x) const {
    const double split = splits_[node];
    switch (modes_[node]) {
      case leq:
        return x <= split;
      case less:
        return x < split;
      case geq:
        return x >= split;
      case greater:
        return x > split;
      case equal:
        return x == split;
      case unequal:
        return x != split;
      default:
        return std::find(sets_[node].begin(), sets_[node].end(), x) != sets_[node].end();
    }
  }

  void transform(std::vector<double>& row) const {
    if (transform_ == 2)
      for (double& x : row) x = 1 / (1 + std::exp(-x));
    if (transform_ == 4)
      for (double& x : row) x = probit(x);
    if (transform_ != 1 && transform_ != 3) return;
    const bool keep_zeros = transform_ == 3;
    const double top = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (double& x : row) {
      if (keep_zeros && x == 0) continue;
      x = std::exp(x - top);
      sum += x;
    }
    for (double& x : row)
      if (sum > 0) x /= sum;
  }

  // The inverse of the normal distribution: a first guess (Winitzki's), then Newton's steps.
  static double probit(double p) {
    if (!(p > 0 && p < 1)) return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
    const double y = 2 * p - 1, log = std::log1p(-y * y), a = 0.147;
    const double half = 2 / (M_PI * a) + log / 2;
    double x = std::copysign(std::sqrt(std::sqrt(half * half - log / a) - half), y) * M_SQRT2;
    for (int i = 0; i < 4; ++i) {
      const double error = 0.5 * std::erfc(-x * M_SQRT1_2) - p;
      x -= error * std::sqrt(2 * M_PI) * std::exp(x * x / 2);
    }
    return x;
  }

  int64_t targets_ = 1, aggregate_ = 1, transform_ = 0;
  std::span<const int64_t> roots_, features_, ids_[2], leafs_[2], missing_, leaf_targets_;
  std::vector<double> splits_, weights_;
  std::vector<uint8_t> modes_;
  std::vector<std::vector<double>> sets_;
};

Status tree_ensemble(KernelContext& c) {
  const Tensor& in = c.input(0);
  if (in.dims.rank() != 2)
    return fail(ErrorCode::shape_mismatch, "input {}; [N, F] expected", in.dims.to_string());
  HOLOGRAM_TRY(const Trees trees, Trees::read(c, in.dims[1]));
  HOLOGRAM_TRY(Tensor out, c.output(0, {in.dims[0], trees.targets()}));
  return dispatch_float(in.dtype, [&]<typename T>() -> Status {
    for (int64_t i = 0; i < in.dims[0]; ++i)
      HOLOGRAM_CHECK(trees.run(in.as<T>() + i * in.dims[1], out.as<T>() + i * trees.targets()));
    return {};
  });
}

constexpr Kernel kKernels[] = {
    {"LabelEncoder", label_encoder},
    {"TreeEnsemble", tree_ensemble, true},
};

}  // namespace

std::span<const Kernel> machine_learning_kernels() { return kKernels; }

}  // namespace hologram::kernels
