#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace hologram::cli {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

Progress::Progress(std::string label, uint64_t total)
    : label_(std::move(label)),
      total_(total),
      start_(steady_clock::now()),
      drawn_(start_),
      terminal_(isatty(STDERR_FILENO)) {
  if (!terminal_) return;
  ticker_ = std::jthread([this](std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, stop, milliseconds(250), [&] { return stop.stop_requested(); })) {
      lock.unlock();
      draw(false);
      lock.lock();
    }
  });
}

Progress::~Progress() {
  ticker_ = {};
  if (visible_) draw(true);
}

void Progress::advance(uint64_t amount, std::string_view detail) {
  const uint64_t done = done_ += amount;
  set(done, total_, detail);
}

void Progress::set(uint64_t done, uint64_t total, std::string_view detail) {
  if (!terminal_) return;
  {
    const std::lock_guard lock(mutex_);
    detail_ = detail;
  }
  done_ = done;
  total_ = total;
  draw(false);
}

void Progress::draw(bool last) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  const auto now = steady_clock::now();
  if (!last && (now - start_ < milliseconds(1000) || now - drawn_ < milliseconds(50))) return;
  drawn_ = now;
  visible_ = true;
  constexpr int kWidth = 30;
  const uint64_t total = std::max<uint64_t>(total_, 1), done = std::min<uint64_t>(done_, total);
  const int filled = static_cast<int>(done * kWidth / total);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  fmt::print(stderr, "\r\033[K{} [{:=<{}}{: <{}}] {:3}% {:.1f} s {}{}", label_, "", filled, "",
             kWidth - filled, done * 100 / total, seconds, last ? "" : detail_.substr(0, 40),
             last ? "\n" : "");
  std::fflush(stderr);
}

}  // namespace hologram::cli
