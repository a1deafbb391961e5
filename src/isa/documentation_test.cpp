// docs/isa.md lists the instruction set; this keeps it from going stale.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "isa/binary.h"
#include "isa/fields.h"
#include "isa/text.h"
#include "support/file.h"

namespace hologram::isa {
namespace {

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  const size_t at = text.find(what);
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

// The types an operation takes, in as few words as there are.
std::string types_of(Opcode op) {
  std::string all;
  for (uint8_t code = 0; code <= static_cast<uint8_t>(DType::f64); ++code)
    if (accepts(op, static_cast<DType>(code)))
      all += fmt::format("{}{}", all.empty() ? "" : " ", name_of(static_cast<DType>(code)));
  static const std::map<std::string, std::string> kWords = {
      {"bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64", "all"},
      {"i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64", "integers, floats"},
      {"bool i8 i16 i32 i64 u8 u16 u32 u64", "integers, bool"},
      {"i8 i16 i32 i64 f16 bf16 f32 f64", "signed integers, floats"},
      {"i8 i16 i32 i64 u8 u16 u32 u64", "integers"},
      {"f16 bf16 f32 f64", "floats"}};
  const auto word = kWords.find(all);
  return word == kWords.end() ? all : word->second;
}

// An operation as one writes it, from the disassembler itself.
std::string written(Opcode op) {
  Program program;
  program.parameters = {{"x", true, DType::f32, Access::read_write}};
  program.shared = {{"s", DType::f32, 1}};
  Instruction instruction{.op = op, .dst = {0}, .a = {1}, .b = {2}, .c = {3}, .symbol = 0};
  return replaced(replaced(disassemble(program, instruction), ".f32", ".T"), "0.0", "value");
}

// All of a row but the meaning.
std::string row(Opcode op) {
  const bool typed = uses({.op = op}, kFieldType);
  return fmt::format("| `{}` | {} | `{}` | {} |", info(op).name, binary_code(op), written(op),
                     typed ? types_of(op) : "");
}

TEST(Documentation, ListsEveryOperationAsItIs) {
  const auto text = read_text_file(std::string(HOLOGRAM_SOURCE_DIR) + "/docs/isa.md");
  ASSERT_TRUE(text) << text.error().to_string();
  std::multiset<std::string> documented;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    const std::string name = line.substr(3, line.find('`', 3) - 3);
    documented.insert(name);
    const auto op = opcode_from_name(name);
    ASSERT_TRUE(op) << "docs/isa.md lists '" << name << "', which is no operation";
    EXPECT_TRUE(line.starts_with(row(*op) + " "))
        << "expected " << row(*op) << "\n     got " << line;
  }
  for (uint8_t i = 0; i < kOpcodeCount; ++i)
    EXPECT_EQ(documented.count(std::string(kOpcodes[i].name)), 1u) << row(static_cast<Opcode>(i));
}

// The kernels shown in the documentation assemble.
TEST(Documentation, ItsKernelsAssemble) {
  const auto text = read_text_file(std::string(HOLOGRAM_SOURCE_DIR) + "/docs/isa.md");
  ASSERT_TRUE(text) << text.error().to_string();
  int kernels = 0;
  for (size_t at = text->find("```\nkernel "); at != std::string::npos;
       at = text->find("```\nkernel ", at + 1)) {
    const size_t begin = at + 4;
    const auto program =
        assemble(std::string_view(*text).substr(begin, text->find("```", begin) - begin));
    EXPECT_TRUE(program) << program.error().to_string();
    ++kernels;
  }
  EXPECT_GE(kernels, 2);
}

}  // namespace
}  // namespace hologram::isa
