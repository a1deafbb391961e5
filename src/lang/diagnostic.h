// lang: kernel front ends. Python source -> JSON IR -> ISA.
//
// Diagnostics: every reason a source is rejected, with its place.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/result.h"

namespace hologram::lang {

// Both count from 1; a column counts bytes.
struct Position {
  uint32_t line = 1;
  uint32_t column = 1;
  auto operator<=>(const Position&) const = default;
};

struct Diagnostic {
  Position at;
  std::string message;  // what is wrong
  std::string hint;     // what to write instead; may be empty
};

// Collects all rejections of one source. Not thread safe; one a compilation.
class Diagnostics {
 public:
  // Both views must outlive this object.
  Diagnostics(std::string_view file, std::string_view source) : file_(file), source_(source) {}

  // At most one message a position: the first reason is the cause, the others follow from it.
  void add(Position at, std::string message, std::string hint = {});

  bool empty() const { return list_.empty(); }
  // In the order of the source.
  std::vector<Diagnostic> sorted() const;
  // "a.py:3:7: error: message", the line, a caret under the column, the hint; for every diagnostic.
  std::string render() const;
  // parse_error with everything render() says.
  Error error() const;

 private:
  std::string_view file_;
  std::string_view source_;
  std::vector<Diagnostic> list_;
  std::set<Position> places_;
};

}  // namespace hologram::lang
