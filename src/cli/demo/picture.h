// What the two halves of the demo share: a picture, and a clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace hologram::cli {

// The Mandelbrot set: for each pixel the steps after which it left, `limit` where it never did.
struct Picture {
  uint32_t width, height, limit;
  std::vector<uint32_t> steps;
};

class Clock {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace hologram::cli
