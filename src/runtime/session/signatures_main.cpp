// Writes the table of kernel signatures from the operator table:  signatures FILE
// Whatever has a signature has a kernel.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>

#include "backends/cpu/kernels/kernel.h"
#include "graph/operator.h"

namespace {

using namespace hologram;
using graph::Operator;

constexpr std::string_view kAttributeKinds = "ifsIFSt";

uint64_t types_of(const Operator& entry, std::string_view type) {
  if (const auto fixed = dtype_from_name(type)) return uint64_t{1} << static_cast<unsigned>(*fixed);
  const auto constraint = entry.constraints.find(type);
  uint64_t bits = 0;
  for (unsigned code = 0; code < 64; ++code)
    if (const auto dtype = dtype_from_code(static_cast<uint8_t>(code));
        dtype && (constraint == entry.constraints.end() || constraint->second.has(*dtype)))
      bits |= uint64_t{1} << code;
  return bits;
}

class Table {
 public:
  void add(const Operator& entry) {
    std::map<std::string, int, std::less<>> variables;
    size_t attributes = 0;
    std::string operand_lines, attribute_lines;
    for (const auto* formals : {&entry.inputs, &entry.outputs})
      for (const Operator::Formal& formal : *formals) {
        std::string_view type = formal.type;
        int form = type == "V" ? 0 : 1;
        for (const auto& [prefix, code] :
             {std::pair<std::string_view, int>{"seq(", 9}, {"opt(", 13}})
          if (type.starts_with(prefix)) {
            form = code;
            type = type.substr(4, type.size() - 5);
          }
        const bool fixed = dtype_from_name(type).has_value();
        const int variable =
            fixed ? 0
                  : variables.try_emplace(std::string(type), static_cast<int>(variables.size()) + 1)
                        .first->second;
        operand_lines += fmt::format("    {{{}, {}, {}, {}, {:#x}}},\n", variable, form,
                                     formal.optional, formal.variadic, types_of(entry, type));
      }
    for (const auto& [name, kind] : entry.attributes) {
      if (kAttributeKinds.find(kind) == std::string_view::npos) continue;
      attribute_lines += fmt::format("    {{\"{}\", {}}},\n", name, kAttributeKinds.find(kind));
      ++attributes;
    }
    signatures_.emplace(entry.kernel,
                        fmt::format("    {{\"{}\", {}, {}, {}, {}, {}, {}}},\n", entry.kernel,
                                    operand_count_, attribute_count_, entry.inputs.size(),
                                    entry.outputs.size(), attributes, entry.pointwise != nullptr));
    operands_ +=
        fmt::format("    // {}{}{}\n", entry.domain, entry.domain.empty() ? "" : ".", entry.name) +
        operand_lines;
    attributes_ += attribute_lines;
    operand_count_ += entry.inputs.size() + entry.outputs.size();
    attribute_count_ += attributes;
  }

  std::string text() const {
    std::string text = "constexpr FormalOperand kOperands[] = {\n" + operands_ +
                       "};\nconstexpr FormalAttribute kAttributes[] = {\n" + attributes_ +
                       "};\n// By kernel.\nconstexpr Signature kSignatures[] = {\n";
    for (const auto& [kernel, line] : signatures_) text += line;
    return text + "};\n";
  }

 private:
  std::string operands_, attributes_;
  size_t operand_count_ = 0, attribute_count_ = 0;
  std::multimap<std::string, std::string> signatures_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FILE\n", argv[0]);
    return 2;
  }
  Table table;
  for (const Operator* entry : graph::operators().all())
    if (kernels::find_kernel(entry->kernel)) table.add(*entry);
  const std::string text = table.text();
  // An unchanged file stays as old as it is: nothing is built again.
  if (std::ifstream before(argv[1], std::ios::binary);
      before && std::string(std::istreambuf_iterator<char>(before), {}) == text)
    return 0;
  std::ofstream file(argv[1], std::ios::binary);
  file << text;
  return file.flush() ? 0 : 1;
}
