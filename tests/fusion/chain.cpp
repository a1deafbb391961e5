#include "tests/fusion/chain.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "compiler/compile.h"
#include "graph/infer.h"
#include "runtime/session/session.h"
#include "support/aligned.h"

namespace hologram::fusion {
namespace {

using graph::kNoValue;
using graph::Node;
using graph::Operator;
using graph::TypeSet;
using graph::ValueType;
using kernels::Dims;
using kernels::Tensor;

constexpr int64_t kLargest = 20000;  // elements of a value

const std::set<std::string, std::less<>> kInexact = {
    "Exp",   "Log",   "Sigmoid", "Tanh",     "Erf",      "Gelu",      "Softplus",
    "Mish",  "Elu",   "Celu",    "Selu",     "Swish",    "Pow",       "Sin",
    "Cos",   "Tan",   "Asin",    "Acos",     "Atan",     "Sinh",      "Cosh",
    "Asinh", "Acosh", "Atanh",   "FastGelu", "BiasGelu", "QuickGelu", "HardSwish"};
const std::set<std::string, std::less<>> kReordered = {"Conv",
                                                       "ConvTranspose",
                                                       "MatMul",
                                                       "Gemm",
                                                       "FusedMatMul",
                                                       "BatchNormalization",
                                                       "Einsum",
                                                       "Attention",
                                                       "MultiHeadAttention",
                                                       "LayerNormalization",
                                                       "SkipLayerNormalization"};
// Activations that a pass gives to a kernel of their own, which rounds otherwise.
const std::set<std::string, std::less<>> kActivations = {
    "Elu",      "Celu",      "Selu",        "Sigmoid",   "Tanh",     "Swish", "Gelu", "FastGelu",
    "BiasGelu", "QuickGelu", "HardSigmoid", "HardSwish", "Softplus", "Mish",  "Exp"};
// Besides every operator whose result is not a float.
const std::set<std::string, std::less<>> kJumps = {"Floor",
                                                   "Ceil",
                                                   "Round",
                                                   "Sign",
                                                   "Mod",
                                                   "Shrink",
                                                   "ThresholdedRelu",
                                                   "TopK",
                                                   "Unique",
                                                   "Div",
                                                   "Reciprocal",
                                                   "Tan",
                                                   "Log",
                                                   "Pow",
                                                   "Atanh",
                                                   "Hardmax",
                                                   "Clip",
                                                   "Where",
                                                   "Scatter",
                                                   "QuantizeLinear",
                                                   "DynamicQuantizeLinear",
                                                   "Resize",
                                                   "GridSample",
                                                   "Sqrt",
                                                   "Acos",
                                                   "Asin",
                                                   "Acosh",
                                                   "LpNormalization",
                                                   "InstanceNormalization",
                                                   "GroupNormalization",
                                                   "LayerNormalization",
                                                   "MeanVarianceNormalization",
                                                   "RMSNormalization",
                                                   "BatchNormalization"};

class Drawer {
 public:
  explicit Drawer(uint64_t seed) : random_(seed) {
    static const auto kAll = [] {
      std::pair<std::vector<const Operator*>, std::vector<const Operator*>> lists;
      for (const Operator* entry : graph::operators().all())
        if (entry->deterministic && !entry->control_flow && entry->domain != "hologram")
          (entry->pointwise ? lists.first : lists.second).push_back(entry);
      return lists;
    }();
    pointwise_ = kAll.first;
    others_ = kAll.second;
  }

  Chain draw(size_t length) {
    symbolic_ = chance(40);
    const DType types[] = {DType::f32, DType::f32, DType::f32, DType::i64,    DType::i32,
                           DType::f64, DType::f16, DType::u8,  DType::boolean};
    Dims dims;
    const int64_t sizes[] = {1, 2, 3, 5, 8, 33, 64};
    for (size_t i = 0, rank = below(5); i < rank; ++i) dims.push_back(sizes[below(7)]);
    for (int i = 0; i < 2; ++i) add_input(types[below(9)], i == 0 ? dims : part_of(dims));
    add_input(chain_.known[chain_.graph.inputs[0]].value.tensor.dtype, dims);
    for (size_t tries = 0; chain_.drawn.size() < length && tries < length * 12; ++tries) add_node();
    finish();
    return std::move(chain_);
  }

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  bool chance(uint64_t percent) { return below(100) < percent; }

  // Some axes of 1, or fewer of them: what broadcasts against it.
  Dims part_of(const Dims& dims) {
    Dims result;
    for (size_t i = chance(30) && dims.rank() > 0 ? below(dims.rank() + 1) : 0; i < dims.rank();
         ++i)
      result.push_back(chance(30) ? 1 : dims[i]);
    return result;
  }

  Tensor tensor(DType dtype, const Dims& dims) {
    Tensor t = *Tensor::allocate(dtype, dims);
    std::normal_distribution<float> normal(0, 2);
    for (int64_t i = 0; i < t.count(); ++i) {
      const auto small = static_cast<int64_t>(below(9)) - 4;
      const float real = chance(5) ? 0.f : normal(random_);
      switch (dtype) {
        case DType::f32:
          t.as<float>()[i] = real;
          break;
        case DType::f64:
          t.as<double>()[i] = real;
          break;
        case DType::f16:
          t.as<Half>()[i] = Half(real);
          break;
        case DType::bf16:
          t.as<BFloat16>()[i] = BFloat16(real);
          break;
        case DType::i64:
          t.as<int64_t>()[i] = small;
          break;
        case DType::i32:
          t.as<int32_t>()[i] = static_cast<int32_t>(small);
          break;
        case DType::i16:
          t.as<int16_t>()[i] = static_cast<int16_t>(small);
          break;
        case DType::boolean:
          t.as<bool>()[i] = small > 0;
          break;
        case DType::string:
          t.strings()[i] = std::to_string(small);
          break;
        default:
          std::memset(t.data, static_cast<int>(below(5)), t.bytes());
          return t;
      }
    }
    return t;
  }

  void add_input(DType dtype, const Dims& dims) {
    std::vector<Dim> declared;
    for (int64_t dim : dims)  // equal sizes are one symbol
      declared.push_back(symbolic_ && dim > 1 ? Dim("s" + std::to_string(dim)) : Dim(dim));
    const ValueId id = chain_.graph.add_input("x" + std::to_string(chain_.inputs.size()),
                                              ValueType::tensor(dtype, Shape(std::move(declared))));
    chain_.inputs.emplace_back(tensor(dtype, dims));
    chain_.known.resize(chain_.graph.value_count());
    chain_.known[id].value = chain_.inputs.back();
    pool_.push_back(id);
  }

  ValueId constant(DType dtype, const Dims& dims) {
    const Tensor t = tensor(dtype, dims);
    const ValueId id = chain_.graph.add_constant(t);
    chain_.known.resize(chain_.graph.value_count());
    chain_.known[id].value = t;
    return id;
  }

  // A small vector of integers, as axes, shapes, pads and indices are.
  ValueId integers(DType dtype) {
    Tensor t =
        *Tensor::allocate(dtype, chance(30) ? Dims() : Dims{1 + static_cast<int64_t>(below(4))});
    for (int64_t i = 0; i < t.count(); ++i) {
      const auto value = static_cast<int64_t>(below(5)) - 1;
      if (dtype == DType::i32)
        t.as<int32_t>()[i] = static_cast<int32_t>(value);
      else
        t.as<int64_t>()[i] = value;
    }
    const ValueId id = chain_.graph.add_constant(t);
    chain_.known.resize(chain_.graph.value_count());
    chain_.known[id].value = t;
    return id;
  }

  std::optional<ValueId> operand(const Operator& entry, const Operator::Formal& formal, bool first,
                                 std::map<std::string, DType>& bound) {
    const auto named = dtype_from_name(formal.type);
    auto allowed = [&](DType dtype) {
      if (named) return dtype == *named;
      if (auto b = bound.find(formal.type); b != bound.end()) return dtype == b->second;
      auto set = entry.constraints.find(formal.type);
      return set != entry.constraints.end() && set->second.has(dtype);
    };
    const bool index = (named && (*named == DType::i64 || *named == DType::i32)) ||
                       (formal.type != "T" && !bound.contains(formal.type) && !first &&
                        allowed(DType::i64) && !allowed(DType::f32));
    if (index && !chance(15)) return integers(allowed(DType::i64) ? DType::i64 : DType::i32);
    // The newest value first: operators follow one another.
    std::vector<ValueId> fits;
    for (ValueId id : pool_) {
      const Value& value = chain_.known[id].value;
      if (formal.type == "V" || (value.is_tensor() && allowed(value.tensor.dtype)) ||
          (value.is_sequence() && formal.type.starts_with("seq(")))
        fits.push_back(id);
    }
    std::optional<ValueId> chosen;
    if (!fits.empty() && !(chance(25) && !first))
      chosen = first && chance(75) ? fits.back() : fits[below(fits.size())];
    if (!chosen) {
      DType dtype = named.value_or(DType::f32);
      if (auto b = bound.find(formal.type); b != bound.end()) dtype = b->second;
      if (!allowed(dtype)) return std::nullopt;
      const Value& like = chain_.known[pool_.back()].value;
      chosen =
          constant(dtype, chance(30) || !like.is_tensor() ? Dims() : part_of(like.tensor.dims));
    }
    if (const Value& value = chain_.known[*chosen].value; value.is_tensor() && !named)
      bound.emplace(formal.type, value.tensor.dtype);
    return chosen;
  }

  void draw_attributes(const Operator& entry, Node& node) {
    for (const auto& [name, kind] : entry.attributes) {
      const bool type = name == "to" || name == "dtype";
      if (!type && !chance(35)) continue;
      const DType types[] = {DType::f32,     DType::i64, DType::i32, DType::f64,
                             DType::boolean, DType::u8,  DType::f16};
      if (type)
        node.attributes.set(name, static_cast<int64_t>(types[below(7)]));
      else if (kind == 'i')
        node.attributes.set(name, static_cast<int64_t>(below(4)) - 1);
      else if (kind == 'f')
        node.attributes.set(name, 0.25 * static_cast<double>(1 + below(8)));
      else if (kind == 'I')
        node.attributes.set(name,
                            std::vector<int64_t>(1 + below(3), static_cast<int64_t>(below(3))));
      else if (kind == 's' && name == "direction")
        node.attributes.set(name, std::string(chance(50) ? "LEFT" : "RIGHT"));
    }
  }

  // One operator, if it can be given operands it runs on.
  void add_node() {
    const auto& list = chance(60) ? pointwise_ : others_;
    const Operator& entry = *list[below(list.size())];
    Node node{.op = entry.name, .domain = entry.domain};
    node.name = entry.name + std::to_string(chain_.drawn.size());
    std::map<std::string, DType> bound;
    for (size_t i = 0; i < entry.inputs.size(); ++i) {
      const Operator::Formal& formal = entry.inputs[i];
      if (formal.optional && !chance(40)) {
        node.inputs.push_back(kNoValue);
        continue;
      }
      for (size_t n = formal.variadic ? 1 + below(3) : 1; n-- > 0;) {
        const auto id = operand(entry, formal, i == 0, bound);
        if (!id) return;
        node.inputs.push_back(*id);
      }
    }
    while (!node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
    draw_attributes(entry, node);
    const size_t outputs = entry.outputs.empty()           ? 0
                           : entry.outputs.back().variadic ? 1 + below(3)
                                                           : entry.outputs.size();
    size_t wanted = 0;  // trailing optional outputs are left out at times
    for (size_t i = 0; i < outputs; ++i)
      if (i >= entry.outputs.size() || !entry.outputs[i].optional || chance(50)) wanted = i + 1;
    if (wanted == 0) return;
    if (trace_) fprintf(stderr, "%s\n", node.name.c_str());
    if (!runs_alone(node, wanted)) return;
    for (size_t i = 0; i < wanted; ++i)
      node.outputs.push_back(chain_.graph.add_value(node.name + "." + std::to_string(i)));
    chain_.known.resize(chain_.graph.value_count());
    if (!infer_node(chain_.graph, node)) return;  // symbols may not be enough for it
    Known from;
    for (ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      from.inexact |= chain_.known[id].inexact;
      from.reordered |= chain_.known[id].reordered;
      from.jumps |= chain_.known[id].jumps;
    }
    const bool differs = from.inexact || from.reordered;
    from.inexact |= kInexact.contains(entry.name) || entry.compose != nullptr;
    from.reordered |= kReordered.contains(entry.name) || kActivations.contains(entry.name) ||
                      !entry.domain.empty();
    for (size_t i = 0; i < wanted; ++i) {
      Known& known = chain_.known[node.outputs[i]];
      known = from;
      known.value = results_[i];
      const bool real = known.value.is_tensor() && is_float(known.value.tensor.dtype);
      known.jumps |= differs && (kJumps.contains(entry.name) || !real);
      pool_.push_back(node.outputs[i]);
    }
    chain_.drawn.push_back(entry.name);
    chain_.graph.nodes.push_back(std::move(node));
  }

  // The node by itself on the values it would get; its outputs are in results_ then.
  bool runs_alone(const Node& node, size_t outputs) {
    Graph g;
    std::vector<Value> inputs;
    Node copy{node.op, node.domain, node.name, 0, {}, {}, node.attributes, {}};
    for (ValueId id : node.inputs) {
      if (id == kNoValue) {
        copy.inputs.push_back(kNoValue);
        continue;
      }
      const graph::ValueInfo& info = chain_.graph.value(id);
      if (info.constant) {
        copy.inputs.push_back(g.add_constant(*info.constant));
        continue;
      }
      ValueType type = info.type;
      const Value& value = chain_.known[id].value;
      if (value.is_tensor()) {
        const Dims& dims = value.tensor.dims;
        type = ValueType::tensor(value.tensor.dtype,
                                 Shape(std::span<const int64_t>(dims.begin(), dims.rank())));
      }
      copy.inputs.push_back(g.add_input("x" + std::to_string(inputs.size()), std::move(type)));
      inputs.push_back(value);
    }
    for (size_t i = 0; i < outputs; ++i) {
      copy.outputs.push_back(g.add_value("y" + std::to_string(i)));
      g.outputs.push_back(copy.outputs.back());
      g.output_names.push_back(std::to_string(i));
    }
    g.nodes.push_back(std::move(copy));
    auto results = run(std::move(g), inputs, false, false);
    if (!results) return false;
    for (const Value& value : *results)
      if (value.is_tensor() && value.tensor.count() > kLargest) return false;
    results_ = *std::move(results);
    return true;
  }

  // Outputs are what nothing reads, and now and then something that is read too.
  void finish() {
    Graph& g = chain_.graph;
    std::set<ValueId> read;
    for (const Node& node : g.nodes) read.insert(node.inputs.begin(), node.inputs.end());
    for (const Node& node : g.nodes)
      for (ValueId id : node.outputs)
        if (!read.contains(id) || chance(10)) {
          g.outputs.push_back(id);
          g.output_names.push_back(g.value(id).name);
        }
  }

  std::mt19937_64 random_;
  std::vector<const Operator*> pointwise_, others_;
  bool symbolic_ = false;
  const bool trace_ = std::getenv("FUSION_TRACE") != nullptr;  // names what is tried, for crashes
  Chain chain_;
  std::vector<ValueId> pool_;
  std::vector<Value> results_;
};

}  // namespace

Result<std::vector<Value>> run(Graph graph, std::span<const Value> inputs, bool optimise,
                               bool native, size_t* fused) {
  static const archive::KeyPair kKey = *archive::KeyPair::generate();
  compiler::CompileReport report;
  compiler::CompileOptions options;
  options.optimise = optimise;
  options.report = &report;
  if (native) options.key = kKey;
  HOLOGRAM_TRY(const auto bytes, compiler::compile(std::move(graph), options));
  if (fused) *fused += report.fusion.fused.size();
  auto owner = std::make_shared<AlignedBytes>(*AlignedBytes::allocate(bytes.size()));
  std::memcpy(owner->data(), bytes.data(), bytes.size());
  static const auto kTrusted =
      std::make_shared<archive::TrustedKeys>(std::vector{kKey.public_key()});
  HOLOGRAM_TRY(auto archive, archive::Archive::open(owner->bytes().first(bytes.size()), owner,
                                                    {.trusted = kTrusted}));
  HOLOGRAM_TRY(const auto session, runtime::Session::open(std::move(archive)));
  return session.run(inputs);
}

Chain draw_chain(uint64_t seed, size_t length) { return Drawer(seed).draw(length); }

}  // namespace hologram::fusion
