#include <algorithm>
#include <cstring>
#include <functional>

#include "archive/pages.h"
#include "archive/unverified.h"

namespace hologram::archive {
namespace {

std::span<const std::byte> block_of(std::span<const std::byte> bytes, size_t index) {
  const size_t begin = index * kHashBlock;
  return bytes.subspan(begin, std::min<size_t>(kHashBlock, bytes.size() - begin));
}

Hash128 hash_of(std::span<const std::byte> bytes, ThreadPool* threads, bool mapped) {
  if (bytes.size() <= kHashBlock) return hash128(bytes);
  std::vector<Hash128> blocks(block_count(bytes.size()));
  const auto hash_blocks = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      blocks[i] = hash128(block_of(bytes, i));
      if (mapped) release_pages(block_of(bytes, i));
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

std::vector<Hash128> block_hashes(std::span<const std::byte> bytes) {
  if (bytes.size() <= kHashBlock) return {};
  std::vector<Hash128> hashes(block_count(bytes.size()));
  for (size_t i = 0; i < hashes.size(); ++i) hashes[i] = hash128(block_of(bytes, i));
  return hashes;
}

std::unexpected<Error> Unverified::damaged(SectionKind kind) {
  return fail(ErrorCode::corrupt, "section {} is damaged", static_cast<uint32_t>(kind));
}

Status Unverified::open_map() {
  HOLOGRAM_TRY(map_, file_.map());
  file_ = OpenFile();
  bytes_ = map_.bytes().subspan(offset_, size_);
  set_mapped();
  return {};
}

Result<std::span<const std::byte>> Unverified::bytes() {
  std::call_once(once_, [&] {
    if (bytes_.size() < size_) opened_ = open_map();
  });
  HOLOGRAM_CHECK(opened_);
  return bytes_;
}

Status Unverified::set_blocks(std::span<const std::byte> hashes) {
  if (!present_ || size_ <= kHashBlock || hashes.size() != block_count(size_) * sizeof(Hash128) ||
      hash128(hashes) != hash_)
    return damaged(SectionKind::hashes);
  blocks_.resize(block_count(size_));
  std::memcpy(blocks_.data(), hashes.data(), hashes.size());
  states_ = std::make_unique<std::atomic<uint8_t>[]>(blocks_.size());
  return {};
}

Status Unverified::verify_blocks(size_t begin, size_t end, ThreadPool& threads, bool release) {
  std::atomic<bool> good = true;
  const auto check = [&](size_t from, size_t to) {
    for (size_t i = begin + from; i < begin + to; ++i) {
      const uint8_t before = states_[i].load(std::memory_order_acquire);
      if (before == passed) continue;
      if (hash128(block_of(bytes_, i)) != blocks_[i])
        good.store(false, std::memory_order_relaxed);
      else
        states_[i].store(passed, std::memory_order_release);
      if (release && mapped_ && before == unseen) release_pages(block_of(bytes_, i));
    }
  };
  threads.parallel_for(end - begin, 1, check, Schedule::dynamic);
  if (!good) return damaged(SectionKind::constants);
  return {};
}

Status Unverified::verify(ThreadPool& threads) {
  if (is_passed()) return {};
  HOLOGRAM_TRY(const auto all, bytes());
  std::lock_guard lock(mutex_);
  if (!failed_) return failed_;
  if (passed_.load(std::memory_order_relaxed)) return {};
  if (!blocks_.empty())
    failed_ = verify_blocks(0, blocks_.size(), threads, true);
  else if (present_ && hash_of(all, &threads, mapped_) != hash_)
    failed_ = damaged(SectionKind::constants);
  if (!failed_) return failed_;
  passed_.store(true, std::memory_order_release);
  return {};
}

std::pair<size_t, size_t> Unverified::blocks_of(std::span<const std::byte> bytes) const {
  const std::less_equal<> not_after;
  if (bytes.empty() || !not_after(bytes_.data(), bytes.data()) ||
      !not_after(bytes.data() + bytes.size(), bytes_.data() + bytes_.size()))
    return {0, 0};
  const auto offset = static_cast<size_t>(bytes.data() - bytes_.data());
  size_t begin = offset / kHashBlock;
  const size_t end = (offset + bytes.size() - 1) / kHashBlock + 1;
  while (begin < end && states_[begin].load(std::memory_order_acquire) == passed) ++begin;
  return {begin, end};
}

Status Unverified::verify(std::span<const std::byte> bytes, ThreadPool& threads, Reading reading) {
  if (bytes.empty() || is_passed()) return {};
  if (blocks_.empty()) return verify(threads);
  if (pages_ && reading != Reading::part) prefer_large_pages(bytes);
  auto [begin, end] = blocks_of(bytes);
  if (reading == Reading::done)
    for (size_t count = end - begin; count % threads.size() != 0; --count) {
      uint8_t seen = unseen;
      states_[--end].compare_exchange_strong(seen, in_use, std::memory_order_acq_rel);
    }
  return begin == end ? Status() : verify_blocks(begin, end, threads, reading == Reading::part);
}

void Unverified::bring_in(std::span<const std::byte> bytes, ThreadPool& threads) {
  if (!mapped_ || blocks_.empty() || is_passed()) return;
  const auto [begin, end] = blocks_of(bytes);
  if (begin == end) return;
  if (pages_) prefer_large_pages(bytes);
  // A touch brings in the pages around it that lie in the same 64 KB: Linux's default. Where it
  // does not the rest come in when they are read.
  constexpr size_t kAround = 64 << 10;
  const std::span<const std::byte> part = bytes_.subspan(
      begin * kHashBlock, std::min(end * kHashBlock, bytes_.size()) - begin * kHashBlock);
  threads.parallel_for((part.size() + kAround - 1) / kAround, 4, [part](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i)
      (void)*static_cast<const volatile std::byte*>(part.data() + i * kAround);
  });
}

Result<std::span<const std::byte>> Archive::constants() const { return unverified_->bytes(); }
Status Archive::verify(ThreadPool& threads) const { return unverified_->verify(threads); }
Status Archive::verify(std::span<const std::byte> part, ThreadPool& threads,
                       Reading reading) const {
  return unverified_->verify(part, threads, reading);
}
void Archive::bring_in(std::span<const std::byte> part, ThreadPool& threads) const {
  unverified_->bring_in(part, threads);
}
PageRelease* Archive::page_release() const { return unverified_->page_release(); }
bool Archive::is_verified() const { return unverified_->is_passed(); }

}  // namespace hologram::archive
