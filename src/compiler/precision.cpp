#include "compiler/precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "backends/cpu/dense/attention.h"
#include "backends/cpu/dense/conv_bytes.h"
#include "backends/cpu/dense/conv_digits.h"
#include "backends/cpu/dense/conv_shorts.h"
#include "backends/cpu/dense/digit_values.h"
#include "backends/cpu/dense/gemm_bits.h"
#include "backends/cpu/dense/gemm_narrow.h"
#include "compiler/exact_sums.h"
#include "compiler/recurrent_weights.h"
#include "compiler/signal_filters.h"
#include "compiler/weight_codes.h"
#include "graph/passes/value_uses.h"

namespace hologram::compiler {
namespace {

namespace dense = backends::dense;
using graph::Graph;
using graph::Node;

// The sum of fewer channels would be mostly padding.
constexpr int64_t kFewChannels = 16;
// A chunk of tiles, which two parts multiply three times.
constexpr int64_t kFewTerms = 32;
constexpr int64_t kFewRows = 4;
constexpr int64_t kFewPixels = 16;
constexpr int64_t kSmallMatrix = 256 * 1024;  // elements: 1 MiB of f32
// Of 16 bits: the row has to become integers first, and a panel is as wide.
constexpr int64_t kTinyMatrix = 4096, kFewColumns = 32;

bool multiplies(const Node& node) {
  return node.op == "MatMul" || node.op == "Conv" || node.op == "Attention";
}

// Rows of the left side of a product; more than any where they are not known.
int64_t rows_of(const Graph& graph, const Node& node) {
  constexpr int64_t kMany = std::numeric_limits<int64_t>::max();
  const auto& shape = graph.value(node.inputs[0]).type.shape;
  const int64_t k = node.attributes.integer("k");
  if (!shape || k < 1) return kMany;
  int64_t count = 1;
  for (const Dim& dim : *shape) {
    if (dim.is_symbol()) return kMany;
    count *= dim.value();
  }
  return count / k;
}

// Few rows: the time goes into reading the matrix. Two parts are as many bytes as f32, and a matrix
// that stays in the cache is read faster than its rows are converted.
bool is_small(const Graph& graph, const Node& node, Precision precision) {
  return rows_of(graph, node) <= kFewRows &&
         (precision == Precision::fast ||
          node.attributes.integer("k") * node.attributes.integer("n") <= kSmallMatrix);
}

// Rows up to which 16-bit integers are faster than f32: by pairs that the CPU multiplies and adds
// at once, and where that takes two instructions.
int64_t most_rows_by_words() { return dense::has_word_products() ? 3 : 2; }

// Whether a product of few rows, or an LSTM or GRU of a small batch, takes its weights as 16-bit
// integers, half the bytes of f32 at an error near 1e-5. Of several rows bf16 is faster, of more
// than two or three f32 is.
bool by_words(const Graph& graph, const Node& node, Precision precision) {
  if (precision != Precision::fast && precision != Precision::bf16) return false;
  if (const auto recurrent = recurrent_weights(graph, node))
    return recurrent->few_states() && recurrent->gates * recurrent->hidden >= kFewColumns &&
           recurrent->gates * recurrent->hidden * recurrent->hidden >= kTinyMatrix;
  if (node.domain != "hologram" || node.op != "MatMul") return false;
  const graph::Tensor* weights = constant_of(graph, node.inputs[1]);
  const int64_t k = node.attributes.integer("k"), n = node.attributes.integer("n");
  return weights && weights->dtype == DType::f32 &&
         rows_of(graph, node) <= (precision == Precision::fast ? most_rows_by_words() : 1) &&
         n >= kFewColumns && k * n >= kTinyMatrix;
}

// The same of a convolution that makes few pixels: squeezes and the ends of small networks.
bool makes_few_pixels(const Graph& graph, const Node& node, Precision precision) {
  const auto& shape = graph.value(node.outputs[0]).type.shape;
  const auto weights = node.attributes.integers("weight_shape");
  if (!shape || shape->rank() < weights.size()) return false;
  int64_t pixels = 1, elements = 1;
  for (size_t i = 0; i < weights.size(); ++i) {
    elements *= weights[i];
    if (i == 1) continue;
    if ((*shape)[i].is_symbol()) return false;
    pixels *= (*shape)[i].value();
  }
  return pixels <= kFewPixels && (precision == Precision::fast || elements <= kSmallMatrix);
}

bool has_narrow_kernel(const Graph& graph, const Node& node, Precision precision,
                       bool measured = false) {
  if (node.op == "Attention") return precision != Precision::f16 && dense::has_bf16_products();
  const graph::Tensor* weights = constant_of(graph, node.inputs[1]);
  if (!weights || weights->dtype != DType::f32) return false;
  if (node.op == "MatMul") return !is_small(graph, node, precision);
  if (precision == Precision::f16) return true;
  if (is_signal_filter(node)) return dense::has_bf16_tiles();
  if (makes_few_pixels(graph, node, precision)) return false;
  if (node.attributes.integer("group", 1) != 1 || node.attributes.integer("blocked_output") == 0)
    return false;
  const auto shape = node.attributes.integers("weight_shape");
  const auto dilations = node.attributes.integers("dilations");
  // A first layer, whose rows only tiles read where they lie. A row of the kernel takes 8 places: a
  // short one leaves too many empty for three products.
  if (node.attributes.integer("blocked_input") == 0)
    return dense::has_bf16_tiles() && shape.size() == 4 && shape[1] <= 4 &&
           shape[3] > (precision == Precision::fast ? 4 : 1) &&
           (dilations.empty() || dilations.back() == 1);
  int64_t terms = 1;
  for (size_t i = 1; i < shape.size(); ++i) terms *= shape[i];
  if (shape[1] < kFewChannels || (precision == Precision::fast && terms < kFewTerms)) return false;
  // Winograd saves more than bf16 does without tiles, and less than tiles do, of two parts as well,
  // or than bytes do.
  return node.attributes.integer("algorithm") == 0 || dense::has_bf16_tiles() || measured;
}

}  // namespace

Result<Precision> parse_precision(std::string_view name) {
  if (name == "f32") return Precision::f32;
  if (name == "fast") return Precision::fast;
  if (name == "bf16") return Precision::bf16;
  if (name == "f16") return Precision::f16;
  if (name == "int8") return Precision::int8;
  if (name == "int4") return Precision::int4;
  constexpr std::string_view kThereAre = "f32, fast, bf16, f16, int8 and int4";
  if (name == "table")
    return fail(ErrorCode::unsupported, "precision '{}' is not available yet; there are {}", name,
                kThereAre);
  return fail(ErrorCode::invalid_argument, "no precision '{}'; there are {}", name, kThereAre);
}

namespace {

// Of a convolution with both images in blocks, what forms of its weights depend on.
std::optional<dense::ConvShape> blocked_shape(const Node& node) {
  if (node.op != "Conv" || node.attributes.integer("blocked_input") == 0 ||
      node.attributes.integer("blocked_output") == 0)
    return std::nullopt;
  const auto weights = node.attributes.integers("weight_shape");
  const auto dilations = node.attributes.integers("dilations");
  return dense::ConvShape{
      .in_channels = static_cast<size_t>(weights[1]),
      .out_channels = static_cast<size_t>(weights[0]),
      .kernel_height = static_cast<size_t>(weights.size() == 4 ? weights[2] : 1),
      .kernel_width = static_cast<size_t>(weights.back()),
      .dilation_width = static_cast<size_t>(dilations.empty() ? 1 : dilations.back()),
      .groups = static_cast<size_t>(node.attributes.integer("group", 1))};
}

// How the operands of a step that may be narrow are multiplied, from the narrowest.
enum class Grade : uint8_t { byte, part, f16, digits, shorts, words, two_parts, f32 };

// Of a product by constants digits are the same 16 bits as two parts, but of the largest value of
// what shares a scale with an element instead of each: tiles multiply them twice as fast. Rows of a
// matrix and pixels have a scale each; a sample's image has one where the kernel adds up pixels.
bool has_digits(const Node& node) {
  if (node.op == "MatMul")
    return node.attributes.integer("k") <= static_cast<int64_t>(dense::kMostDigitTerms);
  const auto shape = blocked_shape(node);
  return shape && dense::conv_digits_supported(*shape) && dense::conv_digits_pays(*shape);
}

// Without tiles, where CPUs multiply 16-bit integers in pairs, twice as fast as f32.
bool has_shorts(const Node& node) {
  if (dense::has_bf16_tiles() || !dense::has_word_products()) return false;
  if (node.op == "Attention")
    return dense::has_short_attention() && node.attributes.integer("ordered") == 0;
  if (node.op == "MatMul") return true;
  const auto shape = blocked_shape(node);
  return shape && dense::conv_shorts_supported(*shape) && dense::conv_shorts_pays(*shape);
}

// Likewise one digit to one part, which is bytes.
bool has_bytes(const Graph& graph, const Node& node) {
  if (!has_finite_weights(graph, node)) return false;
  if (node.op == "MatMul") return true;
  const auto shape = blocked_shape(node);
  return shape && dense::conv_bytes_supported(*shape) && dense::conv_bytes_pays(*shape);
}

std::string kind_of(const Node& node) {
  std::string kind = node.op;
  for (const char* name : {"k", "n"})
    if (node.attributes.has(name)) kind += fmt::format(" {}", node.attributes.integer(name));
  const auto shape = node.attributes.integers("weight_shape");
  for (size_t i = 2; i < shape.size(); ++i) kind += fmt::format(" {}", shape[i]);
  return kind;
}

struct Wish {
  Precision precision;
  const std::vector<uint8_t>& widened;
  bool measured;
};

// The grades of a precision from the narrowest on; those that a step does not have are the next.
// `bytes`: whether it has the narrowest of bf16.
Grade grade_of(const Graph& graph, const Node& node, const Wish& wish, unsigned wider, bool bytes) {
  if (wish.precision == Precision::f16) return Grade::f16;
  if (wider >= widest_grade(wish.precision)) return Grade::f32;
  if (wish.precision == Precision::bf16 && wider == 0 && bytes) return Grade::byte;
  if (by_words(graph, node, wish.precision))  // as good as digits, and in place of them
    return wider <= (wish.precision == Precision::bf16 ? 2 : 0) ? Grade::words : Grade::f32;
  if (wish.precision == Precision::bf16) {
    if (wider <= 1) return Grade::part;
    wider -= 2;
  }
  if (wider == 0 && wish.measured && has_shorts(node)) return Grade::shorts;
  // Two parts are three products: they pay in tiles only.
  if (!dense::has_bf16_tiles() || !has_narrow_kernel(graph, node, Precision::fast))
    return Grade::f32;
  return wider == 0 && wish.measured && has_digits(node) ? Grade::digits : Grade::two_parts;
}

// `step`: how many steps that could be narrow came before.
Result<PrecisionChoice> choose_parts(Graph& graph, const Wish& wish, size_t& step) {
  PrecisionChoice choice;
  const Precision precision = wish.precision;
  const bool possible =
      precision != Precision::f32 && (precision != Precision::fast || dense::has_bf16_tiles() ||
                                      (wish.measured && dense::has_word_products()));
  bool wide = false;  // the last such step
  for (Node& node : graph.nodes) {
    for (graph::Subgraph& sub : node.subgraphs) {
      HOLOGRAM_TRY(const PrecisionChoice inner, choose_parts(*sub.graph, wish, step));
      choice.narrow += inner.narrow;
      choice.wide += inner.wide;
      choice.widened += inner.widened;
      choice.digits += inner.digits;
      choice.bytes += inner.bytes;
      choice.words += inner.words;
      choice.same_grades.insert(choice.same_grades.end(), inner.same_grades.begin(),
                                inner.same_grades.end());
      choice.kinds.insert(choice.kinds.end(), inner.kinds.begin(), inner.kinds.end());
      choice.product_of.insert(inner.product_of.begin(), inner.product_of.end());
    }
    const bool words = by_words(graph, node, precision);
    const bool product = words || (node.domain == "hologram" && multiplies(node));
    const bool narrow =
        words || (product && possible && has_narrow_kernel(graph, node, precision, wish.measured));
    const bool bytes =
        narrow && wish.measured && precision == Precision::bf16 && has_bytes(graph, node);
    const auto grade_at = [&](size_t wider) {
      return grade_of(graph, node, wish, static_cast<unsigned>(wider), bytes);
    };
    Grade grade = Grade::f32;
    if (narrow && grade_at(0) != Grade::f32) {
      grade = grade_at(step < wish.widened.size() ? wish.widened[step] : 0);
      if (!words) wide = grade > Grade::part;  // a row says nothing about images
      if (grade != grade_at(0)) ++choice.widened;
      choice.kinds.push_back(kind_of(node));
      auto& same = choice.same_grades.emplace_back(size_t{widest_grade(precision)} + 1);
      for (size_t i = same.size(); i-- > 0;) {
        const bool next = i + 1 < same.size() && grade_at(i) == grade_at(i + 1);
        same[i] = next ? same[i + 1] : static_cast<uint8_t>(i);
      }
      ++step;
    }
    choice.wide_nodes.push_back(wide);
    if (step != 0) choice.product_of[node.name] = step - 1;
    if (!product) continue;
    if (grade == Grade::f32) {
      ++choice.wide;
      continue;
    }
    ++choice.narrow;
    if (grade == Grade::f16) {
      node.attributes.set("half", int64_t{1});
      continue;
    }
    if (node.op == "Conv") node.attributes.set("algorithm", int64_t{0});
    if (grade == Grade::byte) {
      ++choice.bytes;
      if (node.op == "Conv")
        node.attributes.set("digits", int64_t{1});
      else
        HOLOGRAM_CHECK(use_byte_weights(graph, node));
      continue;
    }
    if (grade == Grade::words) {
      node.attributes.set("bits", int64_t{16});
      node.attributes.set("group", int64_t{dense::kWordGroup});
      ++choice.words;
      continue;
    }
    if (grade == Grade::digits || grade == Grade::shorts) {
      node.attributes.set("digits", int64_t{grade == Grade::digits ? 2 : 1});
      if (grade == Grade::shorts) node.attributes.set("digit_bits", int64_t{16});
      ++choice.digits;
      continue;
    }
    node.attributes.set("parts", int64_t{grade == Grade::two_parts ? 2 : 1});
  }
  return choice;
}
}  // namespace

uint8_t widest_grade(Precision precision) {
  switch (precision) {
    case Precision::f32:
      return 1;
    case Precision::fast:
      return 2;
    case Precision::bf16:
      return 4;
    default:
      return 0;
  }
}

Result<PrecisionChoice> choose_precision(Graph& graph, Precision precision,
                                         const std::vector<uint8_t>& widened, bool measured) {
  if (precision == Precision::int8 || precision == Precision::int4)
    return use_weight_codes(graph, precision);
  if (precision == Precision::f32 && measured) return choose_exact_sums(graph, widened);
  size_t step = 0;
  return choose_parts(graph, {precision, widened, measured}, step);
}

std::string describe(const PrecisionChoice& choice, Precision precision) {
  if (precision == Precision::f32)
    return choice.widened == 0 ? ""
                               : fmt::format("f32: {} convolutions by sums of f64, {} of f32",
                                             choice.widened, choice.narrow - choice.widened);
  if (precision == Precision::int8 || precision == Precision::int4) {
    const bool four = precision == Precision::int4;
    return fmt::format("{}: {} steps by weights of {} bits{}, {} in f32", four ? "int4" : "int8",
                       choice.narrow, four ? 4 : 8, four ? "" : " in integers", choice.wide);
  }
  const bool fast = precision == Precision::fast;
  if (fast && !dense::has_bf16_tiles())
    return fmt::format(
        "fast: {}{}{} steps in f32, since this CPU has no bf16 tiles",
        choice.digits == 0 ? "" : fmt::format("{} steps by 16-bit integers, ", choice.digits),
        choice.words == 0 ? "" : fmt::format("{} steps by weights of 16 bits, ", choice.words),
        choice.wide);
  if (precision == Precision::f16)
    return fmt::format("f16: weights of {} steps as f16, of {} in f32", choice.narrow, choice.wide);
  std::string text = fmt::format("{}: {} steps as {}, {} in f32", fast ? "fast" : "bf16",
                                 choice.narrow, fast ? "two bf16 parts" : "bf16", choice.wide);
  if (choice.words != 0) text += fmt::format("; {} of them by weights of 16 bits", choice.words);
  if (choice.digits != 0) text += fmt::format("; {} of them 16-bit integers", choice.digits);
  if (choice.bytes != 0) text += fmt::format("; {} of them 8-bit integers", choice.bytes);
  if (choice.widened != 0) text += fmt::format("; {} of them wider", choice.widened);
  return text;
}

}  // namespace hologram::compiler
