// For tests: a kernel's source, run by the reference interpreter on vectors.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "isa/interpreter.h"
#include "lang/compile.h"

namespace hologram::lang {

// Compiles a source of one kernel; a rejection fails the test and shows the diagnostics.
inline CompiledKernel compile_or_fail(std::string_view source) {
  auto kernels = compile_source(source, "test.py");
  if (!kernels) {
    ADD_FAILURE() << kernels.error().message();
    return {};
  }
  return std::move(kernels->front());
}

inline void run(const CompiledKernel& kernel, std::array<uint32_t, 3> grid,
                std::array<uint32_t, 3> block, std::vector<isa::Argument> arguments) {
  const Status status = isa::interpret(kernel.program, {grid, block}, arguments);
  EXPECT_TRUE(status) << (status ? "" : status.error().to_string());
}

template <typename T>
isa::Argument array(std::vector<T>& values) {
  return isa::Argument::array(std::span<T>(values));
}
template <typename T>
isa::Argument scalar(T value) {
  return isa::Argument::scalar(value);
}

}  // namespace hologram::lang
