#include "backends/cpu/builtin/table.h"

#include <algorithm>
#include <deque>

#include "backends/cpu/builtin/families.h"

namespace hologram::backends {

void BuiltinTable::add(std::string name, std::vector<isa::Parameter> parameters,
                       std::string_view meaning, CpuBuiltinEntry entry,
                       Status (*check)(const uint64_t*, const uint64_t*)) {
  // The table lives as long as the process: its strings and lists are never freed, and the deque
  // keeps them in place.
  struct Kept {
    std::string name;
    std::vector<isa::Parameter> parameters;
  };
  static std::deque<Kept>& kept = *new std::deque<Kept>;
  Kept& entry_kept = kept.emplace_back(std::move(name), std::move(parameters));
  builtins_.push_back({entry_kept.name, entry_kept.parameters, meaning, check,
                       reinterpret_cast<void (*)()>(entry)});
}

std::vector<Builtin> BuiltinTable::take_sorted() {
  std::ranges::sort(builtins_, {}, &Builtin::name);
  return std::move(builtins_);
}

std::span<const Builtin> cpu_builtins() {
  static const std::vector<Builtin>& table = *new std::vector<Builtin>([] {
    BuiltinTable all;
    add_copy_builtins(all);
    add_gemm_builtins(all);
    return all.take_sorted();
  }());
  return table;
}

}  // namespace hologram::backends
