// Regex: does a whole text match a pattern? RE2's syntax in the parts below, on code points of
// UTF-8, in time proportional to pattern times text: no backtracking.
//
// Supported: literals, `.`, [classes] with ranges, escapes and [:alpha:], \d \w \s \D \W \S \b \B
// \A \z, \t \n \r \f \v \a \xHH \x{...}, groups ( ), (?: ), (?P<name> ), |, * + ? {n} {n,} {n,m}
// (also lazy, which is the same for a whole match), ^ $. Refused: flags, back references,
// look-around, \p.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "backends/cpu/kernels/arena.h"
#include "support/result.h"

namespace hologram::kernels {

class Regex {
 public:
  static Result<Regex> compile(std::string_view pattern);
  bool matches(std::string_view text) const;

 private:
  friend class RegexCompiler;
  enum class Kind : uint8_t { set, split, jump, start, end, edge, inside, match };
  struct Step {
    Kind kind;
    uint32_t next = 0, other = 0;  // set: where to go on, and which set
  };
  struct Set {
    List<std::pair<uint32_t, uint32_t>> ranges;
    bool negated = false;
    bool has(uint32_t point) const;
  };
  List<Step> steps_;
  List<Set> sets_;
};

// The code points of a text; a byte that is not UTF-8 stands for itself.
List<uint32_t> code_points(std::string_view text);

}  // namespace hologram::kernels
