// Checker: a syntax tree to typed IR. The static rules are in docs/kernel-language.md.
#pragma once

#include <vector>

#include "lang/ast.h"
#include "lang/diagnostic.h"
#include "lang/ir.h"

namespace hologram::lang {

// One IR kernel a function without @inline. When anything was reported the result is incomplete
// and must not be used.
std::vector<ir::Kernel> check(const ast::Module& module, Diagnostics& diagnostics);

}  // namespace hologram::lang
