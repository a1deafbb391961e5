// Progress: one line on a terminal that shows how far long work has come.
//
// Draws only on a terminal and only after the work has lasted a second; silent otherwise, so logs
// stay clean. A thread keeps it moving while one piece takes long. Safe to advance from several
// threads.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace hologram::cli {

class Progress {
 public:
  Progress(std::string label, uint64_t total);
  ~Progress();  // ends the line

  void advance(uint64_t amount = 1, std::string_view detail = {});
  void set(uint64_t done, uint64_t total, std::string_view detail = {});

 private:
  void draw(bool last);

  std::string label_;
  std::atomic<uint64_t> done_ = 0, total_;
  std::chrono::steady_clock::time_point start_, drawn_;
  std::mutex mutex_;
  std::string detail_;
  bool terminal_, visible_ = false;
  std::condition_variable_any ended_;
  std::jthread ticker_;
};

}  // namespace hologram::cli
