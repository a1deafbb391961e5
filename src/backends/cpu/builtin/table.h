// The built-in kernels of the CPU: one table, filled from one file a family.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/cpu_kernel.h"

namespace hologram::backends {

// What Builtin::entry of a CPU kernel really is.
using CpuBuiltinEntry = Status (*)(const CpuContext& context, const uint64_t* words,
                                   const uint64_t* lengths);

// All of them, sorted by name. Built on first use, never changed after.
std::span<const Builtin> cpu_builtins();

// Collects the table. Names and parameters are kept for the life of the process.
class BuiltinTable {
 public:
  void add(std::string name, std::vector<isa::Parameter> parameters, std::string_view meaning,
           CpuBuiltinEntry entry,
           Status (*check)(const uint64_t* words, const uint64_t* lengths) = nullptr);
  std::vector<Builtin> take_sorted();

 private:
  std::vector<Builtin> builtins_;
};

// Short spellings for parameter lists.
inline isa::Parameter input(std::string name, DType type) {
  return {std::move(name), true, type, isa::Access::read};
}
inline isa::Parameter output(std::string name, DType type) {
  return {std::move(name), true, type, isa::Access::write};
}
inline isa::Parameter scalar(std::string name, DType type) {
  return {std::move(name), false, type, isa::Access::read};
}

}  // namespace hologram::backends
