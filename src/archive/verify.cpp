#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "archive/unverified.h"

namespace hologram::archive {
namespace {

// Takes the whole pages of `part`, which lies in a map of a file, out of this process; they are
// there again when next used. Other memory would lose its content.
void release(std::span<const std::byte> part) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t past = (begin + part.size()) / page * page;
  if (first < past) (void)madvise(reinterpret_cast<void*>(first), past - first, MADV_DONTNEED);
}

Hash128 hash_of(std::span<const std::byte> bytes, ThreadPool* threads, bool mapped) {
  if (bytes.size() <= kHashBlock) return hash128(bytes);
  std::vector<Hash128> blocks((bytes.size() + kHashBlock - 1) / kHashBlock);
  const auto hash_blocks = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const auto block = bytes.subspan(i * kHashBlock,
                                       std::min<size_t>(kHashBlock, bytes.size() - i * kHashBlock));
      blocks[i] = hash128(block);
      if (mapped) release(block);
    }
  };
  if (threads)
    threads->parallel_for(blocks.size(), 1, hash_blocks, Schedule::dynamic);
  else
    hash_blocks(0, blocks.size());
  return hash128(std::as_bytes(std::span(blocks)));
}

}  // namespace

Hash128 section_hash(std::span<const std::byte> bytes) { return hash_of(bytes, nullptr, false); }

Status Unverified::verify(ThreadPool& threads) {
  if (passed_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(mutex_);
  if (!failed_) return failed_;
  if (passed_.load(std::memory_order_relaxed)) return {};
  for (const Part& part : parts_)
    if (hash_of(part.bytes, &threads, mapped_) != part.hash)
      return failed_ = fail(ErrorCode::corrupt, "section {} is damaged",
                            static_cast<uint32_t>(part.kind));
  passed_.store(true, std::memory_order_release);
  return {};
}

Status Archive::verify(ThreadPool& threads) const { return unverified_->verify(threads); }

}  // namespace hologram::archive
