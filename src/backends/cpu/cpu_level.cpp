#include "backends/cpu/cpu_level.h"

namespace hologram::backends {

std::string_view host_level() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v4")) return "x86-64-v4";
  if (__builtin_cpu_supports("x86-64-v3")) return "x86-64-v3";
  if (__builtin_cpu_supports("x86-64-v2")) return "x86-64-v2";
#endif
  return "";
}

int level_rank(std::string_view level) {
  if (level == "x86-64-v4") return 4;
  if (level == "x86-64-v3") return 3;
  if (level == "x86-64-v2") return 2;
  return 0;
}

}  // namespace hologram::backends
