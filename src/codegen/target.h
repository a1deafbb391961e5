// Target: the machine that code is generated for. A plain value.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "support/result.h"

namespace hologram::codegen {

// The x86-64 levels of the psABI, in order: code of a level runs on every machine of a higher one.
enum class Level : uint8_t { v2, v3, v4 };

inline constexpr std::array<Level, 3> kLevels = {Level::v2, Level::v3, Level::v4};

// "x86-64-v2", ...
std::string_view name_of(Level level);

class Target {
 public:
  explicit Target(Level level) : level_(level) {}

  // The highest level this machine has, tuned for its processor. The tuning moves instructions, it
  // never changes a result: code of one level gives the same bits on every machine. unsupported
  // where the machine is below x86-64-v2.
  static Result<Target> host();
  // "host", "x86-64-v2", "x86-64-v3" or "x86-64-v4"; not_found for anything else.
  static Result<Target> named(std::string_view name);

  Level level() const { return level_; }
  std::string_view level_name() const { return name_of(level_); }
  // The processor to tune for, as LLVM calls it; empty: none in particular.
  const std::string& tuned_for() const { return tuned_for_; }

  unsigned vector_bits() const {
    return level_ == Level::v2 ? 128 : level_ == Level::v3 ? 256 : 512;
  }
  unsigned vector_registers() const { return level_ == Level::v4 ? 32 : 16; }
  bool has_fma() const { return level_ >= Level::v3; }
  bool has_f16_conversion() const { return level_ >= Level::v3; }
  // Loads, stores and arithmetic under a mask of any element size.
  bool has_masks() const { return level_ >= Level::v4; }

 private:
  Level level_;
  std::string tuned_for_;
};

}  // namespace hologram::codegen
