// The rules of the IR, checked on whatever front end it comes from.
#pragma once

#include "lang/ir.h"
#include "support/result.h"

namespace hologram::lang {

// Checks names, types, nesting and calls, and fills Expr::type. verify_error names the place:
// "kernel 'scale': body[1].then[0].value.left: ...".
Status validate(ir::Kernel& kernel);

// Whether control can reach the end of `body`.
bool falls_through(const std::vector<ir::Stmt>& body);

}  // namespace hologram::lang
