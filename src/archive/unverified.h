// Unverified: the constants of an archive, whose hash is still to be checked, and once it has been,
// what came of it. They lie in memory that the archive's owner keeps, or in a file that is mapped
// when they are first asked for. Filled by the thread that opens the archive, then safe from any
// thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "archive/layout.h"
#include "archive/pages.h"
#include "support/file.h"

namespace hologram::archive {

class Unverified {
 public:
  // `keep_pages`: see OpenOptions.
  explicit Unverified(bool keep_pages) : keep_pages_(keep_pages) {}
  void set_place(uint64_t offset, uint64_t size, const Hash128& hash) {
    offset_ = offset;
    size_ = size;
    hash_ = hash;
    present_ = true;
  }
  void set_bytes(std::span<const std::byte> bytes) { bytes_ = bytes; }
  // Where they were not set: they are mapped from here.
  void set_file(OpenFile file) {
    if (bytes_.size() < size_) file_ = std::move(file);
  }
  // The hashes of the blocks of the constants; `hashes` is a section that has been checked.
  Status set_blocks(std::span<const std::byte> hashes);
  // The bytes lie in a map of a file: pages that checking has brought in are let go, so that only
  // what a run reads stays in the process.
  void set_mapped() {
    mapped_ = true;
    if (!keep_pages_ && size_ >= PageRelease::kLarge) pages_.emplace(bytes_);
  }
  // Archive::page_release(), once the bytes were asked for.
  PageRelease* page_release() { return pages_ && pages_->is_cheap() ? &*pages_ : nullptr; }
  Result<std::span<const std::byte>> bytes();
  Status verify(ThreadPool& threads);
  Status verify(std::span<const std::byte> bytes, ThreadPool& threads, Reading reading);
  void bring_in(std::span<const std::byte> bytes, ThreadPool& threads);
  bool is_passed() const { return passed_.load(std::memory_order_acquire); }

 private:
  enum BlockState : uint8_t { unseen, in_use, passed };
  // The blocks that these bytes lie in; none where they are no constants.
  std::pair<size_t, size_t> blocks_of(std::span<const std::byte> bytes) const;
  // Of the blocks [begin, end). `release`: pages of those that nobody has read are let go.
  Status verify_blocks(size_t begin, size_t end, ThreadPool& threads, bool release);
  static std::unexpected<Error> damaged(SectionKind kind);
  Status open_map();

  uint64_t offset_ = 0, size_ = 0;
  Hash128 hash_;
  bool present_ = false;  // the archive has such a section
  OpenFile file_;         // until it is mapped
  FileMap map_;
  std::once_flag once_;  // of the map; what it came to is `opened_`
  Status opened_;
  std::span<const std::byte> bytes_;
  std::vector<Hash128> blocks_;                     // empty where the constants are one block
  std::unique_ptr<std::atomic<uint8_t>[]> states_;  // of the blocks
  const bool keep_pages_;
  bool mapped_ = false;
  std::optional<PageRelease> pages_;  // where they are mapped and large
  std::atomic<bool> passed_ = false;
  std::mutex mutex_;  // guards `failed_`; held while checking, so that it is done once
  Status failed_;
};

}  // namespace hologram::archive
