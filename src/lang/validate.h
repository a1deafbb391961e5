// The rules of the IR, checked on whatever front end it comes from.
#pragma once

#include <string_view>

#include "lang/ir.h"
#include "support/result.h"

namespace hologram::lang {

// Checks names, types, nesting and calls, and fills Expr::type. verify_error names the place:
// "kernel 'scale': body[1].then[0].value.left: ...", or under `root` where it is given:
// "$.kernel.body[1]...". The fields are those of the JSON form.
Status validate(ir::Kernel& kernel, std::string_view root = {});

// How large the kernel is with every helper written out at its calls: expressions and statements.
// Helpers that call helpers twice each double it, so it is checked before anything is written out.
// The functions must not be recursive.
uint64_t expanded_size(const ir::Kernel& kernel);
inline constexpr uint64_t kMaximumSize = 1 << 18;

// Whether control can reach the end of `body`.
bool falls_through(const std::vector<ir::Stmt>& body);

}  // namespace hologram::lang
