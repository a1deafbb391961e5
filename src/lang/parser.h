// Parser: tokens to a syntax tree. The grammar is in docs/kernel-language.md.
#pragma once

#include <string_view>

#include "lang/ast.h"
#include "lang/diagnostic.h"

namespace hologram::lang {

// Everything wrong is reported; the tree holds what could be read. Python that is not part of the
// language is rejected by its name.
ast::Module parse(std::string_view source, Diagnostics& diagnostics);

}  // namespace hologram::lang
