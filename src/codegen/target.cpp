#include "codegen/target.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/TargetParser/Host.h>

namespace hologram::codegen {
namespace {

// What a level needs beyond the one below it, by LLVM's names; processors have all or nothing of
// the rest of a level.
constexpr std::string_view kNeedV2[] = {"sse4.2", "ssse3", "popcnt", "cx16"};
constexpr std::string_view kNeedV3[] = {"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"};
constexpr std::string_view kNeedV4[] = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};

}  // namespace

std::string_view name_of(Level level) {
  constexpr std::string_view kNames[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
  return kNames[static_cast<uint8_t>(level)];
}

Result<Target> Target::host() {
  const auto features = llvm::sys::getHostCPUFeatures();
  const auto has = [&](auto& names) {
    for (std::string_view name : names)
      if (!features.lookup(llvm::StringRef(name))) return false;
    return true;
  };
  if (!has(kNeedV2))
    return fail(ErrorCode::unsupported,
                "this processor ({}) is below x86-64-v2; native code needs at least that",
                llvm::sys::getHostCPUName().str());
  Level level = Level::v2;
  if (has(kNeedV3)) level = has(kNeedV4) ? Level::v4 : Level::v3;
  Target target(level);
  target.tuned_for_ = llvm::sys::getHostCPUName().str();
  return target;
}

Result<Target> Target::named(std::string_view name) {
  if (name == "host") return host();
  for (Level level : kLevels)
    if (name == name_of(level)) return Target(level);
  return fail(ErrorCode::not_found,
              "no target '{}'; there are host, x86-64-v2, x86-64-v3 and x86-64-v4", name);
}

}  // namespace hologram::codegen
