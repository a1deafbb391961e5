// must(f()): what a benchmark cannot go on without; prints the error and ends the program.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "support/result.h"

namespace hologram::bench {

[[noreturn]] inline void die(const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.to_string().c_str());
  std::exit(1);
}

template <typename T>
T must(Result<T> result) {
  if (!result) die(result.error());
  return *std::move(result);
}
// By reference: it also stands in loops that are measured.
inline void must(const Status& status) {
  if (!status) die(status.error());
}

}  // namespace hologram::bench
