// Progress: one line on a terminal that shows how far long work has come.
//
// Draws only on a terminal and only after the work has lasted a moment; silent otherwise, so logs
// stay clean. Safe to advance from several threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace hologram::cli {

class Progress {
 public:
  Progress(std::string label, uint64_t total);
  ~Progress();  // ends the line

  void advance(uint64_t amount = 1, std::string_view detail = {});
  void set(uint64_t done, uint64_t total, std::string_view detail = {});

 private:
  void draw(std::string_view detail, bool last);

  std::string label_;
  std::atomic<uint64_t> done_ = 0, total_;
  std::chrono::steady_clock::time_point start_, drawn_;
  std::mutex mutex_;
  bool terminal_, visible_ = false;
};

}  // namespace hologram::cli
