#include "compiler/pack_weights.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <tuple>

#include "backends/cpu/dense/conv.h"
#include "backends/cpu/dense/conv_bf16.h"
#include "backends/cpu/dense/conv_bytes.h"
#include "backends/cpu/dense/conv_digits.h"
#include "backends/cpu/dense/conv_int8.h"
#include "backends/cpu/dense/conv_mirror.h"
#include "backends/cpu/dense/conv_shorts.h"
#include "backends/cpu/dense/conv_signal.h"
#include "backends/cpu/dense/gemm.h"
#include "backends/cpu/dense/gemm_bits.h"
#include "backends/cpu/dense/gemm_narrow.h"
#include "backends/cpu/dense/tile.h"
#include "backends/cpu/kernels/alignment.h"
#include "compiler/recurrent_weights.h"
#include "graph/passes/value_uses.h"

namespace hologram::compiler {
namespace {

namespace dense = backends::dense;
using graph::Graph;
using graph::Node;
using graph::Tensor;
using graph::ValueId;

class Packer {
 public:
  Packer(Graph& graph, int64_t stay_from) : graph_(graph), stay_from_(stay_from) {}

  Status run() {
    for (Node& node : graph_.nodes) {
      for (graph::Subgraph& sub : node.subgraphs)
        HOLOGRAM_CHECK(pack_weights(*sub.graph, stay_from_));
      HOLOGRAM_CHECK(pack_recurrent(node));
      if (node.domain != "hologram") continue;
      if (node.op == "MatMul" || node.op == "Conv" || node.op == "MatMulInteger" ||
          node.op == "ConvInteger")
        HOLOGRAM_CHECK(pack(node));
    }
    for (Node& node : graph_.nodes) share_table(node);
    return {};
  }

 private:
  // What decides the packed form beside the weights themselves.
  using Key = std::tuple<ValueId, std::vector<int64_t>>;

  Status pack(Node& node) {
    const Tensor* weights = constant_of(graph_, node.inputs[1]);
    if (node.attributes.integer("bits") != 0) return pack_bits(node);
    const bool integer = node.op == "MatMulInteger" || node.op == "ConvInteger";
    if (!weights || integer == (weights->dtype == DType::f32) ||
        node.attributes.integer("packed") != 0 || (integer && weights->count() >= stay_from_))
      return {};
    const Key key{node.inputs[1], form(node)};
    auto found = packed_.find(key);
    if (found == packed_.end()) {
      HOLOGRAM_TRY(const Tensor plain, kernels::aligned(*weights));
      HOLOGRAM_TRY(Tensor tensor, integer             ? pack_integer(node, plain)
                                  : node.op == "Conv" ? pack_conv(node, plain)
                                                      : pack_product(node, plain));
      if (node.attributes.integer("half") != 0) {
        HOLOGRAM_TRY(tensor, halved(std::move(tensor)));
      }
      const std::string name = graph_.value(node.inputs[1]).name;
      found = packed_.emplace(key, graph_.add_constant(std::move(tensor), name)).first;
    }
    node.inputs[1] = found->second;
    node.attributes.set("packed", int64_t{1});
    if (node.op == "MatMul" && node.attributes.integer("parts") == 0 &&
        node.attributes.integer("digits") == 0 && node.attributes.integer("half") == 0)
      products_.push_back(
          {found->second, node.attributes.integer("k"), node.attributes.integer("n")});
    return {};
  }

  // Looks up rows of a table in the matrix of a product that has them as columns, so that the
  // archive holds them once.
  void share_table(Node& node) {
    if (!node.domain.empty() || node.op != "Gather" || node.attributes.integer("axis") != 0) return;
    const Tensor* table = constant_of(graph_, node.inputs[0]);
    if (!table || table->dtype != DType::f32 || table->dims.rank() != 2 || table->count() == 0)
      return;
    for (const Product& product : products_) {
      if (product.n != table->dims[0] || product.k != table->dims[1] ||
          !has_rows_as_columns(*constant_of(graph_, product.packed), *table))
        continue;
      node.domain = "hologram";
      node.op = "GatherPacked";
      node.inputs[0] = product.packed;
      node.attributes.erase("axis");
      node.attributes.set("k", product.k);
      node.attributes.set("n", product.n);
      return;
    }
  }

  static bool has_rows_as_columns(const Tensor& packed, const Tensor& table) {
    const int64_t rows = table.dims[0], k = table.dims[1];
    constexpr int64_t kPanel = dense::kPanelColumns, kChunk = dense::kChunk;
    const auto *from = packed.as<uint32_t>(), *to = table.as<uint32_t>();  // bits: NaN may be there
    for (int64_t panel = 0; panel < rows; panel += kPanel) {
      const int64_t width = std::min(kPanel, (rows + kChunk - 1) / kChunk * kChunk - panel);
      // In squares: lines of both are read once.
      for (int64_t square = 0; square < k; square += kChunk)
        for (int64_t i = 0; i < std::min(width, rows - panel); ++i)
          for (int64_t at = square; at < std::min(square + kChunk, k); ++at)
            if (from[panel * k + at * width + i] != to[(panel + i) * k + at]) return false;
    }
    return true;
  }

  // LSTM and GRU as their dense kernels have them; `bits`: as 16-bit integers what few rows meet.
  Status pack_recurrent(Node& node) {
    const auto weights = recurrent_weights(graph_, node);
    if (!weights) return {};
    const bool words = node.attributes.integer("bits") != 0;
    const auto directions = static_cast<size_t>(weights->directions);
    for (size_t input : {size_t{1}, size_t{2}}) {
      const bool narrow = words && (input == 2 || weights->few_inputs());
      const Key key{node.inputs[input], {6, weights->gates, narrow}};
      auto found = packed_.find(key);
      if (found == packed_.end()) {
        HOLOGRAM_TRY(const Tensor plain,
                     kernels::aligned(*constant_of(graph_, node.inputs[input])));
        const auto k = static_cast<size_t>(plain.dims[2]), n = static_cast<size_t>(plain.dims[1]);
        const dense::BitsForm form = dense::word_form(k, n);
        const size_t bytes =
            narrow ? dense::packed_b_bits_bytes(form) : dense::packed_b_bytes(k, n);
        HOLOGRAM_TRY(Tensor packed, allocate(bytes * directions, narrow ? DType::u8 : DType::f32));
        for (size_t i = 0; i < directions; ++i) {
          const float* from = plain.as<float>() + i * k * n;
          std::byte* to = packed.data + i * bytes;
          if (narrow)
            dense::pack_b_words(form, from, k, true, to);
          else
            dense::pack_b(k, n, from, k, true, reinterpret_cast<float*>(to), ThreadPool::shared());
        }
        const std::string name = graph_.value(node.inputs[input]).name;
        found = packed_.emplace(key, graph_.add_constant(std::move(packed), name)).first;
      }
      node.inputs[input] = found->second;
    }
    node.domain = "hologram";
    node.attributes.set("hidden_size", weights->hidden);
    node.attributes.set("input_size", weights->inputs);
    for (const char* name :
         {"activation_alpha", "activation_beta", "input_forget", "quantise_state", "bits", "group"})
      node.attributes.erase(name);
    return {};
  }

  // By rows that are quantised when they are there: the scales stay an operand.
  Status pack_dynamic(Node& node) {
    const Key key{node.inputs[1], {5}};
    auto found = packed_.find(key);
    if (found == packed_.end()) {
      const auto k = static_cast<size_t>(node.attributes.integer("k"));
      const auto n = static_cast<size_t>(node.attributes.integer("n"));
      const bool transposed = node.attributes.integer("transposed") != 0;
      HOLOGRAM_TRY(Tensor packed, allocate(dense::packed_b_int8_bytes(k, n), DType::u8));
      dense::pack_b_int8(k, n, constant_of(graph_, node.inputs[1])->data, transposed ? k : n,
                         transposed, true, packed.data);
      const std::string name = graph_.value(node.inputs[1]).name;
      found = packed_.emplace(key, graph_.add_constant(std::move(packed), name)).first;
    }
    node.inputs[1] = found->second;
    node.attributes.set("packed", int64_t{1});
    return {};
  }

  static dense::BitsForm bits_of(const Node& node) {
    return {.k = static_cast<size_t>(node.attributes.integer("k")),
            .n = static_cast<size_t>(node.attributes.integer("n")),
            .bits = static_cast<unsigned>(node.attributes.integer("bits")),
            .group = static_cast<size_t>(node.attributes.integer("group"))};
  }

  // Weights of 16 bits, of which nothing was quantised before.
  Status pack_words(Node& node) {
    const bool transposed = node.attributes.integer("transposed") != 0;
    const Key key{node.inputs[1], {7, transposed}};
    auto found = packed_.find(key);
    if (found == packed_.end()) {
      const dense::BitsForm form = bits_of(node);
      HOLOGRAM_TRY(const Tensor plain, kernels::aligned(*constant_of(graph_, node.inputs[1])));
      HOLOGRAM_TRY(Tensor packed, allocate(dense::packed_b_bits_bytes(form), DType::u8));
      dense::pack_b_words(form, plain.as<float>(), transposed ? form.k : form.n, transposed,
                          packed.data);
      const std::string name = graph_.value(node.inputs[1]).name;
      found = packed_.emplace(key, graph_.add_constant(std::move(packed), name)).first;
    }
    node.inputs[1] = found->second;
    node.attributes.set("packed", int64_t{1});
    return {};
  }

  Status pack_bits(Node& node) {
    if (node.attributes.integer("packed") != 0) return {};
    if (node.attributes.integer("bits") == 16) return pack_words(node);
    if (node.attributes.integer("dynamic") != 0) return pack_dynamic(node);
    const Key key{node.inputs[1], {3, node.inputs[4]}};
    auto found = packed_.find(key);
    const Tensor* zeros = constant_of(graph_, node.input(5));
    if (found == packed_.end()) {
      dense::BitsForm form = bits_of(node);
      form.zeros = zeros != nullptr;
      HOLOGRAM_TRY(Tensor packed, allocate(dense::packed_b_bits_bytes(form), DType::u8));
      dense::pack_b_bits(form,
                         {.codes = constant_of(graph_, node.inputs[1])->as<uint8_t>(),
                          .transposed = node.attributes.integer("transposed") != 0,
                          .scales = constant_of(graph_, node.inputs[4])->as<float>(),
                          .zeros = zeros ? zeros->as<float>() : nullptr},
                         packed.data);
      const std::string name = graph_.value(node.inputs[1]).name;
      found = packed_.emplace(key, graph_.add_constant(std::move(packed), name)).first;
    }
    node.inputs[1] = found->second;
    node.attributes.set("zeros", int64_t{zeros != nullptr});
    node.inputs.resize(4);
    while (node.inputs.back() == graph::kNoValue) node.inputs.pop_back();
    node.attributes.set("packed", int64_t{1});
    return {};
  }

  static std::vector<int64_t> form(const Node& node) {
    const auto integer = [&](const char* name) { return node.attributes.integer(name); };
    if (node.op == "MatMulInteger") return {2};
    if (node.op == "ConvInteger") return {4, integer("group")};
    if (node.op == "MatMul")
      return {0,
              integer("transposed"),
              integer("parts"),
              integer("half"),
              integer("digits"),
              integer("digit_bits")};
    std::vector<int64_t> form = {1,
                                 integer("blocked_input"),
                                 integer("parts") != 0 && integer("blocked_output") == 0,
                                 integer("algorithm"),
                                 integer("group"),
                                 integer("parts"),
                                 integer("half"),
                                 integer("mirrored"),
                                 integer("exact"),
                                 integer("digits"),
                                 integer("digit_bits")};
    for (const char* name : {"weight_shape", "dilations"})
      for (int64_t value : node.attributes.integers(name)) form.push_back(value);
    return form;
  }

  static Result<Tensor> allocate(size_t bytes, DType dtype = DType::f32) {
    return Tensor::allocate(dtype, {static_cast<int64_t>(bytes / size_of(dtype))});
  }

  // As f16, unless a value is beyond its range.
  static Result<Tensor> halved(Tensor wide) {
    const std::span values(wide.as<float>(), static_cast<size_t>(wide.count()));
    constexpr float kLargest = 65504;
    for (const float value : values)
      if (!(std::abs(value) <= kLargest)) return wide;
    HOLOGRAM_TRY(Tensor half, allocate(values.size() * sizeof(uint16_t), DType::f16));
    for (size_t i = 0; i < values.size(); ++i) half.as<uint16_t>()[i] = f32_to_f16(values[i]);
    return half;
  }

  static bool by_shorts(const Node& node) { return node.attributes.integer("digit_bits") == 16; }
  static dense::Bf16Parts parts_of(const Node& node) {
    return node.attributes.integer("parts") == 2 ? dense::Bf16Parts::two : dense::Bf16Parts::one;
  }

  static Result<Tensor> pack_integer(const Node& node, const Tensor& weights) {
    const bool is_signed = weights.dtype == DType::i8;
    if (node.op == "ConvInteger") {
      const auto shape = node.attributes.integers("weight_shape");
      const auto groups = static_cast<size_t>(node.attributes.integer("group", 1));
      const dense::ConvInt8Shape conv{
          .channels = static_cast<size_t>(shape[1]) * groups,
          .filters = static_cast<size_t>(shape[0]),
          .groups = groups,
          .kernel_height = static_cast<size_t>(shape.size() == 4 ? shape[2] : 1),
          .kernel_width = static_cast<size_t>(shape.back())};
      HOLOGRAM_TRY(Tensor packed, allocate(dense::packed_conv_int8_bytes(conv), DType::u8));
      dense::pack_conv_int8(conv, weights.data, is_signed, packed.data);
      return packed;
    }
    const auto k = static_cast<size_t>(node.attributes.integer("k"));
    const auto n = static_cast<size_t>(node.attributes.integer("n"));
    HOLOGRAM_TRY(Tensor packed, allocate(dense::packed_b_int8_bytes(k, n), DType::u8));
    dense::pack_b_int8(k, n, weights.data, n, false, is_signed, packed.data);
    return packed;
  }

  static Result<Tensor> pack_product(const Node& node, const Tensor& weights) {
    const auto k = static_cast<size_t>(node.attributes.integer("k"));
    const auto n = static_cast<size_t>(node.attributes.integer("n"));
    const bool transposed = node.attributes.integer("transposed") != 0;
    if (by_shorts(node)) {
      HOLOGRAM_TRY(Tensor packed, allocate(dense::packed_b_shorts_bytes(k, n), DType::u8));
      dense::pack_b_shorts(k, n, weights.as<float>(), transposed ? k : n, transposed, packed.data);
      return packed;
    }
    if (node.attributes.integer("digits") != 0) {
      HOLOGRAM_TRY(Tensor packed, allocate(dense::packed_b_digits_bytes(k, n), DType::u8));
      dense::pack_b_digits(k, n, weights.as<float>(), transposed ? k : n, transposed, packed.data);
      return packed;
    }
    if (node.attributes.integer("parts") != 0) {
      const dense::Bf16Parts parts = parts_of(node);
      HOLOGRAM_TRY(Tensor packed, allocate(dense::packed_b_bf16_bytes(k, n, parts), DType::bf16));
      dense::pack_b_bf16(k, n, weights.as<float>(), transposed ? k : n, transposed, packed.data,
                         parts);
      return packed;
    }
    HOLOGRAM_TRY(Tensor packed, allocate(dense::packed_b_bytes(k, n)));
    dense::pack_b(k, n, weights.as<float>(), transposed ? k : n, transposed, packed.as<float>(),
                  ThreadPool::shared());
    return packed;
  }

  static Result<Tensor> pack_conv(const Node& node, const Tensor& weights) {
    const auto shape = node.attributes.integers("weight_shape");
    const auto dilations = node.attributes.integers("dilations");
    const bool plane = shape.size() == 4;
    const auto groups = static_cast<size_t>(node.attributes.integer("group", 1));
    const dense::ConvShape conv{
        .in_channels = static_cast<size_t>(shape[1]) * groups,
        .out_channels = static_cast<size_t>(shape[0]),
        .kernel_height = static_cast<size_t>(plane ? shape[2] : 1),
        .kernel_width = static_cast<size_t>(shape.back()),
        .dilation_height = static_cast<size_t>(plane && !dilations.empty() ? dilations[0] : 1),
        .dilation_width = static_cast<size_t>(dilations.empty() ? 1 : dilations.back()),
        .groups = groups,
        .algorithm = static_cast<dense::ConvAlgorithm>(node.attributes.integer("algorithm"))};
    const dense::Layout layout = node.attributes.integer("blocked_input") != 0
                                     ? dense::Layout::blocked
                                     : dense::Layout::nchw;
    if (by_shorts(node)) {
      HOLOGRAM_TRY(Tensor packed, allocate(dense::packed_conv_shorts_bytes(conv), DType::u8));
      dense::pack_conv_shorts(conv, weights.as<float>(), packed.data);
      return packed;
    }
    if (node.attributes.integer("digits") == 1) {
      HOLOGRAM_TRY(Tensor packed, allocate(dense::packed_conv_bytes_bytes(conv), DType::u8));
      dense::pack_conv_bytes(conv, weights.as<float>(), packed.data);
      return packed;
    }
    if (node.attributes.integer("digits") != 0) {
      HOLOGRAM_TRY(Tensor packed, allocate(dense::packed_conv_digits_bytes(conv), DType::u8));
      dense::pack_conv_digits(conv, weights.as<float>(), packed.data);
      return packed;
    }
    if (node.attributes.integer("parts") != 0) {
      const dense::Bf16Parts parts = parts_of(node);
      if (node.attributes.integer("blocked_output") == 0) {  // a signal
        HOLOGRAM_TRY(Tensor packed,
                     allocate(dense::packed_signal_conv_bytes(conv, parts), DType::bf16));
        dense::pack_signal_conv(conv, parts, weights.as<float>(), packed.data);
        return packed;
      }
      HOLOGRAM_TRY(Tensor packed,
                   allocate(dense::packed_conv_bf16_bytes(conv, parts, layout), DType::bf16));
      dense::pack_conv_bf16(conv, parts, weights.as<float>(), packed.data, layout);
      return packed;
    }
    if (node.attributes.integer("mirrored") != 0) {
      const auto even = static_cast<size_t>(node.attributes.integer("even"));
      HOLOGRAM_TRY(Tensor packed, allocate(dense::packed_mirror_conv_bytes(conv, even)));
      dense::pack_mirror_conv(conv, even, weights.as<float>(), packed.as<float>());
      return packed;
    }
    HOLOGRAM_TRY(Tensor packed, allocate(dense::packed_conv_weight_bytes(conv, layout)));
    dense::pack_conv_weights(conv, layout, weights.as<float>(), packed.as<float>());
    if (node.attributes.integer("exact") == 0) return packed;
    HOLOGRAM_TRY(Tensor wide, allocate(2 * packed.bytes(), DType::u8));
    std::copy_n(packed.as<float>(), packed.count(), reinterpret_cast<double*>(wide.data));
    return wide;
  }

  // The matrix of an f32 product, packed.
  struct Product {
    ValueId packed;
    int64_t k, n;
  };

  Graph& graph_;
  int64_t stay_from_;
  std::map<Key, ValueId> packed_;
  std::vector<Product> products_;
};

}  // namespace

Status pack_weights(Graph& graph, int64_t stay_from) { return Packer(graph, stay_from).run(); }

}  // namespace hologram::compiler
