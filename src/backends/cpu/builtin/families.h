// The families of built-in kernels: each adds its entries to the table.
#pragma once

#include "backends/cpu/builtin/table.h"

namespace hologram::backends {

void add_copy_builtins(BuiltinTable& table);
void add_gemm_builtins(BuiltinTable& table);

inline std::string builtin_name(std::string_view op, DType type) {
  return std::string(op) + "_" + std::string(name_of(type));
}

}  // namespace hologram::backends
