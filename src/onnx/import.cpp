#include "onnx/import.h"

#include <set>
#include <unordered_map>

#include "onnx/canonical.h"
#include "onnx/gradient.h"
#include "onnx/model.h"

namespace hologram::onnx {
namespace {

using graph::Attribute;
using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using graph::ValueType;
using kernels::Tensor;

// Integer attributes that hold ONNX's number of an element type; the graph holds a DType's code.
const std::set<std::string_view> kTypeAttributes = {"to",
                                                    "dtype",
                                                    "output_dtype",
                                                    "output_datatype",
                                                    "stash_type",
                                                    "softmax_precision",
                                                    "qk_matmul_precision",
                                                    "precision"};

// The names that can be seen from one place. A function's body is a scope of the same graph that
// sees nothing around it; a subgraph's scope sees its parent's through captures.
struct Scope {
  Graph* graph;
  Scope* parent = nullptr;
  const Opsets* opsets = nullptr;
  const std::map<std::string_view, AttributeProto>* references = nullptr;  // in a function
  std::string prefix;
  std::unordered_map<std::string_view, ValueId> names;
};

class Importer {
 public:
  Importer(const ModelProto& model, TensorReader& tensors) : model_(model), tensors_(tensors) {
    for (const FunctionProto& f : model.functions) functions_[{f.domain, f.name, f.overload}] = &f;
  }

  Result<Graph> run() {
    for (const auto& [domain, version] : model_.opsets)
      if (domain.empty() && (version < kOldestOpset || version > kNewestOpset))
        return fail(ErrorCode::unsupported, "opset {}; supported: {} to {}", version, kOldestOpset,
                    kNewestOpset);
    Graph graph;
    Scope scope{&graph, nullptr, &model_.opsets};
    HOLOGRAM_CHECK(import_graph(model_.graph, scope));
    return graph;
  }

 private:
  Status import_graph(const GraphProto& proto, Scope& scope) {
    Graph& graph = *scope.graph;
    graph.name = proto.name;
    std::set<std::string_view> initialised;
    for (const TensorProto& t : proto.initializers) {
      HOLOGRAM_TRY(Tensor tensor, tensors_.read(t));
      initialised.insert(t.name);
      HOLOGRAM_CHECK(
          define(scope, t.name, graph.add_constant(std::move(tensor), std::string(t.name))));
    }
    for (const SparseTensorProto& t : proto.sparse_initializers) {
      HOLOGRAM_TRY(Tensor tensor, tensors_.read(t));
      initialised.insert(t.values.name);
      HOLOGRAM_CHECK(define(scope, t.values.name,
                            graph.add_constant(std::move(tensor), std::string(t.values.name))));
    }
    for (const ValueProto& v : proto.inputs) {
      if (initialised.contains(v.name)) continue;  // a default that nobody overrides
      auto type = read_type(v.type);
      if (!type) return fail(std::move(type).error(), "input '" + std::string(v.name) + "'");
      if (!type->is_known() && !scope.parent)
        return fail(ErrorCode::corrupt, "input '{}' has no type", v.name);
      HOLOGRAM_CHECK(define(scope, v.name, graph.add_input(std::string(v.name), *std::move(type))));
    }
    HOLOGRAM_CHECK(import_nodes(proto.nodes, scope));
    for (const ValueProto& v : proto.outputs) {
      auto id = find(scope, v.name);
      if (!id) return fail(std::move(id).error(), "output '" + std::string(v.name) + "'");
      graph.outputs.push_back(*id);
      graph.output_names.emplace_back(v.name);
    }
    return {};
  }

  Status import_nodes(const std::vector<NodeProto>& nodes, Scope& scope) {
    for (const NodeProto& node : nodes) {
      auto status = import_node(node, scope);
      if (!status)
        return fail(std::move(status).error(), "node '" + scope.prefix + std::string(node.name) +
                                                   "' (" + std::string(node.op) + ")");
    }
    return {};
  }

  Status define(Scope& scope, std::string_view name, ValueId id) {
    if (!scope.names.try_emplace(name, id).second)
      return fail(ErrorCode::corrupt, "the name '{}' is given twice", name);
    return {};
  }

  Result<ValueId> find(Scope& scope, std::string_view name) {
    if (auto found = scope.names.find(name); found != scope.names.end()) return found->second;
    if (!scope.parent)
      return fail(ErrorCode::corrupt,
                  "'{}' is read before anything writes it (a missing input, or a cycle)", name);
    HOLOGRAM_TRY(const ValueId outer, find(*scope.parent, name));
    const graph::ValueInfo& info = scope.parent->graph->value(outer);
    ValueId inner;
    if (info.constant) {
      inner = scope.graph->add_constant(*info.constant, info.name);
    } else {
      inner = scope.graph->add_value(info.name, info.type);
      scope.graph->captures.push_back({outer, inner});
    }
    scope.names[name] = inner;
    return inner;
  }

  Status import_node(const NodeProto& proto, Scope& scope) {
    // Functions that call others twice grow beyond all bounds.
    if (++imported_ > kMostNodes)
      return fail(ErrorCode::resource_exhausted, "more than {} nodes once functions are expanded",
                  kMostNodes);
    const std::string_view domain = proto.domain == "ai.onnx" ? "" : proto.domain;
    if (auto f = functions_.find({domain, proto.op, proto.overload}); f != functions_.end())
      return inline_function(*f->second, proto, scope);
    if (proto.op == "Constant" && domain.empty()) return import_constant(proto, scope);
    if (proto.op == "Gradient" && domain == "ai.onnx.preview.training")
      return import_gradient(proto, scope);
    if (domain == "hologram")
      return fail(ErrorCode::unsupported,
                  "the domain 'hologram' is the compiler's own; models cannot name it");
    Node node;
    node.op = proto.op;
    node.domain = domain;
    node.name = scope.prefix + std::string(proto.name);
    auto opset = scope.opsets->find(domain);
    if (opset == scope.opsets->end())
      return fail(ErrorCode::corrupt, "the model imports no opset for domain '{}'", domain);
    node.opset = static_cast<int>(opset->second);
    for (std::string_view name : proto.inputs) {
      if (name.empty()) {
        node.inputs.push_back(kNoValue);
        continue;
      }
      HOLOGRAM_TRY(const ValueId id, find(scope, name));
      node.inputs.push_back(id);
    }
    while (!node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
    for (const AttributeProto& a : proto.attributes) {
      auto status = import_attribute(a, node, scope);
      if (!status)
        return fail(std::move(status).error(), "attribute '" + std::string(a.name) + "'");
    }
    // Outputs left out at the end are not there; those in the middle are values nothing reads.
    size_t last = proto.outputs.size();
    while (last > 1 && proto.outputs[last - 1].empty()) --last;
    for (size_t i = 0; i < last; ++i) {
      const std::string_view name = proto.outputs[i];
      const ValueId id =
          scope.graph->add_value(name.empty() ? "" : scope.prefix + std::string(name));
      node.outputs.push_back(id);
      if (!name.empty()) HOLOGRAM_CHECK(define(scope, name, id));
    }
    give_seed(node);
    HOLOGRAM_CHECK(canonicalise(*scope.graph, node));
    scope.graph->nodes.push_back(std::move(node));
    return {};
  }

  // Random operators without a seed get one each: the same in every run, but not the same numbers
  // as another node.
  void give_seed(Node& node) {
    static const std::set<std::string_view> kRandom = {"Bernoulli",     "Multinomial",
                                                       "RandomNormal",  "RandomNormalLike",
                                                       "RandomUniform", "RandomUniformLike"};
    if (!node.domain.empty() || node.attributes.has("seed")) return;
    if (node.op == "Dropout" && node.opset >= 12)
      node.attributes.set("seed", seeds_++);
    else if (kRandom.contains(node.op))
      node.attributes.set("seed", static_cast<double>(seeds_++));
  }

  // The only operator that names values of its graph: xs, zs and y.
  Status import_gradient(const NodeProto& proto, Scope& scope) {
    GradientRequest request;
    request.name = scope.prefix + std::string(proto.name);
    if (auto opset = scope.opsets->find(proto.domain); opset != scope.opsets->end())
      request.opset = static_cast<int>(opset->second);
    auto named = [&](std::string_view name) -> Result<ValueId> {
      if (auto found = scope.names.find(name); found != scope.names.end()) return found->second;
      return fail(ErrorCode::corrupt, "'{}' is not a value of this graph", name);
    };
    for (const char* attribute : {"xs", "zs", "y"})
      for (const AttributeProto& a : proto.attributes) {
        if (a.name != attribute) continue;
        for (std::string_view name : a.texts) {
          HOLOGRAM_TRY(const ValueId id, named(name));
          request.sources.push_back(id);
        }
        if (a.name == "xs") request.differentiated = request.sources.size();
        if (a.name == "y") {
          HOLOGRAM_TRY(request.y, named(a.text));
        }
      }
    if (request.y == kNoValue || request.differentiated == 0 ||
        request.sources.size() != proto.inputs.size() ||
        proto.outputs.size() > request.differentiated)
      return fail(ErrorCode::corrupt,
                  "{} xs and zs, {} inputs and {} outputs; y, one input for each and one output "
                  "for each of the xs are expected",
                  request.sources.size(), proto.inputs.size(), proto.outputs.size());
    for (std::string_view name : proto.inputs) {
      HOLOGRAM_TRY(const ValueId id, find(scope, name));
      request.arguments.push_back(id);
    }
    HOLOGRAM_TRY(const auto results, add_gradient(*scope.graph, request));
    for (size_t i = 0; i < proto.outputs.size(); ++i)
      if (!proto.outputs[i].empty()) HOLOGRAM_CHECK(define(scope, proto.outputs[i], results[i]));
    return {};
  }

  Status import_constant(const NodeProto& proto, Scope& scope) {
    if (proto.attributes.size() != 1 || proto.outputs.size() != 1)
      return fail(ErrorCode::corrupt, "a Constant has one attribute and one output");
    Node node;
    HOLOGRAM_CHECK(import_attribute(proto.attributes[0], node, scope));
    if (node.attributes.size() != 1) return fail(ErrorCode::corrupt, "a Constant without a value");
    const Attribute& a = *node.attributes.begin();
    auto tensor = [&]() -> Result<Tensor> {
      switch (a.kind) {
        case Attribute::Kind::tensor:
          return a.tensor;
        case Attribute::Kind::integer:
          return Tensor::from<int64_t>({}, std::span(&a.integer, 1));
        case Attribute::Kind::number: {
          const float value = static_cast<float>(a.number);
          return Tensor::from<float>({}, std::span(&value, 1));
        }
        case Attribute::Kind::text:
          return Tensor::from_strings({}, {a.text});
        case Attribute::Kind::integers:
          return Tensor::from<int64_t>({static_cast<int64_t>(a.integers.size())}, a.integers);
        case Attribute::Kind::numbers:
          return Tensor::from<float>({static_cast<int64_t>(a.numbers.size())}, a.numbers);
        case Attribute::Kind::texts:
          return Tensor::from_strings({static_cast<int64_t>(a.texts.size())}, a.texts);
      }
      return fail(ErrorCode::internal, "attribute kind");
    }();
    if (!tensor) return std::unexpected(std::move(tensor).error());
    return define(scope, proto.outputs[0],
                  scope.graph->add_constant(*std::move(tensor),
                                            scope.prefix + std::string(proto.outputs[0])));
  }

  Status import_attribute(const AttributeProto& given, Node& node, Scope& scope) {
    const AttributeProto* a = &given;
    if (!given.reference.empty()) {
      if (!scope.references)
        return fail(ErrorCode::corrupt, "refers to '{}' outside a function", given.reference);
      auto found = scope.references->find(given.reference);
      if (found == scope.references->end()) return {};  // the caller left it out
      a = &found->second;
    }
    const std::string name(given.name);
    enum {
      undefined,
      number,
      integer,
      text,
      tensor,
      subgraph,
      numbers,
      integers,
      texts,
      tensors,
      graphs,
      sparse,
      sparses,
      type
    };
    switch (a->type) {
      case number:
        node.attributes.set(name, static_cast<double>(a->number));
        return {};
      case integer: {
        int64_t value = a->integer;
        if (kTypeAttributes.contains(name))
          if (auto dtype = dtype_from_onnx(value)) value = static_cast<int64_t>(*dtype);
        node.attributes.set(name, value);
        return {};
      }
      case text:
        node.attributes.set(name, std::string(a->text));
        return {};
      case numbers:
        node.attributes.set(name, a->numbers);
        return {};
      case integers:
        node.attributes.set(name, a->integers);
        return {};
      case texts:
        node.attributes.set(name, std::vector<std::string>(a->texts.begin(), a->texts.end()));
        return {};
      case tensor: {
        if (a->tensors.size() != 1)
          return fail(ErrorCode::corrupt, "a tensor attribute without its tensor");
        HOLOGRAM_TRY(Tensor value, tensors_.read(a->tensors[0]));
        node.attributes.set(name, std::move(value));
        return {};
      }
      case sparse: {
        if (a->sparse.size() != 1)
          return fail(ErrorCode::corrupt, "a sparse tensor attribute without its tensor");
        HOLOGRAM_TRY(Tensor value, tensors_.read(a->sparse[0]));
        node.attributes.set(name, std::move(value));
        return {};
      }
      case type: {
        if (a->types.size() != 1)
          return fail(ErrorCode::corrupt, "a type attribute without its type");
        HOLOGRAM_TRY(ValueType value, read_type(a->types[0]));
        node.attributes.set(name, value.to_string());
        return {};
      }
      case subgraph: {
        if (a->graphs.size() != 1)
          return fail(ErrorCode::corrupt, "a graph attribute without its graph");
        auto inner = std::make_unique<Graph>();
        Scope inside{inner.get(), &scope, scope.opsets, scope.references, scope.prefix};
        HOLOGRAM_CHECK(import_graph(a->graphs[0], inside));
        node.subgraphs.push_back({name, std::move(inner)});
        return {};
      }
      default:
        return fail(ErrorCode::unsupported, "attributes of kind {} are not supported", a->type);
    }
  }

  Status inline_function(const FunctionProto& f, const NodeProto& call, Scope& scope) {
    if (++depth_ > 64) return fail(ErrorCode::corrupt, "function '{}' calls itself", f.name);
    // Attributes the call gives, over the function's defaults.
    std::map<std::string_view, AttributeProto> references;
    for (const AttributeProto& a : f.defaults) references[a.name] = a;
    for (const AttributeProto& a : call.attributes) {
      if (a.reference.empty())
        references[a.name] = a;
      else if (scope.references && scope.references->contains(a.reference))
        references[a.name] = scope.references->at(a.reference);
    }
    Scope inside{scope.graph, nullptr, f.opsets.empty() ? scope.opsets : &f.opsets, &references,
                 scope.prefix + std::string(call.name.empty() ? f.name : call.name) + "/"};
    for (size_t i = 0; i < f.inputs.size(); ++i) {
      if (i >= call.inputs.size() || call.inputs[i].empty()) {
        inside.names[f.inputs[i]] = kNoValue;
        continue;
      }
      HOLOGRAM_TRY(const ValueId id, find(scope, call.inputs[i]));
      inside.names[f.inputs[i]] = id;
    }
    auto status = import_nodes(f.nodes, inside);
    if (!status) return fail(std::move(status).error(), "function '" + std::string(f.name) + "'");
    for (size_t i = 0; i < call.outputs.size() && i < f.outputs.size(); ++i) {
      if (call.outputs[i].empty()) continue;
      HOLOGRAM_TRY(const ValueId id, find(inside, f.outputs[i]));
      HOLOGRAM_CHECK(define(scope, call.outputs[i], id));
    }
    --depth_;
    return {};
  }

  const ModelProto& model_;
  TensorReader& tensors_;
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const FunctionProto*>
      functions_;
  static constexpr size_t kMostNodes = size_t{1} << 20;
  size_t imported_ = 0;
  int64_t seeds_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<Graph> import_model(const ModelProto& model, TensorReader& tensors) {
  return Importer(model, tensors).run();
}

}  // namespace hologram::onnx
