#include <algorithm>

#include "archive/unverified.h"

namespace hologram::archive {
namespace {

Hash128 hash_of(std::span<const std::byte> bytes, ThreadPool* threads) {
  if (bytes.size() <= kHashBlock) return hash128(bytes);
  std::vector<Hash128> blocks((bytes.size() + kHashBlock - 1) / kHashBlock);
  const auto hash_blocks = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      blocks[i] = hash128(bytes.subspan(
          i * kHashBlock, std::min<size_t>(kHashBlock, bytes.size() - i * kHashBlock)));
  };
  if (threads)
    threads->parallel_for(blocks.size(), 1, hash_blocks, Schedule::dynamic);
  else
    hash_blocks(0, blocks.size());
  return hash128(std::as_bytes(std::span(blocks)));
}

}  // namespace

Hash128 section_hash(std::span<const std::byte> bytes) { return hash_of(bytes, nullptr); }

Status Unverified::verify(ThreadPool& threads) {
  if (passed_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(mutex_);
  if (!failed_) return failed_;
  if (passed_.load(std::memory_order_relaxed)) return {};
  for (const Part& part : parts_)
    if (hash_of(part.bytes, &threads) != part.hash)
      return failed_ = fail(ErrorCode::corrupt, "section {} is damaged",
                            static_cast<uint32_t>(part.kind));
  passed_.store(true, std::memory_order_release);
  return {};
}

Status Archive::verify(ThreadPool& threads) const { return unverified_->verify(threads); }

}  // namespace hologram::archive
