// RegisterNames: the registers of a text while it is read. A number is the register's place in the
// program; names and unnamed literals come behind the numbered ones, in order of appearance.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "isa/lexer.h"
#include "isa/program.h"
#include "support/result.h"

namespace hologram::isa {

class RegisterNames {
 public:
  // The register a token names, known from now on. It stands in instructions under a provisional
  // index until resolve().
  Result<Register> find(const Token& token);
  // A register nothing in the text names.
  Register unnamed(DType type);

  std::optional<DType> type_of(Register r) const { return entries_[r.index].type; }
  void set_type(Register r, DType type) { entries_[r.index].type = type; }

  // Gives every register its place, in `program.registers` and in all instructions.
  Status resolve(Program& program);
  // A message with "%7" as the text spells that register; after resolve().
  std::string with_names(std::string_view message) const;

 private:
  struct Entry {
    Token token;
    std::optional<DType> type;
    std::optional<uint32_t> number;
  };
  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, uint32_t> by_name_;
  std::vector<std::string_view> spelling_;  // place -> name, empty for an unnamed one
};

// parse_error at a token: "line:column: message".
template <typename... Args>
std::unexpected<Error> fail_at(const Token& token, fmt::format_string<Args...> format,
                               Args&&... args) {
  return fail(ErrorCode::parse_error, "{}:{}: {}", token.line, token.column,
              fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace hologram::isa
