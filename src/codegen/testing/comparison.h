// Compares native code with the interpreter on one launch, on every target this machine has.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "codegen/compile.h"
#include "codegen/testing/native_program.h"
#include "codegen/testing/targets.h"
#include "isa/interpreter.h"

namespace hologram::codegen::testing {

// The bytes of one array of a launch.
template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto* const first = reinterpret_cast<const std::byte*>(values.data());
  return {first, first + values.size() * sizeof(T)};
}

// A program compiled for every target, to be launched in several ways.
class Comparison {
 public:
  explicit Comparison(isa::Program program) : program_(std::move(program)) {
    for (const Target& target : runnable_targets()) {
      const auto code = compile(program_, target);
      if (!code) {
        ADD_FAILURE() << code.error().to_string();
        continue;
      }
      natives_.emplace_back(std::string(target.level_name()), *NativeProgram::load(*code));
    }
  }

  // `arrays`: one a parameter, empty for scalars, which are taken from `scalars`. All arrays must
  // have the same bytes afterwards.
  void expect_same(const isa::LaunchShape& shape, const std::vector<std::vector<std::byte>>& arrays,
                   const std::vector<isa::Argument>& scalars) const {
    const auto arguments = [&](std::vector<std::vector<std::byte>>& storage) {
      std::vector<isa::Argument> result = scalars;
      for (size_t p = 0; p < storage.size(); ++p)
        if (program_.parameters[p].is_array)
          result[p] = isa::Argument::array(
              storage[p].data(), storage[p].size() / size_of(program_.parameters[p].type));
      return result;
    };
    auto expected = arrays;
    const auto done = isa::interpret(program_, shape, arguments(expected));
    ASSERT_TRUE(done) << done.error().to_string();
    for (const auto& [level, native] : natives_) {
      auto got = arrays;
      EXPECT_EQ(native.run(shape, arguments(got)), 0u) << level;
      for (size_t p = 0; p < got.size(); ++p)
        for (size_t i = 0; i < got[p].size(); ++i)
          ASSERT_EQ(got[p][i], expected[p][i]) << program_.name << " on " << level << ": "
                                               << program_.parameters[p].name << ", byte " << i;
    }
  }

 private:
  isa::Program program_;
  std::vector<std::pair<std::string, NativeProgram>> natives_;
};

}  // namespace hologram::codegen::testing
