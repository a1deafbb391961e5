// What the kernel examples share: the source beside the program, an executor, and how to fail.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "lang/native/compile_kernel.h"
#include "runtime/executor.h"
#include "support/file.h"

namespace example {

template <typename T>
T must(hologram::Result<T> result) {
  if (!result) {
    fmt::print(stderr, "{}\n", result.error().to_string());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

inline void expect(bool good, const std::string& what) {
  if (good) return;
  fmt::print(stderr, "wrong: {}\n", what);
  std::exit(1);
}

// The kernel of NAME.py in this folder.
inline hologram::runtime::KernelFunction kernel(const std::string& name) {
  const std::string file = HOLOGRAM_SOURCE_DIR "/examples/kernels/" + name + ".py";
  return must(hologram::compile_kernel(must(hologram::read_text_file(file)), "", file));
}

}  // namespace example
