// Unverified: the sections of an archive whose hashes are still to be checked, and once they have
// been, what came of it. Filled by the thread that opens the archive, then safe from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "archive/layout.h"

namespace hologram::archive {

class Unverified {
 public:
  void add(SectionKind kind, std::span<const std::byte> bytes, const Hash128& hash) {
    parts_.push_back({kind, bytes, hash});
  }
  // The hashes of the blocks of the constants; `hashes` is a section that has been checked.
  Status set_blocks(std::span<const std::byte> hashes);
  // The sections lie in a map of a file: pages that checking has brought in are let go, so that
  // only what a run reads stays in the process.
  void set_mapped() { mapped_ = true; }
  Status verify(ThreadPool& threads);
  Status verify(std::span<const std::byte> bytes, ThreadPool& threads, Reading reading);
  void bring_in(std::span<const std::byte> bytes, ThreadPool& threads);
  bool is_passed() const { return passed_.load(std::memory_order_acquire); }

 private:
  struct Part {
    SectionKind kind;
    std::span<const std::byte> bytes;
    Hash128 hash;
  };
  enum BlockState : uint8_t { unseen, in_use, passed };
  // The blocks that these bytes lie in; none where they are no constants.
  std::pair<size_t, size_t> blocks_of(std::span<const std::byte> bytes) const;
  // Of the blocks [begin, end). `release`: pages of those that nobody has read are let go.
  Status verify_blocks(size_t begin, size_t end, ThreadPool& threads, bool release);
  static std::unexpected<Error> damaged(SectionKind kind);

  std::vector<Part> parts_;
  // Of the constants; empty where they are one block or an older archive has no such section.
  std::vector<Hash128> blocks_;
  std::span<const std::byte> in_blocks_;
  std::unique_ptr<std::atomic<uint8_t>[]> states_;  // of the blocks
  bool mapped_ = false;
  std::atomic<bool> passed_ = false;
  std::mutex mutex_;  // guards `failed_`; held while checking, so that it is done once
  Status failed_;
};

}  // namespace hologram::archive
