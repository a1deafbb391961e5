#include "archive/pages.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
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

void prefer_large_pages(std::span<const std::byte> part) {
#ifdef MADV_HUGEPAGE
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t past = (begin + part.size()) / kHugePage * kHugePage;
  if (first < past) (void)madvise(reinterpret_cast<void*>(first), past - first, MADV_HUGEPAGE);
#else
  (void)part;
#endif
}

uint64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_minflt);
}

bool PageRelease::holds(std::span<const std::byte> part) const {
  const std::less_equal<> not_after;
  return not_after(constants_.data(), part.data()) &&
         not_after(part.data() + part.size(), constants_.data() + constants_.size());
}

void PageRelease::note(size_t bytes, uint64_t faults) {
  constexpr uint64_t kMany = 4;  // a MiB
  const bool dear = faults > kMany * bytes >> 20;
  const int seen = dear_.load(std::memory_order_relaxed);
  if (dear || seen > -kOften) dear_.store(seen + (dear ? 1 : -1), std::memory_order_relaxed);
}

void PageWindow::begin(PageRelease* pages) {
  pages_ = pages;
  first_ = past_ = nullptr;
  released_ = 0;
  if (pages_) faults_ = page_faults();
}

void PageWindow::end() {
  if (pages_ && released_ != 0) pages_->note(released_, page_faults() - faults_);
}

void PageWindow::release(const std::byte* until) {
  release_pages({first_, until});
  released_ += static_cast<size_t>(until - first_);
}

void PageWindow::pass(std::span<const std::byte> part) {
  if (!pages_->holds(part)) return;
  if (!first_ || part.data() < first_ || part.data() - past_ > kGap) {
    // Less is not worth the call.
    if (past_ - first_ >= static_cast<ptrdiff_t>(kHugePage)) release(past_);
    first_ = past_ = part.data();
  }
  past_ = std::max(past_, part.data() + part.size());
  if (past_ - first_ < kPiece) return;
  // The huge page that the next constant begins in stays.
  const std::byte* until = past_ - reinterpret_cast<uintptr_t>(past_) % kHugePage;
  release(until);
  first_ = until;
}

}  // namespace hologram::archive
