#include "page.h"

#include <fmt/format.h>

#include "graph/operator.h"

namespace hologram::conformance {
namespace {

using graph::Operator;
using graph::TypeSet;

struct Column {
  const char* title;
  std::vector<DType> types;  // a mark where all of them are supported
};

const std::vector<Column>& columns() {
  static const std::vector<Column> kColumns = {
      {"f16", {DType::f16}},
      {"bf16", {DType::bf16}},
      {"f32", {DType::f32}},
      {"f64", {DType::f64}},
      {"i8", {DType::i8}},
      {"i16", {DType::i16}},
      {"i32", {DType::i32}},
      {"i64", {DType::i64}},
      {"u8", {DType::u8}},
      {"u16", {DType::u16}},
      {"u32", {DType::u32}},
      {"u64", {DType::u64}},
      {"bool", {DType::boolean}},
      {"str", {DType::string}},
      {"c64", {DType::complex64, DType::complex128}},
      {"f8", {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz}},
      {"f4", {DType::f4e2m1}},
      {"i4", {DType::i4, DType::u4}},
      {"i2", {DType::i2, DType::u2}},
  };
  return kColumns;
}

// T of "seq(T)" and "opt(T)".
std::string unwrapped(const std::string& type) {
  const bool wrapped = type.starts_with("seq(") || type.starts_with("opt(");
  return wrapped ? type.substr(4, type.size() - 5) : type;
}

// The types of the first operand, or of the result where there is none; nothing where any value
// will do.
std::optional<TypeSet> main_types(const Operator& entry) {
  const auto& formals = entry.inputs.empty() ? entry.outputs : entry.inputs;
  if (formals.empty()) return std::nullopt;
  const std::string type = unwrapped(formals[0].type);
  if (auto fixed = dtype_from_name(type)) return TypeSet{*fixed};
  if (auto found = entry.constraints.find(type); found != entry.constraints.end())
    return found->second;
  return std::nullopt;
}

const char* way_of(const Operator& entry) {
  if (entry.control_flow) return "session";
  if (entry.compose) return "composition";
  if (entry.pointwise) return "pointwise";
  return entry.kernel.empty() ? "refused" : "kernel";
}

void write_operators(std::string& page, const std::string& domain) {
  page += fmt::format("\n### {}\n\n| operator | runs as |", domain.empty() ? "ai.onnx" : domain);
  for (const Column& column : columns()) page += fmt::format(" {} |", column.title);
  page += "\n|---|---|";
  for (size_t i = 0; i < columns().size(); ++i) page += ":-:|";
  page += "\n";
  for (const Operator* entry : graph::operators().all()) {
    if (entry->domain != domain) continue;
    page += fmt::format("| {} | {} |", entry->name, way_of(*entry));
    const auto types = main_types(*entry);
    const bool runs = std::string_view(way_of(*entry)) != "refused";
    for (const Column& column : columns()) {
      bool all = runs;
      for (const DType type : column.types) all = all && (!types || types->has(type));
      page += all ? " x |" : " |";
    }
    page += "\n";
  }
}

}  // namespace

std::string operator_list() {
  std::string text;
  for (const Operator* entry : graph::operators().all())
    for (const auto* formals : {&entry->inputs, &entry->outputs})
      for (const Operator::Formal& formal : *formals) {
        const auto found = entry->constraints.find(unwrapped(formal.type));
        text += fmt::format(
            "{} {} {} {} {}\n", entry->domain.empty() ? "ai.onnx" : entry->domain, entry->name,
            formals == &entry->inputs ? "in" : "out", formal.name,
            found == entry->constraints.end() ? formal.type : found->second.to_string());
      }
  return text;
}

std::string conformance_page(const std::vector<Known>& suites) {
  std::string page =
      "# Conformance\n\n"
      "<!-- Written by `./dev conformance`; a test compares it with what is so. -->\n\n"
      "Every case goes the whole way: ONNX model, graph, archive, session, comparison with the\n"
      "suite's own tolerance. *Refused* is an error while compiling, *failed* a different answer "
      "or an\nerror while running. The lists behind this page (`tests/conformance/known_*.txt`) "
      "are checked whenever\nthe suites run.\n\n"
      "| suite | cases | passed |\n|---|--:|--:|\n";
  for (const Known& suite : suites)
    for (const std::string& total : suite.totals) {
      const size_t of = total.find(" of "), space = total.find(' ', of + 4);
      page += fmt::format("| {}: {} | {} | {} |\n", suite.suite, total.substr(space + 1),
                          total.substr(of + 4, space - of - 4), total.substr(0, of));
    }
  page += "\n## Cases that do not pass\n";
  for (const Known& suite : suites) {
    page += fmt::format("\n### {}\n", suite.suite);
    if (suite.order.empty()) page += "\nNone.\n";
    std::string reason;
    for (const std::string& line : suite.order) {
      if (suite.reasons.at(line) != reason) {
        reason = suite.reasons.at(line);
        page += fmt::format("\n{}\n\n", reason);
      }
      page += fmt::format("- {}\n", line);
    }
  }
  page +=
      "\n## Operators and types\n\n"
      "The types of an operator's first operand (of its result, where it has no operand), from the "
      "operator\ntable. Other operands and older opsets: `src/graph/ops`, `src/onnx/canonical_*`. "
      "c64 stands for both\ncomplex types, f8 for the four of 8 bits, i4 and i2 for signed and "
      "unsigned.\n";
  for (const char* domain :
       {"", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training", "com.microsoft"})
    write_operators(page, domain);
  return page;
}

}  // namespace hologram::conformance
