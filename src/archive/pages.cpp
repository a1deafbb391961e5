#include "archive/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <functional>

namespace hologram::archive {
namespace {

constexpr uintptr_t kHugePage = 2 << 20;
constexpr ptrdiff_t kPiece = 16 << 20;  // let go at once: each time all threads take notice
constexpr ptrdiff_t kGap = 1 << 20;     // small constants in between

}  // namespace

void release_pages(std::span<const std::byte> part) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t past = (begin + part.size()) / page * page;
  if (first >= past) return;
  auto* pages = const_cast<std::byte*>(part.data()) + (first - begin);
  (void)madvise(pages, past - first, MADV_DONTNEED);
}

bool PageRelease::holds(std::span<const std::byte> part) const {
  const std::less_equal<> not_after;
  return not_after(constants_.data(), part.data()) &&
         not_after(part.data() + part.size(), constants_.data() + constants_.size());
}

void PageRelease::release(std::span<const std::byte> part) {
  // Of this thread alone: what else the system does meanwhile is no cost of this.
  const auto microseconds = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
  };
  const double start = microseconds();
  release_pages(part);
  note(part.size(), microseconds() - start);
}

void PageRelease::note(size_t bytes, double microseconds) {
  // Pages of 4 KiB take 15 to 100 us a MiB, huge ones 1 to 7, and as they go they come back. To
  // tell the CPUs of other threads takes some 20 however much it is.
  const bool dear = microseconds > 40 + 10 * static_cast<double>(bytes) / (1 << 20);
  const int seen = dear_.load(std::memory_order_relaxed);
  if (dear || seen > -kOften) dear_.store(seen + (dear ? 1 : -1), std::memory_order_relaxed);
}

void PageWindow::pass(std::span<const std::byte> part) {
  if (!pages_->holds(part)) return;
  if (!first_ || part.data() < first_ || part.data() - past_ > kGap) {
    // Less is not worth the call.
    if (past_ - first_ >= static_cast<ptrdiff_t>(kHugePage)) pages_->release({first_, past_});
    first_ = past_ = part.data();
  }
  past_ = std::max(past_, part.data() + part.size());
  if (past_ - first_ < kPiece) return;
  // The huge page that the next constant begins in stays.
  const std::byte* until = past_ - reinterpret_cast<uintptr_t>(past_) % kHugePage;
  pages_->release({first_, until});
  first_ = until;
}

}  // namespace hologram::archive
