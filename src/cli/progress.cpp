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
      terminal_(isatty(STDERR_FILENO)) {}

Progress::~Progress() {
  if (visible_) draw({}, true);
}

void Progress::advance(uint64_t amount, std::string_view detail) {
  done_ += amount;
  draw(detail, false);
}

void Progress::set(uint64_t done, uint64_t total, std::string_view detail) {
  done_ = done;
  total_ = total;
  draw(detail, false);
}

void Progress::draw(std::string_view detail, bool last) {
  if (!terminal_) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  const auto now = steady_clock::now();
  if (!last && (now - start_ < milliseconds(300) || now - drawn_ < milliseconds(50))) return;
  drawn_ = now;
  visible_ = true;
  constexpr int kWidth = 30;
  const uint64_t total = std::max<uint64_t>(total_, 1), done = std::min<uint64_t>(done_, total);
  const int filled = static_cast<int>(done * kWidth / total);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  fmt::print(stderr, "\r\033[K{} [{:=<{}}{: <{}}] {:3}% {:.1f} s {}{}", label_, "", filled, "",
             kWidth - filled, done * 100 / total, seconds, detail.substr(0, 40), last ? "\n" : "");
  std::fflush(stderr);
}

}  // namespace hologram::cli
