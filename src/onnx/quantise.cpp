#include "onnx/quantise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "onnx/proto.h"
#include "onnx/tensor.h"
#include "support/file.h"

namespace hologram::onnx {
namespace {

namespace fs = std::filesystem;
using kernels::Tensor;
using protozero::pbf_reader;
using protozero::pbf_writer;

// Numbers of ONNX's messages.
enum ModelField { kIrVersion = 1, kGraph = 7 };
enum GraphField { kNode = 1, kInitializer = 5, kInput = 11 };
enum NodeField { kNodeInput = 1, kNodeOutput, kNodeName, kOpType, kAttribute };
enum TensorField { kDims = 1, kDataType = 2, kTensorName = 8, kRawData = 9 };
enum AttributeField { kAttributeName = 1, kAttributeInt = 3, kAttributeType = 20 };
constexpr int32_t kFloat = 1, kUint8 = 2, kInt8 = 3, kInt32 = 6, kIntAttribute = 2;
constexpr int64_t kOldestOpset = 10, kOpsetWithAxis = 13, kIrWithoutInputs = 4;
constexpr uint64_t kLargestFile = 0x7fffffff;  // of any protobuf message

int64_t integer(const NodeProto& node, std::string_view name, int64_t missing) {
  for (const AttributeProto& a : node.attributes)
    if (a.name == name) return a.integer;
  return missing;
}
float number(const NodeProto& node, std::string_view name, float missing) {
  for (const AttributeProto& a : node.attributes)
    if (a.name == name) return a.number;
  return missing;
}

void count_uses(const GraphProto& graph, std::map<std::string_view, size_t>& uses) {
  for (const ValueProto& output : graph.outputs) ++uses[output.name];
  for (const NodeProto& node : graph.nodes) {
    for (std::string_view input : node.inputs) ++uses[input];
    for (const AttributeProto& a : node.attributes)
      for (const GraphProto& inner : a.graphs) count_uses(inner, uses);
  }
}

// A node to be quantised.
struct Target {
  std::string x, w, bias;  // names; the bias may be empty
  const TensorProto* weights = nullptr;
  const TensorProto* bias_values = nullptr;  // where it can be quantised too
  int64_t axis = 0;                          // of the weights: filters or columns
};

// One model file, its parts found by name.
struct Source {
  std::shared_ptr<FileMap> file;
  ModelProto model;
  TensorReader tensors;
  std::map<std::string_view, const TensorProto*> initializers;
  std::map<std::string_view, size_t> uses;

  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
  }

  static Result<std::unique_ptr<Source>> open(const fs::path& path) {
    HOLOGRAM_TRY(FileMap map, FileMap::open(path));
    auto file = std::make_shared<FileMap>(std::move(map));
    auto source = std::make_unique<Source>(Source{
        file, {}, TensorReader(file, path.has_parent_path() ? path.parent_path() : "."), {}, {}});
    source->model = read_model_proto(source->bytes());
    if (!source->model.has_graph)
      return fail(ErrorCode::corrupt, "not an ONNX model: it has no graph");
    for (const TensorProto& t : source->model.graph.initializers) source->initializers[t.name] = &t;
    count_uses(source->model.graph, source->uses);
    return source;
  }

  int64_t opset() const {
    const auto found = model.opsets.find("");
    return found == model.opsets.end() ? 0 : found->second;
  }

  // Where the node can be quantised: its parts; otherwise why not, or nothing where it is no
  // candidate at all.
  bool target(const NodeProto& node, Target& target, std::string& reason) const {
    if (!node.domain.empty() && node.domain != "ai.onnx") return false;
    const bool conv = node.op == "Conv", gemm = node.op == "Gemm";
    if ((!conv && !gemm && node.op != "MatMul") || node.inputs.size() < 2) return false;
    const auto found = initializers.find(node.inputs[1]);
    if (initializers.contains(node.inputs[0])) {
      reason = "its first operand is a constant";
    } else if (found == initializers.end()) {
      reason = "its weights are no initializer";
    } else if (found->second->data_type != kFloat) {
      reason = "its weights are not f32";
    } else if (const size_t rank = found->second->dims.size();
               conv ? rank != 3 && rank != 4 : rank != 2) {
      reason = conv ? "it has more than two spatial axes" : "its weights are no matrix";
    } else if (gemm && (integer(node, "transA", 0) != 0 || number(node, "alpha", 1) != 1 ||
                        number(node, "beta", 1) != 1)) {
      reason = "it has transA, alpha or beta";
    }
    if (!reason.empty()) return false;
    target.x = node.inputs[0];
    target.w = node.inputs[1];
    target.weights = found->second;
    target.axis = conv || (gemm && integer(node, "transB", 0) != 0) ? 0 : 1;
    if (node.inputs.size() > 2 && !node.inputs[2].empty()) {
      target.bias = node.inputs[2];
      const auto b = initializers.find(node.inputs[2]);
      if (conv && b != initializers.end() && b->second->data_type == kFloat)
        target.bias_values = b->second;
    }
    return true;
  }
};

// A scale and a zero point of u8.
struct Scheme {
  float scale = 1;
  uint8_t zero = 0;
  explicit Scheme(ActivationRange range) {
    const float low = std::min(range.low, 0.0f), high = std::max(range.high, 0.0f);
    scale = (high - low) / 255.0f;
    if (!(scale >= std::numeric_limits<float>::min())) scale = 1;
    zero = static_cast<uint8_t>(std::clamp(std::nearbyint(-low / scale), 0.0f, 255.0f));
  }
};

template <typename T>
std::string_view as_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

void copy_field(pbf_reader& from, pbf_writer& to) {
  const auto tag = from.tag();  // before the value is taken
  switch (from.wire_type()) {
    case protozero::pbf_wire_type::varint:
      to.add_uint64(tag, from.get_uint64());
      break;
    case protozero::pbf_wire_type::fixed64:
      to.add_fixed64(tag, from.get_fixed64());
      break;
    case protozero::pbf_wire_type::fixed32:
      to.add_fixed32(tag, from.get_fixed32());
      break;
    default: {
      const auto view = from.get_view();
      to.add_bytes(tag, view.data(), view.size());
    }
  }
}

class Writer {
 public:
  Writer(Source& source, const std::set<std::string>& skip,
         const std::map<std::string, ActivationRange>& ranges)
      : source_(source), skip_(skip), ranges_(ranges) {}

  Result<std::string> run() {
    std::string out;
    pbf_writer model(out);
    pbf_reader from(source_.bytes().data(), source_.bytes().size());
    while (from.next()) {
      if (from.tag() == kIrVersion) {
        model.add_int64(kIrVersion, std::max(from.get_int64(), kIrWithoutInputs));
      } else if (from.tag() == kGraph) {
        HOLOGRAM_TRY(const std::string graph, write_graph(from.get_message()));
        model.add_message(kGraph, graph);
      } else {
        copy_field(from, model);
      }
    }
    if (out.size() > kLargestFile)
      return fail(
          ErrorCode::unsupported,
          "the quantised model has {} bytes; an ONNX file holds 2 GB at most. Write a .holo "
          "archive by compiling with --precision int8 instead",
          out.size());
    return out;
  }

 private:
  Result<std::string> write_graph(pbf_reader from) {
    std::string out, inputs, rest;
    pbf_writer graph(out), listed(inputs), others(rest);
    // Weights first: which initializers stay is known once all nodes are written.
    size_t index = 0;
    while (from.next()) {
      if (from.tag() == kNode) {
        const auto view = from.get_view();
        HOLOGRAM_CHECK(
            write_node(graph, {view.data(), view.size()}, source_.model.graph.nodes[index++]));
      } else if (from.tag() == kInput) {
        const auto view = from.get_view();
        listed.add_bytes(kInput, view.data(), view.size());
      } else if (from.tag() == kInitializer) {
        from.skip();
      } else {
        copy_field(from, others);
      }
    }
    for (const TensorProto& t : source_.model.graph.initializers)
      if (!gone(t.name)) HOLOGRAM_CHECK(copy_tensor(graph, t));
    for (const auto& [name, tensor] : made_) graph.add_message(kInitializer, tensor);
    // Old files list initializers among the inputs; one that is gone would become a real input.
    pbf_reader input(inputs);
    while (input.next()) {
      const auto view = input.get_view();
      if (!gone(name_of_value({view.data(), view.size()})))
        graph.add_bytes(kInput, view.data(), view.size());
    }
    out += rest;
    return out;
  }

  static std::string_view name_of_value(std::string_view bytes) {
    pbf_reader value(bytes.data(), bytes.size());
    while (value.next()) {
      if (value.tag() == 1) {
        const auto view = value.get_view();
        return {view.data(), view.size()};
      }
      value.skip();
    }
    return {};
  }

  // Whether every reader of an initializer reads something else now.
  bool gone(std::string_view name) const {
    const auto found = replaced_.find(std::string(name));
    return found != replaced_.end() && found->second == source_.uses.at(name);
  }

  Status write_node(pbf_writer& graph, std::string_view bytes, const NodeProto& node) {
    Target target;
    std::string reason;
    if (skip_.contains(std::string(node.name)) || !source_.target(node, target, reason)) {
      graph.add_bytes(kNode, bytes.data(), bytes.size());
      return {};
    }
    std::vector<std::string> inputs(node.inputs.begin(), node.inputs.end());
    HOLOGRAM_TRY(inputs[0], activation(graph, target.x));
    HOLOGRAM_TRY(inputs[1], weights(graph, target));
    if (target.bias_values) {
      HOLOGRAM_TRY(inputs[2], bias(graph, target));
    }
    std::string made;
    pbf_writer writer(made);
    pbf_reader from(bytes.data(), bytes.size());
    size_t input = 0;
    while (from.next()) {
      if (from.tag() == kNodeInput) {
        from.skip();
        writer.add_string(kNodeInput, inputs[input++]);
      } else {
        copy_field(from, writer);
      }
    }
    graph.add_message(kNode, made);
    return {};
  }

  // x through QuantizeLinear and DequantizeLinear, once for all its readers.
  Result<std::string> activation(pbf_writer& graph, const std::string& x) {
    auto [found, fresh] = activations_.try_emplace(x, x + "_dequantized");
    if (!fresh) return found->second;
    const auto range = ranges_.find(x);
    if (range == ranges_.end())
      return fail(ErrorCode::not_found, "the range of '{}' was not measured", x);
    const Scheme scheme(range->second);
    add_tensor(x + "_scale", kFloat, {}, as_bytes(std::vector<float>{scheme.scale}));
    add_tensor(x + "_zero_point", kUint8, {}, as_bytes(std::vector<uint8_t>{scheme.zero}));
    add_node(graph, "QuantizeLinear", {x, x + "_scale", x + "_zero_point"}, x + "_quantized");
    add_node(graph, "DequantizeLinear", {x + "_quantized", x + "_scale", x + "_zero_point"},
             found->second);
    return found->second;
  }

  // Scales of the filters or columns; one for all where the opset knows no axis.
  static std::vector<float> scales_of(const Tensor& t, int64_t axis, bool one) {
    const int64_t count = t.dims[axis], inner = t.dims.product(axis + 1, t.dims.rank());
    std::vector<float> largest(one ? 1 : count, 0.0f);
    for (int64_t i = 0; i < t.count(); ++i) {
      float& l = largest[one ? 0 : i / inner % count];
      l = std::max(l, std::abs(t.as<float>()[i]));
    }
    for (float& l : largest) l = l >= 127 * std::numeric_limits<float>::min() ? l / 127.0f : 1.0f;
    return largest;
  }

  Result<Tensor> floats(const TensorProto& proto) {
    HOLOGRAM_TRY(const Tensor t, source_.tensors.read(proto));
    return t.clone();  // aligned
  }

  Result<std::string> weights(pbf_writer& graph, const Target& target) {
    const std::string made = target.w + "_dequantized" + (target.axis == 0 ? "" : "_columns");
    ++replaced_[target.w];
    if (weight_scales_.contains(made)) return made;
    HOLOGRAM_TRY(const Tensor t, floats(*target.weights));
    for (const float v : t.span<float>())
      if (!std::isfinite(v))
        return fail(ErrorCode::invalid_argument,
                    "weights '{}' are not all finite; leave their node out with --skip", target.w);
    const std::vector<float> scales = scales_of(t, target.axis, source_.opset() < kOpsetWithAxis);
    const int64_t inner = t.dims.product(target.axis + 1, t.dims.rank());
    std::vector<int8_t> codes(t.count());
    for (int64_t i = 0; i < t.count(); ++i) {
      const float scale = scales[scales.size() == 1 ? 0 : i / inner % t.dims[target.axis]];
      codes[i] = static_cast<int8_t>(
          std::clamp(std::nearbyint(t.as<float>()[i] / scale), -127.0f, 127.0f));
    }
    const std::vector<int64_t> dims =
        scales.size() == 1 ? std::vector<int64_t>{} : std::vector<int64_t>{t.dims[target.axis]};
    const std::vector<int8_t> zeros(scales.size(), 0);
    const std::string base =
        made.substr(0, made.find("_dequantized")) + (target.axis == 0 ? "" : "_columns");
    add_tensor(base + "_quantized", kInt8, target.weights->dims, as_bytes(codes));
    add_tensor(base + "_scale", kFloat, dims, as_bytes(scales));
    add_tensor(base + "_zero_point", kInt8, dims, as_bytes(zeros));
    add_node(graph, "DequantizeLinear",
             {base + "_quantized", base + "_scale", base + "_zero_point"}, made,
             scales.size() == 1 ? -1 : target.axis);
    weight_scales_[made] = scales;
    return made;
  }

  // i32 in units of the scales of x and w, as integer convolutions add it to their sums.
  Result<std::string> bias(pbf_writer& graph, const Target& target) {
    const std::string& x = target.x;
    const std::vector<float>& w = weight_scales_.at(target.w + "_dequantized");
    HOLOGRAM_TRY(const Tensor t, floats(*target.bias_values));
    const float x_scale = Scheme(ranges_.at(x)).scale;
    std::vector<int32_t> codes(t.count());
    std::vector<float> scales;
    for (const float scale : w) scales.push_back(x_scale * scale);
    for (int64_t i = 0; i < t.count(); ++i) {
      const double code = std::nearbyint(static_cast<double>(t.as<float>()[i]) /
                                         scales[scales.size() == 1 ? 0 : i]);
      // Too large for a sum: it stays as it is.
      if (!(std::abs(code) < 1 << 30)) return target.bias;
      codes[i] = static_cast<int32_t>(code);
    }
    const std::string made = fmt::format("{}_dequantized_{}", target.bias, made_.size());
    const std::vector<int64_t> dims =
        scales.size() == 1 ? std::vector<int64_t>{} : std::vector<int64_t>{t.count()};
    add_tensor(made + "_quantized", kInt32, target.bias_values->dims, as_bytes(codes));
    add_tensor(made + "_scale", kFloat, dims, as_bytes(scales));
    add_node(graph, "DequantizeLinear", {made + "_quantized", made + "_scale"}, made,
             scales.size() == 1 ? -1 : 0);
    ++replaced_[target.bias];
    return made;
  }

  void add_node(pbf_writer& graph, const char* op, const std::vector<std::string>& inputs,
                const std::string& output, int64_t axis = -1) {
    pbf_writer node(graph, kNode);
    for (const std::string& input : inputs) node.add_string(kNodeInput, input);
    node.add_string(kNodeOutput, output);
    node.add_string(kNodeName, output + "_" + op);
    node.add_string(kOpType, op);
    if (axis < 0) return;
    pbf_writer attribute(node, kAttribute);
    attribute.add_string(kAttributeName, "axis");
    attribute.add_int64(kAttributeInt, axis);
    attribute.add_int32(kAttributeType, kIntAttribute);
  }

  static std::string tensor_message(std::string_view name, int32_t type,
                                    const std::vector<int64_t>& dims, std::string_view raw) {
    std::string bytes;
    pbf_writer tensor(bytes);
    for (const int64_t dim : dims) tensor.add_int64(kDims, dim);
    tensor.add_int32(kDataType, type);
    tensor.add_string(kTensorName, name.data(), name.size());
    tensor.add_bytes(kRawData, raw.data(), raw.size());
    return bytes;
  }
  void add_tensor(const std::string& name, int32_t type, const std::vector<int64_t>& dims,
                  std::string_view raw) {
    made_.emplace_back(name, tensor_message(name, type, dims, raw));
  }

  // As it is, but with its bytes where they were in another file.
  Status copy_tensor(pbf_writer& graph, const TensorProto& t) {
    if (t.external || t.raw) {
      HOLOGRAM_TRY(const Tensor tensor, source_.tensors.read(t));
      graph.add_message(kInitializer, tensor_message(t.name, t.data_type, t.dims,
                                                     {reinterpret_cast<const char*>(tensor.data),
                                                      static_cast<size_t>(tensor.bytes())}));
      return {};
    }
    // Elements in typed fields: the message is found again by its name.
    pbf_reader model(source_.bytes().data(), source_.bytes().size());
    while (model.next(kGraph)) {
      pbf_reader from = model.get_message();
      while (from.next(kInitializer)) {
        const auto view = from.get_view();
        if (read_tensor_proto({view.data(), view.size()}).name != t.name) continue;
        graph.add_bytes(kInitializer, view.data(), view.size());
        return {};
      }
    }
    return fail(ErrorCode::internal, "initializer '{}' is not found again", t.name);
  }

  Source& source_;
  const std::set<std::string>& skip_;
  const std::map<std::string, ActivationRange>& ranges_;
  std::map<std::string, std::string> activations_;           // by their names: dequantised ones
  std::map<std::string, std::vector<float>> weight_scales_;  // by the dequantised name
  std::map<std::string, size_t> replaced_;                   // readers that an initializer lost
  std::vector<std::pair<std::string, std::string>> made_;    // initializers, as messages
};

template <typename Body>
auto reading(const fs::path& path, Body body) -> decltype(body()) {
  const auto run = [&]() -> decltype(body()) {
    try {
      return body();
    } catch (const protozero::exception& e) {
      return fail(ErrorCode::corrupt, "malformed protobuf: {}", e.what());
    }
  };
  return in_context(run(), [&] { return path.string(); });
}

}  // namespace

Result<QuantisationPlan> plan_quantisation(const fs::path& path,
                                           const std::set<std::string>& skip) {
  return reading(path, [&]() -> Result<QuantisationPlan> {
    HOLOGRAM_TRY(const auto source, Source::open(path));
    QuantisationPlan plan{.opset = source->opset()};
    std::set<std::string> unknown = skip;
    std::set<std::string> seen;
    for (const NodeProto& node : source->model.graph.nodes) {
      const std::string name(node.name);
      unknown.erase(name);
      Target target;
      std::string reason;
      if (!source->target(node, target, reason)) {
        if (!reason.empty()) plan.kept.push_back({name, std::string(node.op), reason});
        continue;
      }
      if (skip.contains(name)) {
        plan.kept.push_back({name, std::string(node.op), "--skip"});
        continue;
      }
      ++plan.nodes;
      if (seen.insert(target.x).second) plan.activations.push_back(target.x);
    }
    if (!unknown.empty())
      return fail(ErrorCode::not_found,
                  "the model has no node '{}' to skip; hologram inspect shows them",
                  *unknown.begin());
    if (plan.nodes == 0)
      return fail(ErrorCode::invalid_argument,
                  "nothing to quantise: no Conv, MatMul or Gemm by f32 initializers{}",
                  plan.kept.empty()
                      ? ""
                      : fmt::format(" ('{}': {})", plan.kept[0].node, plan.kept[0].reason));
    if (plan.opset < kOldestOpset)
      return fail(ErrorCode::unsupported,
                  "opset {}: QuantizeLinear came with opset {}. Convert the model first, for "
                  "example by onnx.version_converter.convert_version(model, 13)",
                  plan.opset, kOldestOpset);
    return plan;
  });
}

Result<std::string> quantise_model(const fs::path& path, const std::set<std::string>& skip,
                                   const std::map<std::string, ActivationRange>& ranges) {
  return reading(path, [&]() -> Result<std::string> {
    HOLOGRAM_TRY(const auto source, Source::open(path));
    return Writer(*source, skip, ranges).run();
  });
}

}  // namespace hologram::onnx
